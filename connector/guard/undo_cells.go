package guard

import (
	"context"
	"maps"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Tables are the databases of a plan, as what is planned so far would leave them.
type Tables struct {
	s    *Session
	seen map[siyuan.ID]*table
}

// table is one database; d is nil where the caller knows none.
type table struct {
	d     *Database
	title string
	cells map[cellAt]*CellImage
}

// Tables begins a plan.
func (s *Session) Tables() *Tables { return &Tables{s, map[siyuan.ID]*table{}} }

func (t *Tables) of(ctx context.Context, id siyuan.ID) (*table, error) {
	if known := t.seen[id]; known != nil {
		return known, nil
	}
	d, err := t.s.quietly(ctx, id)
	if err != nil {
		return nil, err
	}
	now := &table{d: d, cells: map[cellAt]*CellImage{}}
	if d != nil {
		now.cells = imagesOf(d.file)
		if now.title, err = t.s.databaseTitle(ctx, *d); err != nil {
			return nil, err
		}
	}
	t.seen[id] = now
	return now, nil
}

// databaseTitle is a database as people know it: where it is shown, and its name.
func (s *Session) databaseTitle(ctx context.Context, d Database) (string, error) {
	rows, err := s.RowsOf(ctx, d.Blocks())
	if err != nil || len(rows) == 0 {
		return d.Name(), err
	}
	if d.Name() == "" {
		return rows[0].HPath, nil
	}
	return rows[0].HPath + ": " + d.Name(), nil
}

// Judge tells what bringing a point of a database back would do, behind what was
// judged before. ok is false for what the caller may not know of.
func (t *Tables) Judge(ctx context.Context, p Point) (u Undoing, ok bool, err error) {
	now, err := t.of(ctx, siyuan.ID(p.Doc))
	if err != nil {
		return u, false, err
	}
	u = Undoing{Point: p, Title: now.title}
	if now.d == nil {
		u.Title = p.Title
		// It is told only to those who could see all of it then.
		hidden := slices.ContainsFunc(p.Cells.Notebooks, func(box string) bool { return !t.s.level(siyuan.ID(box)).Allows(contract.Read) })
		for _, c := range p.Cells.Cells {
			u.Refused = append(u.Refused, c.refused(DatabaseGone))
		}
		for _, r := range p.Cells.Rows {
			u.Refused = append(u.Refused, r.refused(DatabaseGone))
		}
		return u, !hidden, nil
	}
	for _, c := range p.Cells.Cells {
		why, err := t.cell(ctx, now, p, c)
		switch {
		case err != nil:
			return u, false, err
		case why == "":
			u.Cells = append(u.Cells, c)
			err = t.put(ctx, now, c.at(), c.Before)
		case why != already:
			u.Refused = append(u.Refused, c.refused(why))
		}
		if err != nil {
			return u, false, err
		}
	}
	for _, r := range p.Cells.Rows {
		why, err := t.row(ctx, now, p, r)
		switch {
		case err != nil:
			return u, false, err
		case why == "":
			u.Rows = append(u.Rows, r)
			maps.DeleteFunc(now.cells, func(at cellAt, _ *CellImage) bool { return at.row == siyuan.ID(r.ID) })
		case why != already:
			u.Refused = append(u.Refused, r.refused(why))
		}
	}
	if len(u.Cells) > 0 {
		u.Do = append(u.Do, PartCells)
	}
	if len(u.Rows) > 0 {
		u.Do = append(u.Do, PartRows)
	}
	return u, true, nil
}

func (c CellChange) refused(why Reason) Refusal {
	return Refusal{PartCells, why, c.Row + " " + c.Column}
}

func (r RowChange) refused(why Reason) Refusal { return Refusal{PartRows, why, r.ID} }

// already is no reason: there is nothing to bring back.
const already Reason = "already"

// cell judges one cell.
func (t *Tables) cell(ctx context.Context, now *table, p Point, c CellChange) (Reason, error) {
	k, has := now.d.key(siyuan.ID(c.Column))
	is := imageDigest(now.cells[c.at()])
	switch {
	case c.Was == c.After && !p.Open, has && is == c.Was:
		return already, nil
	case !has:
		return ColumnGone, nil
	case !now.holds(siyuan.ID(c.Row)):
		return RowGone, nil
	case k.Type != c.Type || relatedDatabase(k) != c.Leads:
		return ColumnChanged, nil
	case p.Open:
		return NotKnown, nil
	case is != c.After:
		return ChangedSince, nil
	case c.Lost:
		return TooLarge, nil
	case !now.d.level.Allows(contract.ReadWrite):
		return NotAllowed, nil
	}
	return t.fits(ctx, k, c.Before)
}

// fits tells why a column does not take back what a cell of it was.
func (t *Tables) fits(ctx context.Context, k siyuan.Key, was *CellImage) (Reason, error) {
	if k.Relation != nil {
		return t.leads(ctx, k, was)
	}
	if was == nil {
		return "", nil
	}
	if slices.ContainsFunc(was.Select, func(o siyuan.ValueOption) bool { return optionNamed(k.Options, o.Content) < 0 }) {
		return OptionGone, nil
	}
	err := t.s.checkAssets(ctx, localAssets(was.Assets))
	if contract.CodeOf(err) == contract.HiddenReference {
		return NotAllowed, nil
	}
	return "", err
}

// leads judges a cell that leads to rows of another database, which a two-way
// relation writes to as well.
func (t *Tables) leads(ctx context.Context, k siyuan.Key, was *CellImage) (Reason, error) {
	other, err := t.of(ctx, k.Relation.AvID)
	switch {
	case err != nil:
		return "", err
	case other.d == nil, k.Relation.IsTwoWay && !other.d.level.Allows(contract.ReadWrite):
		return NotAllowed, nil
	case slices.ContainsFunc(related(was), func(row siyuan.ID) bool { return !other.holds(row) }):
		return TargetGone, nil
	}
	return "", nil
}

// row judges an added row.
func (t *Tables) row(ctx context.Context, now *table, p Point, r RowChange) (Reason, error) {
	switch row := siyuan.ID(r.ID); {
	case r.ID == "":
		return NotKnown, nil
	case !now.holds(row):
		return already, nil
	case p.Open:
		return NotKnown, nil
	case rowDigest(now.cells, row) != r.After:
		return ChangedSince, nil
	case !now.d.level.Allows(contract.ReadWrite):
		return NotAllowed, nil
	}
	for _, kv := range now.d.file.KeyValues {
		if k := kv.Key; k.Relation != nil && k.Relation.IsTwoWay && now.cells[cellAt{siyuan.ID(r.ID), k.ID}] != nil {
			if why, err := t.leads(ctx, k, nil); why != "" || err != nil {
				return why, err
			}
		}
	}
	return "", nil
}

func (now *table) holds(row siyuan.ID) bool {
	return now.cells[cellAt{row, primary(now.d.file).Key.ID}] != nil
}

// put is what setting a cell does, the other side of a two-way relation included.
func (t *Tables) put(ctx context.Context, now *table, at cellAt, to *CellImage) error {
	now.set(at, to)
	k, _ := now.d.key(at.column)
	if k.Relation == nil || !k.Relation.IsTwoWay {
		return nil
	}
	other, err := t.of(ctx, k.Relation.AvID)
	if err != nil || other.d == nil {
		return err
	}
	for _, v := range primary(other.d.file).Values {
		back := cellAt{v.BlockID, k.Relation.BackKeyID}
		rows := slices.Clone(related(other.cells[back]))
		leads := slices.Contains(related(to), v.BlockID)
		if slices.Contains(rows, at.row) == leads {
			continue
		}
		if leads {
			rows = append(rows, at.row)
		} else {
			rows = slices.DeleteFunc(rows, func(id siyuan.ID) bool { return id == at.row })
		}
		other.set(back, imageOf(&siyuan.Value{Relation: &siyuan.ValueRelation{BlockIDs: rows}}))
	}
	return nil
}

func (now *table) set(at cellAt, to *CellImage) {
	if to == nil {
		delete(now.cells, at)
		return
	}
	now.cells[at] = to
}

// Joined is two undoings of one database as one write, the other one's point being
// the older; false where they are better done one after the other: rows, and
// relations, which may change each other.
func (u Undoing) Joined(older Undoing) (Undoing, bool) {
	if u.Point.Cells == nil || older.Point.Cells == nil || u.Point.Doc != older.Point.Doc || len(u.Rows)+len(older.Rows) > 0 ||
		len(u.Cells)+len(older.Cells) > maxJoined || slices.ContainsFunc(append(slices.Clone(u.Cells), older.Cells...), func(c CellChange) bool { return c.Leads != "" }) {
		return u, false
	}
	u.Cells = slices.Clone(u.Cells)
	for _, c := range older.Cells {
		at := slices.IndexFunc(u.Cells, func(o CellChange) bool { return o.at() == c.at() })
		if at < 0 {
			u.Cells = append(u.Cells, c)
			continue
		}
		u.Cells[at].Before, u.Cells[at].Was = c.Before, c.Was
	}
	return u, true
}

// maxJoined bounds the cells of one write.
const maxJoined = 200

// undoCells brings cells back and removes added rows. What went with a document
// that was removed in the same undo is passed over.
func (s *Session) undoCells(ctx context.Context, in Intent, u Undoing) error {
	d, err := s.Database(ctx, u.Point.Doc, contract.ReadWrite)
	if err != nil {
		return err
	}
	if in.Targets, err = s.cellTargets(ctx, d, u); err != nil {
		return err
	}
	return s.Write(ctx, in, func(ctx context.Context, tx *Tx) error {
		tx.more = true // one of many, so never the end of the call
		d, err := tx.database(d)
		if err != nil {
			return err
		}
		updates, rows, err := restoring(d, u)
		if err != nil {
			return err
		}
		if err := tx.putBackCells(ctx, d, updates); err != nil || len(rows) == 0 {
			return err
		}
		_, err = tx.RemoveRows(ctx, d, rows)
		return err
	})
}

// putBackCells sets cells to what they were, and demands exactly that.
func (tx *Tx) putBackCells(ctx context.Context, d Database, updates []siyuan.CellUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	av, err := tx.putCells(ctx, d, updates)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if imageDigest(imageOf(cellOf(av, u.KeyID, u.ItemID))) != imageDigest(imageOf(&u.Value)) {
			return notPersisted("SiYuan reported the cell of row %s in column %s as brought back, but it is not as it was.", u.ItemID, u.KeyID)
		}
		k, _ := d.key(u.KeyID)
		if _, err := tx.leadsBack(ctx, k, u.ItemID, related(&u.Value)); err != nil {
			return err
		}
	}
	return nil
}

