package guard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// CellInput is a value for a cell. Type is that of the column, and "text" fits
// the primary column too. What is empty empties the cell.
type CellInput struct {
	Row, Column, Type string
	Text              string // of text, url, email, phone
	Number            *float64
	Format            string
	Start, End        *time.Time
	WithTime          bool
	Checked           bool
	Options           []string // of select, mSelect
	Related           []string // rows of the other database
	Assets            []siyuan.ValueAsset
}

// The parts of a cell, by the kind of its column.
type (
	CellAsset    = siyuan.ValueAsset
	CellText     = siyuan.ValueText
	CellTitle    = siyuan.ValueBlock
	CellNumber   = siyuan.ValueNumber
	CellDate     = siyuan.ValueDate
	CellOption   = siyuan.ValueOption
	CellTick     = siyuan.ValueCheckbox
	CellRelation = siyuan.ValueRelation
)

// SetCell is a cell as it is stored after it was set.
type SetCell struct {
	Row, Column string
	Value       CellValue
}

// SetCells sets cells and reads each back. It returns also the options that the
// columns did not have before.
func (tx *Tx) SetCells(ctx context.Context, d Database, cells []CellInput) ([]SetCell, []string, error) {
	d, err := tx.database(d)
	if err != nil {
		return nil, nil, err
	}
	var updates []siyuan.CellUpdate
	var made []string
	for i, c := range cells {
		u, err := tx.cell(ctx, d, c)
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(updates, func(o siyuan.CellUpdate) bool { return o.KeyID == u.KeyID && o.ItemID == u.ItemID }) {
			return nil, nil, contract.InvalidFields(contract.Field{Path: fmt.Sprintf("cells.%d", i), Message: "names a cell that is named before"})
		}
		fresh, err := newOptions(d, &u, made)
		if err != nil {
			return nil, nil, err
		}
		made, updates = append(made, fresh...), append(updates, u)
	}
	av, err := tx.putCells(ctx, d, updates)
	if err != nil {
		return nil, nil, err
	}
	done := make([]SetCell, len(updates))
	for i, u := range updates {
		done[i] = SetCell{Row: string(u.ItemID), Column: string(u.KeyID)}
		if v := cellOf(av, u.KeyID, u.ItemID); v != nil {
			done[i].Value = *v
		}
	}
	return done, made, nil
}

// putCells writes cells and reads each back. All cells are written here, so that
// each has a mark, which is what its way back is kept by.
func (tx *Tx) putCells(ctx context.Context, d Database, updates []siyuan.CellUpdate) (siyuan.AttributeView, error) {
	av, err := tx.change(ctx, d, Step{Op: "database.set_cells", Marks: cellMarks(d, updates)}, func(w *siyuan.Writer) error { return w.SetCells(ctx, d.id, updates) },
		func(av siyuan.AttributeView) bool { return lostCell(av, updates) < 0 }, "not every cell has its value")
	if i := lostCell(av, updates); err != nil && i >= 0 && contract.CodeOf(err) == contract.WriteNotPersisted {
		err = notPersisted("SiYuan reported the cell of row %s in column %s as written, but it has not that value.", updates[i].ItemID, updates[i].KeyID)
	}
	return av, err
}

// lostCell is the first update that a database does not show, -1 for none.
func lostCell(av siyuan.AttributeView, updates []siyuan.CellUpdate) int {
	return slices.IndexFunc(updates, func(u siyuan.CellUpdate) bool {
		return cellMark(cellOf(av, u.KeyID, u.ItemID)) != cellMark(&u.Value)
	})
}

