// Package tag has the handlers of the tag tool.
package tag

import (
	"context"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.TagList, list),
		tools.BindDangerous(catalogue.TagRename, previewRename, rename),
		tools.BindDangerous(catalogue.TagRemove, previewRemove, remove),
	}
}

// maxTags bounds a list.
const maxTags = 500

func list(ctx context.Context, r *tools.Request, in catalogue.TagListIn) (catalogue.TagListOut, error) {
	out := catalogue.TagListOut{Tags: []catalogue.Tag{}}
	all, err := r.Session.Tags(ctx)
	if err != nil {
		return out, err
	}
	for _, t := range all {
		if strings.Contains(strings.ToLower(t.Label), strings.ToLower(in.Keyword)) {
			out.Tags = append(out.Tags, catalogue.Tag(t))
		}
	}
	shown := catalogue.Fit(out.Tags, maxTags, r.Budget, catalogue.Chars[catalogue.Tag])
	if out.Truncated = len(shown) < len(out.Tags); out.Truncated {
		out.Hint = "There are more; give part of the label in keyword."
	}
	out.Tags = shown
	return out, nil
}

// renamed finds what a renaming touches.
func renamed(ctx context.Context, r *tools.Request, in catalogue.TagRenameIn) (guard.TagUse, error) {
	if err := guard.CheckTag("newLabel", in.NewLabel); err != nil {
		return guard.TagUse{}, err
	}
	if in.NewLabel == in.OldLabel || strings.HasPrefix(in.NewLabel, in.OldLabel+"/") {
		return guard.TagUse{}, contract.InvalidFields(contract.Field{Path: "newLabel", Message: "must be another label, and not below the old one"})
	}
	return r.Session.TagUse(ctx, in.OldLabel, true, contract.ReadWrite)
}

func previewRename(ctx context.Context, r *tools.Request, in catalogue.TagRenameIn) (p contract.Preview, err error) {
	use, err := renamed(ctx, r, in)
	if err != nil {
		return p, err
	}
	p, err = r.Session.PreviewTag(ctx, use)
	p.Replace = in.NewLabel
	return p, err
}

func rename(ctx context.Context, r *tools.Request, in catalogue.TagRenameIn) (out catalogue.TagRenameOut, err error) {
	use, err := renamed(ctx, r, in)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(targets(use)...), func(ctx context.Context, tx *guard.Tx) error { return tx.RenameTag(ctx, use, in.NewLabel) })
	return catalogue.TagRenameOut{Success: true, OldLabel: in.OldLabel, NewLabel: in.NewLabel, Documents: len(use.Docs())}, err
}

func targets(use guard.TagUse) []guard.Target {
	var all []guard.Target
	for _, d := range use.Docs() {
		all = append(all, d)
	}
	return all
}

func previewRemove(ctx context.Context, r *tools.Request, in catalogue.TagRemoveIn) (contract.Preview, error) {
	use, err := r.Session.TagUse(ctx, in.Label, false, contract.ReadWriteDelete)
	if err != nil {
		return contract.Preview{}, err
	}
	return r.Session.PreviewTag(ctx, use)
}

func remove(ctx context.Context, r *tools.Request, in catalogue.TagRemoveIn) (out catalogue.TagRemoveOut, err error) {
	use, err := r.Session.TagUse(ctx, in.Label, false, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(targets(use)...), func(ctx context.Context, tx *guard.Tx) error { return tx.RemoveTag(ctx, use) })
	return catalogue.TagRemoveOut{Success: true, Label: in.Label, Documents: len(use.Docs())}, err
}