// restoring are the cells to set and the rows to remove, as far as they are there and as
// they were judged. A row that goes leads nowhere any more: SiYuan would leave the
// other side of its relations behind.
func restoring(d Database, u Undoing) (updates []siyuan.CellUpdate, rows []string, err error) {
	now := &table{d: &d, cells: imagesOf(d.file)}
	changed := contract.Fail(contract.StateChanged, "Database %s changed while its undo was under way.", d.ID())
	for _, c := range u.Cells {
		k, has := d.key(siyuan.ID(c.Column))
		switch {
		case !now.holds(siyuan.ID(c.Row)):
			continue
		case !has || imageDigest(now.cells[c.at()]) != c.After:
			return nil, nil, changed
		}
		updates = append(updates, siyuan.CellUpdate{KeyID: k.ID, ItemID: siyuan.ID(c.Row), Value: putBack(c.Before, k)})
	}
	for _, r := range u.Rows {
		row := siyuan.ID(r.ID)
		switch {
		case !now.holds(row):
			continue
		case rowDigest(now.cells, row) != r.After:
			return nil, nil, changed
		}
		rows = append(rows, r.ID)
		for _, k := range d.twoWay() {
			if now.cells[cellAt{row, k.ID}] != nil {
				updates = append(updates, siyuan.CellUpdate{KeyID: k.ID, ItemID: row, Value: putBack(nil, k)})
			}
		}
	}
	return updates, rows, nil
}

