package samplekernel

import (
	"errors"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/av"
	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

var errNoView = fail("view not found")

func (k *Kernel) avFile(id string) string { return k.workspace("data", "storage", "av", id+".json") }

// database reads a database file.
func (k *Kernel) database(id string) (*av.Database, bool) {
	if !text.ValidID(id) {
		return nil, false
	}
	db := &av.Database{}
	if readJSONFile(k.avFile(id), db) != nil {
		return nil, false
	}
	return db, true
}

// saveDatabase writes a database. The rows of its blocks in the index stay as
// they are until their documents change.
func (k *Kernel) saveDatabase(db *av.Database) error {
	return writeJSONFile(k.avFile(db.ID), db)
}

func (k *Kernel) maker() av.Maker {
	return av.Maker{NewID: k.newID, Now: func() int64 { return k.now().UnixMilli() }}
}

func (k *Kernel) lookup() av.Lookup {
	return av.Lookup{
		Block: func(id string) (string, bool) {
			p, ok := k.block(id)
			if !ok {
				return "", false
			}
			return k.refText(p), true
		},
		Database: k.database,
		Template: func(tpl string, row map[string]string) string {
			out, err := k.execute(tpl, ".action{", "}", row)
			if err != nil {
				return err.Error()
			}
			return out
		},
		NewID: k.newID,
	}
}

// databaseBlocks lists the blocks that show a database.
func (k *Kernel) databaseBlocks(avID string) (blocks []place) {
	for _, id := range sortedKeys(k.blocks) {
		p := k.blocks[id]
		if p.node != nil && p.node.Type == ast.NodeAttributeView && p.node.AttributeViewID == avID {
			blocks = append(blocks, p)
		}
	}
	return blocks
}

func (k *Kernel) databaseBlockIDs(avID string) []string {
	ids := []string{}
	for _, p := range k.databaseBlocks(avID) {
		ids = append(ids, p.node.ID)
	}
	return ids
}

// shownName is what a database without a name is called outside of it.
func shownName(db *av.Database) string {
	if db.Name == "" {
		return "Untitled"
	}
	return db.Name
}

// databaseNames is the computed attribute av-names of a bound block: a span per
// database, as the front end shows them.
func (k *Kernel) databaseNames(avs string) string {
	var spans []string
	for _, id := range strings.Split(avs, ",") {
		if db, ok := k.database(id); ok {
			spans = append(spans, fmt.Sprintf(`<span data-av-id="%s" data-popover-url="/api/av/getMirrorDatabaseBlocks" class="popover__block">%s</span>`, id, html.EscapeString(shownName(db))))
		}
	}
	return strings.Join(spans, "&nbsp;")
}

// databaseContent is the text the index holds of a database block: its name,
// its views, and each column with its values.
func (k *Kernel) databaseContent(avID string) string {
	db, ok := k.database(avID)
	if !ok {
		return ""
	}
	words := []string{db.Name}
	for _, v := range db.Views {
		words = append(words, v.Name)
	}
	for _, c := range db.Columns {
		words = append(words, c.Key.Name)
		for _, v := range c.Values {
			words = append(words, db.Cell(c, v.BlockID, k.lookup()).String())
		}
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// boundDatabases lists the databases a document is a row of, nil for none.
func (k *Kernel) boundDatabases(d *document) []any {
	var out []any
	for _, id := range strings.Split(text.Attr(d.root, "custom-avs"), ",") {
		if db, ok := k.database(id); ok {
			out = append(out, map[string]any{"id": id, "name": db.Name})
		}
	}
	return out
}

// bind notes on a block which databases it is a row of.
func (k *Kernel) bind(blockID, avID string, bound bool) error {
	p, ok := k.block(blockID)
	if !ok {
		return nil
	}
	var ids []string
	for _, id := range strings.Split(text.Attr(p.node, "custom-avs"), ",") {
		if id != "" && id != avID {
			ids = append(ids, id)
		}
	}
	if bound {
		ids = append(ids, avID)
	}
	text.SetAttr(p.node, "custom-avs", strings.Join(ids, ","))
	return k.save(p.doc)
}

// withDatabase runs a change on a database and saves it.
func (k *Kernel) withDatabase(avID string, change func(db *av.Database) error) error {
	db, ok := k.database(avID)
	if !ok {
		return errNoView
	}
	if err := change(db); err != nil {
		return err
	}
	return k.saveDatabase(db)
}

func addAttributeViewKey(k *Kernel, a args) (any, error) {
	key := &av.Key{ID: a.str("keyID"), Name: a.str("keyName"), Type: a.str("keyType"), Icon: a.str("keyIcon")}
	previous := a.str("previousKeyID")
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		db.AddKey(key, previous)
		return nil
	})
}

func removeAttributeViewKey(k *Kernel, a args) (any, error) {
	keyID := a.str("keyID")
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		if err := db.RemoveKey(keyID); err != nil {
			return fail(err.Error())
		}
		return nil
	})
}

