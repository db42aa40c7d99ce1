// Package av has the handlers of the av tool.
package av

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.AvGet, get),
		tools.Bind(catalogue.AvRender, render),
		tools.Bind(catalogue.AvKeys, keys),
		tools.Bind(catalogue.AvFilterSort, filterSort),
		tools.Bind(catalogue.AvSearch, search),
		tools.Bind(catalogue.AvPrimary, primary),
		tools.Bind(catalogue.AvCreate, create),
		tools.Bind(catalogue.AvAddRows, addRows),
		tools.BindDangerous(catalogue.AvRemoveRows, previewRemoveRows, removeRows),
		tools.Bind(catalogue.AvAddColumn, addColumn),
		tools.BindDangerous(catalogue.AvRemoveColumn, previewRemoveColumn, removeColumn),
		tools.Bind(catalogue.AvSetCells, setCells),
		tools.Bind(catalogue.AvDuplicate, duplicate),
		tools.Bind(catalogue.AvAddView, addView),
		tools.Bind(catalogue.AvSetFilters, setFilters),
		tools.Bind(catalogue.AvSetSorts, setSorts),
		tools.Bind(catalogue.AvSetGroup, setGroup),
		tools.Bind(catalogue.AvSetVisibility, setVisibility),
		tools.Bind(catalogue.AvSetOrder, setOrder),
		tools.BindDangerous(catalogue.AvSetOptions, previewSetOptions, setOptions),
		tools.BindDangerous(catalogue.AvDuplicateRows, previewDuplicateRows, duplicateRows),
		tools.BindDangerous(catalogue.AvSetRelation, previewSetRelation, setRelation),
		tools.BindDangerous(catalogue.AvTwoWay, previewTwoWay, configureTwoWay),
		tools.BindDangerous(catalogue.AvConfigureRollup, previewRollup, configureRollup),
		tools.BindDangerous(catalogue.AvSetTemplates, previewSetTemplates, setTemplates),
		tools.BindDangerous(catalogue.AvFromTemplate, previewFromTemplate, createFromTemplate),
	}
}

// database is a database with the level it needs, and the block that is to show
// it; the zero Block where none is named.
func database(ctx context.Context, r *tools.Request, id, block string, need contract.Level) (d guard.Database, b guard.Block, err error) {
	if d, err = r.Session.Database(ctx, id, need); err != nil || block == "" {
		return d, b, err
	}
	if b, err = r.Session.Block(ctx, block, need); err != nil {
		return d, b, err
	}
	return d, b, d.ShownBy(b)
}

func columns(list []guard.Column, hidden map[string]bool) []catalogue.AvColumn {
	out := make([]catalogue.AvColumn, len(list))
	for i, k := range list {
		c := catalogue.AvColumn{
			ID: string(k.ID), Name: k.Name, Type: k.Type, Icon: k.Icon, Desc: k.Desc, Format: k.NumberFormat, Template: k.Template, Hidden: hidden[string(k.ID)],
		}
		for _, o := range k.Options {
			c.Options = append(c.Options, catalogue.AvOption{Name: o.Name, Color: o.Color, Desc: o.Desc})
		}
		if k.Relation != nil && k.Relation.AvID != "" {
			c.Relation = &catalogue.AvRelation{AvID: string(k.Relation.AvID), IsTwoWay: k.Relation.IsTwoWay, BackKeyID: string(k.Relation.BackKeyID)}
		}
		if k.Rollup != nil && k.Rollup.RelationKeyID != "" {
			c.Rollup = &catalogue.AvRollup{RelationKeyID: string(k.Rollup.RelationKeyID), KeyID: string(k.Rollup.KeyID), Calc: k.Rollup.Calc}
		}
		out[i] = c
	}
	return out
}

func view(v guard.DatabaseView) catalogue.AvView {
	return catalogue.AvView{ID: v.ID, Name: v.Name, Type: v.Type, Stored: v.Current}
}

func views(list []guard.DatabaseView) []catalogue.AvView {
	out := make([]catalogue.AvView, len(list))
	for i, v := range list {
		out[i] = view(v)
	}
	return out
}
