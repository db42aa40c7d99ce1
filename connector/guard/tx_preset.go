package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// RowTemplate is a template for new rows. Box and Path are of one that makes
// documents; Box is the placeholder where its notebook is not the caller's to see.
type RowTemplate struct {
	ID, Name, Target string
	Box, Path        string
	Cells            []PresetCell
}

// PresetCell is what a template puts into a column: a cell, or the day it is used.
type PresetCell struct {
	Column string
	Today  bool
	Value  CellValue
}

// RowTemplates are the templates of a database with everything hidden taken out,
// and the one that is used without asking.
func (s *Session) RowTemplates(ctx context.Context, d Database) (list []RowTemplate, standard string, err error) {
	if err := s.own(d, contract.Read); err != nil || len(d.file.NewItemTemplates) == 0 {
		return nil, "", err
	}
	m, err := s.cellMask(ctx, d, nil)
	if err != nil {
		return nil, "", err
	}
	for _, t := range d.file.NewItemTemplates {
		one := RowTemplate{ID: string(t.ID), Name: t.Name, Target: t.TargetType}
		if at := t.SaveLocation; at != nil {
			one.Box, one.Path = string(at.BoxID), at.PathTemplate
			if _, known := s.sidebar().notebooks[at.BoxID]; !known {
				one.Box, one.Path = Placeholder, ""
			}
		}
		for _, id := range slices.Sorted(maps.Keys(t.FieldValues)) {
			p := t.FieldValues[id]
			c := PresetCell{Column: string(id), Today: p.Mode == "currentTime"}
			if p.Value != nil {
				c.Value = *p.Value
				c.Value.KeyID = id
				m.hide(&c.Value)
			}
			one.Cells = append(one.Cells, c)
		}
		list = append(list, one)
	}
	return list, string(d.file.DefaultTemplateID), nil
}

// presetsMark is what templates say, as far as it can be set.
func presetsMark(list []siyuan.ItemTemplate, standard siyuan.ID) string {
	var b strings.Builder
	fmt.Fprintln(&b, standard)
	for _, t := range list {
		at := siyuan.ItemPlace{}
		if t.SaveLocation != nil && t.TargetType == "document" {
			at = *t.SaveLocation
		}
		fmt.Fprintf(&b, "%s %q %s %s %q %q %q\n", t.ID, t.Name, t.TargetType, at.BoxID, at.PathTemplate, t.Icon, t.Content)
		for _, id := range slices.Sorted(maps.Keys(t.FieldValues)) {
			fmt.Fprintln(&b, id, t.FieldValues[id].Mode, cellMark(t.FieldValues[id].Value))
		}
	}
	return digest(b.String())
}

// SetRowTemplates replaces the templates for new rows. Each is checked here, since
// SiYuan refuses all for one in silence, and drops options it does not know. The
// icon and the text of a template that keeps its id stay.
func (tx *Tx) SetRowTemplates(ctx context.Context, d Database, list []RowTemplate, standard string) (changed bool, err error) {
	if d, err = tx.database(d); err != nil {
		return false, err
	}
	templates := []siyuan.ItemTemplate{}
	for i, t := range list {
		at := fmt.Sprintf("templates.%d", i)
		one, err := tx.rowTemplate(ctx, d, t, at)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(templates, func(o siyuan.ItemTemplate) bool { return o.ID == one.ID }) {
			return false, contract.InvalidFields(contract.Field{Path: at + ".id", Message: "is named before"})
		}
		templates = append(templates, one)
	}
	if standard != "" && !slices.ContainsFunc(templates, func(t siyuan.ItemTemplate) bool { return string(t.ID) == standard }) {
		return false, contract.InvalidFields(contract.Field{Path: "defaultTemplateID", Message: "must be one of the templates, or empty"})
	}
	before, after := presetsMark(d.file.NewItemTemplates, d.file.DefaultTemplateID), presetsMark(templates, siyuan.ID(standard))
	if before == after {
		return false, nil
	}
	op := siyuan.Op{Action: "setAttrViewNewItemTemplates", AvID: d.id, Data: map[string]any{"templates": templates, "defaultTemplateID": standard}}
	_, err = tx.change(ctx, d, Step{Op: "database.set_templates", Marks: []Mark{{LookPresets, d.ID(), before, after}}}, transaction(ctx, op),
		func(av siyuan.AttributeView) bool {
			return presetsMark(av.NewItemTemplates, av.DefaultTemplateID) == after
		}, "its templates are others")
	return true, err
}

