package guard

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// titleRunes is the kernel's limit for titles and notebook names.
const titleRunes = 512

// CheckTitle refuses a title that SiYuan would change, or that its title paths
// cannot carry. field names the argument it came from.
func CheckTitle(field, title string) error {
	bad := func(rule string) error {
		return contract.InvalidFields(contract.Field{Path: field, Message: rule})
	}
	switch {
	case strings.TrimSpace(title) == "":
		return bad("a title must not be empty")
	case title != strings.TrimSpace(title):
		return bad("a title must not begin or end with a space")
	case title == "." || title == "..":
		return bad("a title must not be . or ..")
	case strings.Contains(title, "/"):
		return bad("a title must not contain a slash, which separates the levels of a path; ／ (U+FF0F) looks like one and is allowed")
	case strings.ContainsFunc(title, unicode.IsControl):
		return bad("a title must not contain line breaks, tabs or other control characters")
	case utf8.RuneCountInString(title) > titleRunes:
		return bad(fmt.Sprintf("a title must have at most %d characters", titleRunes))
	}
	return nil
}

// maxLevels bounds the depth of a readable path.
const maxLevels = 64

// ParseHPath splits a readable path such as /Projects/Alpha into its titles;
// "/" has none.
func ParseHPath(field, hpath string) ([]string, error) {
	trimmed := strings.Trim(hpath, "/")
	if trimmed == "" {
		return nil, nil
	}
	titles := strings.Split(trimmed, "/")
	if len(titles) > maxLevels {
		return nil, contract.InvalidFields(contract.Field{Path: field, Message: fmt.Sprintf("a path must have at most %d levels", maxLevels)})
	}
	for _, t := range titles {
		if err := CheckTitle(field, t); err != nil {
			return nil, err
		}
	}
	return titles, nil
}

// DocAt proves a level for the document of a storage path, which ends in .sy.
func (s *Session) DocAt(ctx context.Context, n Notebook, storage string, need contract.Level) (Doc, error) {
	if err := s.use(n, need); err != nil {
		return Doc{}, err
	}
	id := siyuan.ID(strings.TrimSuffix(path.Base(storage), ".sy"))
	d, err := s.block(ctx, id, "document", need)
	if err != nil || !d.IsDoc() || d.doc.nb.id != n.id {
		if err == nil || contract.CodeOf(err) == contract.NotFound {
			err = contract.Fail(contract.NotFound, "There is no document of that storage path in notebook %s.", n.ID())
		}
		return Doc{}, err
	}
	return d.doc, nil
}

// DocsByHPath are the documents of a readable path in a notebook. Several may
// share one.
func (s *Session) DocsByHPath(ctx context.Context, n Notebook, hpath string) ([]Doc, error) {
	if err := s.use(n, contract.Read); err != nil {
		return nil, err
	}
	if err := n.Reachable(); err != nil {
		return nil, err
	}
	ids, err := s.idsNamed(ctx, Place{Notebook: n}, strings.Split(strings.TrimPrefix(hpath, "/"), "/"))
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	var docs []Doc
	for _, id := range ids {
		d, err := s.block(ctx, id, "document", contract.Read)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d.doc)
	}
	return docs, nil
}

// DocByHPath is the one document of a readable path, or nil when there is none.
// Two are ambiguous_path with both ids.
func (s *Session) DocByHPath(ctx context.Context, n Notebook, hpath string) (*Doc, error) {
	docs, err := s.DocsByHPath(ctx, n, hpath)
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	if len(docs) == 1 {
		return &docs[0], nil
	}
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.ID()
	}
	return nil, contract.Fail(contract.AmbiguousPath, "%d documents of notebook %s share that path.", len(docs), n.ID()).
		WithDetail(map[string]any{"ids": ids})
}

// HPath is the readable path of a document inside its notebook.
func (s *Session) HPath(ctx context.Context, d Doc) (string, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return "", err
	}
	return s.g.r.HPathByID(ctx, d.id)
}

