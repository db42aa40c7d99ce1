package guard

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Bounds of what is kept of cells, in bytes of their JSON form.
const (
	maxImage  = 16 << 10  // of one cell
	maxImages = 256 << 10 // of all that one write changes in a database
)

// Cells is the part of a point that speaks of a database: what one write changed
// in it.
type Cells struct {
	Notebooks []string     `json:"notebooks"` // that showed it or had a block in it
	Cells     []CellChange `json:"cells,omitempty"`
	Rows      []RowChange  `json:"rows,omitempty"`

	size int // of the images
}

// CellChange is a cell before and after a write. Was and After are digests, "" of
// an empty cell.
type CellChange struct {
	Row    string     `json:"row"`
	Column string     `json:"column"`
	Type   string     `json:"type"`            // of the column
	Leads  string     `json:"leads,omitempty"` // database that a relation column leads to
	Before *CellImage `json:"before,omitempty"`
	Lost   bool       `json:"lost,omitempty"` // Before was too large to keep
	Was    string     `json:"was,omitempty"`
	After  string     `json:"after,omitempty"`
}

func (c CellChange) at() cellAt { return cellAt{siyuan.ID(c.Row), siyuan.ID(c.Column)} }

// RowChange is a row that a write added. ID is "" until SiYuan has chosen it; After
// is a digest of its cells.
type RowChange struct {
	ID    string `json:"id"`
	After string `json:"after,omitempty"`
}

// unchanged reports whether a write came to nothing.
func (c Cells) unchanged() bool {
	return !slices.ContainsFunc(c.Cells, func(c CellChange) bool { return c.Was != c.After }) &&
		!slices.ContainsFunc(c.Rows, func(r RowChange) bool { return r.After != "" })
}

// keepCells notes what a step changes in databases before it is sent. It goes by
// the step's marks, which are what proves the step: there is no write of cells or
// rows that it could miss. What no undo takes back is remembered as that.
func (tx *Tx) keepCells(ctx context.Context, st Step) error {
	if tx.s.g.opt.Points == nil {
		return nil
	}
	changed := map[string]*Point{}
	for _, m := range st.Marks {
		parts := append(strings.Fields(m.ID), "", "", "")
		av := siyuan.ID(parts[0])
		switch {
		case m.Look == LookCell:
			p, err := tx.pointOf(av)
			if err != nil {
				return err
			}
			tx.keepCell(p.Cells, tx.avs[av], cellAt{siyuan.ID(parts[2]), siyuan.ID(parts[1])})
			changed[parts[0]] = p
		case m.Look == LookRow && m.After == yes, m.Look == LookRows:
			p, err := tx.pointOf(av)
			if err != nil {
				return err
			}
			p.Cells.Rows = append(p.Cells.Rows, RowChange{ID: parts[1]})
			changed[parts[0]] = p
		case slices.Contains([]Look{LookRow, LookColumn, LookKey, LookPresets, LookView}, m.Look):
			tx.lasting = true
		}
	}
	for _, p := range changed {
		if err := tx.s.g.opt.Points.Save(ctx, tx.s.author, p); err != nil {
			return err
		}
	}
	return nil
}

// pointOf is this write's point of a database.
func (tx *Tx) pointOf(av siyuan.ID) (*Point, error) {
	for _, p := range tx.points {
		if p.Cells != nil && p.Doc == string(av) {
			return p, nil
		}
	}
	d, locked := tx.avs[av]
	if !locked {
		return nil, contract.Internalf(errors.New("guard: write outside of the intent"), "database %s", av)
	}
	p := tx.newPoint(string(av))
	p.Title, p.Before = d.file.Name, DocState{There: true}
	p.Cells = &Cells{Notebooks: idStrings(tx.s.boxesOf(append(boundBlocks(d.file), d.blocks...)))}
	tx.points = append(tx.points, p)
	return p, nil
}

func idStrings(ids []siyuan.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// keepCell notes one cell as it was when the write began.
func (tx *Tx) keepCell(c *Cells, d Database, at cellAt) {
	if slices.ContainsFunc(c.Cells, func(o CellChange) bool { return o.at() == at }) {
		return
	}
	k, _ := d.key(at.column)
	kept := CellChange{Row: string(at.row), Column: string(at.column), Type: k.Type, Leads: relatedDatabase(k)}
	kept.Before = imageOf(cellOf(d.file, at.column, at.row))
	kept.Was = imageDigest(kept.Before)
	if size := imageSize(kept.Before); size > maxImage || c.size+size > maxImages {
		kept.Before, kept.Lost = nil, true
	} else {
		c.size += size
	}
	c.Cells = append(c.Cells, kept)
}

func relatedDatabase(k siyuan.Key) string {
	if k.Relation == nil {
		return ""
	}
	return string(k.Relation.AvID)
}

func imageSize(i *CellImage) int {
	if i == nil {
		return 0
	}
	b, err := json.Marshal(i)
	if err != nil {
		return maxImages + 1
	}
	return len(b)
}

// addedRow names the row that a step added, where SiYuan chose its id.
func (tx *Tx) addedRow(ctx context.Context, av, row siyuan.ID) error {
	if tx.s.g.opt.Points == nil {
		return nil
	}
	p, err := tx.pointOf(av)
	if err != nil {
		return err
	}
	for i := range p.Cells.Rows {
		if p.Cells.Rows[i].ID == "" {
			p.Cells.Rows[i].ID = string(row)
		}
	}
	return tx.s.g.opt.Points.Save(ctx, tx.s.author, p)
}

// settleCells says how a write left the cells and rows of a point. A row whose id
// nobody told leaves it open.
func (tx *Tx) settleCells(ctx context.Context, p *Point) error {
	av, err := tx.s.g.r.AttributeView(ctx, siyuan.ID(p.Doc))
	if err != nil {
		return err
	}
	now := imagesOf(av)
	for i, c := range p.Cells.Cells {
		p.Cells.Cells[i].After = imageDigest(now[c.at()])
	}
	for i, r := range p.Cells.Rows {
		if r.ID == "" && tx.sent {
			return nil
		}
		p.Cells.Rows[i].After = rowDigest(now, siyuan.ID(r.ID))
	}
	p.Open = false
	return tx.s.g.opt.Points.Save(ctx, tx.s.author, p)
}