// cell makes the kernel's form of a value.
func (tx *Tx) cell(ctx context.Context, d Database, c CellInput) (u siyuan.CellUpdate, err error) {
	if u.ItemID, err = d.row(c.Row); err != nil {
		return u, err
	}
	k, err := d.column(c.Column)
	if err != nil {
		return u, err
	}
	u.KeyID = k.ID
	switch k.Type {
	case "template", "created", "updated", "rollup", "lineNumber":
		return u, contract.Fail(contract.InvalidTarget, "Column %s is of type %s, which SiYuan computes itself.", c.Column, k.Type)
	case "block":
		u.Value, err = title(d, c, u)
		return u, err
	case c.Type:
		if stored := cellOf(d.file, u.KeyID, u.ItemID); c.Format == "" && stored != nil && stored.Number != nil {
			c.Format = stored.Number.Format // a cell keeps its format
		}
		u.Value, err = tx.value(ctx, d, k, c)
		return u, err
	}
	return u, contract.Fail(contract.InvalidValue, "Column %s is of type %s and takes no %s.", c.Column, k.Type, c.Type)
}

// title is a value for the primary column of a row that is bound to no block.
func title(d Database, c CellInput, u siyuan.CellUpdate) (siyuan.Value, error) {
	stored := cellOf(d.file, u.KeyID, u.ItemID)
	switch {
	case c.Type != "text":
		return siyuan.Value{}, contract.Fail(contract.InvalidValue, "Column %s holds the titles of the rows and takes text.", c.Column)
	case stored == nil || !stored.IsDetached:
		return siyuan.Value{}, contract.Fail(contract.InvalidTarget, "The title of row %s is the text of the block bound to it.", c.Row).
			WithHint("Change the block.")
	case c.Text == "":
		return siyuan.Value{}, contract.Fail(contract.InvalidValue, "The title of row %s must not be empty.", c.Row)
	}
	return siyuan.Value{Block: &siyuan.ValueBlock{Content: c.Text}, IsDetached: true}, nil
}

func (tx *Tx) value(ctx context.Context, d Database, k siyuan.Key, c CellInput) (v siyuan.Value, err error) {
	switch k.Type {
	case "text":
		v.Text = &siyuan.ValueText{Content: c.Text}
	case "url":
		v.URL = &siyuan.ValueText{Content: c.Text}
	case "email":
		v.Email = &siyuan.ValueText{Content: c.Text}
	case "phone":
		v.Phone = &siyuan.ValueText{Content: c.Text}
	case "checkbox":
		v.Checkbox = &siyuan.ValueCheckbox{Checked: c.Checked}
	case "number":
		v.Number = &siyuan.ValueNumber{Format: c.Format}
		if c.Number != nil {
			v.Number.Content, v.Number.IsNotEmpty = *c.Number, true
		}
	case "date":
		v.Date = date(c)
	case "select", "mSelect":
		v.Select = []siyuan.ValueOption{}
		for _, name := range c.Options {
			v.Select = append(v.Select, siyuan.ValueOption{Content: name})
		}
	case "mAsset":
		v.Assets = append([]siyuan.ValueAsset{}, c.Assets...)
		err = tx.s.checkAssets(ctx, localAssets(c.Assets))
	case "relation":
		v.Relation, err = tx.relation(ctx, d, k, c.Related)
	}
	return v, err
}

func date(c CellInput) *siyuan.ValueDate {
	v := &siyuan.ValueDate{IsNotTime: !c.WithTime}
	if c.Start != nil {
		v.Content, v.IsNotEmpty = c.Start.UnixMilli(), true
	}
	if c.End != nil {
		v.Content2, v.IsNotEmpty2, v.HasEndDate = c.End.UnixMilli(), true, true
	}
	return v
}

// localAssets are the paths among assets; the others are addresses on the web.
func localAssets(assets []siyuan.ValueAsset) []string {
	var paths []string
	for _, a := range assets {
		if !strings.HasPrefix(a.Content, "http://") && !strings.HasPrefix(a.Content, "https://") {
			paths = append(paths, a.Content)
		}
	}
	return paths
}

