package samplekernel

import (
	"path"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/av"
)

// rendered is a database as one of its views shows it. The rows of a grouped view
// stand in its groups; only those of the others are paged.
func (k *Kernel) rendered(db *av.Database, a args) any {
	v := db.View(a.strOr("viewID", ""))
	if a.strOr("viewID", "") == "" && a.strOr("blockID", "") != "" {
		v = k.viewShown(db, a.str("blockID"))
	}
	rows := []*av.Row{}
	if !a.boolOr("ignoreRows", false) {
		rows = db.RenderRows(v, a.strOr("query", ""), k.lookup())
	}
	size, page := a.intOr("pageSize", v.PageSize), max(1, a.intOr("page", 1))
	view := k.renderedView(db, v, rows, page, size)
	if db.Grouped(v) {
		var groups []any
		for _, g := range v.Groups {
			var in []*av.Row
			for _, r := range rows {
				if slices.Contains(g.GroupItemIDs, r.ID) {
					in = append(in, r)
				}
			}
			shown := *g
			shown.Table, shown.Gallery, shown.Kanban = v.Table, v.Gallery, v.Kanban
			groups = append(groups, k.renderedView(db, &shown, in, page, size))
		}
		view["group"], view["groups"] = v.Group, groups
	}
	views := []any{}
	for _, o := range db.Views {
		views = append(views, map[string]any{"id": o.ID, "icon": o.Icon, "name": o.Name, "desc": o.Desc, "hideAttrViewName": o.HideAttrViewName, "type": o.Type, "pageSize": o.PageSize})
	}
	return map[string]any{
		"defaultTemplateID": db.DefaultTemplateID, "id": db.ID, "isMirror": len(k.databaseBlocks(db.ID)) > 1, "name": db.Name,
		"newItemTemplates": db.NewItemTemplates, "view": view, "viewID": v.ID, "viewType": v.Type, "views": views,
	}
}

func (k *Kernel) renderedView(db *av.Database, v *av.View, rows []*av.Row, page, size int) map[string]any {
	count := len(rows)
	if size > 0 {
		rows = rows[min((page-1)*size, count):min(page*size, count)]
	}
	if rows == nil {
		rows = []*av.Row{}
	}
	sorts := []any{}
	for _, s := range v.Sorts {
		sorts = append(sorts, s)
	}
	icon, wrap := v.Look()
	out := map[string]any{
		"id": v.ID, "icon": v.Icon, "name": v.Name, "desc": v.Desc, "hideAttrViewName": v.HideAttrViewName, "filters": v.Filters, "sorts": sorts,
		"group": nil, "pageSize": v.PageSize, "showIcon": icon, "wrapField": wrap, "groupFolded": false, "groupHidden": 0,
	}
	if v.Table != nil {
		out["columns"], out["rows"], out["rowCount"] = db.RenderColumns(v), rows, count
		return out
	}
	cards := []any{}
	for _, r := range rows {
		cards = append(cards, map[string]any{"id": r.ID, "values": r.Cells})
	}
	out["fields"], out["cards"], out["cardCount"], out["coverFrom"], out["cardSize"] = db.RenderColumns(v), cards, count, 1, 1
	return out
}

func setAttrViewGroup(k *Kernel, a args) (any, error) {
	var group av.Group
	if err := remarshal(a.object("group"), &group); err != nil {
		return nil, fail(err.Error())
	}
	var view string
	err := k.withDatabase(a.str("avID"), func(db *av.Database) error {
		v := k.viewShown(db, a.str("blockID"))
		db.SetGroup(v, group, k.maker(), k.lookup())
		view = v.ID
		return nil
	})
	if err != nil {
		return nil, err
	}
	db, _ := k.database(a.str("avID"))
	return k.rendered(db, args{"viewID": view}), nil
}

// createAttributeViewItem makes a row as a template says, or an empty one.
func createAttributeViewItem(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("avID"))
	if !ok {
		return nil, errNoView
	}
	row := av.Source{ItemID: k.newID(), Detached: true}
	row.BlockID = row.ItemID
	id := a.strOr("templateID", "")
	t := db.Template(id)
	if id != "" && t == nil {
		return nil, fail("new item template [" + id + "] not found")
	}
	if t != nil && t.TargetType == "document" {
		doc, err := k.documentOf(t, a.str("blockID"))
		if err != nil {
			return nil, err
		}
		row.BlockID, row.Content, row.Detached = doc.id(), doc.title(), false
	}
	err := k.withDatabase(db.ID, func(db *av.Database) error {
		db.AddRows([]av.Source{row}, a.strOr("previousID", ""), k.maker())
		if t == nil {
			return nil
		}
		return db.Fill(t, row.ItemID, k.maker())
	})
	if err == nil && !row.Detached {
		err = k.bind(row.BlockID, db.ID, true)
	}
	return map[string]any{"itemID": row.ItemID, "blockID": row.BlockID, "content": row.Content, "isDetached": row.Detached}, err
}

// documentOf makes the document that a new row of a template is bound to. Without
// a place of its own it goes below the one that shows the database.
func (k *Kernel) documentOf(t *av.ItemTemplate, block string) (*document, error) {
	p, ok := k.block(block)
	if !ok {
		return nil, fail("block not found")
	}
	box, hpath := p.doc.box, k.hpath(p.doc)+"/"
	if at := t.SaveLocation; at != nil {
		if box = at.BoxID; at.PathTemplate != "" {
			rendered, err := k.sprig(at.PathTemplate)
			if err != nil {
				return nil, fail(err.Error())
			}
			hpath = rendered
		}
	}
	if _, open := k.openBox(box); !open {
		return nil, failCode(1, "")
	}
	if strings.HasSuffix(hpath, "/") {
		hpath += "Untitled"
	}
	folder, title, err := k.makeParents(box, hpath, "")
	if err != nil {
		return nil, err
	}
	return k.create(newDoc{box: box, path: path.Join(folder, k.newID()+".sy"), title: title})
}
