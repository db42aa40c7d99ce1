package guard

import (
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// misnamed explains an id that is no row, column or view of the database: people
// and agents take one kind for another.
func (d Database) misnamed(what string, id siyuan.ID) error {
	no := func(is string) *contract.Error {
		return contract.Fail(contract.InvalidTarget, "%s is %s, not a %s of database %s.", id, is, what, d.ID())
	}
	switch {
	case id == d.id:
		return no("the database itself")
	case slices.Contains(d.blocks, id):
		return no("a block that shows the database")
	case slices.ContainsFunc(d.file.Views, func(v siyuan.AvView) bool { return v.ID == id }):
		return no("a view").WithHint("av.render names rows and columns.")
	}
	if _, ok := d.key(id); ok {
		return no("a column").WithHint("av.render names rows and views.")
	}
	for _, kv := range d.file.KeyValues {
		for _, v := range kv.Values {
			switch {
			case v.BlockID == id && kv.Key.Type == "block":
				return no("a row").WithHint("av.get_attribute_view_keys names the columns.")
			case v.Block != nil && v.Block.ID == id && !v.IsDetached:
				return no("the block bound to a row").WithHint("Use the row id %s.", v.BlockID).WithDetail(map[string]any{"suggestedRowID": v.BlockID})
			case v.ID == id:
				return no("a cell").WithHint("Its row is %s and its column %s.", v.BlockID, v.KeyID).
					WithDetail(map[string]any{"suggestedRowID": v.BlockID, "suggestedColumnID": v.KeyID})
			}
		}
	}
	return contract.Fail(contract.NotFound, "Database %s has no %s %s.", d.ID(), what, id)
}

// row is a row by its item id.
func (d Database) row(id string) (siyuan.ID, error) {
	for _, v := range primary(d.file).Values {
		if v.BlockID == siyuan.ID(id) {
			return v.BlockID, nil
		}
	}
	return "", d.misnamed("row", siyuan.ID(id))
}

// rowOrBound is a row by its item id or by the block bound to it.
func (d Database) rowOrBound(id string) (siyuan.Value, error) {
	for _, v := range primary(d.file).Values {
		if v.BlockID == siyuan.ID(id) || v.Block != nil && v.Block.ID == siyuan.ID(id) && !v.IsDetached {
			return v, nil
		}
	}
	return siyuan.Value{}, d.misnamed("row", siyuan.ID(id))
}

// column is a column by its id.
func (d Database) column(id string) (siyuan.Key, error) {
	if k, ok := d.key(siyuan.ID(id)); ok {
		return k, nil
	}
	return siyuan.Key{}, d.misnamed("column", siyuan.ID(id))
}
