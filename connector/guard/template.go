package guard

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// templatesDir is where SiYuan keeps templates, as a path of the workspace.
const templatesDir = "/data/templates"

// Bounds of the templates that are looked for and read.
const (
	maxTemplates   = 2_000
	maxFolders     = 300
	maxTemplateLen = 1 << 20 // bytes
)

// Template is a template file, there or to be made, that the caller may use as
// it was proven for. It belongs to the notebooks that make their daily notes
// with it.
type Template struct {
	s     *Session
	path  string // below the templates folder
	boxes []siyuan.ID
	text  string // as it is stored; "" when there is none
	there bool
}

// Path is the template's path below the templates folder.
func (t Template) Path() string { return t.path }

// There reports whether the template exists.
func (t Template) There() bool { return t.there }

func noTemplate() error {
	return contract.Fail(contract.NotFound, "There is no such template.").WithHint("file.list_templates lists those you may use.")
}

// templatePath accepts the path of a template in every form in which SiYuan and
// people write it, and nothing that could leave the templates folder.
func templatePath(p string) (string, bool) {
	if _, below, ok := strings.Cut(p, "/data/templates/"); ok {
		p = below
	}
	p = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(p, "/"), "data/"), "templates/")
	odd := strings.ContainsFunc(p, func(r rune) bool {
		return strings.ContainsRune(`\:*?"<>|%#`, r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
	})
	if odd || !filepath.IsLocal(p) || path.Clean(p) != p || !strings.HasSuffix(p, ".md") || len(p) > 2*maxFileName {
		return "", false
	}
	return p, !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
}

// usingTemplates are the notebooks that make daily notes with a template, by its
// path. Of hidden notebooks only those are asked from whom nothing is hidden.
func (s *Session) usingTemplates(ctx context.Context) (map[string][]siyuan.ID, error) {
	using := map[string][]siyuan.ID{}
	for _, id := range s.sidebar().order {
		conf, err := s.g.r.NotebookConf(ctx, id)
		if err != nil {
			return nil, s.vanished(err, "notebook", id)
		}
		name := conf.DailyNoteTemplatePath
		if name != "" && !strings.HasSuffix(name, ".md") {
			name += ".md"
		}
		if p, ok := templatePath(name); ok {
			using[p] = append(using[p], id)
		}
	}
	return using, nil
}

// loose reports whether the caller reaches templates that no notebook uses.
func (s *Session) loose() bool { return s.whole() && s.grant.Has(contract.SwitchAssets) }

// Template finds a template that the caller may read: one that a notebook they
// may read makes its daily notes with, or with the assets switch any, while
// nothing is hidden from them.
func (s *Session) Template(ctx context.Context, name string) (Template, error) {
	t, err := s.templateAt(ctx, name)
	if err == nil && !t.there {
		err = noTemplate()
	}
	return t, err
}

