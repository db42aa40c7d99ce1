package guard

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// ReplacedIn is what edits did to a document.
type ReplacedIn struct {
	Changed []string // ids of the blocks that were written
	Counts  []int    // replacements of each edit
	Skipped []Child  // blocks that have the text of an edit, but none to edit
}

// unread are the kinds of block that hold no text to edit and no blocks with any.
var unread = []string{"NodeBlockQueryEmbed", "NodeAttributeView", "NodeIFrame", "NodeWidget", "NodeVideo", "NodeAudio"}

// ReplaceIn edits a document: each edit is made in the first block that has its
// text, or with All in every one, on top of the edits before it. All are written
// or none. Old may have the marks that Markdown shows it with; a mark of a list
// or quote at its beginning has to stand in New too, and stays as it is.
func (tx *Tx) ReplaceIn(ctx context.Context, d Doc, edits []Edit) (done ReplacedIn, err error) {
	if err := tx.covers(d.Block()); err != nil {
		return done, err
	}
	pieces, err := tx.pieces(ctx, d)
	if err != nil {
		return done, err
	}
	for _, e := range edits {
		n, err := applyAll(pieces, e)
		if err == nil && n == 0 {
			n, err = applyMarked(pieces, e)
		}
		if err != nil {
			return done, err
		}
		done.skip(pieces, e)
		if n == 0 {
			return done, notIn(d, len(done.Counts), done.Skipped)
		}
		done.Counts = append(done.Counts, n)
	}
	var updates []Update
	for _, p := range pieces {
		if p.text != p.before {
			updates = append(updates, Update{Block: p.block, Text: Text{Data: p.text}})
			done.Changed = append(done.Changed, p.block.ID())
		}
	}
	if len(updates) > 0 {
		_, err = tx.Update(ctx, updates)
	}
	return done, err
}

// piece is a block of a document while it is edited.
type piece struct {
	block        Block
	kind, in     string // in: the kind of the block it is in
	before, text string // Markdown without the block's own attribute list
	shown        string
	marked       bool // edited together with marks: shown is out of date
}

// pieces are the blocks of a document that hold text, and those that hide some,
// in order. It takes the same number of kernel calls for every document.
func (tx *Tx) pieces(ctx context.Context, d Doc) ([]*piece, error) {
	whole, err := tx.s.g.r.BlockKramdown(ctx, d.id, siyuan.KramdownMarkdown)
	if err != nil {
		return nil, tx.s.vanished(err, "document", d.id)
	}
	ids := idsInOrder(whole)
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, ids)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, id := range ids {
		if kind := infos[id].Type; slices.Contains(editable, kind) || slices.Contains(unread, kind) {
			blocks = append(blocks, Block{doc: d, id: id})
		}
	}
	texts, doms, err := tx.s.contents(ctx, blocks)
	if err != nil {
		return nil, err
	}
	var pieces []*piece
	for _, b := range blocks {
		if stored, there := texts[b.id]; there {
			p := &piece{block: b, kind: infos[b.id].Type, in: infos[b.id].ParentType}
			p.before, _ = cutOwnIAL(stored)
			p.text, p.shown = p.before, shownText(p.kind, p.before, doms[b.id])
			pieces = append(pieces, p)
		}
	}
	return pieces, nil
}

// applyAll makes one edit in the first block that has its text, or in all.
func applyAll(pieces []*piece, e Edit) (n int, err error) {
	for _, p := range pieces {
		if slices.Contains(unread, p.kind) {
			continue
		}
		k, err := p.apply(e)
		if err != nil {
			return 0, err
		}
		if n += k; n > 0 && !e.All {
			return n, nil
		}
	}
	return n, nil
}

// apply makes one edit in a block; 0 says that it does not have the text.
func (p *piece) apply(e Edit) (n int, err error) {
	if !p.marked && len(e.find(p.shown)) > 0 {
		p.text, p.shown, n, err = e.apply(p.block.id, p.kind, p.text, p.shown)
		return n, err
	}
	var found [][2]int
	for _, at := range openText(p.kind, p.text) {
		for _, m := range e.find(p.text[at[0]:at[1]]) {
			if from, to := at[0]+m[0], at[0]+m[1]; !splits(p.text, from) && !splits(p.text, to) {
				found = append(found, [2]int{from, to})
			}
		}
	}
	if len(found) == 0 {
		return 0, nil
	}
	if p.kind == "NodeTable" && strings.ContainsAny(e.New, "|\n") {
		return 0, contract.Fail(contract.InvalidValue, "The new text would change the cells of table %s.", p.block.ID()).
			WithHint("Rewrite the table with block.update.")
	}
	if !e.All {
		found = found[:1]
	}
	p.text, p.marked = e.put(p.text, found), true
	return len(found), nil
}

// splits reports whether a place is inside a run of one sign that may mark text:
// a match that begins or ends there has half a mark.
func splits(text string, at int) bool {
	return at > 0 && at < len(text) && text[at-1] == text[at] && strings.IndexByte("*_~=`$#\\", text[at]) >= 0
}

// lineMark begins the text of a list item or a quote, as Markdown shows it.
var lineMark = regexp.MustCompile(`^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?|>[ \t]?)`)

// applyMarked makes an edit whose texts both begin with the mark of a list item
// or a quote, in blocks of one that begin with the rest; the mark stays.
func applyMarked(pieces []*piece, e Edit) (int, error) {
	mark := lineMark.FindString(e.Old)
	rest, same := strings.CutPrefix(e.New, mark)
	if mark == "" || !same || mark == e.Old {
		return 0, nil
	}
	e.Old, e.New = strings.TrimPrefix(e.Old, mark), rest
	in := []string{"NodeListItem"}
	if strings.HasSuffix(strings.TrimSpace(mark), ">") {
		in = []string{"NodeBlockquote", "NodeCallout"}
	}
	var fitting []*piece
	for _, p := range pieces {
		if slices.Contains(in, p.in) && strings.HasPrefix(p.text, e.Old) {
			fitting = append(fitting, p)
		}
	}
	return applyAll(fitting, e)
}

// skip remembers the blocks that have the text of an edit and were not looked at.
func (done *ReplacedIn) skip(pieces []*piece, e Edit) {
	for _, p := range pieces {
		known := slices.ContainsFunc(done.Skipped, func(c Child) bool { return c.ID == p.block.ID() })
		if slices.Contains(unread, p.kind) && !known && strings.Contains(p.before, e.Old) {
			done.Skipped = append(done.Skipped, Child{ID: p.block.ID(), Type: typeCode(p.kind)})
		}
	}
}

func notIn(d Doc, edit int, skipped []Child) error {
	if len(skipped) > 0 {
		return contract.Fail(contract.InvalidTarget, "The old text of edit %d is only in block %s of the document, which holds no text to edit.", edit, skipped[0].ID).
			WithHint("Use the block or av tool for it.").
			WithDetail(map[string]any{"edit": edit, "blocks": skippedIDs(skipped)})
	}
	return contract.Fail(contract.InvalidValue, "Document %s does not have the old text of edit %d; nothing was changed.", d.ID(), edit).
		WithHint("Read it again: capital letters and spaces count, and the text must be inside one paragraph, heading, list item, cell or code block.").
		WithDetail(map[string]any{"edit": edit})
}

func skippedIDs(skipped []Child) []string {
	ids := make([]string, len(skipped))
	for i, c := range skipped {
		ids[i] = c.ID
	}
	return ids
}