// relation is a value whose rows are in the other database.
func (tx *Tx) relation(ctx context.Context, d Database, k siyuan.Key, rows []string) (*siyuan.ValueRelation, error) {
	if err := tx.coversRelated(d, k); err != nil {
		return nil, err
	}
	other, err := tx.s.relatedBy(ctx, d, k)
	if err != nil {
		return nil, err
	}
	v := &siyuan.ValueRelation{BlockIDs: []siyuan.ID{}}
	for _, id := range rows {
		row, err := other.row(id)
		if err != nil {
			return nil, err
		}
		v.BlockIDs = append(v.BlockIDs, row)
	}
	return v, nil
}

// newOptions gives a choice its colour and names what the column does not have
// yet. A name that differs from one only in case is refused: it is a slip.
func newOptions(d Database, u *siyuan.CellUpdate, made []string) (fresh []string, err error) {
	k, _ := d.key(u.KeyID)
	if k.Type == "select" && len(u.Value.Select) > 1 {
		return nil, contract.Fail(contract.InvalidValue, "Column %s takes one option.", string(k.ID))
	}
	for i, choice := range u.Value.Select {
		at := slices.IndexFunc(k.Options, func(o siyuan.KeyOption) bool { return o.Name == choice.Content })
		near := slices.IndexFunc(k.Options, func(o siyuan.KeyOption) bool { return strings.EqualFold(o.Name, choice.Content) })
		switch {
		case strings.TrimSpace(choice.Content) == "":
			return nil, contract.Fail(contract.InvalidValue, "An option of column %s must have a name.", string(k.ID))
		case at >= 0:
			u.Value.Select[i].Color = k.Options[at].Color
		case near >= 0:
			return nil, contract.Fail(contract.InvalidValue, "Column %s has no option %q, but %q.", string(k.ID), choice.Content, k.Options[near].Name)
		default:
			u.Value.Select[i].Color = strconv.Itoa((len(k.Options)+len(made)+len(fresh))%14 + 1)
			fresh = append(fresh, choice.Content)
		}
	}
	return slices.DeleteFunc(fresh, func(name string) bool { return slices.Contains(made, name) }), nil
}

// cellMark is what a cell holds, as far as it can be set; an empty cell is like
// one that is not there.
func cellMark(v *siyuan.Value) string {
	switch {
	case v == nil:
	case v.Block != nil:
		return digest("title " + v.Block.Content)
	case v.Number != nil && v.Number.IsNotEmpty:
		return digest("number " + strconv.FormatFloat(v.Number.Content, 'g', -1, 64))
	case v.Date != nil && v.Date.IsNotEmpty:
		return digest(fmt.Sprint("date ", v.Date.Content, v.Date.HasEndDate, v.Date.Content2, v.Date.IsNotTime))
	case v.Checkbox != nil && v.Checkbox.Checked:
		return digest("checked")
	case len(v.Select) > 0:
		var names []string
		for _, o := range v.Select {
			names = append(names, o.Content)
		}
		return digest("options " + strings.Join(names, "\n"))
	case len(v.Assets) > 0:
		return digest(fmt.Sprint("assets ", v.Assets))
	case v.Relation != nil && len(v.Relation.BlockIDs) > 0:
		return digest(fmt.Sprint("rows ", v.Relation.BlockIDs))
	default:
		for _, t := range []*siyuan.ValueText{v.Text, v.URL, v.Email, v.Phone} {
			if t != nil && t.Content != "" {
				return digest("text " + t.Content)
			}
		}
	}
	return digest("")
}

// cellMarks prove that cells were set.
func cellMarks(d Database, updates []siyuan.CellUpdate) []Mark {
	marks := make([]Mark, len(updates))
	for i, u := range updates {
		id := strings.Join([]string{d.ID(), string(u.KeyID), string(u.ItemID)}, " ")
		marks[i] = Mark{LookCell, id, cellMark(cellOf(d.file, u.KeyID, u.ItemID)), cellMark(&u.Value)}
	}
	return marks
}
