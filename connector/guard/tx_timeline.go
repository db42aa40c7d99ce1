package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// nodeTag chooses a free tag: a stamp, and then a number, is added to one in use.
func (tx *Tx) nodeTag(ctx context.Context, of, name string) (string, error) {
	tagged, err := tx.s.g.r.TaggedSnapshots(ctx)
	if err != nil {
		return "", noSnapshots(err)
	}
	taken := func(tag string) bool {
		return slices.ContainsFunc(tagged, func(s siyuan.Snapshot) bool { return s.Tag == tag })
	}
	tag := nodePrefix + of + "_" + nodeLabelOf(name)
	if !taken(tag) {
		return tag, nil
	}
	stamped := tag + tx.s.g.opt.Now().UTC().Format("20060102150405")
	for tag = stamped; taken(tag); {
		for n := 2; taken(tag); n++ {
			tag = fmt.Sprintf("%s_%d", stamped, n)
		}
	}
	return tag, nil
}

const snapAgain = "a second snapshot of the same state is none"

// CreateMoment takes a snapshot of the workspace and names it, for a document or with
// nil for the workspace. It is refused where the home has no key; none is ever
// made.
func (tx *Tx) CreateMoment(ctx context.Context, name string, d *Doc) (Moment, error) {
	of := globalNode
	if d != nil {
		of = d.ID()
		if err := tx.covers(d.Block()); err != nil {
			return Moment{}, err
		}
	}
	tag, err := tx.nodeTag(ctx, of, name)
	if err != nil {
		return Moment{}, err
	}
	before, err := tx.s.g.r.Snapshots(ctx, 1)
	if err != nil {
		return Moment{}, noSnapshots(err)
	}
	tx.kept = true // no document changes, so none is kept
	err = tx.step(ctx, Step{Op: "timeline.snapshot", Repeatable: snapAgain, More: true}, func(w *siyuan.Writer) error {
		return w.CreateSnapshot(ctx, name)
	})
	if err != nil {
		return Moment{}, noSnapshots(err)
	}
	page, err := tx.s.g.r.Snapshots(ctx, 1)
	if err != nil {
		return Moment{}, err
	}
	if len(page.Snapshots) == 0 {
		return Moment{}, notPersisted("SiYuan reported a snapshot as taken, but there is none.")
	}
	newest := page.Snapshots[0] // the one before where nothing changed since
	for _, s := range page.Snapshots {
		if !slices.ContainsFunc(before.Snapshots, func(b siyuan.Snapshot) bool { return b.ID == s.ID }) {
			newest = s
			break
		}
	}
	if d != nil {
		if err := tx.holdsNow(ctx, *d, Moment{Tag: tag, snapshot: newest.ID}); err != nil {
			return Moment{}, err
		}
	}
	st := Step{Op: "timeline.tag", ID: newest.ID, Marks: []Mark{{LookNode, tag, no, yes}}}
	if err := tx.step(ctx, st, func(w *siyuan.Writer) error { return w.TagSnapshot(ctx, newest.ID, tag) }); err != nil {
		return Moment{}, err
	}
	return tx.s.madeNode(ctx, tag, d)
}

// holdsNow demands that a snapshot has a document as it is: SiYuan takes none where
// it sees no change.
func (tx *Tx) holdsNow(ctx context.Context, d Doc, n Moment) error {
	c, err := tx.s.Compare(ctx, d, n)
	if contract.CodeOf(err) == contract.TooLarge {
		return nil // that cannot be compared, and is in the snapshot all the same
	}
	if err != nil && contract.CodeOf(err) != contract.NotFound {
		return err
	}
	if err != nil || !c.Same() {
		return notPersisted("SiYuan reported a snapshot as taken, but it does not have document %s as it is.", d.ID())
	}
	return nil
}

func (s *Session) madeNode(ctx context.Context, tag string, d *Doc) (Moment, error) {
	nodes, err := s.Moments(ctx, d, d == nil)
	if err != nil {
		return Moment{}, err
	}
	i := slices.IndexFunc(nodes, func(n Moment) bool { return n.Tag == tag })
	if i < 0 {
		return Moment{}, notPersisted("SiYuan took the name of a snapshot, but does not show it.")
	}
	return nodes[i], nil
}

// DeleteMoment takes the name off a snapshot, which stays.
func (tx *Tx) DeleteMoment(ctx context.Context, n Moment, d *Doc) error {
	if n.Doc != "" {
		if err := tx.covers(d.Block()); err != nil {
			return err
		}
	} else if err := tx.s.holds(contract.SwitchTimeline); err != nil {
		return err
	}
	tx.kept = true
	st := Step{Op: "timeline.untag", ID: n.snapshot, Marks: []Mark{{LookNode, n.Tag, yes, no}}}
	if err := tx.step(ctx, st, func(w *siyuan.Writer) error { return w.RemoveSnapshotTag(ctx, n.Tag) }); err != nil {
		return err
	}
	if there, err := tx.s.g.lookAtNode(ctx, n.Tag); err != nil || there == yes {
		return firstErr(err, notPersisted("SiYuan took the removal of a snapshot's name, but still shows it."))
	}
	return nil
}