func (tx *Tx) rowTemplate(ctx context.Context, d Database, t RowTemplate, path string) (one siyuan.ItemTemplate, err error) {
	bad := func(field, message string) error {
		return contract.InvalidFields(contract.Field{Path: path + field, Message: message})
	}
	one = siyuan.ItemTemplate{ID: siyuan.ID(t.ID), Name: t.Name, TargetType: t.Target}
	switch {
	case !one.ID.Valid():
		return one, bad(".id", "must be an id such as 20240131120000-abc1234")
	case strings.TrimSpace(t.Name) == "":
		return one, bad(".name", "must not be empty")
	case t.Target == "document" && t.Box == "":
		return one, bad(".saveLocation", "must say where the documents go")
	case t.Target != "document" && t.Box != "":
		return one, bad(".saveLocation", "belongs to targetType document")
	}
	if t.Box != "" {
		if err := tx.s.checkPlace(ctx, t.Box, t.Path); err != nil {
			return one, err
		}
		one.SaveLocation = &siyuan.ItemPlace{BoxID: siyuan.ID(t.Box), PathTemplate: t.Path}
	}
	for _, old := range d.file.NewItemTemplates {
		if old.ID == one.ID {
			one.Icon, one.Content = old.Icon, old.Content
		}
	}
	for _, c := range t.Cells {
		k, err := d.column(c.Column)
		if err != nil {
			return one, err
		}
		preset, err := tx.presetOf(ctx, d, k, c, path)
		if err != nil {
			return one, err
		}
		if one.FieldValues == nil {
			one.FieldValues = map[siyuan.ID]siyuan.ItemPreset{}
		}
		one.FieldValues[k.ID] = preset
	}
	return one, nil
}

func (tx *Tx) presetOf(ctx context.Context, d Database, k siyuan.Key, c PresetCell, path string) (siyuan.ItemPreset, error) {
	if !c.Today {
		v, err := tx.preset(ctx, d, k, c.Value)
		return siyuan.ItemPreset{Mode: "static", Value: &v}, err
	}
	if k.Type != "date" {
		return siyuan.ItemPreset{}, contract.InvalidFields(contract.Field{Path: path + ".fieldValues." + c.Column + ".mode", Message: "currentTime fits a date column only"})
	}
	return siyuan.ItemPreset{Mode: "currentTime"}, nil
}

// checkPlace demands a notebook that may be written to, and a path that cannot
// tell what is hidden.
func (s *Session) checkPlace(ctx context.Context, box, path string) error {
	nb, err := s.Notebook(box, contract.ReadWrite)
	if err != nil {
		return err
	}
	if err := nb.Reachable(); err != nil {
		return err
	}
	if !strings.HasPrefix(path, "/") || slices.Contains(strings.Split(path, "/"), "..") {
		return contract.InvalidFields(contract.Field{Path: "saveLocation.path", Message: "must be a readable path such as /Tasks/New"})
	}
	return s.checkTemplate(ctx, "saveLocation.path", path)
}