// IfExists says what to do when a title is taken.
type IfExists string

// What to do when a title is taken.
const (
	Fail   IfExists = "fail"   // already_exists, with the id
	Return IfExists = "return" // hand back the one that is there
	Suffix IfExists = "suffix" // add a number to the title
)

// NewDoc describes a document to create.
type NewDoc struct {
	Notebook Notebook
	Parent   *Doc     // nil: the notebook itself
	Above    []string // titles of further levels below Parent, made where missing
	Title    string
	Markdown string
	Icon     string
	IfExists IfExists
}

// CreatedDoc is a document made, or found with [Return].
type CreatedDoc struct {
	ID, HPath, Title string
	Created          bool
	Asked            bool // SiYuan was asked for it and did not refuse
}

// CreateDoc makes a document. The notebook must be a target of the intent: its
// lock makes parallel creations of one path see each other.
func (tx *Tx) CreateDoc(ctx context.Context, d NewDoc) (CreatedDoc, error) {
	if err := tx.coversTree(d.Notebook); err != nil {
		return CreatedDoc{}, err
	}
	if err := firstErr(d.Notebook.Reachable(), checkIcon(d.Icon)); err != nil {
		return CreatedDoc{}, err
	}
	text, err := tx.accept(ctx, Text{Data: withoutTitle(d.Markdown, d.Title)})
	if err != nil {
		return CreatedDoc{}, err
	}
	if d.Parent != nil { // it may have been moved while the call waited
		_, now, err := tx.current(ctx, nil, Place{Notebook: d.Notebook, Doc: d.Parent})
		if err != nil {
			return CreatedDoc{}, err
		}
		d.Parent = now.Doc
	}
	at, missing, err := tx.descend(ctx, d)
	if err != nil {
		return CreatedDoc{}, err
	}
	title := d.Title
	if len(missing) == 0 {
		found, free, err := tx.taken(ctx, d, at)
		if err != nil || found != nil {
			return deref(found), err
		}
		title = free
	}
	for _, t := range missing {
		if at, err = tx.createAt(ctx, d.Notebook, at, t, "", true); err != nil {
			return CreatedDoc{}, err
		}
	}
	made, err := tx.createAt(ctx, d.Notebook, at, title, text.Data, d.Icon != "")
	if err != nil {
		return CreatedDoc{}, err
	}
	if d.Icon != "" {
		if err := tx.settleAttrs(ctx, made.id, siyuan.Attrs{"icon": d.Icon}); err != nil {
			return CreatedDoc{}, err
		}
	}
	return CreatedDoc{ID: string(made.id), HPath: made.hpath, Title: title, Created: true}, nil
}

func deref(d *CreatedDoc) CreatedDoc {
	if d == nil {
		return CreatedDoc{}
	}
	return *d
}

// spot is a document, or a notebook's root, that new documents go below.
type spot struct {
	id     siyuan.ID // "" for the notebook
	folder string    // storage path of its children, without trailing slash
	hpath  string    // "" for the notebook
	asked  bool      // being made: SiYuan was asked for it and did not refuse
}

// descend follows the titles below the parent as far as they exist.
func (tx *Tx) descend(ctx context.Context, d NewDoc) (spot, []string, error) {
	at := spot{}
	if d.Parent != nil && d.Parent.id != d.Notebook.id {
		hpath, err := tx.s.HPath(ctx, *d.Parent)
		if err != nil {
			return at, nil, err
		}
		at = spot{id: d.Parent.id, folder: strings.TrimSuffix(d.Parent.path, ".sy"), hpath: hpath}
	}
	for i, t := range d.Above {
		next, err := tx.s.DocByHPath(ctx, d.Notebook, at.hpath+"/"+t)
		if err != nil {
			return at, nil, err
		}
		if next == nil {
			return at, d.Above[i:], nil
		}
		at = spot{id: next.id, folder: strings.TrimSuffix(next.path, ".sy"), hpath: at.hpath + "/" + t}
	}
	return at, nil, nil
}

