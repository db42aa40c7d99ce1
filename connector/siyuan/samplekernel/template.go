package samplekernel

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func templateRoutes() map[string]route {
	return map[string]route{
		"/api/template/render":            {serve: renderTemplate},
		"/api/template/renderSprig":       {serve: renderSprig},
		"/api/template/docSaveAsTemplate": {serve: docSaveAsTemplate, write: true},
	}
}

// templateBlock is a block as templates see it.
type templateBlock struct {
	ID, Box, RootID, ParentID, Path, HPath, Name, Alias, Memo, Tag, Content, FContent, Markdown, Type, SubType, IAL, Created, Updated string
}

// templateSpan is an inline mark as templates see it.
type templateSpan struct{ ID, BlockID, RootID, Box, Path, Content, Markdown, Type string }

// functions are those a template may call. Only what sample and tests need of
// the real set is there; queries reach all open notebooks.
func (k *Kernel) functions() template.FuncMap {
	return template.FuncMap{
		"now":   k.now,
		"date":  func(layout string, t time.Time) string { return t.Format(layout) },
		"upper": strings.ToUpper,
		"lower": strings.ToLower,
		"trim":  strings.TrimSpace,
		"queryBlocks": func(stmt string, _ ...any) (out []templateBlock) {
			for _, r := range k.queried(stmt) {
				out = append(out, templateBlock{r["id"], r["box"], r["root_id"], r["parent_id"], r["path"], r["hpath"], r["name"], r["alias"], r["memo"],
					r["tag"], r["content"], r["fcontent"], r["markdown"], r["type"], r["subtype"], r["ial"], r["created"], r["updated"]})
			}
			return out
		},
		"querySpans": func(stmt string, _ ...any) (out []templateSpan) {
			for _, r := range k.queried(stmt) {
				out = append(out, templateSpan{r["id"], r["block_id"], r["root_id"], r["box"], r["path"], r["content"], r["markdown"], r["type"]})
			}
			return out
		},
		"querySQL": func(stmt string) ([]map[string]any, error) { return k.index.Query(stmt, "readonly") },
	}
}

func (k *Kernel) queried(stmt string) []map[string]string {
	rows, err := k.index.Query(stmt, "readonly")
	if err != nil {
		return nil
	}
	var out []map[string]string
	for _, r := range rows {
		m := map[string]string{}
		for name, v := range r {
			m[name] = fmt.Sprint(v)
		}
		out = append(out, m)
	}
	return out
}

// errTemplate is the kernel's own words around those of text/template.
func errTemplate(err error) error {
	return errors.New("Parse template failed: " + html.EscapeString(err.Error())) //nolint:staticcheck // quoted
}

// execute renders a template between the given delimiters.
func (k *Kernel) execute(tpl, left, right string, data any) (string, error) {
	t, err := template.New("").Delims(left, right).Funcs(k.functions()).Parse(tpl)
	if err != nil {
		return "", errTemplate(err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", errTemplate(err)
	}
	return b.String(), nil
}

// sprig renders a path template such as /daily note/{{now | date "2006/01"}}.
func (k *Kernel) sprig(tpl string) (string, error) { return k.execute(tpl, "{{", "}}", nil) }

func renderSprig(k *Kernel, a args) (any, error) {
	out, err := k.sprig(a.str("template"))
	if err != nil {
		return nil, fail(err.Error())
	}
	return out, nil
}

// renderTemplate renders a file below the workspace for a block.
func renderTemplate(k *Kernel, a args) (any, error) {
	name, id := a.str("path"), a.str("id")
	if name != filepath.Clean(name) || !strings.HasPrefix(name, k.dir+string(filepath.Separator)) {
		return nil, fail("Path [" + name + "] is not in workspace")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fail(err.Error())
	}
	p, ok := k.block(id)
	if !ok {
		return nil, fail(k.notFoundText())
	}
	data := map[string]string{"id": id, "title": text.Attr(p.node, "title"), "name": text.Attr(p.node, "name"), "alias": text.Attr(p.node, "alias")}
	md, err := k.execute(string(raw), ".action{", "}", data)
	if err != nil {
		return nil, fail(err.Error())
	}
	out, err := text.MarkdownToDOM(md, k.newID)
	if err != nil {
		return nil, errSwallowed
	}
	return map[string]any{"path": name, "content": out}, nil
}

func docSaveAsTemplate(k *Kernel, a args) (any, error) {
	id, name, overwrite := a.str("id"), a.str("name"), a.boolOr("overwrite", false)
	d, ok := k.docOf(id)
	if !ok {
		return nil, nil
	}
	file := k.workspace("data", "templates", cleanName(name)+".md")
	if fileExists(file) && !overwrite {
		return nil, failCode(1, "")
	}
	return nil, writeFile(file, []byte(text.Kramdown(d.root, false)))
}
