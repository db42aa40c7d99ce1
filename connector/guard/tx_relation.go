package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Ways are a two-way relation to make: a column of the database, and a new one of
// the other that leads back.
type Ways struct {
	Column, Name   string
	Back, BackName string
	Other          Database
}

// RelateTwoWay ties a relation column to another database and makes the column
// there that leads back. A column that leads elsewhere already is refused: its
// cells would lead to rows of the wrong database.
func (tx *Tx) RelateTwoWay(ctx context.Context, d Database, w Ways) (changed bool, err error) {
	if d, err = tx.database(d); err != nil {
		return false, err
	}
	other, err := tx.database(w.Other)
	if err != nil {
		return false, err
	}
	k, err := d.column(w.Column)
	if err != nil {
		return false, err
	}
	if err := w.fits(d, other, k); err != nil {
		return false, err
	}
	back := siyuan.ID(w.Back)
	stored, _ := other.key(back)
	there, here := stored, k
	there.ID, there.Name, there.Type, there.Relation = back, w.BackName, "relation", &siyuan.KeyRelation{AvID: d.id, IsTwoWay: true, BackKeyID: k.ID}
	here.Name, here.Relation = w.Name, &siyuan.KeyRelation{AvID: other.id, IsTwoWay: true, BackKeyID: back}
	st := Step{Op: "database.relate", New: []string{w.Back}}
	for _, m := range []Mark{
		{LookKey, d.ID() + " " + w.Column, keyMark(k), keyMark(here)}, {LookKey, other.ID() + " " + w.Back, keyMark(stored), keyMark(there)},
	} {
		if m.Before != m.After {
			st.Marks = append(st.Marks, m)
		}
	}
	if len(st.Marks) == 0 {
		return false, nil
	}
	is := func(want siyuan.Key) func(siyuan.AttributeView) bool {
		return func(av siyuan.AttributeView) bool {
			now, _ := Database{file: av}.key(want.ID)
			return keyMark(now) == keyMark(want)
		}
	}
	op := siyuan.Op{Action: "updateAttrViewColRelation", AvID: d.id, ID: other.id, KeyID: k.ID, IsTwoWay: true, BackRelationKey: back, Name: w.BackName, Format: w.Name}
	if _, err = tx.change(ctx, d, st, transaction(ctx, op), is(here), "column "+w.Column+" does not lead there"); err != nil {
		return true, err
	}
	_, shown, err := tx.reread(ctx, other.id, is(there))
	if err == nil && !shown {
		err = notPersisted("SiYuan tied column %s, but database %s has no column %s that leads back.", w.Column, other.ID(), w.Back)
	}
	return true, err
}

// fits refuses what cannot be tied, or is tied otherwise.
func (w Ways) fits(d, other Database, k siyuan.Key) error {
	back := siyuan.ID(w.Back)
	stored, made := other.key(back)
	elsewhere := k.Relation != nil && k.Relation.AvID != "" && (k.Relation.AvID != other.id || k.Relation.IsTwoWay && k.Relation.BackKeyID != back)
	switch {
	case k.Type != "relation":
		return contract.Fail(contract.InvalidTarget, "Column %s is of type %s, not relation.", w.Column, k.Type)
	case elsewhere:
		return contract.Fail(contract.InvalidTarget, "Column %s leads elsewhere already.", w.Column).WithHint("Add another relation column for it.")
	case !back.Valid():
		return contract.InvalidFields(contract.Field{Path: "backRelationKeyID", Message: "must be a new id such as 20240131120000-abc1234"})
	case !made:
		return firstErr(d.unused(back, "backRelationKeyID"), other.unused(back, "backRelationKeyID"))
	case stored.Relation == nil || stored.Relation.BackKeyID != k.ID:
		return contract.Fail(contract.AlreadyExists, "Database %s has a column %s already.", other.ID(), w.Back).WithHint("Choose a new id.")
	}
	return nil
}

// calculations are those that SiYuan carries out for a rollup; it stores any other
// word too, and then shows the cells as they are.
var calculations = []string{
	"", "Unique values", "Count all", "Count values", "Count unique values", "Count empty", "Count not empty", "Percent empty", "Percent not empty",
	"Percent unique values", "Sum", "Average", "Median", "Min", "Max", "Range", "Earliest", "Latest", "Checked", "Unchecked", "Percent checked", "Percent unchecked",
}

// Rolling says what a rollup column collects.
type Rolling struct {
	Column, Relation, Key, Operator string // Key is of the database behind the relation
}

