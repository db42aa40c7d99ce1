package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// RenameDoc changes a document's title. Its notebook must be a target of the
// intent, because readable paths change with it.
func (tx *Tx) RenameDoc(ctx context.Context, d Doc, title string) error {
	if err := firstErr(tx.covers(d.Block()), tx.coversTree(d.nb), d.notRoot(), CheckTitle("title", title)); err != nil {
		return err
	}
	was, err := tx.s.g.r.BlockAttrs(ctx, d.id)
	if err != nil {
		return tx.s.vanished(err, "document", d.id)
	}
	mark := Mark{LookTitle, d.ID(), digest(was["title"]), digest(title)}
	err = tx.step(ctx, Step{Op: "document.rename", ID: d.ID(), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
		return w.RenameDoc(ctx, d.id, title)
	})
	if err != nil && !answered(err) {
		return err
	}
	attrs, err := tx.s.g.r.BlockAttrs(ctx, d.id)
	if err != nil {
		return tx.s.vanished(err, "document", d.id)
	}
	if attrs["title"] != title {
		return notPersisted("SiYuan reported document %s as renamed, but it has another title.", d.ID())
	}
	return nil
}

// MoveDocs moves documents, each with all below it, and returns their new
// storage paths in the same order. Every notebook involved must be a target of
// the intent. Nothing is moved unless everything may be.
func (tx *Tx) MoveDocs(ctx context.Context, docs []Doc, to Place) ([]string, error) {
	if err := firstErr(tx.coversTree(to.Notebook), to.Notebook.Reachable()); err != nil {
		return nil, err
	}
	for _, d := range docs {
		if err := firstErr(tx.covers(d.Block()), tx.coversTree(d.nb), d.notRoot(), tx.s.MayLeave(d.nb, to.Notebook)); err != nil {
			return nil, err
		}
	}
	docs, to, err := tx.current(ctx, docs, to)
	if err != nil {
		return nil, err
	}
	if err := checkMove(docs, to); err != nil {
		return nil, err
	}
	ids := make([]siyuan.ID, len(docs))
	st := Step{Op: "document.move", ID: docs[0].ID()}
	for i, d := range docs {
		ids[i] = d.id
		then := to.folder() + "/" + string(d.id) + ".sy"
		st.Marks = append(st.Marks, Mark{LookPath, d.ID(), pathMark(d.nb.id, d.path), pathMark(to.Notebook.id, then)})
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.MoveDocs(ctx, ids, to.id())
	})
	if err != nil && !answered(err) {
		return nil, err
	}
	tx.s.forget()
	paths := make([]string, len(docs))
	for i, id := range ids {
		paths[i] = to.folder() + "/" + string(id) + ".sy"
		now, err := tx.s.lookup(ctx, id)
		if err != nil {
			return nil, tx.s.vanished(err, "document", id)
		}
		if now.box != to.Notebook.id || now.path != paths[i] {
			return nil, notPersisted("SiYuan reported document %s as moved, but it is not in its new place.", string(id))
		}
	}
	return paths, nil
}

// current looks up where documents and place are now that their notebooks are
// locked: they may have been moved inside them while the call waited.
func (tx *Tx) current(ctx context.Context, docs []Doc, to Place) ([]Doc, Place, error) {
	now := func(d Doc) (Doc, error) {
		p, err := tx.s.find(ctx, d.id, "document")
		d.path = p.path
		return d, err
	}
	fresh := make([]Doc, len(docs))
	for i, d := range docs {
		var err error
		if fresh[i], err = now(d); err != nil {
			return nil, to, err
		}
	}
	if to.Doc != nil {
		d, err := now(*to.Doc)
		return fresh, Place{Notebook: to.Notebook, Doc: &d}, err
	}
	return fresh, to, nil
}

// checkMove refuses what the kernel would pass over in silence.
func checkMove(docs []Doc, to Place) error {
	for i, d := range docs {
		for _, other := range docs[:i] {
			if d.id == other.id {
				return contract.Fail(contract.InvalidTarget, "Document %s is named twice.", d.ID())
			}
		}
		if to.Doc != nil && (to.Doc.id == d.id || to.Doc.below(d)) {
			return contract.Fail(contract.InvalidTarget, "Document %s cannot be moved below itself.", d.ID())
		}
		for _, other := range docs {
			if d.below(other) {
				return contract.Fail(contract.InvalidTarget, "Document %s is below %s, which is moved too and takes it along.", d.ID(), other.ID()).
					WithHint("Name only the upper one, or move them with two calls.")
			}
		}
	}
	return nil
}

// below reports whether a document stands somewhere below another.
func (d Doc) below(other Doc) bool {
	return d.nb.id == other.nb.id && strings.HasPrefix(d.path, strings.TrimSuffix(other.path, ".sy")+"/")
}

