package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// target: a database is locked as itself, and so are the blocks among its rows
// that a write ties to it, which are named beside it.
func (d Database) target() (Notebook, Block) { return Notebook{}, Block{} }

// lockName is what a database is locked by.
func (d Database) lockName() string { return "database " + d.ID() }

// reproveDatabases reads the locked databases again: writes are worked out from
// what is stored now. Their own documents must not be about to be replaced.
func (tx *Tx) reproveDatabases(ctx context.Context) error {
	shown := map[siyuan.ID]bool{}
	for id := range tx.avs {
		fresh, err := tx.s.Database(ctx, string(id), contract.ReadWrite)
		if err != nil {
			return err
		}
		tx.avs[id] = fresh
		for _, b := range fresh.blocks {
			if p, err := tx.s.locate(ctx, b); err == nil {
				shown[p.root] = true
			}
		}
	}
	return tx.s.settledBySync(ctx, shown)
}

// database is a database of the intent, as it was proven under the lock.
func (tx *Tx) database(d Database) (Database, error) {
	fresh, locked := tx.avs[d.id]
	if d.s != tx.s || !locked {
		return Database{}, contract.Internalf(errors.New("guard: write outside of the intent"), "database %s", d.id)
	}
	return fresh, nil
}

// looks bounds how often a database is read again until it shows a write.
const looks = 6

// reread reads a database until it shows what was written. What it gives back
// with false is the last it saw.
func (tx *Tx) reread(ctx context.Context, id siyuan.ID, shows func(siyuan.AttributeView) bool) (siyuan.AttributeView, bool, error) {
	for look, wait := 1, 50*time.Millisecond; ; look, wait = look+1, 2*wait {
		av, err := tx.s.g.r.AttributeView(ctx, id)
		if err != nil && !errors.Is(err, siyuan.Missing) {
			return av, false, err
		}
		if err == nil && shows(av) {
			return av, true, nil
		}
		if look == looks {
			return av, false, nil
		}
		if err := tx.s.g.opt.Sleep(ctx, wait); err != nil {
			return av, false, err
		}
	}
}

// change sends a write to a database and demands that it shows afterwards.
func (tx *Tx) change(ctx context.Context, d Database, st Step, send func(w *siyuan.Writer) error, shows func(siyuan.AttributeView) bool, lost string) (siyuan.AttributeView, error) {
	st.ID = d.ID()
	if err := tx.step(ctx, st, send); err != nil && !answered(err) {
		return siyuan.AttributeView{}, err
	}
	av, shown, err := tx.reread(ctx, d.id, shows)
	if err == nil && !shown {
		err = notPersisted("SiYuan took the write to database %s, but %s.", d.ID(), lost)
	}
	return av, err
}

// NewRow is a row to add: a block to bind, or the title of a row of its own.
type NewRow struct {
	Block *Block
	Title string
}

// RowPlace says where rows go. Without Previous they go to the top.
type RowPlace struct {
	Block                 Block // shows the database; the zero Block for none
	View, Group, Previous string
	NoDefaults            bool // no cells filled in by the view's filters or group
}

// AddedRow is a row after it was added. Existed says that the block was bound
// already.
type AddedRow struct {
	ID, Block, Title string
	Existed          bool
}

// AddRows adds rows in their order.
func (tx *Tx) AddRows(ctx context.Context, d Database, rows []NewRow, at RowPlace) ([]AddedRow, error) {
	d, err := tx.database(d)
	if err != nil {
		return nil, err
	}
	place, err := tx.rowPlace(ctx, d, at)
	if err != nil {
		return nil, err
	}
	var done []AddedRow
	var sources []siyuan.AvSource
	for _, r := range rows {
		added, src, err := tx.newRow(d, r, done)
		if err != nil {
			return nil, err
		}
		if done = append(done, added); src != nil {
			sources = append(sources, *src)
		}
	}
	if len(sources) == 0 {
		return done, nil
	}
	st := Step{Op: "database.add_rows"}
	for _, src := range sources {
		st.New = append(st.New, string(src.ItemID))
		st.Marks = append(st.Marks, partMark(LookRow, d.id, src.ItemID, false, true))
	}
	_, err = tx.change(ctx, d, st, func(w *siyuan.Writer) error { return w.AddRows(ctx, d.id, place, sources) },
		func(av siyuan.AttributeView) bool {
			return !slices.ContainsFunc(sources, func(s siyuan.AvSource) bool { return !holdsRow(av, s) })
		}, "not every row is there")
	return done, err
}

func holdsRow(av siyuan.AttributeView, s siyuan.AvSource) bool {
	return slices.ContainsFunc(primary(av).Values, func(v siyuan.Value) bool {
		if v.BlockID != s.ItemID || v.Block == nil || v.IsDetached != s.IsDetached {
			return false
		}
		return s.IsDetached && v.Block.Content == s.Content || !s.IsDetached && v.Block.ID == s.ID
	})
}