// twoWay are the columns that write to another database, or to another column of
// the same one.
func (d Database) twoWay() (keys []siyuan.Key) {
	for _, kv := range d.file.KeyValues {
		if kv.Key.Relation != nil && kv.Key.Relation.IsTwoWay {
			keys = append(keys, kv.Key)
		}
	}
	return keys
}

// cellTargets are the database, those that its relations write to as well, and the
// blocks whose rows go.
func (s *Session) cellTargets(ctx context.Context, d Database, u Undoing) ([]Target, error) {
	targets := []Target{d}
	cells := imagesOf(d.file)
	for _, k := range d.twoWay() {
		if !slices.ContainsFunc(u.Cells, func(c CellChange) bool { return c.Column == string(k.ID) }) &&
			!slices.ContainsFunc(u.Rows, func(r RowChange) bool { return cells[cellAt{siyuan.ID(r.ID), k.ID}] != nil }) {
			continue
		}
		other, twoWay, err := s.TwoWay(ctx, d, string(k.ID))
		if err != nil {
			return nil, err
		}
		if twoWay {
			targets = append(targets, other)
		}
	}
	var rows []string
	for _, r := range u.Rows {
		if _, err := d.row(r.ID); err == nil {
			rows = append(rows, r.ID)
		}
	}
	bound, err := s.BoundTo(ctx, d, rows)
	return append(targets, bound...), err
}