// TemplateToChange finds a template, or the place for one, for a caller who may
// change templates: with the assets switch, while nothing is hidden from them,
// and with the level in every notebook that uses it.
func (s *Session) TemplateToChange(ctx context.Context, name string, need contract.Level) (Template, error) {
	if err := s.holds(contract.SwitchAssets); err != nil {
		return Template{}, err
	}
	if !s.whole() {
		return Template{}, contract.Fail(contract.Unsupported, "A template can read every notebook when somebody uses it, so only those may change templates who may read all of them.").
			WithHint("Ask a tenant owner for the level r on every notebook.")
	}
	t, err := s.templateAt(ctx, name)
	if err != nil {
		return t, err
	}
	for _, box := range t.boxes {
		if err := s.prove(box, need); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (s *Session) templateAt(ctx context.Context, name string) (Template, error) {
	clean, ok := templatePath(name)
	if !ok {
		return Template{}, contract.InvalidFields(contract.Field{Path: "path", Message: "must be the path of a .md file below SiYuan's templates folder, such as daily.md"})
	}
	using, err := s.usingTemplates(ctx)
	if err != nil {
		return Template{}, err
	}
	t := Template{s: s, path: clean, boxes: using[clean]}
	if len(t.boxes) == 0 && !s.loose() {
		return t, noTemplate()
	}
	plain, err := s.g.plainFile(ctx, map[string][]siyuan.DirEntry{}, templatesDir, strings.Split(clean, "/"))
	if err != nil || !plain {
		return t, err
	}
	f, err := s.g.r.GetFile(ctx, templatesDir+"/"+clean)
	if siyuan.KindOf(err) == siyuan.Missing {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	if len(f.Data) > maxTemplateLen || !utf8.Valid(f.Data) {
		return t, contract.Fail(contract.TooLarge, "The template is larger than %d KiB, or no text.", maxTemplateLen>>10)
	}
	t.text, t.there = string(f.Data), true
	return t, nil
}

// TemplateText is the source of a template.
func (s *Session) TemplateText(ctx context.Context, t Template) (string, error) {
	if t.s != s {
		return "", contract.Internalf(errReference, "use template")
	}
	return s.maskText(ctx, t.text)
}

// Templates lists the paths of the templates that the caller may read, sorted.
// more says that there are others too many to look for.
func (s *Session) Templates(ctx context.Context) (paths []string, more bool, err error) {
	using, err := s.usingTemplates(ctx)
	if err != nil {
		return nil, false, err
	}
	if len(using) == 0 && !s.loose() {
		return nil, false, nil
	}
	folders := []string{""}
	for i := 0; i < len(folders); i++ {
		list, err := s.g.r.ReadDir(ctx, path.Join(templatesDir, folders[i]))
		if siyuan.KindOf(err) == siyuan.Missing {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		packed := slices.ContainsFunc(list, func(e siyuan.DirEntry) bool { return e.Name == "template.json" })
		for _, e := range list {
			at := path.Join(folders[i], e.Name)
			clean, ok := templatePath(at)
			switch {
			case e.IsSymlink || strings.HasPrefix(e.Name, "."):
			case e.IsDir:
				folders = append(folders, at)
			case !ok || clean != at || packed && strings.HasPrefix(e.Name, "README"):
			case s.loose() || len(using[at]) > 0:
				paths = append(paths, at)
			}
		}
		if len(folders) > maxFolders || len(paths) > maxTemplates {
			folders, more = folders[:min(len(folders), maxFolders)], true
		}
	}
	slices.Sort(paths)
	return paths[:min(len(paths), maxTemplates)], more, nil
}

// RenderTemplate renders a template for a document, as block DOM. While anything
// is hidden from the caller, only templates are rendered that cannot read notes.
func (s *Session) RenderTemplate(ctx context.Context, t Template, d Doc) (string, error) {
	if t.s != s {
		return "", contract.Internalf(errReference, "use template")
	}
	if err := s.use(d.nb, contract.Read); err != nil {
		return "", err
	}
	if !s.whole() {
		if err := s.checkCode(ctx, "path", t.text, fileDelims); err != nil {
			return "", err
		}
	}
	w, err := s.g.r.WorkspaceInfo(ctx)
	if err != nil {
		return "", err
	}
	dom, err := s.g.r.RenderTemplate(ctx, path.Join(w.Dir, "data", "templates", t.path), d.id)
	if siyuan.KindOf(err) == siyuan.Rejected {
		return "", contract.Fail(contract.APIError, "SiYuan could not render the template %s.", t.path).WithHint("Read it with file.read_template; the code in it may be wrong.")
	}
	if err != nil {
		return "", err
	}
	return s.maskDOM(ctx, dom)
}

// RenderSprig renders a text with {{ }} in it.
func (s *Session) RenderSprig(ctx context.Context, text string) (string, error) {
	if err := s.checkCode(ctx, "template", text, sprigDelims); err != nil {
		return "", err
	}
	out, err := s.g.r.RenderSprig(ctx, text)
	if siyuan.KindOf(err) == siyuan.Rejected {
		return "", contract.InvalidFields(contract.Field{Path: "template", Message: "SiYuan cannot render it: an argument of a function is wrong"})
	}
	return out, err
}

func (t Template) target() (Notebook, Block) { return Notebook{}, Block{} }
func (t Template) owner() *Session           { return t.s }
func (t Template) key() string               { return "template " + t.path }
func (t Template) also() []string            { return nil }
func (t Template) of() []siyuan.ID           { return t.boxes }

func (t Template) again(ctx context.Context) error {
	now, err := t.s.TemplateToChange(ctx, t.path, contract.ReadWrite)
	if err == nil && (now.there != t.there || now.text != t.text) {
		err = contract.Fail(contract.StateChanged, "The template %s was changed while the call waited; nothing was written.", t.path)
	}
	return err
}

func (t Template) seen(ctx context.Context) (any, error) {
	now, err := t.s.templateAt(ctx, t.path)
	if !now.there {
		return "gone", err
	}
	return digest(now.text), err
}

func (t Template) mark(after string) Mark {
	before := "gone"
	if t.there {
		before = digest(t.text)
	}
	return Mark{LookTemplate, t.path, before, after}
}

// PutTemplate writes a template. What it says must be something its writer may
// write into a note, and its code may do no more than tell the time, work with
// text, and ask about notes with plain SELECT statements.
func (tx *Tx) PutTemplate(ctx context.Context, t Template, text string) error {
	if err := firstErr(tx.holds(t), tx.s.checkCode(ctx, "markdown", text, fileDelims), tx.s.checkPulls(ctx, text, t.text, false)); err != nil {
		return err
	}
	if t.there && t.text == text {
		return nil
	}
	st := Step{Op: "template.put", ID: t.path, Marks: []Mark{t.mark(digest(text))}}
	err := tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.PutFile(ctx, templatesDir+"/"+t.path, []byte(text), tx.s.g.opt.Now())
	})
	if err != nil {
		return err
	}
	return tx.readBack(ctx, t, func(now Template) bool { return now.there && now.text == text })
}

// RemoveTemplate removes a template. SiYuan keeps no copy.
func (tx *Tx) RemoveTemplate(ctx context.Context, t Template) error {
	if err := tx.holds(t); err != nil {
		return err
	}
	w, err := tx.s.g.r.WorkspaceInfo(ctx)
	if err != nil {
		return err
	}
	st := Step{Op: "template.remove", ID: t.path, Marks: []Mark{t.mark("gone")}}
	err = tx.step(ctx, st, func(k *siyuan.Writer) error {
		return k.RemoveTemplate(ctx, path.Join(w.Dir, "data", "templates", t.path))
	})
	if err != nil {
		return err
	}
	return tx.readBack(ctx, t, func(now Template) bool { return !now.there })
}

// SaveTemplate saves a document as a template, over the one there is.
func (tx *Tx) SaveTemplate(ctx context.Context, t Template, d Doc) error {
	if err := firstErr(tx.holds(t), tx.s.use(d.nb, contract.Read)); err != nil {
		return err
	}
	text, err := tx.s.g.r.BlockKramdown(ctx, d.id, siyuan.KramdownMarkdown)
	if err != nil {
		return tx.s.vanished(err, "document", d.id)
	}
	if err := tx.s.checkCode(ctx, "id", text, fileDelims); err != nil {
		return err
	}
	st := Step{Op: "template.save", ID: t.path, Marks: []Mark{{LookSaved, t.path, no, yes}}}
	if t.there {
		st.Marks, st.Repeatable = nil, "SiYuan writes the same document over the template again"
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.SaveTemplate(ctx, d.id, strings.TrimSuffix(t.path, ".md"), true)
	})
	if err != nil {
		return err
	}
	return tx.readBack(ctx, t, func(now Template) bool { return now.there })
}

func (tx *Tx) readBack(ctx context.Context, t Template, done func(now Template) bool) error {
	now, err := tx.s.templateAt(ctx, t.path)
	if err == nil && !done(now) {
		err = notPersisted("SiYuan took the change of the template %s, but does not show it.", t.path)
	}
	return err
}

// PreviewTemplate says what a template is used for.
func (s *Session) PreviewTemplate(t Template) contract.Preview {
	p := contract.Preview{Named: []contract.PreviewItem{{Kind: "template", Title: t.path}}}
	for _, box := range t.boxes {
		p.Named = append(p.Named, contract.PreviewItem{Kind: "notebook", Title: s.notebook(box).Name()})
	}
	p.Counts.Notebooks = len(t.boxes)
	return p.Clean()
}

// TemplateName accepts the name of a template right in the templates folder.
func TemplateName(field, name string) (string, error) {
	name = strings.TrimSuffix(name, ".md")
	return name + ".md", checkName(field, name)
}
