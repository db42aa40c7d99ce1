package guard

import (
	"context"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// ExactDoc proves a level for a document named by its own id. Renaming, moving
// and removing act on the document of whatever block they are given, so the id
// of another block is invalid_target here, and so is a notebook's, whose root
// document goes with the notebook.
func (s *Session) ExactDoc(ctx context.Context, id string, need contract.Level) (Doc, error) {
	b, err := s.block(ctx, siyuan.ID(id), "document", need)
	if err != nil {
		return Doc{}, err
	}
	if !b.IsDoc() {
		return Doc{}, contract.Fail(contract.InvalidTarget, "Block %s is not a document; it is a block of document %s.", b.ID(), b.doc.ID()).
			WithHint("Give the document's id, or use the block tool for a block.").
			WithDetail(map[string]any{"id": b.ID(), "document": b.doc.ID()})
	}
	return b.doc, b.doc.notRoot()
}

// notRoot refuses the document that a notebook has of its own.
func (d Doc) notRoot() error {
	if d.id != d.nb.id {
		return nil
	}
	return contract.Fail(contract.InvalidTarget, "%s is a notebook, not a document in one.", d.ID()).
		WithHint("Use the notebook tool: notebook.rename or notebook.remove.")
}

// DocOnPath proves a level for the document whose storage path is exactly the
// given one. Paths are of ids, so no two notebooks share one.
func (s *Session) DocOnPath(ctx context.Context, storage string, need contract.Level) (Doc, error) {
	storage = "/" + strings.TrimPrefix(storage, "/")
	none := contract.Fail(contract.NotFound, "There is no document of that storage path.").
		WithHint("A storage path is made of ids and ends in .sy; document.lookup finds it by id or readable path.")
	base, isFile := strings.CutSuffix(storage[strings.LastIndex(storage, "/")+1:], ".sy")
	if !isFile {
		return Doc{}, none
	}
	b, err := s.block(ctx, siyuan.ID(base), "document", need)
	switch {
	case contract.CodeOf(err) == contract.NotFound:
		return Doc{}, none
	case err != nil:
		return Doc{}, err
	case !b.IsDoc() || b.doc.path != storage:
		return Doc{}, none
	}
	return b.doc, b.doc.notRoot()
}

// Place is where documents go: below a document, or at the top of a notebook.
type Place struct {
	Notebook Notebook
	Doc      *Doc // nil: the top
}

// Place proves a level for the place that a document's or notebook's id names.
func (s *Session) Place(ctx context.Context, id string, need contract.Level) (Place, error) {
	if n, ok := s.sidebar().notebooks[siyuan.ID(id)]; ok {
		return Place{Notebook: n}, firstErr(s.prove(n.id, need), n.Reachable())
	}
	b, err := s.block(ctx, siyuan.ID(id), "document", need)
	if err != nil {
		return Place{}, err
	}
	if !b.IsDoc() {
		return Place{}, contract.Fail(contract.InvalidTarget, "Block %s is neither a document nor a notebook; it is a block of document %s.", b.ID(), b.doc.ID())
	}
	return Place{Notebook: b.doc.nb, Doc: &b.doc}, nil
}

// PlaceAt proves a level for the place of a storage path in a notebook, "/" for
// its top.
func (s *Session) PlaceAt(ctx context.Context, n Notebook, storage string, need contract.Level) (Place, error) {
	if err := firstErr(s.use(n, need), n.Reachable()); err != nil {
		return Place{}, err
	}
	if strings.Trim(storage, "/") == "" {
		return Place{Notebook: n}, nil
	}
	d, err := s.DocAt(ctx, n, storage, need)
	if err != nil {
		return Place{}, err
	}
	if d.id == n.id {
		return Place{Notebook: n}, nil
	}
	return Place{Notebook: n, Doc: &d}, nil
}

// Targets are what a write that puts something at the place has to name.
func (p Place) Targets() []Target {
	if p.Doc == nil {
		return []Target{p.Notebook}
	}
	return []Target{p.Notebook, *p.Doc}
}

// id is what the kernel calls the place.
func (p Place) id() siyuan.ID {
	if p.Doc == nil {
		return p.Notebook.id
	}
	return p.Doc.id
}

// Storage is the storage path of the place, "/" for the top of a notebook.
func (p Place) Storage() string {
	if p.Doc == nil {
		return "/"
	}
	return p.Doc.path
}

// folder is the storage path of what is right below, without trailing slash.
func (p Place) folder() string {
	if p.Doc == nil {
		return ""
	}
	return strings.TrimSuffix(p.Doc.path, ".sy")
}

// MayLeave proves that notes may be taken out of one notebook into another: rwd
// is needed where they are, and rw where they go. Inside a notebook rw is
// enough.
func (s *Session) MayLeave(from, to Notebook) error {
	need := contract.ReadWrite
	if from.id != to.id {
		need = contract.ReadWriteDelete
	}
	return firstErr(s.use(from, need), s.use(to, contract.ReadWrite))
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Folder is the storage path of the document this one is below, "/" at the top
// of a notebook.
func (d Doc) Folder() string {
	if at := strings.LastIndex(d.path, "/"); at > 0 {
		return d.path[:at] + ".sy"
	}
	return "/"
}
