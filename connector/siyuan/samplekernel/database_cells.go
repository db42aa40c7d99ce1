package samplekernel

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/av"
	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func databaseRoutes() map[string]route {
	const p = "/api/av/"
	return map[string]route{
		p + "renderAttributeView":                         {serve: renderAttributeView, write: true},
		p + "getAttributeView":                            {serve: getAttributeView},
		p + "getAttributeViewKeys":                        {serve: getAttributeViewKeys},
		p + "getAttributeViewKeysByAvID":                  {serve: getAttributeViewKeysByAvID},
		p + "getAttributeViewKeysByID":                    {serve: getAttributeViewKeysByID},
		p + "getAttributeViewPrimaryKeyValues":            {serve: getAttributeViewPrimaryKeyValues},
		p + "getAttributeViewBacklinks":                   {serve: getAttributeViewBacklinks},
		p + "getAttributeViewFilterSort":                  {serve: getAttributeViewFilterSort},
		p + "getAttributeViewItemIDsByBoundIDs":           {serve: getAttributeViewItemIDsByBoundIDs},
		p + "getAttributeViewBoundBlockIDsByItemIDs":      {serve: getAttributeViewBoundBlockIDsByItemIDs},
		p + "getAttributeViewAddingBlockDefaultValues":    {serve: getAttributeViewAddingBlockDefaultValues},
		p + "getCurrentAttrViewImages":                    {serve: nothing},
		p + "getMirrorDatabaseBlocks":                     {serve: getMirrorDatabaseBlocks},
		p + "getUnusedAttributeViews":                     {serve: getUnusedAttributeViews, noBody: true},
		p + "searchAttributeView":                         {serve: searchAttributeView},
		p + "searchAttributeViewRelationKey":              {serve: searchAttributeViewRelationKey},
		p + "searchAttributeViewRollupDestKeys":           {serve: searchAttributeViewRollupDestKeys},
		p + "addAttributeViewKey":                         {serve: addAttributeViewKey, write: true},
		p + "removeAttributeViewKey":                      {serve: removeAttributeViewKey, write: true},
		p + "sortAttributeViewKey":                        {serve: sortAttributeViewKey, write: true},
		p + "sortAttributeViewViewKey":                    {serve: sortAttributeViewKey, write: true},
		p + "addAttributeViewBlocks":                      {serve: addAttributeViewBlocks, write: true},
		p + "batchReplaceAttributeViewBlocks":             {serve: replaceAttributeViewBlocks, write: true},
		p + "setDatabaseBlockView":                        {serve: setDatabaseBlockView, write: true},
		p + "removeAttributeViewBlocks":                   {serve: removeAttributeViewBlocks, write: true},
		p + "createAttributeViewItem":                     {serve: createAttributeViewItem, write: true},
		p + "setAttributeViewBlockAttr":                   {serve: setAttributeViewBlockAttr, write: true},
		p + "batchSetAttributeViewBlockAttrs":             {serve: batchSetAttributeViewBlockAttrs, write: true},
		p + "appendAttributeViewDetachedBlocksWithValues": {serve: appendDetachedRows, write: true},
		p + "setAttrViewFilters":                          {serve: setAttrViewFilters, write: true},
		p + "setAttrViewSorts":                            {serve: setAttrViewSorts, write: true},
		p + "setAttrViewGroup":                            {serve: setAttrViewGroup, write: true},
		p + "duplicateAttributeViewBlock":                 {serve: duplicateAttributeViewBlock, write: true},
		p + "removeUnusedAttributeView":                   {serve: removeUnusedAttributeView, write: true},
	}
}

// setCell merges a value into a cell. An unknown column is the trap: code 0
// without data.
func (k *Kernel) setCell(db *av.Database, keyID, itemID string, value any) (*av.Value, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	v, err := db.Set(keyID, itemID, raw, k.maker())
	if errors.Is(err, av.ErrNoKey) {
		return nil, errSwallowed
	}
	if err != nil {
		return nil, fail(err.Error())
	}
	return v, k.linkBack(db, keyID, v)
}

func setAttributeViewBlockAttr(k *Kernel, a args) (any, error) {
	if _, old := a["rowID"]; old {
		return nil, fail("[/api/av/setAttributeViewBlockAttr] parameter [rowID] is deprecated, visit [https://github.com/siyuan-note/siyuan/issues/15727] for details")
	}
	keyID, itemID, value := a.str("keyID"), a.str("itemID"), a.object("value")
	var v *av.Value
	err := k.withDatabase(a.str("avID"), func(db *av.Database) (err error) {
		v, err = k.setCell(db, keyID, itemID, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"value": v}, nil
}

func batchSetAttributeViewBlockAttrs(k *Kernel, a args) (any, error) {
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		for _, c := range a.objects("values") {
			if _, err := k.setCell(db, c.str("keyID"), c.str("itemID"), c.object("value")); err != nil {
				return err
			}
		}
		return nil
	})
}

