package av

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// ErrNoKey is returned for a column that does not exist.
var ErrNoKey = errors.New("key not found")

// Maker gives new ids and the time in milliseconds.
type Maker struct {
	NewID func() string
	Now   func() int64
}

var openFilter = json.RawMessage(`{"column":"","operator":"","value":null,"combination":"and"}`)

// New is a database as its first rendering makes it: a primary key, a select
// column and a table.
func New(id string, m Maker) *Database {
	primary, choice := m.NewID(), m.NewID()
	viewID := m.NewID()
	return &Database{
		Spec: Spec, ID: id, ViewID: viewID,
		Columns: []*Column{
			{Key: &Key{ID: primary, Name: "Primary Key", Type: "block"}},
			{Key: &Key{ID: choice, Name: "Select", Type: "select"}},
		},
		Views: []*View{{
			ID: viewID, Name: "Table", PageSize: 50, Type: "table", Filters: []json.RawMessage{openFilter},
			Table: &Table{ID: m.NewID(), ShowIcon: true, Columns: []*TableColumn{{ID: primary}, {ID: choice}}},
		}},
	}
}

// View is the view of that id, else the current one.
func (d *Database) View(id string) *View {
	for _, v := range d.Views {
		if v.ID == id {
			return v
		}
	}
	for _, v := range d.Views {
		if v.ID == d.ViewID {
			return v
		}
	}
	return d.Views[0]
}

// Column finds a column by key id.
func (d *Database) Column(keyID string) (*Column, bool) {
	for _, c := range d.Columns {
		if c.Key.ID == keyID {
			return c, true
		}
	}
	return nil, false
}

// Primary is the column of primary values.
func (d *Database) Primary() *Column {
	for _, c := range d.Columns {
		if c.Key.Type == "block" {
			return c
		}
	}
	return d.Columns[0]
}

// Value is the stored cell of a row.
func (c *Column) Value(itemID string) (*Value, bool) {
	for _, v := range c.Values {
		if v.BlockID == itemID {
			return v, true
		}
	}
	return nil, false
}

// AddKey puts a column behind another, or first. Neither type nor id is checked.
func (d *Database) AddKey(k *Key, previousID string) {
	if k.Type == "rollup" {
		k.Rollup = &Rollup{Calc: &Calc{}}
	}
	d.Columns = append(d.Columns, &Column{Key: k})
	for _, v := range d.Views {
		places := v.places()
		*places = insertAfter(*places, &TableColumn{ID: k.ID}, previousID)
	}
}

func insertAfter(list []*TableColumn, c *TableColumn, previousID string) []*TableColumn {
	at := slices.IndexFunc(list, func(o *TableColumn) bool { return o.ID == previousID })
	return slices.Insert(list, at+1, c)
}

// RemoveKey takes out a column with its values.
func (d *Database) RemoveKey(keyID string) error {
	at := slices.IndexFunc(d.Columns, func(c *Column) bool { return c.Key.ID == keyID })
	if at < 0 {
		return ErrNoKey
	}
	d.Columns = slices.Delete(d.Columns, at, at+1)
	for _, v := range d.Views {
		places := v.places()
		*places = slices.DeleteFunc(*places, func(c *TableColumn) bool { return c.ID == keyID })
	}
	return nil
}

// MoveKey puts an existing column behind another in all views.
func (d *Database) MoveKey(keyID, previousID string) {
	for _, v := range d.Views {
		v.Move(keyID, previousID)
	}
}

// Source is a row about to be added: bound to a block, or detached with a
// content of its own.
type Source struct {
	BlockID, ItemID, Content, Icon string
	Detached                       bool
}

// ItemOf is the row a block is bound to.
func (d *Database) ItemOf(blockID string) (itemID string, ok bool) {
	for _, v := range d.Primary().Values {
		if !v.IsDetached && v.Block != nil && v.Block.ID == blockID {
			return v.BlockID, true
		}
	}
	return "", false
}

// Rebind makes the row of a block the row of another, or detaches it. It is
// false when the block has no row.
func (d *Database) Rebind(blockID string, to Source, m Maker) bool {
	item, bound := d.ItemOf(blockID)
	if !bound {
		return false
	}
	v, _ := d.Primary().Value(item)
	v.IsDetached, v.UpdatedAt = to.Detached, m.Now()
	v.Block.ID, v.Block.Content, v.Block.Updated = to.BlockID, to.Content, m.Now()
	if to.Detached {
		v.Block.ID = ""
	}
	return true
}