// preset is a cell of a template, checked as one that is set.
func (tx *Tx) preset(ctx context.Context, d Database, k siyuan.Key, v CellValue) (siyuan.Value, error) {
	switch k.Type {
	case "block", "template", "created", "updated", "rollup", "lineNumber":
		return siyuan.Value{}, contract.Fail(contract.InvalidTarget, "Column %s is of type %s, which a template cannot fill in.", string(k.ID), k.Type)
	}
	in := CellInput{Column: string(k.ID), Type: k.Type}
	for _, o := range v.Select {
		if optionNamed(k.Options, o.Content) < 0 {
			return siyuan.Value{}, contract.Fail(contract.InvalidValue, "Column %s has no option %q.", string(k.ID), o.Content).
				WithHint("Add it with av.set_column_options first.")
		}
		in.Options = append(in.Options, o.Content)
	}
	in.fill(v)
	out, err := tx.value(ctx, d, k, in)
	if err != nil {
		return out, err
	}
	u := siyuan.CellUpdate{KeyID: k.ID, Value: out}
	_, err = newOptions(d, &u, nil)
	u.Value.Type = k.Type
	return u.Value, err
}

// fill takes a cell apart into what sets one like it.
func (in *CellInput) fill(v CellValue) {
	for _, t := range []*siyuan.ValueText{v.Text, v.URL, v.Email, v.Phone} {
		if t != nil {
			in.Text = t.Content
		}
	}
	if v.Number != nil && v.Number.IsNotEmpty {
		in.Number, in.Format = &v.Number.Content, v.Number.Format
	}
	at := func(ms int64) *time.Time { t := time.UnixMilli(ms); return &t }
	if v.Date != nil && v.Date.IsNotEmpty {
		in.Start, in.WithTime = at(v.Date.Content), !v.Date.IsNotTime
		if v.Date.HasEndDate {
			in.End = at(v.Date.Content2)
		}
	}
	in.Checked = v.Checkbox != nil && v.Checkbox.Checked
	in.Assets = v.Assets
	if v.Relation != nil {
		for _, id := range v.Relation.BlockIDs {
			in.Related = append(in.Related, string(id))
		}
	}
}

// TemplatePlace is the notebook that a template makes documents in, as a target of
// the write; false for one that makes none. A template that names no place, or
// could read what is hidden from the caller, is refused.
func (s *Session) TemplatePlace(ctx context.Context, d Database, id string) (Notebook, bool, error) {
	if err := s.own(d, contract.ReadWrite); err != nil {
		return Notebook{}, false, err
	}
	t, err := d.template(id)
	if err != nil || t.TargetType != "document" {
		return Notebook{}, false, err
	}
	if t.SaveLocation == nil || !strings.HasPrefix(t.SaveLocation.PathTemplate, "/") {
		return Notebook{}, false, contract.Fail(contract.InvalidTarget, "Template %s does not say where its documents go.", id).
			WithHint("Name a place for it with av.set_new_item_templates.")
	}
	if t.Content != "" && !s.whole() {
		return Notebook{}, false, contract.Fail(contract.Unsupported, "Template %s fills its documents from a template file, which can query every notebook, so only those who may read all of them can use it.", id)
	}
	nb, err := s.Notebook(string(t.SaveLocation.BoxID), contract.ReadWrite)
	if contract.CodeOf(err) == contract.NotFound {
		err = contract.Fail(contract.HiddenReference, "There is no notebook that the documents of template %s go to.", id)
	}
	if err == nil {
		err = s.checkPlace(ctx, string(t.SaveLocation.BoxID), t.SaveLocation.PathTemplate)
	}
	return nb, err == nil, err
}

func (d Database) template(id string) (siyuan.ItemTemplate, error) {
	i := slices.IndexFunc(d.file.NewItemTemplates, func(t siyuan.ItemTemplate) bool { return string(t.ID) == id })
	if i < 0 {
		return siyuan.ItemTemplate{}, contract.Fail(contract.NotFound, "Database %s has no template %s.", d.ID(), id).WithHint("av.get shows its templates.")
	}
	return d.file.NewItemTemplates[i], nil
}

// MadeRow is a row made by a template, with the cells it filled in. Block is its
// document, "" of a row of its own.
type MadeRow struct {
	ID, Block, Title string
	Cells            []CellValue
}