// appendDetachedRows adds rows of their own, each an array of values.
func appendDetachedRows(k *Kernel, a args) (any, error) {
	rows := a.list("blocksValues")
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		for _, row := range rows {
			cells := toObjects(row)
			src := av.Source{ItemID: k.newID(), Detached: true}
			for _, c := range cells {
				if b, ok := c["block"].(map[string]any); ok {
					src.Content = args(b).strOr("content", "")
				}
			}
			db.AddRows([]av.Source{src}, lastItem(db), k.maker())
			for _, c := range cells {
				if _, primary := c["block"]; primary {
					continue
				}
				if _, err := k.setCell(db, c.str("keyID"), src.ItemID, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func toObjects(v any) []args { return args{"list": v}.objects("list") }

func lastItem(db *av.Database) string {
	if items := db.View("").ItemIDs; len(items) > 0 {
		return items[len(items)-1]
	}
	return ""
}

func getAttributeView(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("id"))
	if !ok {
		return map[string]any{"av": nil}, nil
	}
	return map[string]any{"av": db}, nil
}

// getAttributeViewKeys describes a row of the databases a block is bound to,
// or of the one asked about.
func getAttributeViewKeys(k *Kernel, a args) (any, error) {
	out := []any{}
	if avID := a.strOr("avID", ""); avID != "" {
		if db, ok := k.database(avID); ok {
			out = append(out, k.rowOf(db, a.str("itemID")))
		}
		return out, nil
	}
	id := a.str("id")
	p, ok := k.block(id)
	if !ok {
		return out, nil
	}
	for _, avID := range strings.Split(text.Attr(p.node, "custom-avs"), ",") {
		if db, ok := k.database(avID); ok {
			if item, bound := db.ItemOf(id); bound {
				out = append(out, k.rowOf(db, item))
			}
		}
	}
	return out, nil
}

func (k *Kernel) rowOf(db *av.Database, item string) map[string]any {
	cells := []any{}
	for _, c := range db.Columns {
		cells = append(cells, map[string]any{"key": c.Key, "values": []*av.Value{db.Cell(c, item, k.lookup())}})
	}
	return map[string]any{"avID": db.ID, "avName": shownName(db), "blockIDs": k.databaseBlockIDs(db.ID), "keyValues": cells}
}

func getAttributeViewKeysByAvID(k *Kernel, a args) (any, error) {
	return k.keysOf(a.str("avID"), func(*av.Key) bool { return true }), nil
}

func getAttributeViewKeysByID(k *Kernel, a args) (any, error) {
	ids := a.strs("keyIDs")
	return k.keysOf(a.str("avID"), func(key *av.Key) bool { return slices.Contains(ids, key.ID) }), nil
}

func (k *Kernel) keysOf(avID string, wanted func(*av.Key) bool) []*av.Key {
	keys := []*av.Key{}
	if db, ok := k.database(avID); ok {
		for _, c := range db.Columns {
			if wanted(c.Key) {
				keys = append(keys, c.Key)
			}
		}
	}
	return keys
}

// getAttributeViewPrimaryKeyValues lists rows by their last change, newest first.
func getAttributeViewPrimaryKeyValues(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("id"))
	if !ok {
		return nil, errNoView
	}
	keyword := strings.ToLower(a.strOr("keyword", ""))
	var values []*av.Value
	for _, v := range db.Primary().Values {
		if c := db.Cell(db.Primary(), v.BlockID, k.lookup()); strings.Contains(strings.ToLower(c.String()), keyword) {
			values = append(values, c)
		}
	}
	slices.SortStableFunc(values, func(a, b *av.Value) int { return int(b.UpdatedAt - a.UpdatedAt) })
	size, page := a.intOr("pageSize", 16), max(1, a.intOr("page", 1))
	if size > 0 {
		values = values[min((page-1)*size, len(values)):min(page*size, len(values))]
	}
	return map[string]any{"blockIDs": k.databaseBlockIDs(db.ID), "name": db.Name, "rows": map[string]any{"key": db.Primary().Key, "values": values}}, nil
}

// getAttributeViewBacklinks lists the rows of other databases related to a row.
func getAttributeViewBacklinks(k *Kernel, a args) (any, error) {
	avID, item := a.str("avID"), a.str("itemID")
	items := []any{}
	for _, id := range k.databaseIDs() {
		db, ok := k.database(id)
		if !ok {
			continue
		}
		for _, c := range db.Columns {
			if c.Key.Relation == nil || c.Key.Relation.AvID != avID {
				continue
			}
			for _, v := range c.Values {
				if v.Relation != nil && slices.Contains(v.Relation.BlockIDs, item) {
					items = append(items, k.relatedRow(db, c.Key, v.BlockID, avID, item))
				}
			}
		}
	}
	return map[string]any{"total": len(items), "items": items}, nil
}

func (k *Kernel) relatedRow(db *av.Database, key *av.Key, row, avID, item string) map[string]any {
	primary := db.Cell(db.Primary(), row, k.lookup())
	out := map[string]any{
		"avID": db.ID, "avName": db.Name, "blockIDs": k.databaseBlockIDs(db.ID), "databaseBlockID": "", "boxID": "", "databasePath": "",
		"itemID": row, "valueID": primary.ID, "title": primary.String(), "icon": "", "boundBlockID": "", "isDetached": primary.IsDetached,
		"relations": []any{map[string]any{"keyID": key.ID, "keyName": key.Name, "targetAvID": avID, "targetItemID": item}},
	}
	if primary.Block != nil {
		out["boundBlockID"] = primary.Block.ID
	}
	if blocks := k.databaseBlocks(db.ID); len(blocks) > 0 {
		out["databaseBlockID"], out["boxID"], out["databasePath"] = blocks[0].node.ID, blocks[0].doc.box, k.hpath(blocks[0].doc)
	}
	return out
}

func getAttributeViewFilterSort(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("id"))
	if !ok {
		return nil, errNoView
	}
	v := k.viewShown(db, a.strOr("blockID", ""))
	sorts := v.Sorts
	if sorts == nil {
		sorts = []json.RawMessage{}
	}
	return map[string]any{"filters": v.Filters, "sorts": sorts}, nil
}

func rawList(list []any) ([]json.RawMessage, error) {
	out := []json.RawMessage{}
	for _, v := range list {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

func setAttrViewFilters(k *Kernel, a args) (any, error) {
	list, err := rawList(a.list("data"))
	if err != nil {
		return nil, err
	}
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		k.viewShown(db, a.strOr("blockID", "")).Filters = av.Filters(list)
		return nil
	})
}

func setAttrViewSorts(k *Kernel, a args) (any, error) {
	list, err := rawList(a.list("data"))
	if err != nil {
		return nil, err
	}
	return nil, k.withDatabase(a.str("avID"), func(db *av.Database) error {
		k.viewShown(db, a.strOr("blockID", "")).Sorts = list
		return nil
	})
}

func getAttributeViewItemIDsByBoundIDs(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("avID"))
	out := map[string]any{}
	for _, id := range a.strs("blockIDs") {
		out[id] = ""
		if ok {
			out[id], _ = db.ItemOf(id)
		}
	}
	return out, nil
}

