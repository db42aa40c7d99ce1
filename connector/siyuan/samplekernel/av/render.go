package av

import (
	"strings"
	"time"
)

// Cell is a cell of a rendered table.
type Cell struct {
	ID        string `json:"id"`
	Value     *Value `json:"value"`
	ValueType string `json:"valueType"`
	Color     string `json:"color"`
	BgColor   string `json:"bgColor"`
}

// Row is a row of a rendered table.
type Row struct {
	ID    string  `json:"id"`
	Cells []*Cell `json:"cells"`
}

// RenderedColumn is a column of a rendered table.
type RenderedColumn struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Type         string    `json:"type"`
	Icon         string    `json:"icon"`
	Wrap         bool      `json:"wrap"`
	Hidden       bool      `json:"hidden"`
	Desc         string    `json:"desc"`
	Calc         any       `json:"calc"`
	Options      []*Option `json:"options,omitempty"`
	NumberFormat string    `json:"numberFormat"`
	Template     string    `json:"template"`
	Relation     *Relation `json:"relation,omitempty"`
	Rollup       *Rollup   `json:"rollup,omitempty"`
	Pin          bool      `json:"pin"`
	Width        string    `json:"width"`
	Align        string    `json:"align"`
}

// Lookup is what a rendering asks about: the current text of a bound block and
// other databases.
type Lookup struct {
	Block    func(id string) (content string, ok bool)
	Database func(id string) (*Database, bool)
	Template func(template string, row map[string]string) string
	NewID    func() string // of cells that are not stored; only its random part is used
}

// RenderColumns lists the columns of a view in order.
func (d *Database) RenderColumns(v *View) []*RenderedColumn {
	out := []*RenderedColumn{}
	for _, t := range *v.places() {
		c, ok := d.Column(t.ID)
		if !ok {
			continue
		}
		k := c.Key
		out = append(out, &RenderedColumn{ID: k.ID, Name: k.Name, Type: k.Type, Icon: k.Icon, Wrap: t.Wrap, Hidden: t.Hidden, Desc: k.Desc,
			Options: k.Options, NumberFormat: k.NumberFormat, Template: k.Template, Relation: k.Relation, Rollup: k.Rollup, Pin: t.Pin, Width: t.Width})
	}
	return out
}

// RenderRows lists the rows of a view that match the query and its filters.
func (d *Database) RenderRows(v *View, query string, l Lookup) []*Row {
	out := []*Row{}
	for _, item := range v.ItemIDs {
		if _, ok := d.Primary().Value(item); !ok {
			continue
		}
		r := &Row{ID: item}
		for _, t := range *v.places() {
			if c, ok := d.Column(t.ID); ok {
				value := d.Cell(c, item, l)
				r.Cells = append(r.Cells, &Cell{ID: value.ID, Value: value, ValueType: c.Key.Type})
			}
		}
		if matches(r, query) && passes(r, v.Filters) {
			out = append(out, r)
		}
	}
	return out
}

// Cell is the value of a row in a column with everything computed: an empty
// one of the right kind when nothing is stored.
func (d *Database) Cell(c *Column, item string, l Lookup) *Value {
	stored, ok := c.Value(item)
	var v Value
	if ok {
		v = *stored
	} else {
		at := itemTime(item)
		v = Value{ID: item[:min(14, len(item))] + "-" + tail(l.NewID()), KeyID: c.Key.ID, BlockID: item, Type: c.Key.Type, CreatedAt: at, UpdatedAt: at}
		empty(&v)
	}
	d.compute(c.Key, &v, item, l)
	return &v
}

func tail(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }

func itemTime(item string) int64 {
	t, err := time.ParseInLocation("20060102150405", item[:min(14, len(item))], time.Local)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// empty gives an unstored value the empty object of its kind.
func empty(v *Value) {
	switch v.Type {
	case "text":
		v.Text = &ValueText{}
	case "number":
		v.Number = &ValueNumber{}
	case "date":
		v.Date = &ValueDate{IsNotTime: true}
	case "url":
		v.URL = &ValueText{}
	case "email":
		v.Email = &ValueText{}
	case "phone":
		v.Phone = &ValueText{}
	case "template":
		v.Template = &ValueText{}
	case "checkbox":
		v.Checkbox = &ValueCheckbox{}
	case "relation":
		v.Relation = &ValueRelation{}
	case "rollup":
		v.Rollup = &ValueRollup{}
	}
}

func (d *Database) compute(k *Key, v *Value, item string, l Lookup) {
	switch k.Type {
	case "block":
		if v.Block != nil && v.Block.ID != "" {
			b := *v.Block
			if content, ok := l.Block(b.ID); ok {
				b.Content = content
			}
			v.Block = &b
		}
	case "number":
		if v.Number != nil {
			n := *v.Number
			n.Format = k.NumberFormat
			v.Number = &n
		}
	case "created":
		v.Created = stamp(itemTime(item))
	case "updated":
		v.Updated = stamp(d.lastChange(item))
	case "relation":
		d.relate(k, v, l)
	case "rollup":
		v.Rollup = &ValueRollup{Contents: d.collect(k, item, l)}
	case "template":
		v.Template = &ValueText{}
		if k.Template != "" && l.Template != nil {
			v.Template.Content = l.Template(k.Template, d.texts(item, l))
		}
	}
}

// collect gathers the values of the related rows for a rollup.
func (d *Database) collect(k *Key, item string, l Lookup) (values []*Value) {
	if k.Rollup == nil {
		return nil
	}
	relation, ok := d.Column(k.Rollup.RelationKeyID)
	if !ok || relation.Key.Relation == nil {
		return nil
	}
	stored, ok := relation.Value(item)
	other, found := l.Database(relation.Key.Relation.AvID)
	if !ok || !found || stored.Relation == nil {
		return nil
	}
	c, ok := other.Column(k.Rollup.KeyID)
	if !ok || c.Key.Type == "rollup" || c.Key.Type == "template" { // neither nests
		return nil
	}
	for _, id := range stored.Relation.BlockIDs {
		if _, exists := other.Primary().Value(id); exists {
			values = append(values, other.Cell(c, id, l))
		}
	}
	return values
}

// texts are the stored values of a row by column name, for templates.
func (d *Database) texts(item string, l Lookup) map[string]string {
	m := map[string]string{}
	for _, c := range d.Columns {
		if c.Key.Type != "template" && c.Key.Type != "rollup" {
			m[c.Key.Name] = d.Cell(c, item, l).String()
		}
	}
	return m
}

func stamp(ms int64) *ValueTime {
	return &ValueTime{Content: ms, IsNotEmpty: true, FormattedContent: time.UnixMilli(ms).Format("2006-01-02 15:04")}
}

func (d *Database) lastChange(item string) (ms int64) {
	for _, c := range d.Columns {
		if v, ok := c.Value(item); ok {
			ms = max(ms, v.UpdatedAt)
		}
	}
	return ms
}

// relate fills in the primary values of related rows.
func (d *Database) relate(k *Key, v *Value, l Lookup) {
	if v.Relation == nil {
		return
	}
	r := ValueRelation{BlockIDs: v.Relation.BlockIDs}
	if k.Relation != nil {
		if other, ok := l.Database(k.Relation.AvID); ok {
			for _, id := range r.BlockIDs {
				if _, ok := other.Primary().Value(id); ok {
					r.Contents = append(r.Contents, other.Cell(other.Primary(), id, l))
				}
			}
		}
	}
	v.Relation = &r
}

// String is the text of a value as search and the index see it.
func (v *Value) String() string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	for _, t := range []*ValueText{v.Text, v.URL, v.Email, v.Phone, v.Template} {
		if t != nil {
			add(t.Content)
		}
	}
	if v.Block != nil {
		add(v.Block.Content)
	}
	if v.Number != nil {
		add(v.Number.FormattedContent)
	}
	for _, s := range v.MSelect {
		add(s.Content)
	}
	for _, a := range v.MAsset {
		add(a.Name)
	}
	if v.Relation != nil {
		for _, c := range v.Relation.Contents {
			add(c.String())
		}
	}
	if v.Rollup != nil {
		for _, c := range v.Rollup.Contents {
			add(c.String())
		}
	}
	return strings.Join(parts, " ")
}

func matches(r *Row, query string) bool {
	for _, word := range strings.Fields(strings.ToLower(query)) {
		found := false
		for _, c := range r.Cells {
			found = found || strings.Contains(strings.ToLower(c.Value.String()), word)
		}
		if !found {
			return false
		}
	}
	return true
}

func holds(have, operator string, want *Value) bool {
	if want == nil { // passed over
		return true
	}
	text := want.String()
	switch operator {
	case "Contains":
		return strings.Contains(have, text)
	case "Does not contains":
		return !strings.Contains(have, text)
	case "=":
		return have == text
	case "!=":
		return have != text
	case "Is empty":
		return have == ""
	case "Is not empty":
		return have != ""
	}
	return true
}