// maxSuffix bounds the search for a free title.
const maxSuffix = 100

// taken decides what happens when the title is there already: the document
// found, or a free title.
func (tx *Tx) taken(ctx context.Context, d NewDoc, at spot) (*CreatedDoc, string, error) {
	title := d.Title
	for n := 2; ; n++ {
		docs, err := tx.s.DocsByHPath(ctx, d.Notebook, at.hpath+"/"+title)
		if err != nil {
			return nil, "", err
		}
		if len(docs) == 0 {
			return nil, title, nil
		}
		switch {
		case d.IfExists == Return && len(docs) == 1:
			return &CreatedDoc{ID: docs[0].ID(), HPath: at.hpath + "/" + title, Title: title}, "", nil
		case d.IfExists == Suffix && n <= maxSuffix:
			title = fmt.Sprintf("%s (%d)", d.Title, n)
			continue
		}
		ids := make([]string, len(docs))
		for i, doc := range docs {
			ids[i] = doc.ID()
		}
		if d.IfExists == Return {
			return nil, "", contract.Fail(contract.AmbiguousPath, "%d documents have that path.", len(docs)).WithDetail(map[string]any{"ids": ids})
		}
		return nil, "", contract.Fail(contract.AlreadyExists, "A document of that path exists: %s.", ids[0]).
			WithDetail(map[string]any{"id": ids[0], "ids": ids}).
			WithHint("Use that id, another title, or ifExists=return or suffix.")
	}
}

// createAt makes one document below a spot, by storage path, so that nothing in
// the title can be taken for a level. It is read back. more says that it is not
// the last thing to do. The spot is told with an error too, once it has an id.
func (tx *Tx) createAt(ctx context.Context, n Notebook, at spot, title, markdown string, more bool) (spot, error) {
	id, err := tx.newID()
	if err != nil {
		return spot{}, err
	}
	made := spot{id: id, folder: at.folder + "/" + string(id), hpath: at.hpath + "/" + title}
	if err := tx.creates(ctx, id); err != nil {
		return made, err
	}
	st := Step{Op: "document.create", ID: n.ID(), New: []string{string(id)}, More: more, Marks: []Mark{thereMark(id, false, true)}}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		_, err := w.CreateDocAt(ctx, n.id, made.folder+".sy", title, markdown, nil)
		return err
	})
	made.asked = err == nil || answered(err) || tx.doubt != nil
	if err != nil && !answered(err) {
		return made, err
	}
	attrs, err := tx.s.g.r.BlockAttrs(ctx, id)
	if errors.Is(err, siyuan.Missing) {
		return made, notPersisted("SiYuan reported document %s as created, but it is not there.", string(id))
	}
	if err != nil {
		return made, err
	}
	if attrs["title"] != title {
		return made, notPersisted("SiYuan created document %s under another title.", string(id))
	}
	return made, tx.checkBody(ctx, id, markdown)
}

// checkBody demands that a document made with text has text.
func (tx *Tx) checkBody(ctx context.Context, id siyuan.ID, markdown string) error {
	if strings.TrimSpace(ialPattern.ReplaceAllString(markdown, "")) == "" {
		return nil
	}
	children, err := tx.s.g.r.TailChildBlocks(ctx, id, 1)
	if err != nil {
		return err
	}
	if len(children) == 0 {
		return notPersisted("SiYuan created document %s without its text.", string(id))
	}
	return nil
}

// withoutTitle drops a first heading that repeats the title, which SiYuan shows
// above the text anyway.
func withoutTitle(markdown, title string) string {
	first, rest, _ := strings.Cut(strings.TrimLeft(markdown, "\n"), "\n")
	if strings.TrimSpace(strings.TrimPrefix(first, "# ")) == title && strings.HasPrefix(first, "# ") {
		return strings.TrimLeft(rest, "\n")
	}
	return markdown
}
