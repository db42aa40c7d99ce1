package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Side says where a block goes, seen from another one.
type Side uint8

// The sides of a block.
const (
	After  Side = iota // right behind it
	Before             // right before it
	Into               // as its first child
)

// Anchor is a place among blocks.
type Anchor struct {
	Block Block
	Side  Side
}

// Insertion is a text and where it goes.
type Insertion struct {
	At Anchor
	Text
}

// container is the parent of the place an anchor names.
type container struct {
	id     siyuan.ID
	list   bool
	before []siyuan.ChildBlock
}

// itemKind is the kind of list a list is, u, o or t, by its items; "" for other
// containers.
func (c *container) itemKind() string {
	if !c.list || len(c.before) == 0 {
		return ""
	}
	return c.before[0].SubType
}

// containers looks up what the anchors stand in, and refuses those that the
// kernel would accept and do nothing for, or damage the document with.
func (tx *Tx) containers(ctx context.Context, anchors []Anchor) ([]*container, error) {
	ids := make([]siyuan.ID, len(anchors))
	for i, a := range anchors {
		if err := tx.covers(a.Block); err != nil {
			return nil, err
		}
		ids[i] = a.Block.id
	}
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, unique(ids))
	if err != nil {
		return nil, err
	}
	byID, all := map[siyuan.ID]*container{}, make([]*container, len(anchors))
	for i, a := range anchors {
		info, ok := infos[a.Block.id]
		if !ok {
			return nil, notFound("block", a.Block.id)
		}
		c := &container{id: info.ParentID, list: info.ParentType == "NodeList"}
		if a.Side == Into {
			c = &container{id: info.ID, list: info.Type == "NodeList"}
		}
		if err := checkAnchor(a, info); err != nil {
			return nil, err
		}
		if byID[c.id] == nil {
			if c.before, err = tx.s.g.r.ChildBlocks(ctx, c.id); err != nil {
				return nil, err
			}
			byID[c.id] = c
		}
		all[i] = byID[c.id]
	}
	return all, nil
}

// holders are the types of block that hold others.
var holders = []string{"NodeDocument", "NodeList", "NodeListItem", "NodeBlockquote", "NodeSuperBlock", "NodeCallout"}

func checkAnchor(a Anchor, info siyuan.TreeInfo) error {
	switch id := a.Block.ID(); {
	case a.Side != Into && info.Type == "NodeDocument":
		return contract.Fail(contract.InvalidTarget, "Block %s is a document: nothing can stand before or after it.", id).
			WithHint("Give it as parentID to write at its start, or use block.append to write at its end.")
	case a.Side == Into && info.Type == "NodeHeading":
		return contract.Fail(contract.InvalidTarget, "Block %s is a heading and holds no blocks itself.", id).
			WithHint("Give it as previousID to write right below it.")
	case a.Side == Into && !slices.Contains(holders, info.Type):
		return contract.Fail(contract.InvalidTarget, "Block %s cannot hold other blocks.", id).
			WithHint("Give it as previousID or nextID, or give the block it is in as parentID.")
	}
	return nil
}

// Insert adds texts at their places and returns the ids of the new blocks, in
// the order of the texts. Texts with one place come to stand there in their
// order. Everything is checked before anything is written, and read back.
func (tx *Tx) Insert(ctx context.Context, all []Insertion) ([]string, error) {
	anchors := make([]Anchor, len(all))
	for i, in := range all {
		anchors[i] = in.At
	}
	places, err := tx.containers(ctx, anchors)
	if err != nil {
		return nil, err
	}
	blocks := make([]siyuan.NewBlock, len(all))
	var chosen []string
	for i, in := range all {
		many := len(all) == 1 && in.At.Side == Into
		if err := checkItems(in.Text, places[i], many); err != nil {
			return nil, err
		}
		t, err := tx.accept(ctx, in.Text)
		if err != nil {
			return nil, err
		}
		t, ids, err := tx.known(t, places[i].list)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, ids...)
		blocks[i] = newBlock(t, in.At, places[i], many)
	}
	order := sendingOrder(anchors, places)
	sent, err := tx.sendInserts(ctx, insertStep(places, chosen), blocks, order)
	switch {
	case errors.Is(err, siyuan.Rejected):
		return nil, tx.lostAnchor(ctx, anchors, err)
	case err != nil && !answered(err):
		return nil, err
	}
	return tx.inserted(ctx, places, order, siyuan.Ops(sent))
}