// RemovedDocs is what a removal took away.
type RemovedDocs struct {
	IDs   []string // of the documents asked for
	Count int      // documents in all, those below included
}

// RemoveDocs moves documents, each with all below it, to SiYuan's history. Their
// notebooks must be targets of the intent.
func (tx *Tx) RemoveDocs(ctx context.Context, docs []Doc) (RemovedDocs, error) {
	for _, d := range docs {
		err := firstErr(tx.covers(d.Block()), tx.coversTree(d.nb), d.notRoot(), tx.s.use(d.nb, contract.ReadWriteDelete))
		if err != nil {
			return RemovedDocs{}, err
		}
	}
	docs, _, err := tx.current(ctx, docs, Place{})
	if err != nil {
		return RemovedDocs{}, err
	}
	trees := make([][]siyuan.ID, len(docs))
	for i, d := range docs {
		if trees[i], err = tx.subtree(ctx, d); err != nil {
			return RemovedDocs{}, err
		}
	}
	done := RemovedDocs{}
	gone := map[siyuan.ID]bool{}
	for i, d := range docs {
		done.IDs = append(done.IDs, d.ID())
		if !gone[d.id] { // else it went with one above it
			if err := tx.removeDoc(ctx, d, trees[i], i < len(docs)-1); err != nil {
				return RemovedDocs{}, afterSome(err, done.IDs[:i])
			}
		}
		for _, id := range trees[i] {
			gone[id] = true
		}
	}
	done.Count = len(gone)
	return done, nil
}

// afterSome says what was done already when a later part of a write failed.
func afterSome(err error, done []string) error {
	if len(done) == 0 {
		return err
	}
	if _, told := errors.AsType[*contract.Error](err); !told {
		err = contract.Fail(contract.OutcomeUnknown, "SiYuan took a part of the write, and the rest may or may not have happened.").WithCause(err)
	}
	e := *Public(err)
	return e.WithDetail(map[string]any{"done": done})
}

// removeDoc takes one document away and demands that its whole tree is gone.
// more says that others follow.
func (tx *Tx) removeDoc(ctx context.Context, d Doc, tree []siyuan.ID, more bool) error {
	if err := tx.takesAlong(ctx, d, tree); err != nil {
		return err
	}
	st := Step{Op: "document.remove", ID: d.ID(), More: more, Marks: []Mark{thereMark(d.id, true, false)}}
	err := tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.RemoveDoc(ctx, d.id)
	})
	if err != nil && !answered(err) {
		return err
	}
	for batch := range slices.Chunk(tree, existAtOnce) {
		left, err := tx.s.g.r.BlocksExist(ctx, batch)
		if err != nil {
			return err
		}
		for _, id := range batch {
			if left[id] {
				return notPersisted("SiYuan reported document %s as removed, but %s is still there.", d.ID(), string(id))
			}
		}
	}
	tx.leaveIndex(ctx, tree)
	return nil
}

// leaveIndex waits until removed documents have left SiYuan's index: a background
// task takes their rows out, up to two seconds later, and no flush waits for it.
// Until then every search would find what was just removed. The documents are gone
// in any case, so it is no failure when they cannot be looked for, or stay longer.
func (tx *Tx) leaveIndex(ctx context.Context, tree []siyuan.ID) {
	left := tree
	_, _ = tx.until(ctx, func() (bool, error) {
		for len(left) > 0 {
			batch := left[:min(len(left), existAtOnce)]
			rows, err := tx.s.g.sql(ctx, "SELECT id FROM blocks WHERE root_id IN ("+sqlList(batch)+") LIMIT 1")
			if err != nil || len(rows) > 0 {
				return false, err
			}
			left = left[len(batch):]
		}
		return true, nil
	})
}

// existAtOnce bounds one question about which blocks exist.
const existAtOnce = 1000

// subtree lists a document and all documents below it.
func (tx *Tx) subtree(ctx context.Context, d Doc) ([]siyuan.ID, error) {
	tree := []siyuan.ID{d.id}
	children, err := tx.s.g.r.Docs(ctx, d.nb.id, d.path)
	if err != nil || len(children) == 0 { // the kernel has no tree of a leaf
		return tree, err
	}
	nodes, err := tx.s.g.r.DocTree(ctx, d.nb.id, d.path)
	if errors.Is(err, siyuan.Rejected) {
		return nil, contract.Fail(contract.StateChanged, "The documents below %s changed while they were listed.", d.ID()).WithCause(err)
	}
	var add func([]siyuan.DocNode)
	add = func(nodes []siyuan.DocNode) {
		for _, n := range nodes {
			tree = append(tree, n.ID)
			add(n.Children)
		}
	}
	add(nodes)
	return tree, err
}