// CreateFromTemplate adds a row as a template says. SiYuan chooses the ids, so a
// lost answer is judged by the number of rows.
func (tx *Tx) CreateFromTemplate(ctx context.Context, d Database, template string, at RowPlace) (made MadeRow, err error) {
	if d, err = tx.database(d); err != nil {
		return made, err
	}
	t, err := d.template(template)
	if err != nil {
		return made, err
	}
	if err := tx.coversTemplate(ctx, d, t); err != nil {
		return made, err
	}
	place, err := tx.rowPlace(ctx, d, at)
	if err != nil {
		return made, err
	}
	rows := len(primary(d.file).Values)
	st := Step{Op: "database.from_template", ID: d.ID(), Marks: []Mark{{LookRows, d.ID(), rowsMark(rows), rowsMark(rows + 1)}}}
	var item siyuan.AvItem
	err = tx.step(ctx, st, func(w *siyuan.Writer) (err error) {
		item, err = w.CreateItem(ctx, d.id, siyuan.ItemAt{Block: place.Block, View: place.View, Group: place.Group, Previous: place.Previous, Template: t.ID})
		return err
	})
	if answered(err) {
		return made, notPersisted("SiYuan took the request for a row of database %s, but names none.", d.ID())
	}
	if err != nil {
		return made, err
	}
	if err := tx.addedRow(ctx, d.id, item.ItemID); err != nil {
		return made, err
	}
	made = MadeRow{ID: string(item.ItemID), Title: item.Content}
	if t.TargetType == "document" {
		made.Block = string(item.BlockID)
	}
	// Cells are compared by what the template says; a day is whatever day it is.
	av, shown, err := tx.reread(ctx, d.id, func(av siyuan.AttributeView) bool {
		title := cellOf(av, primary(av).Key.ID, item.ItemID)
		return title != nil && title.IsDetached == (made.Block == "") && filled(av, t, item.ItemID)
	})
	if err == nil && !shown {
		err = notPersisted("SiYuan made row %s, but not with all cells of the template.", made.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(t.FieldValues)) {
		if c := cellOf(av, id, item.ItemID); c != nil {
			made.Cells = append(made.Cells, *c)
		}
	}
	if err == nil && made.Block != "" {
		err = tx.madeDocument(ctx, t, item.BlockID)
	}
	return made, err
}

func filled(av siyuan.AttributeView, t siyuan.ItemTemplate, row siyuan.ID) bool {
	for id, p := range t.FieldValues {
		c := cellOf(av, id, row)
		if p.Mode == "currentTime" {
			if c == nil || c.Date == nil || !c.Date.IsNotEmpty {
				return false
			}
			continue
		}
		if cellMark(c) != cellMark(p.Value) {
			return false
		}
	}
	return true
}

// coversTemplate checks that everything is locked that a template writes to.
func (tx *Tx) coversTemplate(ctx context.Context, d Database, t siyuan.ItemTemplate) error {
	for id := range t.FieldValues {
		k, err := d.column(string(id))
		if err != nil {
			return err
		}
		if err := tx.coversRelated(d, k); err != nil {
			return err
		}
	}
	nb, makes, err := tx.s.TemplatePlace(ctx, d, string(t.ID))
	if err != nil || !makes {
		return err
	}
	return tx.coversTree(nb)
}

// madeDocument looks whether the document of a new row is where it belongs.
func (tx *Tx) madeDocument(ctx context.Context, t siyuan.ItemTemplate, id siyuan.ID) error {
	tx.s.forget(id)
	p, err := tx.s.locate(ctx, id)
	if errors.Is(err, siyuan.Missing) || err == nil && p.box != t.SaveLocation.BoxID {
		return notPersisted("SiYuan made the row, but its document %s is not in notebook %s.", string(id), string(t.SaveLocation.BoxID))
	}
	if err != nil {
		return err
	}
	return tx.creates(ctx, id)
}

// TemplateColumns are the columns that a template fills in.
func (d Database) TemplateColumns(id string) ([]string, error) {
	t, err := d.template(id)
	var columns []string
	for _, c := range slices.Sorted(maps.Keys(t.FieldValues)) {
		columns = append(columns, string(c))
	}
	return columns, err
}
