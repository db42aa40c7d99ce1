package guard

import (
	"context"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// NewColumn is a column to add. ID is chosen where it is "".
type NewColumn struct {
	ID, Name, Type, Icon string
	Previous             string // column to go behind; "" for the first place
}

// AddColumn adds a column to all views and returns its id.
func (tx *Tx) AddColumn(ctx context.Context, d Database, c NewColumn) (string, error) {
	d, err := tx.database(d)
	if err != nil {
		return "", err
	}
	id := siyuan.ID(c.ID)
	if c.ID == "" {
		if id, err = tx.newID(); err != nil {
			return "", err
		}
	}
	if !id.Valid() {
		return "", contract.InvalidFields(contract.Field{Path: "keyID", Message: "must be an id such as 20240131120000-abc1234"})
	}
	if _, taken := d.key(id); taken {
		return "", contract.Fail(contract.AlreadyExists, "Database %s has a column %s already.", d.ID(), string(id))
	}
	previous := siyuan.ID("")
	if c.Previous != "" {
		k, err := d.column(c.Previous)
		if err != nil {
			return "", err
		}
		previous = k.ID
	}
	_, err = tx.change(ctx, d, Step{Op: "database.add_column", New: []string{string(id)}, Marks: []Mark{partMark(LookColumn, d.id, id, false, true)}},
		func(w *siyuan.Writer) error { return w.AddKey(ctx, d.id, id, c.Name, c.Type, c.Icon, previous) },
		func(av siyuan.AttributeView) bool {
			return slices.ContainsFunc(av.KeyValues, func(kv siyuan.KeyValues) bool {
				return kv.Key.ID == id && kv.Key.Name == c.Name && kv.Key.Type == c.Type
			})
		}, "the column is not there")
	return string(id), err
}

// TwoWay is the other database of a two-way relation, which a change of the
// column or its cells writes to as well; false for any other column.
func (s *Session) TwoWay(ctx context.Context, d Database, column string) (Database, bool, error) {
	k, err := d.column(column)
	if err != nil || k.Relation == nil || !k.Relation.IsTwoWay || k.Relation.AvID == d.id || k.Relation.AvID == "" {
		return Database{}, false, err
	}
	other, err := s.Database(ctx, string(k.Relation.AvID), contract.ReadWrite)
	return other, err == nil, err
}

// RemoveColumn removes a column with its cells, and with both the other column of
// a two-way relation too.
func (tx *Tx) RemoveColumn(ctx context.Context, d Database, column string, both bool) error {
	d, err := tx.database(d)
	if err != nil {
		return err
	}
	k, err := d.column(column)
	if err != nil {
		return err
	}
	if k.Type == "block" {
		return contract.Fail(contract.InvalidTarget, "Column %s holds the titles of the rows and cannot be removed.", column)
	}
	if err := tx.coversRelated(d, k); err != nil {
		return err
	}
	_, err = tx.change(ctx, d, Step{Op: "database.remove_column", Marks: []Mark{partMark(LookColumn, d.id, k.ID, true, false)}}, func(w *siyuan.Writer) error {
		if !both || k.Relation == nil {
			return w.RemoveKey(ctx, d.id, k.ID)
		}
		_, err := w.Transactions(ctx, []siyuan.Tx{{Do: []siyuan.Op{{Action: "removeAttrViewCol", AvID: d.id, ID: k.ID, RemoveDest: true}}}})
		return err
	}, func(av siyuan.AttributeView) bool {
		return !slices.ContainsFunc(av.KeyValues, func(kv siyuan.KeyValues) bool { return kv.Key.ID == k.ID })
	}, "the column is still there")
	return err
}

// coversRelated checks that the other database of a two-way relation is locked.
func (tx *Tx) coversRelated(d Database, k siyuan.Key) error {
	if k.Relation == nil || !k.Relation.IsTwoWay || k.Relation.AvID == d.id || k.Relation.AvID == "" {
		return nil
	}
	_, err := tx.database(Database{s: tx.s, id: k.Relation.AvID})
	return err
}
