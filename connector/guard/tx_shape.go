package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// keyMark is what a column is, as far as it can be set; of options their order
// does not matter, because SiYuan chooses the places of new ones.
func keyMark(k siyuan.Key) string {
	options := slices.Clone(k.Options)
	slices.SortFunc(options, func(a, b siyuan.KeyOption) int { return strings.Compare(a.Name, b.Name) })
	calc := ""
	if k.Rollup != nil {
		calc = fmt.Sprint(k.Rollup.RelationKeyID, k.Rollup.KeyID, operatorOf(k.Rollup.Calc))
	}
	relation := ""
	if k.Relation != nil {
		relation = fmt.Sprint(*k.Relation)
	}
	return digest(fmt.Sprintln(k.ID, k.Name, k.Type) + fmt.Sprintf("%q\n", options) + relation + calc)
}

func operatorOf(calc json.RawMessage) string {
	var c struct{ Operator string }
	if json.Unmarshal(calc, &c) != nil {
		return ""
	}
	return c.Operator
}

// changeKey makes a column what the given one is, unless it is so already.
func (tx *Tx) changeKey(ctx context.Context, d Database, then siyuan.Key, op string, more []Mark, send func(w *siyuan.Writer) error) (changed bool, now siyuan.Key, err error) {
	before, _ := d.key(then.ID)
	after := keyMark(then)
	if keyMark(before) == after {
		return false, before, nil
	}
	st := Step{Op: op, Marks: append(more, Mark{LookKey, d.ID() + " " + string(then.ID), keyMark(before), after})}
	av, err := tx.change(ctx, d, st, send, func(av siyuan.AttributeView) bool {
		k, there := Database{file: av}.key(then.ID)
		return there && keyMark(k) == after
	}, "column "+string(then.ID)+" is not as it was to be")
	now, _ = Database{file: av}.key(then.ID)
	return true, now, err
}

// Option is a choice of a select column.
type Option = siyuan.KeyOption

// SetOptions replaces the options of a select column and returns them as stored:
// those there are keep their places. One without a colour keeps its own.
func (tx *Tx) SetOptions(ctx context.Context, d Database, column string, options []Option) (changed bool, stored []Option, err error) {
	if d, err = tx.database(d); err != nil {
		return false, nil, err
	}
	k, err := d.column(column)
	if err != nil {
		return false, nil, err
	}
	if k.Type != "select" && k.Type != "mSelect" {
		return false, nil, contract.Fail(contract.InvalidTarget, "Column %s is of type %s and has no options.", column, k.Type)
	}
	options = slices.Clone(options)
	for i := range options {
		at := optionNamed(k.Options, options[i].Name)
		switch {
		case strings.TrimSpace(options[i].Name) == "":
			return false, nil, contract.InvalidFields(contract.Field{Path: fmt.Sprintf("options.%d.name", i), Message: "must not be empty"})
		case optionNamed(options, options[i].Name) != i:
			return false, nil, contract.InvalidFields(contract.Field{Path: fmt.Sprintf("options.%d.name", i), Message: "is named before"})
		case options[i].Color == "" && at >= 0:
			options[i].Color = k.Options[at].Color
		case options[i].Color == "":
			options[i].Color = fmt.Sprint(i%14 + 1)
		}
	}
	then := k
	then.Options = options
	var ops []siyuan.Op
	if len(options) > 0 {
		ops = append(ops, siyuan.Op{Action: "updateAttrViewColOptions", AvID: d.id, ID: k.ID, Data: options})
	}
	for _, o := range k.Options {
		if optionNamed(options, o.Name) < 0 {
			ops = append(ops, siyuan.Op{Action: "removeAttrViewColOption", AvID: d.id, ID: k.ID, Data: o.Name})
		}
	}
	changed, now, err := tx.changeKey(ctx, d, then, "database.set_options", nil, transaction(ctx, ops...))
	return changed, now.Options, err
}

func optionNamed(list []Option, name string) int {
	return slices.IndexFunc(list, func(o Option) bool { return o.Name == name })
}

// DuplicateRows copies rows with their cells, as rows of their own, and returns the
// ids of the copies. A row whose title the caller cannot read as it is stored is
// refused: the copy would be a text of its own and show it.
func (tx *Tx) DuplicateRows(ctx context.Context, d Database, rows []string, previous string) ([]string, error) {
	d, err := tx.database(d)
	if err != nil {
		return nil, err
	}
	for _, kv := range d.file.KeyValues {
		if err := tx.coversRelated(d, kv.Key); err != nil {
			return nil, err
		}
	}
	at := siyuan.ID("")
	if previous != "" {
		if at, err = d.row(previous); err != nil {
			return nil, err
		}
	}
	var sources []siyuan.ID
	for _, id := range rows {
		row, err := d.row(id)
		if err != nil {
			return nil, err
		}
		sources = append(sources, row)
	}
	if err := tx.plainTitles(ctx, d, sources); err != nil {
		return nil, err
	}
	st := Step{Op: "database.duplicate_rows"}
	var ops []siyuan.Op
	for _, src := range sources {
		id, err := tx.newID()
		if err != nil {
			return nil, err
		}
		ops = append(ops, siyuan.Op{Action: "duplicateAttrViewRow", AvID: d.id, ID: id, SrcIDs: []siyuan.ID{src}, PreviousID: at})
		if st.New = append(st.New, string(id)); previous != "" {
			at = id
		}
		st.Marks = append(st.Marks, partMark(LookRow, d.id, id, false, true))
	}
	_, err = tx.change(ctx, d, st, transaction(ctx, ops...), func(av siyuan.AttributeView) bool {
		for i, op := range ops {
			if !copied(av, sources[i], op.ID) {
				return false
			}
		}
		return true
	}, "not every copy is there with its cells")
	return st.New, err
}

// copied reports whether a row is there that has the cells of another and is bound
// to no block.
func copied(av siyuan.AttributeView, source, row siyuan.ID) bool {
	title := cellOf(av, primary(av).Key.ID, row)
	if title == nil || !title.IsDetached {
		return false
	}
	return !slices.ContainsFunc(av.KeyValues, func(kv siyuan.KeyValues) bool {
		return kv.Key.Type != "block" && kv.Key.Type != "relation" && cellMark(cellOf(av, kv.Key.ID, source)) != cellMark(cellOf(av, kv.Key.ID, row))
	})
}

// plainTitles refuses rows bound to blocks whose text cannot be read, or has
// something hidden in it.
func (tx *Tx) plainTitles(ctx context.Context, d Database, rows []siyuan.ID) error {
	titles := copies(primary(d.file).Values)
	var cells []*siyuan.Value
	for i := range titles {
		if slices.Contains(rows, titles[i].BlockID) {
			cells = append(cells, &titles[i])
		}
	}
	m, err := tx.s.cellMask(ctx, d, cells)
	if err != nil {
		return err
	}
	for _, v := range cells {
		if v.Block == nil || v.Block.ID == "" || v.IsDetached {
			continue
		}
		if _, readable := m.titles[v.Block.ID]; !readable || m.altered[v.Block.ID] {
			return contract.Fail(contract.HiddenReference, "The title of row %s cannot be copied: it is the text of a block that you cannot read as it is.", string(v.BlockID)).
				WithHint("Add a row with av.add_rows and a title of your own.")
		}
	}
	return nil
}