func sortAttributeViewKey(k *Kernel, a args) (any, error) {
	keyID, previous := a.str("keyID"), a.str("previousKeyID")
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		db.MoveKey(keyID, previous)
		return nil
	})
}

// addAttributeViewBlocks adds rows. A malformed block id is skipped, a missing
// block is an error.
func addAttributeViewBlocks(k *Kernel, a args) (any, error) {
	var rows []av.Source
	avID := a.str("avID")
	for _, src := range a.objects("srcs") {
		r := av.Source{BlockID: src.str("id"), ItemID: src.strOr("itemID", ""), Detached: src.boolOr("isDetached", false), Content: src.strOr("content", "")}
		if !text.ValidID(r.BlockID) {
			continue
		}
		if !r.Detached {
			p, ok := k.block(r.BlockID)
			if !ok {
				return nil, fail(k.notFoundText())
			}
			r.Content = k.refText(p)
		}
		rows = append(rows, r)
	}
	err := k.withDatabase(avID, func(db *av.Database) error {
		db.AddRows(rows, a.strOr("previousID", ""), k.maker())
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if !r.Detached {
			if err := k.bind(r.BlockID, avID, true); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

func removeAttributeViewBlocks(k *Kernel, a args) (any, error) {
	avID, ids := a.str("avID"), a.strs("srcIDs")
	var unbound []string
	err := k.withDatabase(avID, func(db *av.Database) error {
		unbound = db.RemoveRows(ids)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range unbound {
		if err := k.bind(id, avID, false); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// replaceAttributeViewBlocks binds rows to other blocks. Blocks that have no row
// are passed over.
func replaceAttributeViewBlocks(k *Kernel, a args) (any, error) {
	avID, detached := a.str("avID"), a.boolOr("isDetached", false)
	for _, pair := range a.objects("oldNew") {
		for old := range pair {
			src := av.Source{BlockID: pair.str(old), Detached: detached}
			p, ok := k.block(src.BlockID)
			if !ok && !detached {
				continue
			} else if ok {
				src.Content = k.refText(p)
			}
			replaced := false
			err := k.withDatabase(avID, func(db *av.Database) error {
				replaced = db.Rebind(old, src, k.maker())
				return nil
			})
			if err != nil || !replaced {
				return nil, err
			}
			if err := errors.Join(k.bind(old, avID, false), k.bind(src.BlockID, avID, !detached)); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// setDatabaseBlockView makes a view the one that a database's block shows.
func setDatabaseBlockView(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("id"))
	if !ok {
		return nil, fail(k.notFoundText())
	}
	return nil, k.setAttrs(p, map[string]string{"custom-sy-av-view": a.str("viewID")})
}

// renderAttributeView creates the database unless told not to.
func renderAttributeView(k *Kernel, a args) (any, error) {
	id := a.str("id")
	db, ok := k.database(id)
	if !ok {
		if !a.boolOr("createIfNotExist", true) {
			if !text.ValidID(id) {
				return nil, fail("invalid id")
			}
			return nil, fail("attribute view not found")
		}
		db = av.New(id, k.maker())
		if err := k.saveDatabase(db); err != nil {
			return nil, err
		}
	}
	if view := a.strOr("viewID", ""); view != db.ViewID && db.View(view).ID == view { // what is rendered becomes the view to show
		db.ViewID = view
		if err := k.saveDatabase(db); err != nil {
			return nil, err
		}
	}
	return k.rendered(db, a), nil
}

func duplicateAttributeViewBlock(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("avID"))
	if !ok {
		return nil, errNoView
	}
	db.ID = k.newID()
	if err := k.saveDatabase(db); err != nil {
		return nil, err
	}
	return map[string]any{"avID": db.ID, "blockID": k.newID()}, nil
}

func removeUnusedAttributeView(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if text.ValidID(id) && len(k.databaseBlocks(id)) == 0 {
		_ = os.Remove(k.avFile(id)) // missing is as good as removed
	}
	return map[string]any{"id": id}, nil
}

// databaseIDs lists all databases of the workspace.
func (k *Kernel) databaseIDs() (ids []string) {
	entries, err := os.ReadDir(k.workspace("data", "storage", "av"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if id, isJSON := strings.CutSuffix(e.Name(), ".json"); isJSON && text.ValidID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
