package guard

import (
	"context"
	"fmt"
	"html"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// MadeDatabase is a new database and the block that shows it.
type MadeDatabase struct {
	ID, Block, View, Name string
	Columns               []Column
}

// CreateDatabase makes an empty database in a new block: at the end of a
// container, else behind the block.
func (tx *Tx) CreateDatabase(ctx context.Context, at Block, name string) (MadeDatabase, error) {
	av, err := tx.newID()
	if err != nil {
		return MadeDatabase{}, err
	}
	block, err := tx.showDatabase(ctx, at, av, true)
	if err != nil {
		return MadeDatabase{}, err
	}
	err = tx.step(ctx, Step{Op: "database.create", ID: string(block), New: []string{string(av)}, Marks: []Mark{{LookDatabase, string(av), no, yes}}, More: name != ""}, func(w *siyuan.Writer) error {
		_, err := w.CreateAttributeView(ctx, av, block)
		return err
	})
	if err != nil && !answered(err) {
		return MadeDatabase{}, afterSome(err, []string{string(block)})
	}
	if name != "" {
		err = tx.step(ctx, Step{Op: "database.rename", ID: string(av), Marks: []Mark{{LookDBName, string(av), digest(""), digest(name)}}}, func(w *siyuan.Writer) error {
			_, err := w.Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{{Action: "setAttrViewName", ID: av, Data: name}}}})
			return err
		})
		if err != nil && !answered(err) {
			return MadeDatabase{}, afterSome(err, []string{string(block)})
		}
	}
	file, shown, err := tx.reread(ctx, av, func(f siyuan.AttributeView) bool { return f.Name == name && len(f.Views) > 0 })
	if err == nil && !shown {
		err = notPersisted("SiYuan made database %s, but not as it was asked to.", string(av))
	}
	made := MadeDatabase{ID: string(av), Block: string(block), View: string(file.ViewID), Name: file.Name, Columns: Database{file: file}.Columns()}
	return made, err
}

// showDatabase writes a block that shows a database; more says that the call goes
// on behind it.
func (tx *Tx) showDatabase(ctx context.Context, at Block, av siyuan.ID, more bool) (siyuan.ID, error) {
	if err := tx.covers(at); err != nil {
		return "", err
	}
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{at.id})
	if err != nil {
		return "", err
	}
	info := infos[at.id]
	if info.Type == "NodeList" || info.ParentType == "NodeList" {
		return "", contract.Fail(contract.InvalidTarget, "Block %s is a list or one of its items; a database cannot stand there.", at.ID())
	}
	block, err := tx.newID()
	if err != nil {
		return "", err
	}
	dom := fmt.Sprintf(`<div class="av" data-node-id="%s" data-av-id="%s" data-type="NodeAttributeView" data-av-type="table"></div>`, block, html.EscapeString(string(av)))
	err = tx.step(ctx, Step{Op: "block.insert", ID: at.ID(), New: []string{string(block)}, Marks: []Mark{thereMark(block, false, true)}, More: more}, func(w *siyuan.Writer) error {
		if slices.Contains(holders, info.Type) {
			_, err := w.AppendBlock(ctx, at.id, siyuan.DOM, dom)
			return err
		}
		_, err := w.InsertBlock(ctx, siyuan.DOM, dom, siyuan.Anchor{Previous: at.id})
		return err
	})
	if err != nil && !answered(err) {
		return "", err
	}
	there, err := tx.s.g.r.BlockExists(ctx, block)
	if err == nil && !there {
		err = notPersisted("SiYuan did not write the block that shows the database.")
	}
	return block, err
}

// AllBound are the blocks bound to any row, as targets of a write that ties them
// to a copy.
func (s *Session) AllBound(ctx context.Context, d Database) ([]Target, error) {
	var rows []string
	for _, v := range primary(d.file).Values {
		rows = append(rows, string(v.BlockID))
	}
	return s.BoundTo(ctx, d, rows)
}

// DuplicateDatabase copies a database with its rows, and shows the copy behind a
// block.
func (tx *Tx) DuplicateDatabase(ctx context.Context, d Database, after Block) (MadeDatabase, error) {
	d, err := tx.database(d)
	if err != nil {
		return MadeDatabase{}, err
	}
	for _, v := range primary(d.file).Values {
		if err := tx.coversBound(ctx, v); err != nil {
			return MadeDatabase{}, err
		}
	}
	for _, kv := range d.file.KeyValues {
		if err := tx.coversRelated(d, kv.Key); err != nil {
			return MadeDatabase{}, err
		}
	}
	var copied siyuan.AvCopy
	st := Step{Op: "database.duplicate", ID: d.ID(), More: true, Repeatable: "SiYuan chooses the id of the copy, and a copy that no block shows is an unused file"}
	err = tx.step(ctx, st, func(w *siyuan.Writer) (err error) {
		copied, err = w.DuplicateAttributeView(ctx, d.id)
		return err
	})
	if answered(err) {
		return MadeDatabase{}, notPersisted("SiYuan took the request to copy database %s, but names no copy.", d.ID())
	}
	if err != nil {
		return MadeDatabase{}, err
	}
	block, err := tx.showDatabase(ctx, after, copied.AvID, false)
	if err != nil {
		return MadeDatabase{}, afterSome(err, []string{string(copied.AvID)})
	}
	rows := len(primary(d.file).Values)
	file, shown, err := tx.reread(ctx, copied.AvID, func(f siyuan.AttributeView) bool {
		return len(primary(f).Values) == rows && len(f.KeyValues) == len(d.file.KeyValues)
	})
	if err == nil && !shown {
		err = notPersisted("The copy of database %s lacks rows or columns.", d.ID())
	}
	return MadeDatabase{ID: string(copied.AvID), Block: string(block), View: string(file.ViewID), Name: file.Name}, err
}