// lookAtNode tells whether a snapshot has that name.
func (g *Guard) lookAtNode(ctx context.Context, tag string) (string, error) {
	tagged, err := g.r.TaggedSnapshots(ctx)
	return yesNo(slices.ContainsFunc(tagged, func(s siyuan.Snapshot) bool { return s.Tag == tag })), err
}

// RollbackDoc makes the text of a document what it was, block by block, with the
// ids of its blocks. Title, attributes and place stay, and so do databases: SiYuan's
// own rollback would put their files back for the whole workspace.
func (tx *Tx) RollbackDoc(ctx context.Context, d Doc, c Comparison) error {
	if err := tx.covers(d.Block()); err != nil {
		return err
	}
	if err := tx.stillItsOwn(ctx, d, c.then, c.now); err != nil {
		return err
	}
	for _, b := range c.Blocks {
		if err := tx.s.checkThen(ctx, c, b); err != nil {
			return err
		}
	}
	if err := tx.undoBlocks(ctx, d, c.then); err != nil {
		return err
	}
	now, err := tx.s.piecesNow(ctx, d)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(now, c.then, samePiece) {
		return notPersisted("SiYuan took the rollback of document %s, but it is not as it was.", d.ID())
	}
	return nil
}

func samePiece(a, b domPiece) bool {
	return a.id == b.id && (a.kind == "NodeAttributeView" || plainDOM(a.dom) == plainDOM(b.dom))
}

// RollbackBlock makes one top-level block what it was: rewritten, put back behind
// what it followed, or taken away.
func (tx *Tx) RollbackBlock(ctx context.Context, d Doc, c Comparison, b BlockChange) error {
	if err := tx.covers(d.Block()); err != nil {
		return err
	}
	if b.Status == BlockAdded {
		keep := slices.DeleteFunc(slices.Clone(c.now), func(p domPiece) bool { return string(p.id) == b.Is })
		if err := tx.dropBlocks(ctx, d, keep); err != nil {
			return err
		}
		return tx.tookBack(ctx, d, b, domPiece{})
	}
	i := slices.IndexFunc(c.then, func(p domPiece) bool { return string(p.id) == b.Was })
	if err := tx.stillItsOwn(ctx, d, c.then[i:i+1], c.now); err != nil {
		return err
	}
	if err := tx.s.checkThen(ctx, c, b); err != nil {
		return err
	}
	if err := tx.undoBlock(ctx, d, c.then[i], c.before(b)); err != nil {
		return err
	}
	return tx.tookBack(ctx, d, b, c.then[i])
}

// before is the block that one of the comparison is to follow: where it is now, or
// behind the nearest that it followed and that is still there; "" for the first.
func (c Comparison) before(b BlockChange) siyuan.ID {
	previous := siyuan.ID("")
	for _, other := range c.Blocks {
		if other.Key() == b.Key() {
			break
		}
		if other.Is != "" {
			previous = siyuan.ID(other.Is)
		}
	}
	return previous
}

// checkThen refuses to write a block as it was where it cited, embedded or linked
// to what the caller may not read, as [Session.checkPulls] does for every text that
// an agent writes. That it cites it now makes no difference: SiYuan keeps a reference
// to what is there and drops one to what is not, and which it is would show.
func (s *Session) checkThen(ctx context.Context, c Comparison, b BlockChange) error {
	i := slices.IndexFunc(c.then, func(p domPiece) bool { return string(p.id) == b.Was })
	if b.Status == BlockUnchanged || i < 0 {
		return nil
	}
	err := s.checkPulls(ctx, c.then[i].dom, "", true)
	var refused *contract.Error
	if contract.CodeOf(err) == contract.HiddenReference && errors.As(err, &refused) {
		return refused.WithHint("Block %s had it at the node. Roll back the other blocks one by one, or ask a person to go back in SiYuan.", b.Was)
	}
	return err
}

// tookBack reads a block back.
func (tx *Tx) tookBack(ctx context.Context, d Doc, b BlockChange, want domPiece) error {
	now, err := tx.s.piecesNow(ctx, d)
	if err != nil {
		return err
	}
	id := siyuan.ID(b.Was)
	if want.id == "" {
		id = siyuan.ID(b.Is)
	}
	i := slices.IndexFunc(now, func(p domPiece) bool { return p.id == id })
	if want.id == "" && i >= 0 || want.id != "" && (i < 0 || !samePiece(now[i], want)) {
		return notPersisted("SiYuan took the rollback of block %s, but it is not as it was.", string(id))
	}
	return nil
}

// stillItsOwn refuses to write blocks that are in another document by now: they
// would be twice.
func (tx *Tx) stillItsOwn(ctx context.Context, d Doc, then, now []domPiece) error {
	here := map[siyuan.ID]bool{}
	for _, p := range now {
		for id := range domAttrs(p.dom) {
			here[id] = true
		}
	}
	for _, p := range then {
		for id := range domAttrs(p.dom) {
			if here[id] {
				continue
			}
			at, err := tx.s.g.r.PathByID(ctx, id)
			if absent(err) || err == nil && docOfPath(at.Path) == d.ID() {
				continue
			}
			if err != nil {
				return err
			}
			return contract.Fail(contract.InvalidTarget, "Blocks that document %s had are in another one now.", d.ID()).
				WithHint("Roll back single blocks instead, or move those blocks back first.")
		}
	}
	return nil
}