func (tx *Tx) rowPlace(ctx context.Context, d Database, at RowPlace) (siyuan.RowsAt, error) {
	place := siyuan.RowsAt{Block: at.Block.id, NoDefaults: at.NoDefaults}
	if at.View != "" {
		v, err := tx.s.viewOf(ctx, d, Block{}, at.View)
		if err != nil {
			return place, err
		}
		place.View, place.Group = v.ID, siyuan.ID(at.Group)
		if at.Group != "" && (!place.Group.Valid() || !slices.Contains(v.GroupIDs(), place.Group)) {
			return place, contract.Fail(contract.NotFound, "View %s has no group %s.", at.View, at.Group)
		}
	}
	if at.Previous != "" {
		row, err := d.row(at.Previous)
		if err != nil {
			return place, err
		}
		place.Previous = row
	}
	return place, nil
}

func (tx *Tx) newRow(d Database, r NewRow, before []AddedRow) (AddedRow, *siyuan.AvSource, error) {
	src := siyuan.AvSource{IsDetached: r.Block == nil, Content: r.Title}
	var err error
	if src.ItemID, err = tx.newID(); err != nil {
		return AddedRow{}, nil, err
	}
	if r.Block == nil {
		src.ID, err = tx.newID()
		return AddedRow{ID: string(src.ItemID), Title: r.Title}, &src, err
	}
	if err := tx.covers(*r.Block); err != nil {
		return AddedRow{}, nil, err
	}
	if slices.ContainsFunc(before, func(a AddedRow) bool { return a.Block == r.Block.ID() }) {
		return AddedRow{}, nil, contract.Fail(contract.InvalidTarget, "Block %s is named twice.", r.Block.ID())
	}
	for _, v := range primary(d.file).Values {
		if v.Block != nil && v.Block.ID == r.Block.id && !v.IsDetached {
			return AddedRow{ID: string(v.BlockID), Block: r.Block.ID(), Existed: true}, nil, nil
		}
	}
	src.ID = r.Block.id
	return AddedRow{ID: string(src.ItemID), Block: r.Block.ID()}, &src, nil
}

// BoundTo are the blocks bound to rows, as targets of a write that removes the
// rows: it takes the tie out of the blocks. Rows are named by their ids or by
// their blocks; rows of missing blocks have none.
func (s *Session) BoundTo(ctx context.Context, d Database, rows []string) ([]Target, error) {
	if err := s.own(d, contract.ReadWrite); err != nil {
		return nil, err
	}
	var targets []Target
	for _, id := range rows {
		v, err := d.rowOrBound(id)
		if err != nil {
			return nil, err
		}
		if v.Block == nil || v.Block.ID == "" || v.IsDetached {
			continue
		}
		b, err := s.block(ctx, v.Block.ID, "block", contract.ReadWrite)
		switch {
		case err == nil:
			targets = append(targets, b)
		case contract.CodeOf(err) != contract.NotFound:
			return nil, err
		}
	}
	return targets, nil
}

// RemoveRows removes rows with their cells and returns their ids.
func (tx *Tx) RemoveRows(ctx context.Context, d Database, rows []string) ([]string, error) {
	d, err := tx.database(d)
	if err != nil {
		return nil, err
	}
	var ids []siyuan.ID
	var removed []string
	st := Step{Op: "database.remove_rows"}
	for _, id := range rows {
		v, err := d.rowOrBound(id)
		if err != nil {
			return nil, err
		}
		if slices.Contains(ids, v.BlockID) {
			return nil, contract.Fail(contract.InvalidTarget, "Row %s is named twice.", string(v.BlockID))
		}
		if err := tx.coversBound(ctx, v); err != nil {
			return nil, err
		}
		ids, removed = append(ids, v.BlockID), append(removed, string(v.BlockID))
		st.Marks = append(st.Marks, partMark(LookRow, d.id, v.BlockID, true, false))
	}
	_, err = tx.change(ctx, d, st, func(w *siyuan.Writer) error { return w.RemoveRows(ctx, d.id, ids) },
		func(av siyuan.AttributeView) bool {
			return !slices.ContainsFunc(av.KeyValues, func(kv siyuan.KeyValues) bool {
				return kv.Key.Type == "block" && slices.ContainsFunc(kv.Values, func(v siyuan.Value) bool { return slices.Contains(ids, v.BlockID) })
			})
		}, "not every row is gone")
	return removed, err
}

// coversBound checks that the block bound to a row is locked, where there is one.
func (tx *Tx) coversBound(ctx context.Context, v siyuan.Value) error {
	if v.Block == nil || v.Block.ID == "" || v.IsDetached {
		return nil
	}
	b, err := tx.s.block(ctx, v.Block.ID, "block", contract.ReadWrite)
	if contract.CodeOf(err) == contract.NotFound {
		return nil
	}
	return firstErr(err, tx.covers(b))
}
