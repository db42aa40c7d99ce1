package av

import (
	"encoding/json"
	"slices"
)

// places are the columns of a view in their order.
func (v *View) places() *[]*TableColumn {
	switch {
	case v.Gallery != nil:
		return &v.Gallery.Fields
	case v.Kanban != nil:
		return &v.Kanban.Fields
	}
	return &v.Table.Columns
}

// Look tells whether a view shows icons and wraps its cells.
func (v *View) Look() (showIcon, wrap bool) {
	switch {
	case v.Gallery != nil:
		return v.Gallery.ShowIcon, v.Gallery.WrapField
	case v.Kanban != nil:
		return v.Kanban.ShowIcon, v.Kanban.WrapField
	}
	return v.Table.ShowIcon, v.Table.WrapField
}

// AddView adds a view with the columns and rows of the first one and makes it the
// current one. A kanban board groups by the first select column, which is made
// where there is none. An unknown layout, or an id in use, is passed over.
func (d *Database) AddView(id, layout string, m Maker) {
	if slices.ContainsFunc(d.Views, func(v *View) bool { return v.ID == id }) {
		return
	}
	v := &View{ID: id, PageSize: 50, Type: layout, Filters: []json.RawMessage{openFilter}, ItemIDs: slices.Clone(d.Views[0].ItemIDs)}
	switch layout {
	case "table":
		v.Name, v.Table = "Table", &Table{ID: m.NewID(), ShowIcon: true}
	case "gallery":
		v.Name, v.Gallery = "Gallery", &Cards{ID: m.NewID(), ShowIcon: true, CoverFrom: 1, CardSize: 1}
	case "kanban":
		v.Name, v.Kanban = "Kanban", &Cards{ID: m.NewID(), ShowIcon: true, CoverFrom: 1, CardSize: 1}
		if d.firstOf("select") == "" {
			d.AddKey(&Key{ID: m.NewID(), Name: "Select", Type: "select"}, d.Primary().Key.ID)
		}
		v.Group = &Group{Field: d.firstOf("select"), Order: 3}
	default:
		return
	}
	for _, c := range *d.Views[0].places() {
		*v.places() = append(*v.places(), &TableColumn{ID: c.ID})
	}
	d.Views, d.ViewID = append(d.Views, v), id
}

func (d *Database) firstOf(kind string) string {
	for _, c := range d.Columns {
		if c.Key.Type == kind {
			return c.Key.ID
		}
	}
	return ""
}

// Move puts a column of a view behind another, or first.
func (v *View) Move(keyID, previousID string) {
	places := v.places()
	at := slices.IndexFunc(*places, func(c *TableColumn) bool { return c.ID == keyID })
	if at >= 0 {
		c := (*places)[at]
		*places = insertAfter(slices.Delete(*places, at, at+1), c, previousID)
	}
}

// Hide hides a column of a view, or shows it.
func (v *View) Hide(keyID string, hidden bool) {
	for _, c := range *v.places() {
		if c.ID == keyID {
			c.Hidden = hidden
		}
	}
}

// ordinary orders of groups by the type of their column: by option, by size.
var groupOrders = map[string]int{"select": 3, "mSelect": 3, "checkbox": 2}

// SetGroup groups a view by a column, or no longer. A newly chosen column has an
// order of its own.
func (d *Database) SetGroup(v *View, g Group, m Maker, l Lookup) {
	was := ""
	if v.Group != nil {
		was = v.Group.Field
	}
	v.Group, v.Groups = &g, nil
	c, ok := d.Column(g.Field)
	if !ok {
		return
	}
	if order := groupOrders[c.Key.Type]; order != 0 && was != g.Field {
		g.Order = order
	}
	byName := map[string]*View{}
	for _, item := range v.ItemIDs {
		name := d.Cell(c, item, l).String()
		if byName[name] == nil {
			byName[name] = &View{ID: m.NewID(), Name: name, Type: v.Type, PageSize: v.PageSize, Filters: []json.RawMessage{openFilter}}
			v.Groups = append(v.Groups, byName[name])
		}
		byName[name].GroupItemIDs = append(byName[name].GroupItemIDs, item)
	}
}

// Grouped reports whether a view is grouped by a column there is.
func (d *Database) Grouped(v *View) bool {
	if v.Group == nil {
		return false
	}
	_, ok := d.Column(v.Group.Field)
	return ok
}

// Filters are filters as a database stores them: all in one group of the outermost
// kind, every part spelled out. What they say is not checked.
func Filters(list []json.RawMessage) []json.RawMessage {
	root := filter{Combination: "and"}
	for _, raw := range list {
		var f filter
		if json.Unmarshal(raw, &f) == nil {
			root.Filters = append(root.Filters, f)
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		return []json.RawMessage{openFilter}
	}
	return []json.RawMessage{out}
}

type filter struct {
	Column      string   `json:"column"`
	Operator    string   `json:"operator"`
	Value       *Value   `json:"value"`
	Combination string   `json:"combination,omitempty"`
	Filters     []filter `json:"filters,omitempty"`
}

// passes applies the filters understood here: Contains, Is empty, Is not empty
// and equality of text; others let every row through.
func passes(r *Row, filters []json.RawMessage) bool {
	for _, raw := range filters {
		var f filter
		if json.Unmarshal(raw, &f) == nil && !f.passes(r) {
			return false
		}
	}
	return true
}

func (f filter) passes(r *Row) bool {
	if len(f.Filters) > 0 {
		fails := func(f filter) bool { return !f.passes(r) }
		if f.Combination == "or" {
			return slices.ContainsFunc(f.Filters, func(f filter) bool { return f.passes(r) })
		}
		return !slices.ContainsFunc(f.Filters, fails)
	}
	for _, c := range r.Cells {
		if f.Column != "" && c.Value.KeyID == f.Column && !holds(c.Value.String(), f.Operator, f.Value) {
			return false
		}
	}
	return true
}

// LastKey is the last column of the first view.
func (d *Database) LastKey() string {
	places := *d.Views[0].places()
	return places[len(places)-1].ID
}
