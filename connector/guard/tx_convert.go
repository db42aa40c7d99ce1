package guard

import (
	"context"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// DuplicateDoc copies a document beside itself, without those below it, and
// returns the copy. Its notebook must be a target of the intent. What the caller
// could not write there as new text cannot be copied either.
func (tx *Tx) DuplicateDoc(ctx context.Context, d Doc) (Doc, error) {
	if err := firstErr(tx.covers(d.Block()), tx.coversTree(d.nb), d.notRoot()); err != nil {
		return Doc{}, err
	}
	text, err := tx.s.g.r.BlockKramdown(ctx, d.id, siyuan.KramdownMarkdown)
	if err != nil {
		return Doc{}, tx.s.vanished(err, "document", d.id)
	}
	if err := tx.checkCopied(ctx, d, text); err != nil {
		return Doc{}, err
	}
	beside := Place{Notebook: d.nb}
	if at := d.Folder(); at != "/" {
		beside.Doc = &Doc{nb: d.nb, path: at}
	}
	before, err := tx.level(ctx, beside)
	if err != nil {
		return Doc{}, err
	}
	var made siyuan.DocCopy
	mark := Mark{LookBelow, pathMark(d.nb.id, beside.Storage()), belowMark(len(before)), belowMark(len(before) + 1)}
	err = tx.step(ctx, Step{Op: "document.duplicate", ID: d.ID(), Marks: []Mark{mark}}, func(w *siyuan.Writer) (err error) {
		made, err = w.DuplicateDoc(ctx, d.id)
		return err
	})
	if answered(err) {
		var after []string
		if after, err = tx.level(ctx, beside); err == nil {
			made.ID = siyuan.ID(strings.Join(without(after, before), " ")) // one, or none
		}
	}
	if err != nil {
		return Doc{}, err
	}
	lost := notPersisted("SiYuan reported document %s as copied, but the copy is not there.", d.ID())
	if !made.ID.Valid() {
		return Doc{}, lost
	}
	if err := tx.creates(ctx, made.ID); err != nil {
		return Doc{}, err
	}
	p, err := tx.s.find(ctx, made.ID, "document")
	if contract.CodeOf(err) == contract.NotFound || err == nil && (p.box != d.nb.id || p.root != made.ID) {
		err = lost
	}
	return tx.s.refer(p, made.ID).doc, err
}

// checkCopied refuses to copy what the caller could not write. Databases are
// judged for all alike while something is hidden: which notebooks show one is
// not for the caller to learn.
func (tx *Tx) checkCopied(ctx context.Context, d Doc, text string) error {
	if !tx.s.whole() && len(pulls(text, false).avs) > 0 {
		return contract.Fail(contract.Unsupported, "Document %s shows a database, and its copy would show it too; only those who may read every notebook can copy it.", d.ID()).
			WithHint("Create a document with the text you need.")
	}
	return firstErr(tx.s.checkPulls(ctx, text, "", false), tx.s.checkKept(ctx, d.id, text))
}

// HeadingToDoc makes a document of a heading and its section, below a place and,
// with behind, right behind a document there. The document has the heading's id.
func (tx *Tx) HeadingToDoc(ctx context.Context, h Block, to Place, behind *Doc) (Doc, error) {
	if err := firstErr(tx.covers(h), tx.coversTree(to.Notebook), to.Notebook.Reachable(), tx.s.MayLeave(h.doc.nb, to.Notebook)); err != nil {
		return Doc{}, err
	}
	if err := tx.demandHeading(ctx, h); err != nil {
		return Doc{}, err
	}
	_, to, err := tx.current(ctx, nil, to)
	if err != nil {
		return Doc{}, err
	}
	order, err := tx.placeBehind(ctx, to, behind)
	if err != nil {
		return Doc{}, err
	}
	if err := tx.checkTitleOf(ctx, h); err != nil {
		return Doc{}, err
	}
	attrs, err := tx.s.g.r.BlockAttrs(ctx, h.id)
	if err != nil {
		return Doc{}, err
	}
	if err := tx.creates(ctx, h.id); err != nil {
		return Doc{}, err
	}
	st := Step{Op: "document.from_heading", ID: h.ID(), More: behind != nil || len(ownAttrs(attrs)) > 0, Marks: []Mark{{
		LookPath, h.ID(), pathMark(h.doc.nb.id, h.doc.path), pathMark(to.Notebook.id, to.folder()+"/"+h.ID()+".sy"),
	}}}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.HeadingToDoc(ctx, h.id, to.Notebook.id, to.Storage())
	})
	if err != nil && !answered(err) {
		return Doc{}, err
	}
	made, err := tx.became(ctx, h.id, to.Notebook, to.folder()+"/"+h.ID()+".sy")
	if err != nil {
		return Doc{}, err
	}
	if err := tx.settleAttrs(ctx, h.id, ownAttrs(attrs)); err != nil || behind == nil {
		return made, err
	}
	at := 1 + slices.IndexFunc(order, func(d Doc) bool { return d.id == behind.id })
	_, err = tx.Reorder(ctx, to, slices.Insert(order, at, made))
	return made, err
}

