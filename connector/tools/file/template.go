package file

import (
	"context"
	"path"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Entries of a page, and characters of a piece, where the call does not say.
const (
	templatesPage = 20
	templateChars = 8000
)

func templateName(p string) string { return strings.TrimSuffix(path.Base(p), ".md") }

func listTemplates(ctx context.Context, r *tools.Request, in catalogue.FileListTemplatesIn) (out catalogue.FileListTemplatesOut, err error) {
	paths, more, err := r.Session.Templates(ctx)
	if err != nil {
		return out, err
	}
	all := []catalogue.FileTemplate{}
	for _, p := range paths {
		if strings.Contains(strings.ToLower(p), strings.ToLower(in.Query)) {
			all = append(all, catalogue.FileTemplate{Path: p, Name: templateName(p)})
		}
	}
	from, to, page := catalogue.Page(len(all), tools.Or(in.Page, 1), tools.Or(in.PageSize, templatesPage))
	out.Data, out.PageOut = catalogue.Shrink(all[from:to], page, r.Budget)
	out.Showing, out.Truncated, out.Hint = len(out.Data), out.HasNextPage || more, catalogue.NextPage(out.PageOut)
	if more && out.Hint == "" {
		out.Hint = "There are more templates than are looked for; ask the person for the path of another."
	}
	return out, nil
}

func readTemplate(ctx context.Context, r *tools.Request, in catalogue.FileReadTemplateIn) (out catalogue.FileReadTemplateOut, err error) {
	t, err := r.Session.Template(ctx, in.Path)
	if err != nil {
		return out, err
	}
	text, err := r.Session.TemplateText(ctx, t)
	if err != nil {
		return out, err
	}
	runes := []rune(text)
	out = catalogue.FileReadTemplateOut{Path: t.Path(), TotalChars: len(runes), Offset: min(tools.Or(in.Offset, 0), len(runes))}
	out.Limit = min(tools.Or(in.Limit, templateChars), max(1, r.Budget))
	end := min(out.Offset+out.Limit, len(runes))
	out.Markdown = string(runes[out.Offset:end])
	if out.Truncated = end < len(runes); out.Truncated {
		out.NextOffset = end
	}
	return out, nil
}

func createTemplate(ctx context.Context, r *tools.Request, in catalogue.FileCreateTemplateIn) (catalogue.FileTemplateOut, error) {
	t, err := r.Session.TemplateToChange(ctx, in.Path, contract.ReadWrite)
	if err == nil && t.There() && !in.Overwrite {
		err = exists(t)
	}
	if err != nil {
		return catalogue.FileTemplateOut{}, err
	}
	return put(ctx, r, t, in.Markdown)
}

func exists(t guard.Template) error {
	return contract.Fail(contract.AlreadyExists, "There is a template %s.", t.Path()).WithHint("Choose another name, or send overwrite to replace it.")
}

func updateTemplate(ctx context.Context, r *tools.Request, in catalogue.FileUpdateTemplateIn) (catalogue.FileTemplateOut, error) {
	t, err := r.Session.TemplateToChange(ctx, in.Path, contract.ReadWrite)
	if err == nil && !t.There() {
		err = contract.Fail(contract.NotFound, "There is no such template.").WithHint("Make it with file.create_template.")
	}
	if err != nil {
		return catalogue.FileTemplateOut{}, err
	}
	return put(ctx, r, t, in.Markdown)
}

func put(ctx context.Context, r *tools.Request, t guard.Template, text string) (catalogue.FileTemplateOut, error) {
	err := r.Session.Write(ctx, r.Intent(t), func(ctx context.Context, tx *guard.Tx) error { return tx.PutTemplate(ctx, t, text) })
	return catalogue.FileTemplateOut{Success: true, Path: t.Path(), Name: templateName(t.Path()), TotalChars: utf8.RuneCountInString(text)}, err
}

// toDelete is the template that a deletion is about.
func toDelete(ctx context.Context, r *tools.Request, in catalogue.FileDeleteTemplateIn) (guard.Template, error) {
	t, err := r.Session.TemplateToChange(ctx, in.Path, contract.ReadWriteDelete)
	if err == nil && !t.There() {
		err = contract.Fail(contract.NotFound, "There is no such template.").WithHint("file.list_templates lists those you may use.")
	}
	return t, err
}

func previewTemplate(ctx context.Context, r *tools.Request, in catalogue.FileDeleteTemplateIn) (p contract.Preview, err error) {
	t, err := toDelete(ctx, r, in)
	if err != nil {
		return p, err
	}
	return r.Session.PreviewTemplate(t), nil
}

func deleteTemplate(ctx context.Context, r *tools.Request, in catalogue.FileDeleteTemplateIn) (catalogue.FileDeleteTemplateOut, error) {
	t, err := toDelete(ctx, r, in)
	if err != nil {
		return catalogue.FileDeleteTemplateOut{}, err
	}
	err = r.Session.Write(ctx, r.Intent(t), func(ctx context.Context, tx *guard.Tx) error { return tx.RemoveTemplate(ctx, t) })
	return catalogue.FileDeleteTemplateOut{Success: true, Path: t.Path()}, err
}

func saveDoc(ctx context.Context, r *tools.Request, in catalogue.FileSaveDocIn) (out catalogue.FileSaveDocOut, err error) {
	d, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	file, err := guard.TemplateName("name", in.Name)
	if err != nil {
		return out, err
	}
	t, err := r.Session.TemplateToChange(ctx, file, contract.ReadWrite)
	if err == nil && t.There() && !in.Overwrite {
		err = exists(t)
	}
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(t), func(ctx context.Context, tx *guard.Tx) error { return tx.SaveTemplate(ctx, t, d) })
	return catalogue.FileSaveDocOut{Success: true, ID: d.ID(), Name: templateName(t.Path()), Template: t.Path()}, err
}

func render(ctx context.Context, r *tools.Request, in catalogue.FileRenderIn) (out catalogue.FileRenderOut, err error) {
	if in.Engine == "sprig" {
		text, err := r.Session.RenderSprig(ctx, in.Template)
		out.String, out.CutOut = fit(text, r.Budget)
		return out, err
	}
	d, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	t, err := r.Session.Template(ctx, in.Path)
	if err != nil {
		return out, err
	}
	dom, err := r.Session.RenderTemplate(ctx, t, d)
	out.Path = t.Path()
	out.Content, out.CutOut = fit(dom, r.Budget)
	return out, err
}

// fit is the beginning of a text that has no pages.
func fit(text string, chars int) (string, catalogue.CutOut) {
	runes := []rune(text)
	if len(runes) <= chars {
		return text, catalogue.CutOut{}
	}
	return string(runes[:chars]), catalogue.CutOut{Truncated: true, Hint: "This is the beginning; the whole is longer than an answer may be."}
}