// ConfigureRollup says what a rollup column collects. The caller has to be able to
// read the database behind the relation. FilteredBy is how many views filter by
// the column: SiYuan drops those filters.
func (tx *Tx) ConfigureRollup(ctx context.Context, d Database, r Rolling) (changed bool, filteredBy int, err error) {
	if d, err = tx.database(d); err != nil {
		return false, 0, err
	}
	k, err := d.column(r.Column)
	if err != nil {
		return false, 0, err
	}
	if k.Type != "rollup" {
		return false, 0, contract.Fail(contract.InvalidTarget, "Column %s is of type %s, not rollup.", r.Column, k.Type)
	}
	if !slices.Contains(calculations, r.Operator) {
		return false, 0, contract.InvalidFields(contract.Field{Path: "calc.operator", Message: fmt.Sprintf("must be one of: %q", calculations)})
	}
	over, err := d.column(r.Relation)
	if err != nil {
		return false, 0, err
	}
	other, err := tx.s.relatedBy(ctx, d, over)
	if err != nil {
		return false, 0, err
	}
	dest, err := other.column(r.Key)
	if err != nil {
		return false, 0, err
	}
	if dest.Type == "rollup" || !tx.s.whole() && other.reachesFurther(dest.ID) {
		return false, 0, contract.Fail(contract.Unsupported, "Column %s of database %s is made of other rows itself, so a rollup of it could show more than you may read.", r.Key, other.ID())
	}
	calc, err := json.Marshal(map[string]any{"operator": r.Operator, "result": nil})
	if err != nil {
		return false, 0, fmt.Errorf("encode calculation: %w", err)
	}
	then := k
	then.Rollup = &siyuan.KeyRollup{RelationKeyID: over.ID, KeyID: dest.ID, Calc: calc}
	op := siyuan.Op{Action: "updateAttrViewColRollup", AvID: d.id, ID: k.ID, ParentID: over.ID, KeyID: dest.ID, Data: map[string]any{"calc": json.RawMessage(calc)}}
	for _, v := range d.file.Views {
		if slices.Contains(siyuan.IDsIn(v.Filters), k.ID) {
			filteredBy++
		}
	}
	changed, _, err = tx.changeKey(ctx, d, then, "database.rollup", nil, transaction(ctx, op))
	return changed, filteredBy, err
}

// relatedBy is the database that a relation column leads to, which the caller must
// be able to read; one that is hidden is like one that is missing.
func (s *Session) relatedBy(ctx context.Context, d Database, k siyuan.Key) (Database, error) {
	if k.Type != "relation" {
		return Database{}, contract.Fail(contract.InvalidTarget, "Column %s is of type %s, not relation.", string(k.ID), k.Type)
	}
	if k.Relation == nil || k.Relation.AvID == "" {
		return Database{}, contract.Fail(contract.InvalidTarget, "Relation column %s leads to no database yet.", string(k.ID)).
			WithHint("Use av.configure_two_way_relation, or a person configures it in SiYuan.")
	}
	if k.Relation.AvID == d.id {
		return d, nil
	}
	found, err := s.quietly(ctx, k.Relation.AvID)
	if err != nil {
		return Database{}, err
	}
	if found == nil {
		return Database{}, contract.Fail(contract.HiddenReference, "There is no database that column %s leads to.", string(k.ID))
	}
	return *found, nil
}

// SetRelation replaces the rows that a relation cell leads to. back says that the
// column of the other database that leads back was read and shows it.
func (tx *Tx) SetRelation(ctx context.Context, d Database, column, row string, related []string) (changed, back bool, err error) {
	if d, err = tx.database(d); err != nil {
		return false, false, err
	}
	k, err := d.column(column)
	if err != nil {
		return false, false, err
	}
	if k.Type != "relation" {
		return false, false, contract.Fail(contract.InvalidTarget, "Column %s is of type %s, not relation.", column, k.Type)
	}
	for i, id := range related {
		if slices.Contains(related[:i], id) {
			return false, false, contract.InvalidFields(contract.Field{Path: fmt.Sprintf("relatedItemIDs.%d", i), Message: "is named before"})
		}
	}
	cell := CellInput{Row: row, Column: column, Type: "relation", Related: related}
	update, err := tx.cell(ctx, d, cell)
	if err != nil {
		return false, false, err
	}
	if cellMark(cellOf(d.file, update.KeyID, update.ItemID)) != cellMark(&update.Value) {
		changed = true
		if _, _, err = tx.SetCells(ctx, d, []CellInput{cell}); err != nil {
			return true, false, err
		}
	}
	back, err = tx.leadsBack(ctx, k, update.ItemID, update.Value.Relation.BlockIDs)
	return changed, back, err
}

// leadsBack reads the column that leads back from the rows that a cell of a two-way
// relation leads to, and demands that it does; false for any other column.
func (tx *Tx) leadsBack(ctx context.Context, k siyuan.Key, row siyuan.ID, rows []siyuan.ID) (bool, error) {
	if k.Relation == nil || !k.Relation.IsTwoWay {
		return false, nil
	}
	_, back, err := tx.reread(ctx, k.Relation.AvID, func(av siyuan.AttributeView) bool {
		return !slices.ContainsFunc(primary(av).Values, func(v siyuan.Value) bool {
			c := cellOf(av, k.Relation.BackKeyID, v.BlockID)
			return slices.Contains(related(c), row) != slices.Contains(rows, v.BlockID)
		})
	})
	if err == nil && !back {
		err = notPersisted("The cell of row %s leads there, but column %s of database %s does not lead back.", string(row), string(k.Relation.BackKeyID), string(k.Relation.AvID))
	}
	return back, err
}