// placeBehind lists the documents right below a place when one of them is to be
// followed.
func (tx *Tx) placeBehind(ctx context.Context, to Place, behind *Doc) ([]Doc, error) {
	if behind == nil {
		return nil, nil
	}
	ids, err := tx.level(ctx, to)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ids, behind.ID()) {
		return nil, contract.Fail(contract.InvalidTarget, "Document %s is not right below the place the new document goes to.", behind.ID())
	}
	order := make([]Doc, len(ids))
	for i, id := range ids {
		order[i] = Doc{nb: to.Notebook, id: siyuan.ID(id), path: to.folder() + "/" + id + ".sy"}
	}
	return order, nil
}

func (tx *Tx) demandHeading(ctx context.Context, h Block) error {
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{h.id})
	if err != nil {
		return err
	}
	if infos[h.id].Type != "NodeHeading" {
		return contract.Fail(contract.InvalidTarget, "Block %s is no heading.", h.ID()).
			WithHint("document.get_outline lists the headings of a document.")
	}
	return nil
}

// checkTitleOf refuses to make a title of a heading that shows the title of
// something the caller may not read: SiYuan would write it out.
func (tx *Tx) checkTitleOf(ctx context.Context, h Block) error {
	text, err := tx.s.g.r.BlockKramdown(ctx, h.id, siyuan.KramdownMarkdown)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(text, "\n")
	if err := tx.s.checkKept(ctx, h.id, first); err != nil {
		return err
	}
	masked, err := tx.s.maskText(ctx, first)
	if err == nil && masked != first {
		err = contract.Fail(contract.HiddenReference, "Heading %s shows the title of something you may not read, and it would become part of a title.", h.ID())
	}
	return err
}

// became demands that a block is a document at a storage path now.
func (tx *Tx) became(ctx context.Context, id siyuan.ID, n Notebook, path string) (Doc, error) {
	tx.s.forget()
	p, err := tx.s.lookup(ctx, id)
	if err != nil {
		return Doc{}, tx.s.vanished(err, "document", id)
	}
	if p.box != n.id || p.path != path || p.root != id {
		return Doc{}, notPersisted("SiYuan reported heading %s as made a document, but it is not.", string(id))
	}
	return tx.s.refer(p, id).doc, nil
}

// ownAttrs are the attributes that a block takes along when it becomes a block of
// another kind.
func ownAttrs(stored siyuan.Attrs) siyuan.Attrs {
	own := siyuan.Attrs{}
	for k, v := range stored {
		if slices.Contains(namedAttrs, k) || strings.HasPrefix(k, "custom-") && !protected(k) && !strings.HasPrefix(k, dailyAttr) {
			own[k] = v
		}
	}
	return own
}

// DocToHeading makes a document a heading of the target's document, which keeps
// its id, with its text behind it. A target that is a block stays before it, or
// comes after it with before; of a document it is the end, or with before the
// start. Documents below the source would be lost, so there must be none.
func (tx *Tx) DocToHeading(ctx context.Context, src Doc, target Block, before bool) error {
	err := firstErr(tx.covers(src.Block()), tx.coversTree(src.nb), src.notRoot(), tx.covers(target), tx.s.MayLeave(src.nb, target.doc.nb))
	if err != nil {
		return err
	}
	if target.doc.id == src.id {
		return contract.Fail(contract.InvalidTarget, "Document %s cannot become a heading of itself.", src.ID())
	}
	docs, _, err := tx.current(ctx, []Doc{src}, Place{})
	if err != nil {
		return err
	}
	below, err := tx.s.g.r.Docs(ctx, src.nb.id, docs[0].path)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return contract.Fail(contract.InvalidTarget, "Document %s has %d documents below it, which have no place in a heading.", src.ID(), len(below)).
			WithHint("Move them with document.move first.")
	}
	anchor, err := tx.blockOf(ctx, target, before)
	if err != nil {
		return err
	}
	attrs, err := tx.s.g.r.BlockAttrs(ctx, src.id)
	if err != nil {
		return err
	}
	st := Step{Op: "document.to_heading", ID: src.ID(), More: len(ownAttrs(attrs)) > 0, Marks: []Mark{{
		LookPath, src.ID(), pathMark(src.nb.id, docs[0].path), pathMark(target.doc.nb.id, target.doc.path),
	}}}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		return w.DocToHeading(ctx, src.id, anchor, !before)
	})
	if err != nil && !answered(err) {
		return err
	}
	tx.s.forget()
	p, err := tx.s.lookup(ctx, src.id)
	if err != nil {
		return tx.s.vanished(err, "heading", src.id)
	}
	if p.root != target.doc.id {
		return notPersisted("SiYuan reported document %s as made a heading, but it is not in document %s.", src.ID(), target.doc.ID())
	}
	return tx.settleAttrs(ctx, src.id, ownAttrs(attrs))
}

// blockOf is the block that stands for a target. SiYuan damages a document that
// is given itself, and what was to go into it is lost, so its last block stands
// for it, or with first its first.
func (tx *Tx) blockOf(ctx context.Context, target Block, first bool) (siyuan.ID, error) {
	if !target.IsDoc() {
		return target.id, nil
	}
	children, err := tx.s.g.r.ChildBlocks(ctx, target.id)
	switch {
	case err != nil:
		return "", tx.s.vanished(err, "document", target.id)
	case len(children) == 0:
		return "", contract.Fail(contract.InvalidTarget, "Document %s has no block that the heading could stand beside.", target.ID()).
			WithHint("Write a line into it first.")
	case first:
		return children[0].ID, nil
	}
	return children[len(children)-1].ID, nil
}
