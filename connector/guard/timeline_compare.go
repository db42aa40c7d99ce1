package guard

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// BlockStatus is what became of a block since a node.
type BlockStatus string

// The statuses.
const (
	BlockAdded     BlockStatus = "added"
	BlockRemoved   BlockStatus = "removed"
	BlockModified  BlockStatus = "modified"
	BlockUnchanged BlockStatus = "unchanged"
)

// BlockChange is a top-level block of a document, then and now. The texts are
// without marks, and anchors of what the caller may not read are masked.
type BlockChange struct {
	Status   BlockStatus
	Was, Is  string // ids; "" where there is none
	Old, Now string
	// Fixed says that the block cannot be brought back by itself: it shows a
	// database, which is for the whole workspace.
	Fixed bool
}

// Key names a change until the block changes again.
func (c BlockChange) Key() string { return string(c.Status) + ":" + c.Was + ":" + c.Is }

// Comparison is a document, then and now.
type Comparison struct {
	Blocks    []BlockChange // in the order of now; removed ones behind what they followed
	Reordered bool          // blocks that are in both stand in another order

	then, now []domPiece
}

// Same reports whether nothing differs.
func (c Comparison) Same() bool {
	return !c.Reordered && !slices.ContainsFunc(c.Blocks, func(b BlockChange) bool { return b.Status != BlockUnchanged })
}

// domsAtOnce bounds the blocks of one question for DOM.
const domsAtOnce = 64

// piecesNow are the top-level blocks of a document.
func (s *Session) piecesNow(ctx context.Context, d Doc) ([]domPiece, error) {
	children, err := s.g.r.ChildBlocks(ctx, d.id)
	if err != nil {
		return nil, s.vanished(err, "document", d.id)
	}
	ids := make([]siyuan.ID, len(children))
	for i, c := range children {
		ids[i] = c.ID
	}
	var pieces []domPiece
	for batch := range slices.Chunk(ids, domsAtOnce) {
		doms, err := s.g.r.BlockDOMs(ctx, batch)
		if err != nil {
			return nil, err
		}
		for _, id := range batch {
			p := domPiece{id: id, dom: doms[id]}
			if first := domPieces(p.dom); len(first) > 0 {
				p.kind = first[0].kind
			}
			pieces = append(pieces, p)
		}
	}
	return pieces, nil
}

// Compare compares a document with its state at a node. It reads only: no snapshot
// is taken of the present.
func (s *Session) Compare(ctx context.Context, d Doc, n Moment) (c Comparison, err error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return c, err
	}
	then, err := s.stateAt(ctx, d, n)
	if err != nil {
		return c, err
	}
	if c.now, err = s.piecesNow(ctx, d); err != nil {
		return c, err
	}
	c.then = domPieces(then)
	c.Blocks, c.Reordered = pairs(c.then, c.now)
	return c, s.showTexts(ctx, &c)
}

// pairs are the blocks of two states by their ids.
func pairs(then, now []domPiece) (all []BlockChange, reordered bool) {
	was := func(id siyuan.ID) int { return slices.IndexFunc(then, func(p domPiece) bool { return p.id == id }) }
	is := func(id siyuan.ID) bool { return slices.ContainsFunc(now, func(p domPiece) bool { return p.id == id }) }
	removedAfter := func(i int) {
		for i++; i < len(then) && !is(then[i].id); i++ {
			all = append(all, BlockChange{Status: BlockRemoved, Was: string(then[i].id)})
		}
	}
	removedAfter(-1)
	last := -1
	for _, p := range now {
		i := was(p.id)
		if i < 0 {
			all = append(all, BlockChange{Status: BlockAdded, Is: string(p.id)})
			continue
		}
		b := BlockChange{Status: BlockUnchanged, Was: string(p.id), Is: string(p.id)}
		if plainDOM(then[i].dom) != plainDOM(p.dom) {
			b.Status = BlockModified
			b.Fixed = showsDatabase.MatchString(then[i].dom) || showsDatabase.MatchString(p.dom)
		}
		all = append(all, b)
		removedAfter(i)
		reordered = reordered || i < last
		last = i
	}
	return all, reordered
}

// showTexts fills in what the blocks say and said.
func (s *Session) showTexts(ctx context.Context, c *Comparison) error {
	text := func(pieces []domPiece) (map[string]string, error) {
		var all strings.Builder
		for _, p := range pieces {
			all.WriteString(p.dom)
		}
		masked, err := s.maskDOM(ctx, all.String())
		texts := map[string]string{}
		for _, p := range domPieces(masked) {
			texts[string(p.id)] = readText(p.dom)
		}
		return texts, err
	}
	then, err := text(c.then)
	if err != nil {
		return err
	}
	now, err := text(c.now)
	for i := range c.Blocks {
		b := &c.Blocks[i]
		b.Old, b.Now = then[b.Was], now[b.Is]
	}
	return err
}

// readText is what a DOM shows, a line for each block in it.
func readText(dom string) string {
	var out strings.Builder
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		switch t.Type {
		case html.StartTagToken, html.SelfClosingTagToken:
			e := element(t)
			if e.attrs["data-node-id"] != "" || t.Data == "br" {
				out.WriteString("\n")
			}
			out.WriteString(e.attrs["data-content"])
		case html.TextToken:
			if !slices.ContainsFunc(in, decoration) {
				out.WriteString(t.Data)
			}
		}
	})
	var lines []string
	for line := range strings.Lines(withoutZWSP(out.String())) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