// AddRows puts rows on top of all views, in their order. A block that is bound
// already is passed over.
func (d *Database) AddRows(rows []Source, previousID string, m Maker) {
	for i := len(rows) - 1; i >= 0; i-- {
		r := rows[i]
		if _, bound := d.ItemOf(r.BlockID); bound && !r.Detached {
			continue
		}
		if r.ItemID == "" {
			r.ItemID = m.NewID()
		}
		now, primary := m.Now(), d.Primary()
		v := &Value{ID: m.NewID(), KeyID: primary.Key.ID, BlockID: r.ItemID, Type: "block", IsDetached: r.Detached, CreatedAt: now, UpdatedAt: now,
			Block: &ValueBlock{ID: r.BlockID, Icon: r.Icon, Content: r.Content, Created: now, Updated: now}}
		if r.Detached {
			v.Block.ID = ""
		}
		primary.Values = append(primary.Values, v)
		for _, view := range d.Views {
			view.ItemIDs = slices.Insert(view.ItemIDs, slices.Index(view.ItemIDs, previousID)+1, r.ItemID)
		}
	}
}

// RemoveRows takes out rows with all their values and tells the blocks that
// were bound.
func (d *Database) RemoveRows(itemIDs []string) (unbound []string) {
	gone := func(v *Value) bool { return slices.Contains(itemIDs, v.BlockID) }
	for _, v := range d.Primary().Values {
		if gone(v) && v.Block != nil && v.Block.ID != "" {
			unbound = append(unbound, v.Block.ID)
		}
	}
	for _, c := range d.Columns {
		c.Values = slices.DeleteFunc(c.Values, gone)
	}
	for _, v := range d.Views {
		v.ItemIDs = slices.DeleteFunc(v.ItemIDs, func(id string) bool { return slices.Contains(itemIDs, id) })
	}
	return unbound
}

// Set merges JSON into the cell of a row and returns it. Neither the kind of
// value nor the row is checked; a column that does not exist is ErrNoKey.
func (d *Database) Set(keyID, itemID string, raw []byte, m Maker) (*Value, error) {
	c, ok := d.Column(keyID)
	if !ok {
		return nil, ErrNoKey
	}
	now := m.Now()
	v, exists := c.Value(itemID)
	if !exists {
		v = &Value{ID: m.NewID(), KeyID: keyID, BlockID: itemID, Type: c.Key.Type, CreatedAt: now, UpdatedAt: now}
	}
	merged := *v
	merged.MSelect, merged.MAsset, merged.Relation = nil, nil, nil
	if err := json.Unmarshal(raw, &merged); err != nil {
		return nil, err
	}
	if strings.Contains(string(raw), `"block"`) && v.Block != nil && merged.Block != nil {
		merged.Block.Created, merged.Block.ID = v.Block.Created, v.Block.ID
	}
	keepLists(v, &merged, raw)
	merged.ID, merged.KeyID, merged.BlockID, merged.Type, merged.CreatedAt, merged.UpdatedAt = v.ID, v.KeyID, v.BlockID, v.Type, v.CreatedAt, now
	d.settle(c.Key, &merged)
	*v = merged
	if !exists {
		c.Values = append(c.Values, v)
	}
	d.touchRow(itemID, now)
	return v, nil
}

// keepLists keeps list values the JSON does not speak of.
func keepLists(old, merged *Value, raw []byte) {
	var named map[string]json.RawMessage
	if json.Unmarshal(raw, &named) != nil {
		return
	}
	if _, ok := named["mSelect"]; !ok {
		merged.MSelect = old.MSelect
	}
	if _, ok := named["mAsset"]; !ok {
		merged.MAsset = old.MAsset
	}
	if _, ok := named["relation"]; !ok {
		merged.Relation = old.Relation
	}
}

// settle fills what follows from a value: options of selects, spelled numbers.
func (d *Database) settle(k *Key, v *Value) {
	for _, choice := range v.MSelect {
		at := slices.IndexFunc(k.Options, func(o *Option) bool { return o.Name == choice.Content })
		if at >= 0 {
			choice.Color = k.Options[at].Color
			continue
		}
		if choice.Color == "" {
			choice.Color = "1"
		}
		k.Options = append(k.Options, &Option{Name: choice.Content, Color: choice.Color})
	}
	if v.Number != nil {
		v.Number.FormattedContent = ""
		if v.Number.IsNotEmpty && k.Type == "number" {
			v.Number.FormattedContent = FormatNumber(v.Number.Content, v.Number.Format)
		}
	}
	if v.Relation != nil {
		r := &ValueRelation{}
		for _, id := range v.Relation.BlockIDs {
			if !slices.Contains(r.BlockIDs, id) {
				r.BlockIDs = append(r.BlockIDs, id)
			}
		}
		v.Relation = r
	}
	if v.Block != nil {
		v.Block.Updated = v.UpdatedAt
	}
}

func (d *Database) touchRow(itemID string, now int64) {
	if v, ok := d.Primary().Value(itemID); ok {
		v.UpdatedAt = now
		if v.Block != nil {
			v.Block.Updated = now
		}
	}
}

// FormatNumber spells a number as a column of that format shows it.
func FormatNumber(n float64, format string) string {
	s := strconv.FormatFloat(n, 'f', -1, 64)
	if format != "commas" {
		return s
	}
	whole, fraction, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}
