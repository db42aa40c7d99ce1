package guard

import (
	"encoding/json"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
)

// CellImage is what somebody put into a cell, so that it can be put back exactly,
// without what SiYuan works out from it; nil is an empty cell. Of the title of a
// row that is bound to a block it has the block alone: the text is the block's.
type CellImage = siyuan.Value

func imageOf(v *siyuan.Value) *CellImage {
	if v == nil || cellMark(v) == digest("") {
		return nil
	}
	i := CellImage{IsDetached: v.IsDetached, Text: v.Text, URL: v.URL, Email: v.Email, Phone: v.Phone, Checkbox: v.Checkbox, Assets: v.Assets}
	if v.Block != nil {
		i.Block = &siyuan.ValueBlock{Content: v.Block.Content, Icon: v.Block.Icon}
		if v.Block.ID != "" && !v.IsDetached {
			i.Block = &siyuan.ValueBlock{ID: v.Block.ID}
		}
	}
	if v.Number != nil {
		n := *v.Number
		n.FormattedContent = ""
		i.Number = &n
	}
	if v.Date != nil {
		d := *v.Date
		d.FormattedContent = ""
		i.Date = &d
	}
	for _, o := range v.Select { // colours are the column's
		i.Select = append(i.Select, siyuan.ValueOption{Content: o.Content})
	}
	if v.Relation != nil {
		i.Relation = &siyuan.ValueRelation{BlockIDs: v.Relation.BlockIDs}
	}
	return &i
}

// imageDigest is the digest of an image, "" of an empty cell's.
func imageDigest(i *CellImage) string {
	if i == nil {
		return ""
	}
	b, err := json.Marshal(i)
	if err != nil {
		return "" // numbers that JSON has no form for are in no file of SiYuan
	}
	return digest(string(b))
}

// putBack is what makes a cell of a column what an image says.
func putBack(i *CellImage, k siyuan.Key) (v siyuan.Value) {
	if i != nil {
		v = *i
	}
	switch k.Type {
	case "text":
		v.Text = some(v.Text)
	case "url":
		v.URL = some(v.URL)
	case "email":
		v.Email = some(v.Email)
	case "phone":
		v.Phone = some(v.Phone)
	case "checkbox":
		v.Checkbox = some(v.Checkbox)
	case "number":
		v.Number = some(v.Number)
	case "date":
		if v.Date == nil {
			v.Date = &siyuan.ValueDate{IsNotTime: true}
		}
	case "select", "mSelect":
		v.Select = append([]siyuan.ValueOption{}, v.Select...)
		for n, o := range v.Select {
			if at := optionNamed(k.Options, o.Content); at >= 0 {
				v.Select[n].Color = k.Options[at].Color
			}
		}
	case "mAsset":
		v.Assets = append([]siyuan.ValueAsset{}, v.Assets...)
	case "relation":
		v.Relation = &siyuan.ValueRelation{BlockIDs: append([]siyuan.ID{}, related(&v)...)}
	}
	return v
}

// some is what a pointer points to, or the zero value.
func some[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// related are the rows that a relation cell leads to.
func related(v *siyuan.Value) []siyuan.ID {
	if v == nil || v.Relation == nil {
		return nil
	}
	return v.Relation.BlockIDs
}

// computed are the types of columns whose cells SiYuan works out itself.
var computed = []string{"template", "created", "updated", "rollup", "lineNumber"}

// cellAt is a cell by its row and column.
type cellAt struct{ row, column siyuan.ID }

// imagesOf are the cells of a database that are not empty.
func imagesOf(av siyuan.AttributeView) map[cellAt]*CellImage {
	all := map[cellAt]*CellImage{}
	for _, kv := range av.KeyValues {
		if slices.Contains(computed, kv.Key.Type) {
			continue
		}
		for _, v := range kv.Values {
			if i := imageOf(&v); i != nil {
				all[cellAt{v.BlockID, kv.Key.ID}] = i
			}
		}
	}
	return all
}

// rowDigest is what the cells of a row say, "" when it has none.
func rowDigest(all map[cellAt]*CellImage, row siyuan.ID) string {
	var lines []string
	for at, i := range all {
		if at.row == row {
			lines = append(lines, string(at.column)+" "+imageDigest(i))
		}
	}
	if lines == nil {
		return ""
	}
	slices.Sort(lines)
	return digest(strings.Join(lines, "\n"))
}
