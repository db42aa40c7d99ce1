package guard

import (
	"context"
	"errors"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Notebook is a notebook with the caller's level in it. Only a Session makes
// one.
type Notebook struct {
	s     *Session
	id    siyuan.ID
	level contract.Level
	seen  *siyuan.Notebook // what is known of it; nil: what the list says
}

// info is what SiYuan says of the notebook. Of one that was made after the list
// it is the id alone.
func (n Notebook) info() siyuan.Notebook {
	switch listed, ok := n.s.sidebar().notebooks[n.id]; {
	case n.seen != nil:
		return *n.seen
	case ok:
		return *listed.seen
	}
	return siyuan.Notebook{ID: n.id}
}

// ID is the notebook's id.
func (n Notebook) ID() string { return string(n.id) }

// Name is the notebook's name; several may share one.
func (n Notebook) Name() string { return n.info().Name }

// Icon is an emoji's hex code, the path of an image, or "".
func (n Notebook) Icon() string { return n.info().Icon }

// Closed reports whether the notebook is closed: its notes cannot be reached.
func (n Notebook) Closed() bool { return n.info().Closed }

// TopDocs is how many documents stand right below the notebook.
func (n Notebook) TopDocs() int { return n.info().SubFileCount }

// Level is what the caller may do in the notebook.
func (n Notebook) Level() contract.Level { return n.level }

// Doc is a document in a notebook whose level is proven.
type Doc struct {
	nb   Notebook
	id   siyuan.ID
	path string // storage path
}

// ID is the document's id.
func (d Doc) ID() string { return string(d.id) }

// Path is the storage path, of ids, inside the notebook.
func (d Doc) Path() string { return d.path }

// Notebook is where the document is.
func (d Doc) Notebook() Notebook { return d.nb }

// Block is a block, possibly a whole document, in a notebook whose level is
// proven.
type Block struct {
	doc Doc
	id  siyuan.ID
}

// ID is the block's id.
func (b Block) ID() string { return string(b.id) }

// Doc is the document the block is in, or is.
func (b Block) Doc() Doc { return b.doc }

// IsDoc reports whether the block is a document.
func (b Block) IsDoc() bool { return b.id == b.doc.id }

// place is where the block tree says a block is.
type place struct {
	box  siyuan.ID
	root siyuan.ID
	path string
	err  error
}

// locate asks the block tree, once per session and block. Missing and Indexing
// are remembered as answers; other failures are not.
func (s *Session) locate(ctx context.Context, id siyuan.ID) (place, error) {
	s.mu.Lock()
	p, known := s.places[id]
	s.mu.Unlock()
	if known {
		return p, p.err
	}
	p, err := s.lookup(ctx, id)
	if err == nil || absent(err) {
		s.mu.Lock()
		s.places[id] = p
		s.mu.Unlock()
	}
	return p, err
}

func (s *Session) lookup(ctx context.Context, id siyuan.ID) (place, error) {
	loc, err := s.g.r.PathByID(ctx, id)
	if err != nil {
		return place{err: err}, err
	}
	if s.level(loc.Notebook) == contract.None {
		// The client asks this too before it calls a block missing. Asking it here
		// makes hidden and missing blocks cost the same number of calls, which
		// callers may see in the record of their calls.
		if _, err := s.g.r.BlockExists(ctx, id); err != nil {
			return place{err: err}, err
		}
	}
	root := strings.TrimSuffix(path.Base(loc.Path), ".sy")
	return place{box: loc.Notebook, root: siyuan.ID(root), path: loc.Path}, nil
}

// absent: the kernel knows no such block, or does not say while it indexes.
func absent(err error) bool { return errors.Is(err, siyuan.Missing) || errors.Is(err, siyuan.Indexing) }

// forget drops what the session remembers of the given blocks, or everything.
func (s *Session) forget(ids ...siyuan.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(ids) == 0 {
		clear(s.places)
	}
	for _, id := range ids {
		delete(s.places, id)
	}
}

// nowhere is a well-formed id that no kernel makes: its first half is no time.
const nowhere siyuan.ID = "00000000000000-0000000"

// find locates a block the caller may read. For one that is hidden or missing it
// asks for a block that cannot exist and answers with that, so that the two
// cannot differ: while the kernel indexes, for example, both are
// index_unavailable.
func (s *Session) find(ctx context.Context, id siyuan.ID, what string) (place, error) {
	if !id.Valid() {
		return place{}, notFound(what, id)
	}
	p, err := s.locate(ctx, id)
	if err == nil && s.level(p.box).Allows(contract.Read) {
		return p, nil
	}
	if err != nil && !absent(err) {
		return place{}, err
	}
	if _, err = s.lookup(ctx, nowhere); err != nil && !errors.Is(err, siyuan.Missing) {
		return place{}, err
	}
	return place{}, notFound(what, id)
}

func notFound(what string, id siyuan.ID) error {
	return contract.Fail(contract.NotFound, "There is no %s %s.", what, string(id))
}

// touch remembers the notebook of something that the call names. What a search
// finds and drops again must not decide what the call is recorded with.
func (s *Session) touch(notebook siyuan.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = notebook
}

// prove compares a level with what is needed in a notebook the caller may read.
func (s *Session) prove(notebook siyuan.ID, need contract.Level) error {
	have := s.level(notebook)
	if have.Allows(need) {
		return nil
	}
	return contract.Fail(contract.PermissionDenied, "This needs level %s in notebook %s; you have %s.", need, string(notebook), have).
		WithHint("A tenant owner or admin can raise the level in the console; the home owner's policy file may cap it.").
		WithDetail(map[string]any{"notebook": notebook, "level": have, "required": need})
}

// Notebook proves a level in a notebook. It may be closed: see
// [Notebook.Reachable].
func (s *Session) Notebook(id string, need contract.Level) (Notebook, error) {
	n, ok := s.sidebar().notebooks[siyuan.ID(id)]
	if !ok {
		return Notebook{}, notFound("notebook", siyuan.ID(id))
	}
	s.touch(n.id)
	return n, s.prove(n.id, need)
}

// Reachable fails with notebook_closed or notebook_locked when the notes of the
// notebook cannot be reached.
func (n Notebook) Reachable() error {
	switch info := n.info(); {
	case info.Encrypted && !info.Unlocked:
		return contract.Fail(contract.NotebookLocked, "Notebook %s is encrypted and locked.", n.ID())
	case info.Closed:
		return contract.Fail(contract.NotebookClosed, "Notebook %s is closed.", n.ID())
	}
	return nil
}

// Notebooks lists the notebooks the caller may read, in the order of the
// sidebar.
func (s *Session) Notebooks() []Notebook {
	readable := s.sidebar()
	list := make([]Notebook, len(readable.order))
	for i, id := range readable.order {
		list[i] = readable.notebooks[id]
	}
	return list
}

// notebook is the reference for a notebook the caller may read.
func (s *Session) notebook(id siyuan.ID) Notebook {
	return Notebook{s: s, id: id, level: s.level(id)}
}

// Block proves a level for a block.
func (s *Session) Block(ctx context.Context, id string, need contract.Level) (Block, error) {
	return s.block(ctx, siyuan.ID(id), "block", need)
}

// Doc proves a level for the document that the block of that id is in, or is.
func (s *Session) Doc(ctx context.Context, id string, need contract.Level) (Doc, error) {
	b, err := s.block(ctx, siyuan.ID(id), "document", need)
	return b.doc, err
}

func (s *Session) block(ctx context.Context, id siyuan.ID, what string, need contract.Level) (Block, error) {
	p, err := s.find(ctx, id, what)
	if err != nil {
		return Block{}, err
	}
	s.touch(p.box)
	if err := s.prove(p.box, need); err != nil {
		return Block{}, err
	}
	return s.refer(p, id), nil
}

func (s *Session) refer(p place, id siyuan.ID) Block {
	return Block{doc: Doc{nb: s.notebook(p.box), id: p.root, path: p.path}, id: id}
}

// use checks that a reference is of this session and proves enough. A handler
// that fails it has a bug, or carries a reference from one call to another.
func (s *Session) use(n Notebook, need contract.Level) error {
	if n.s != s {
		return contract.Internalf(errors.New("guard: reference of another session"), "use notebook")
	}
	return s.prove(n.id, need)
}

// lookups bounds the block tree questions of one session that run at once.
const lookups = 8

// readable tells which of the blocks the caller may read. Missing ones, and all
// that is not known while the kernel indexes, are not readable.
func (s *Session) readable(ctx context.Context, ids []siyuan.ID) (map[siyuan.ID]bool, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for _, id := range unique(ids) {
		if !id.Valid() {
			continue
		}
		group.Go(func() error {
			if _, err := s.locate(ctx, id); err != nil && !absent(err) {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	can := make(map[siyuan.ID]bool, len(ids))
	for _, id := range ids {
		p, known := s.places[id]
		can[id] = known && p.err == nil && s.level(p.box).Allows(contract.Read)
	}
	return can, nil
}

func unique(ids []siyuan.ID) []siyuan.ID {
	seen := make(map[siyuan.ID]bool, len(ids))
	out := ids[:0:0]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
