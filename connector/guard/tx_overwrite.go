package guard

import (
	"context"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// unwritable are the blocks that Markdown cannot hold, by their short codes: a
// new text of the document could only drop them.
var unwritable = []string{"s", "av", "iframe", "widget", "embed", "html", "video", "audio"}

// Overwrite replaces the body of a document by Markdown. Nothing is written where
// blocks would be lost that Markdown cannot hold, that have attributes, or that
// something refers to; the error names them. SiYuan swaps the body in one
// transaction; where the new one is not what was sent, the old one is put back,
// with its ids.
func (tx *Tx) Overwrite(ctx context.Context, d Doc, markdown string) error {
	if err := firstErr(tx.covers(d.Block()), d.notRoot()); err != nil {
		return err
	}
	before, err := tx.s.g.r.BlockKramdown(ctx, d.id, siyuan.KramdownMarkdown)
	if err != nil {
		return tx.s.vanished(err, "document", d.id)
	}
	if err := tx.checkWritable(ctx, d, before); err != nil {
		return err
	}
	_, err = tx.Update(ctx, []Update{{Block: d.Block(), Text: Text{Data: markdown}}})
	if contract.CodeOf(err) == contract.WriteNotPersisted {
		return tx.restore(ctx, d, before)
	}
	return err
}

// checkWritable refuses to overwrite a document with blocks that Markdown cannot
// hold.
func (tx *Tx) checkWritable(ctx context.Context, d Doc, kramdown string) error {
	var ids []siyuan.ID
	for id := range ialsByID(kramdown) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, ids)
	if err != nil {
		return err
	}
	type lost struct {
		Block siyuan.ID `json:"block"`
		Type  string    `json:"type"`
	}
	var all []lost
	for _, id := range ids {
		if code := typeCode(infos[id].Type); slices.Contains(unwritable, code) {
			all = append(all, lost{id, code})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return contract.Fail(contract.WouldLoseAttrs, "Document %s has blocks that Markdown cannot hold, such as %s.", d.ID(), all[0].Block).
		WithDetail(map[string]any{"blocks": all}).
		WithHint("Edit pieces with fs.replace, or add and update blocks with the block tool.")
}

// restore puts the old body back after a new one that did not come to be.
func (tx *Tx) restore(ctx context.Context, d Doc, kramdown string) error {
	old, _ := cutOwnIAL(kramdown)
	// More: that the old text is back is not the end that was asked for.
	st := Step{Op: "document.restore", ID: d.ID(), More: true, Marks: []Mark{{Look: LookText, ID: d.ID(), After: textMark(old)}}}
	err := tx.step(ctx, st, func(w *siyuan.Writer) error {
		_, err := w.UpdateBlock(ctx, d.id, siyuan.Markdown, old)
		return err
	})
	if err != nil && !answered(err) {
		return err
	}
	now, err := tx.s.g.r.BlockKramdown(ctx, d.id, siyuan.KramdownMarkdown)
	if err != nil {
		return err
	}
	if now, _ = cutOwnIAL(now); body(now) != body(old) {
		return notPersisted("SiYuan stored neither the new text of document %s nor the old one.", d.ID()).(*contract.Error).
			WithHint("Ask the person to look at the document; SiYuan's history has it as it was.")
	}
	return notPersisted("SiYuan did not store the new text of document %s; the old one was put back.", d.ID())
}
