package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Bounds of a change of a tag: the documents it may touch, each of which is
// locked and proven, and the blocks that are looked through.
const (
	maxTagDocs   = 500
	maxTagBlocks = 20_000
)

// TagUse is where a tag stands.
type TagUse struct {
	label  string
	below  bool // the tags below it count too
	docs   []Doc
	blocks int // list items and other containers not counted
}

// Docs are the documents with the tag.
func (u TagUse) Docs() []Doc { return u.docs }

// TagUse finds the documents that a change of a tag touches and demands a level
// in each. SiYuan changes a tag in all open notebooks, whoever asks, so it also
// needs the tags switch and that nothing is hidden from the caller.
func (s *Session) TagUse(ctx context.Context, label string, below bool, need contract.Level) (TagUse, error) {
	u := TagUse{label: label, below: below}
	if err := s.holds(contract.SwitchTags); err != nil {
		return u, err
	}
	if !s.whole() {
		return u, contract.Fail(contract.Unsupported, "SiYuan changes a tag in all notebooks at once, so only those may do it who may read all of them.").
			WithHint("Change the tag in single blocks with block.replace, or ask a tenant owner for the level r on every notebook.")
	}
	found, err := s.tagged(ctx, label, below)
	if err != nil {
		return u, err
	}
	var roots []siyuan.ID
	for _, r := range found {
		roots = append(roots, siyuan.ID(r.Text("root_id")))
		if !slices.Contains([]string{"l", "i", "b", "s", "callout"}, r.Text("type")) {
			u.blocks++
		}
	}
	roots = unique(roots)
	switch {
	case len(roots) == 0:
		return u, contract.Fail(contract.NotFound, "There is no tag %q in an open notebook.", label).WithHint("tag.list lists them; give it without #.")
	case len(roots) > maxTagDocs:
		return u, contract.Fail(contract.TooLarge, "The tag stands in %d documents; an agent may change it in at most %d at once.", len(roots), maxTagDocs).
			WithHint("Ask the person to change it in SiYuan.")
	}
	for _, root := range roots {
		d, err := s.Doc(ctx, string(root), need)
		if err != nil {
			return u, err
		}
		u.docs = append(u.docs, d)
	}
	return u, nil
}

// tagged are the rows of the blocks with a tag, or with one below it.
func (s *Session) tagged(ctx context.Context, label string, below bool) ([]siyuan.Row, error) {
	if len(s.sidebar().order) == 0 {
		return nil, nil
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT id, root_id, type, tag FROM blocks WHERE box IN (%s) AND instr(tag, %s) ORDER BY id LIMIT %d", s.boxes(), quoteSQL("#"+label), maxTagBlocks+1))
	if err != nil {
		return nil, err
	}
	if len(found) > maxTagBlocks {
		return nil, contract.Fail(contract.TooLarge, "More than %d blocks have the tag.", maxTagBlocks).WithHint("Ask the person to change it in SiYuan.")
	}
	return slices.DeleteFunc(found, func(r siyuan.Row) bool {
		return !slices.ContainsFunc(tagsOf(r.Text("tag")), func(t string) bool { return t == label || below && strings.HasPrefix(t, label+"/") })
	}), nil
}

// CheckTag refuses a label that SiYuan would not read back as one tag.
func CheckTag(field, label string) error {
	bad := strings.ContainsFunc(label, func(r rune) bool { return r == '#' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
	empty := slices.ContainsFunc(strings.Split(label, "/"), func(level string) bool {
		return level == "" || strings.TrimSpace(level) != level || level == "." || level == ".."
	})
	if bad || empty {
		return contract.InvalidFields(contract.Field{Path: field, Message: "is no tag: no #, no invisible characters, and levels between single /, without spaces around them"})
	}
	return nil
}

// PreviewTag says where a tag stands.
func (s *Session) PreviewTag(ctx context.Context, u TagUse) (p contract.Preview, err error) {
	ids := make([]siyuan.ID, len(u.docs))
	for i, d := range u.docs {
		ids[i] = d.id
	}
	rows, err := s.rows(ctx, "id IN ("+sqlList(ids)+")", "hpath, id", contract.PreviewNamed)
	p.Counts.Documents, p.Counts.Blocks = len(u.docs), u.blocks
	p.Named, p.Find = named(rows, nil), u.label
	p.More = max(0, len(u.docs)-len(p.Named))
	return p, err
}

// RenameTag renames a tag, and those below it, in the documents of the use, which
// are all there are.
func (tx *Tx) RenameTag(ctx context.Context, u TagUse, to string) error {
	mark := Mark{LookTags, digest(u.label), yes, no}
	return tx.changeTag(ctx, u, Step{Op: "tag.rename", Marks: []Mark{mark}}, func(w *siyuan.Writer) error { return w.RenameTag(ctx, u.label, to) })
}

// RemoveTag takes a tag with its text out of the documents of the use.
func (tx *Tx) RemoveTag(ctx context.Context, u TagUse) error {
	mark := Mark{LookTag, digest(u.label), yes, no}
	return tx.changeTag(ctx, u, Step{Op: "tag.remove", Marks: []Mark{mark}}, func(w *siyuan.Writer) error { return w.RemoveTag(ctx, u.label) })
}

// changeTag changes a tag where it stands and reads back that it is gone. What
// came to have it since the use was found must be among the locked documents.
func (tx *Tx) changeTag(ctx context.Context, u TagUse, st Step, send func(w *siyuan.Writer) error) error {
	found, err := tx.s.tagged(ctx, u.label, u.below)
	if err != nil {
		return err
	}
	for _, r := range found {
		if !tx.docs[siyuan.ID(r.Text("root_id"))] {
			return contract.Fail(contract.StateChanged, "Another document got the tag %q while the call waited; nothing was changed.", u.label)
		}
	}
	for _, d := range u.docs {
		if err := tx.covers(d.Block()); err != nil {
			return err
		}
	}
	if err := tx.step(ctx, st, send); err != nil {
		return err
	}
	gone, err := tx.until(ctx, func() (bool, error) {
		left, err := tx.s.tagged(ctx, u.label, u.below)
		if err != nil || len(left) > 0 {
			return false, err
		}
		return tx.s.indexed(ctx, u.docs) // or nothing found would mean nothing
	})
	if err == nil && !gone {
		err = notPersisted("SiYuan took the change of the tag %q, but some notes still have it.", u.label)
	}
	return err
}

// indexed reports whether the index has all of the documents.
func (s *Session) indexed(ctx context.Context, docs []Doc) (bool, error) {
	ids := make([]siyuan.ID, len(docs))
	for i, d := range docs {
		ids[i] = d.id
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT id FROM blocks WHERE id IN (%s) LIMIT %d", sqlList(ids), len(ids)+1))
	return len(found) == len(ids), err
}

// lookAtTags says whether a tag of that digest is in use anywhere, or with below
// one below it.
func (g *Guard) lookAtTags(ctx context.Context, labelDigest string, below bool) (string, error) {
	found, err := g.sql(ctx, fmt.Sprintf("SELECT DISTINCT tag FROM blocks WHERE tag <> '' LIMIT %d", maxTagBlocks))
	if err != nil {
		return "", err
	}
	for _, r := range found {
		for _, t := range tagsOf(r.Text("tag")) {
			for at := t; at != ""; {
				if digest(at) == labelDigest {
					return yes, nil
				}
				i := strings.LastIndex(at, "/")
				if !below || i < 0 {
					break
				}
				at = at[:i]
			}
		}
	}
	return no, nil
}