func getAttributeViewBoundBlockIDsByItemIDs(k *Kernel, a args) (any, error) {
	db, ok := k.database(a.str("avID"))
	out := map[string]any{}
	for _, id := range a.strs("itemIDs") {
		out[id] = ""
		if ok {
			if v, found := db.Primary().Value(id); found && v.Block != nil {
				out[id] = v.Block.ID
			}
		}
	}
	return out, nil
}

func getAttributeViewAddingBlockDefaultValues(_ *Kernel, a args) (any, error) {
	_ = a.str("avID")
	return map[string]any{"values": nil}, nil
}

func getMirrorDatabaseBlocks(k *Kernel, a args) (any, error) {
	defs := []refDef{}
	for _, id := range k.databaseBlockIDs(a.str("avID")) {
		defs = append(defs, refDef{RefID: id, DefIDs: []string{}})
	}
	return map[string]any{"refDefs": defs}, nil
}

func getUnusedAttributeViews(k *Kernel, _ args) (any, error) {
	unused := []any{}
	for _, id := range k.databaseIDs() {
		if len(k.databaseBlocks(id)) == 0 {
			unused = append(unused, map[string]any{"item": id, "name": id})
		}
	}
	return unused, nil
}

// searchAttributeView finds databases that are shown somewhere, by name.
func searchAttributeView(k *Kernel, a args) (any, error) {
	keyword := strings.ToLower(a.str("keyword"))
	results := []any{}
	for _, id := range k.databaseIDs() {
		db, ok := k.database(id)
		blocks := k.databaseBlocks(id)
		if !ok || len(blocks) == 0 || !strings.Contains(strings.ToLower(db.Name), keyword) {
			continue
		}
		item := func(view, viewID, layout string) map[string]any {
			return map[string]any{"avID": id, "avName": db.Name, "viewName": view, "viewID": viewID, "viewLayout": layout,
				"blockID": blocks[0].node.ID, "hPath": k.fullHPath(blocks[0].doc)}
		}
		r := item("", "", "")
		var views []any
		for _, v := range db.Views {
			views = append(views, item(v.Name, v.ID, v.Type))
		}
		r["children"] = views
		results = append(results, r)
	}
	return map[string]any{"results": results}, nil
}

func searchAttributeViewRelationKey(k *Kernel, a args) (any, error) {
	keyword := a.strOr("keyword", "")
	return map[string]any{"keys": k.keysOf(a.str("avID"), func(key *av.Key) bool { return key.Relation != nil && strings.Contains(key.Name, keyword) })}, nil
}

func searchAttributeViewRollupDestKeys(k *Kernel, a args) (any, error) {
	keyword := a.strOr("keyword", "")
	return map[string]any{"keys": k.keysOf(a.str("avID"), func(key *av.Key) bool { return key.Type != "rollup" && strings.Contains(key.Name, keyword) })}, nil
}
