package guard

import (
	"context"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Below is the documents right below a place, as a target of a write that adds to
// them or orders them: what the hash of its state is made of is which they are, in
// which order, and their titles. The notebook is locked with it.
type Below struct{ place Place }

var _ held = Below{}

// Below makes a target of what is right below a place.
func (s *Session) Below(p Place) Below { return Below{p} }

func (b Below) target() (Notebook, Block) { return b.place.Notebook, Block{} }
func (b Below) owner() *Session           { return b.place.Notebook.s }
func (b Below) key() string               { return "below " + string(b.place.id()) }
func (b Below) also() []string            { return []string{"notebook " + b.place.Notebook.ID()} }
func (b Below) of() []siyuan.ID           { return []siyuan.ID{b.place.Notebook.id} }

// again demands that a document is still where its level was proven.
func (b Below) again(ctx context.Context) error {
	s, d := b.owner(), b.place.Doc
	if d == nil {
		return s.prove(b.place.Notebook.id, contract.ReadWrite)
	}
	s.forget(d.id)
	p, err := s.find(ctx, d.id, "document")
	if err != nil {
		return err
	}
	if p.box != d.nb.id {
		return contract.Fail(contract.StateChanged, "Document %s was moved to another notebook; nothing was written.", d.ID())
	}
	return s.prove(p.box, contract.ReadWrite)
}

func (b Below) seen(ctx context.Context) (any, error) {
	nodes, err := b.owner().DocsIn(ctx, b.now(ctx))
	rows := make([][2]string, len(nodes))
	for i, n := range nodes {
		rows[i] = [2]string{n.ID, n.Name}
	}
	return rows, err
}

// now is the place with the storage path that it has now.
func (b Below) now(ctx context.Context) Place {
	p := b.place
	if p.Doc == nil {
		return p
	}
	if at, err := b.owner().find(ctx, p.Doc.id, "document"); err == nil {
		d := *p.Doc
		d.path, p.Doc = at.path, &d
	}
	return p
}

// CreateBelow makes documents with one body right below a document, whose notebook
// must be a target of the intent. No title may be there already. Where it fails,
// the last of what it returns is the one it failed at, with Created false.
func (tx *Tx) CreateBelow(ctx context.Context, parent Doc, titles []string, markdown string) (made []CreatedDoc, err error) {
	if err := firstErr(tx.coversTree(parent.nb), parent.nb.Reachable()); err != nil {
		return nil, err
	}
	bodies := make([]string, len(titles))
	accepted := map[string]string{} // all titles but one have the same body
	for i, t := range titles {
		body := withoutTitle(markdown, t)
		if _, known := accepted[body]; !known {
			text, err := tx.accept(ctx, Text{Data: body})
			if err != nil {
				return nil, err
			}
			accepted[body] = text.Data
		}
		bodies[i] = accepted[body]
	}
	_, place, err := tx.current(ctx, nil, Place{Notebook: parent.nb, Doc: &parent})
	if err != nil {
		return nil, err
	}
	if err := tx.s.TitlesFree(ctx, place, titles); err != nil {
		return nil, err
	}
	hpath, err := tx.s.HPath(ctx, *place.Doc)
	if err != nil {
		return nil, err
	}
	at := spot{id: parent.id, folder: place.folder(), hpath: hpath}
	for i, t := range titles {
		doc, err := tx.createAt(ctx, parent.nb, at, t, bodies[i], i < len(titles)-1)
		made = append(made, CreatedDoc{ID: string(doc.id), HPath: doc.hpath, Title: t, Created: err == nil, Asked: doc.asked})
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// TitlesFree demands that no document right below a place has one of the titles.
func (s *Session) TitlesFree(ctx context.Context, p Place, titles []string) error {
	nodes, err := s.DocsIn(ctx, p)
	if err != nil {
		return err
	}
	type taken struct {
		Title string `json:"title"`
		ID    string `json:"id"`
	}
	var there []taken
	for _, n := range nodes {
		if slices.Contains(titles, n.Name) {
			there = append(there, taken{n.Name, n.ID})
		}
	}
	if len(there) == 0 {
		return nil
	}
	return contract.Fail(contract.AlreadyExists, "%d of the titles are there already; nothing was written.", len(there)).
		WithDetail(map[string]any{"taken": there}).
		WithHint("Use those documents by their ids, or choose other titles.")
}