// newBlock is an insertion as the kernel wants it: with exactly one place. The
// kernel takes a list that goes into a list apart only beside an item, so that
// is where it is sent.
func newBlock(t Text, at Anchor, c *container, many bool) siyuan.NewBlock {
	b := siyuan.NewBlock{DataType: t.dataType(), Data: t.Data}
	switch {
	case at.Side == After:
		b.Previous = at.Block.id
	case at.Side == Before:
		b.Next = at.Block.id
	case c.list && !many && len(c.before) > 0:
		b.Next = c.before[0].ID
	default:
		b.Parent = at.Block.id
	}
	return b
}

// sendingOrder lists the insertions so that those of one place end up in their
// own order: each goes right behind the anchor, so the last is sent first.
func sendingOrder(anchors []Anchor, places []*container) []int {
	groups := map[Anchor][]int{}
	var seen []Anchor
	for i, a := range anchors {
		if groups[a] == nil {
			seen = append(seen, a)
		}
		groups[a] = append(groups[a], i)
	}
	var order []int
	for _, a := range seen {
		group := groups[a]
		if a.Side == After || a.Side == Into && !places[group[0]].list {
			slices.Reverse(group)
		}
		order = append(order, group...)
	}
	return order
}

func insertStep(places []*container, chosen []string) Step {
	var before []Mark
	for _, c := range places {
		if m := (Mark{Look: LookChildren, ID: string(c.id), Before: childrenMark(c.before)}); !slices.Contains(before, m) {
			before = append(before, m)
		}
	}
	return addStep("block.insert", chosen, before...)
}

func (tx *Tx) sendInserts(ctx context.Context, st Step, blocks []siyuan.NewBlock, order []int) (sent []siyuan.Tx, err error) {
	batch := make([]siyuan.NewBlock, len(order))
	for k, i := range order {
		batch[k] = blocks[i]
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		switch b := batch[0]; {
		case len(batch) > 1:
			sent, err = w.InsertBlocks(ctx, batch)
		case b.Parent != "":
			sent, err = w.PrependBlock(ctx, b.Parent, b.DataType, b.Data)
		default:
			sent, err = w.InsertBlock(ctx, b.DataType, b.Data, siyuan.Anchor{Previous: b.Previous, Next: b.Next})
		}
		return err
	})
	return sent, err
}

// lostAnchor explains a refused insertion whose places were good a moment ago.
func (tx *Tx) lostAnchor(ctx context.Context, anchors []Anchor, cause error) error {
	ids := make([]siyuan.ID, len(anchors))
	for i, a := range anchors {
		ids[i] = a.Block.id
	}
	exist, err := tx.s.g.r.BlocksExist(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !exist[id] {
			return contract.Fail(contract.StateChanged, "Block %s was removed while the call ran; nothing was inserted beside it.", string(id)).WithCause(cause)
		}
	}
	return cause
}

// inserted finds the new children of the containers, gives each insertion its
// own by the ids in the kernel's answer, and demands that they say what the
// answer says was stored.
func (tx *Tx) inserted(ctx context.Context, places []*container, order []int, ops []siyuan.Op) ([]string, error) {
	fresh, err := tx.freshChildren(ctx, places)
	if err != nil {
		return nil, err
	}
	if len(fresh) == 0 {
		return nil, notPersisted("SiYuan reported the blocks as inserted, but nothing new is there.")
	}
	if len(ops) != len(order) { // no answer that tells which is which: new is what is new
		return plainIDs(fresh), nil
	}
	doms, err := tx.s.g.r.BlockDOMs(ctx, fresh)
	if err != nil {
		return nil, err
	}
	mine := make([][]siyuan.ID, len(places))
	for k, i := range order {
		want, _ := ops[k].Data.(string)
		sent := domAttrs(want)
		var have strings.Builder
		for _, id := range fresh {
			if _, ok := sent[id]; ok {
				mine[i] = append(mine[i], id)
				have.WriteString(doms[id] + " ")
			}
		}
		if len(mine[i]) == 0 || domText(have.String()) != domText(want) {
			return nil, notPersisted("SiYuan stored something else than it reported for the text that begins with block %s.", string(ops[k].ID))
		}
	}
	return plainIDs(slices.Concat(mine...)), nil
}

// freshChildren are the children of the containers that were not there before,
// in document order, container by container.
func (tx *Tx) freshChildren(ctx context.Context, places []*container) ([]siyuan.ID, error) {
	var fresh []siyuan.ID
	seen := map[siyuan.ID]bool{}
	for _, c := range places {
		if seen[c.id] {
			continue
		}
		seen[c.id] = true
		now, err := tx.s.g.r.ChildBlocks(ctx, c.id)
		if err != nil {
			return nil, err
		}
		for _, b := range now {
			if !slices.ContainsFunc(c.before, func(old siyuan.ChildBlock) bool { return old.ID == b.ID }) {
				fresh = append(fresh, b.ID)
			}
		}
	}
	return fresh, nil
}
