package av

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// CopyRow makes a row of its own with the text and cells of another, behind a row
// or at the end. A missing source is passed over.
func (d *Database) CopyRow(id, source, previousID string, m Maker, l Lookup) {
	if _, ok := d.Primary().Value(source); !ok {
		return
	}
	now := m.Now()
	for _, c := range d.Columns {
		stored, ok := c.Value(source)
		if !ok {
			continue
		}
		v := *stored
		v.ID, v.BlockID, v.CreatedAt, v.UpdatedAt = m.NewID(), id, now, now
		if v.Block != nil {
			v.Block = &ValueBlock{Content: d.Cell(c, source, l).Block.Content, Created: now, Updated: now}
			v.IsDetached = true
		}
		c.Values = append(c.Values, &v)
	}
	for _, view := range d.Views {
		at := slices.Index(view.ItemIDs, previousID) + 1
		if at == 0 {
			at = len(view.ItemIDs)
		}
		view.ItemIDs = slices.Insert(view.ItemIDs, at, id)
	}
}

// SetOptions changes the options of a select column: those named are changed or
// put behind the others; none is taken away.
func (k *Key) SetOptions(list []*Option) {
	for _, o := range list {
		at := slices.IndexFunc(k.Options, func(have *Option) bool { return have.Name == o.Name })
		if at < 0 {
			k.Options = append(k.Options, o)
		} else {
			k.Options[at] = o
		}
	}
}

// RemoveOption takes an option out of a column and out of its cells.
func (c *Column) RemoveOption(name string) {
	c.Key.Options = slices.DeleteFunc(c.Key.Options, func(o *Option) bool { return o.Name == name })
	for _, v := range c.Values {
		v.MSelect = slices.DeleteFunc(v.MSelect, func(s *ValueSelect) bool { return s.Content == name })
	}
}

// LinkBack makes the cells of a two-way relation's other column say what a row of
// the first one says.
func (d *Database) LinkBack(keyID, item string, rows []string, m Maker) {
	c, ok := d.Column(keyID)
	if !ok {
		return
	}
	for _, row := range rows {
		if v, ok := c.Value(row); !ok {
			c.Values = append(c.Values, &Value{ID: m.NewID(), KeyID: keyID, BlockID: row, Type: "relation", CreatedAt: m.Now(), UpdatedAt: m.Now(), Relation: &ValueRelation{BlockIDs: []string{item}}})
		} else if v.Relation != nil && !slices.Contains(v.Relation.BlockIDs, item) {
			v.Relation.BlockIDs = append(v.Relation.BlockIDs, item)
		}
	}
	for _, v := range c.Values {
		if v.Relation != nil && !slices.Contains(rows, v.BlockID) {
			v.Relation.BlockIDs = slices.DeleteFunc(v.Relation.BlockIDs, func(id string) bool { return id == item })
		}
	}
}

var errTemplate = errors.New("new item template")

// SetTemplates replaces the templates of new rows. All are refused for one that
// has no name, a kind that is not known, an id twice, or a field that is not there
// or cannot be set. Options that a column does not have are dropped.
func (d *Database) SetTemplates(list []*ItemTemplate, standard string) error {
	seen := map[string]bool{}
	for _, t := range list {
		if t.Name == "" || t.TargetType != "detached" && t.TargetType != "document" || seen[t.ID] {
			return fmt.Errorf("%w: %s", errTemplate, t.ID)
		}
		seen[t.ID] = true
		if t.TargetType == "detached" {
			t.SaveLocation = nil
		}
		for id, p := range t.FieldValues {
			if err := d.settlePreset(t, id, p); err != nil {
				return err
			}
		}
	}
	if standard != "" && !seen[standard] {
		return fmt.Errorf("%w: default %s", errTemplate, standard)
	}
	d.NewItemTemplates, d.DefaultTemplateID = list, standard
	return nil
}

func (d *Database) settlePreset(t *ItemTemplate, id string, p *Preset) error {
	c, ok := d.Column(id)
	computed := []string{"block", "template", "created", "updated", "rollup", "lineNumber"}
	if !ok || slices.Contains(computed, c.Key.Type) || p.Mode != "static" && (p.Mode != "currentTime" || c.Key.Type != "date") {
		return fmt.Errorf("%w: field %s", errTemplate, id)
	}
	if p.Mode == "static" && p.Value == nil {
		delete(t.FieldValues, id)
		return nil
	}
	if p.Value != nil && len(c.Key.Options) > 0 {
		p.Value.MSelect = slices.DeleteFunc(p.Value.MSelect, func(s *ValueSelect) bool {
			return !slices.ContainsFunc(c.Key.Options, func(o *Option) bool { return o.Name == s.Content })
		})
	}
	return nil
}

// Template is the template of that id, nil for none.
func (d *Database) Template(id string) *ItemTemplate {
	for _, t := range d.NewItemTemplates {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Fill puts into a new row what a template says.
func (d *Database) Fill(t *ItemTemplate, item string, m Maker) error {
	for _, c := range d.Columns {
		p, ok := t.FieldValues[c.Key.ID]
		if !ok {
			continue
		}
		v := p.Value
		if p.Mode == "currentTime" {
			v = &Value{Date: &ValueDate{Content: m.Now(), IsNotEmpty: true, IsNotTime: true, IsNotEmpty2: true}}
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := d.Set(c.Key.ID, item, raw, m); err != nil {
			return err
		}
	}
	return nil
}
