package guard

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Text is what an agent wants to write.
type Text struct {
	Data string
	DOM  bool // block DOM instead of Markdown
}

func (t Text) dataType() siyuan.DataType {
	if t.DOM {
		return siyuan.DOM
	}
	return siyuan.Markdown
}

// accept makes a text safe to write where it is new: references must be
// readable, bare ones get an anchor, ids and database ties of other blocks are
// taken out.
func (tx *Tx) accept(ctx context.Context, t Text) (Text, error) {
	if err := tx.s.checkPulls(ctx, t.Data, "", t.DOM); err != nil {
		return t, err
	}
	if t.DOM {
		if len(domBlocks(t.Data)) == 0 || slices.Contains(domBlocks(t.Data), "") {
			return t, contract.Fail(contract.InvalidValue, "The DOM is not made of blocks: every top-level element needs data-node-id and data-type.").
				WithHint("Send Markdown, or DOM as SiYuan shows it.")
		}
		var err error
		t.Data, err = reissue(t.Data, nil, tx.newID)
		return t, err
	}
	t.Data = dropForeignIDs(t.Data, nil)
	var err error
	t.Data, err = tx.s.anchor(ctx, t.Data)
	return t, err
}

// known gives an accepted text an id that is known before the kernel is asked:
// Markdown that of its last block, or of its first item where it goes into a
// list; DOM has some. It returns none for a text that cannot carry one, which
// is one that is blank or ends inside a fence.
func (tx *Tx) known(t Text, intoList bool) (Text, []string, error) {
	if t.DOM {
		return t, plainIDs(domBlocks(t.Data)), nil
	}
	if strings.TrimSpace(t.Data) == "" || fenced(t.Data) {
		return t, nil, nil
	}
	id, err := tx.newID()
	if err != nil {
		return t, nil, err
	}
	if intoList {
		t.Data = withItemID(t.Data, id)
	} else {
		t.Data = withLastID(t.Data, id)
	}
	return t, []string{string(id)}, nil
}

// withLastID puts an id into the attribute list behind a text.
func withLastID(text string, id siyuan.ID) string {
	text, own := cutOwnIAL(text)
	own["id"] = string(id)
	return strings.TrimRight(text, "\n") + "\n" + formatIAL(own)
}

var itemStart = regexp.MustCompile(`^(\s*(?:[-*+]|\d{1,9}[.)])[ \t]+)(\{:[^}\n]*\})?`)

// withItemID puts an id into the attribute list of the first item of a text.
func withItemID(text string, id siyuan.ID) string {
	m := itemStart.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	own := parseIAL(m[2])
	own["id"] = string(id)
	return m[1] + formatIAL(own) + text[len(m[0]):]
}

// Append adds text as the last children of a container and returns the ids of
// its new children, in order, the first of them leading. It is read back.
func (tx *Tx) Append(ctx context.Context, parent Block, t Text) ([]string, error) {
	if err := tx.covers(parent); err != nil {
		return nil, err
	}
	t, err := tx.accept(ctx, t)
	if err != nil {
		return nil, err
	}
	last, err := tx.tail(ctx, parent.id)
	if err != nil {
		return nil, err
	}
	if last.Type == "i" { // the parent is a list
		list := &container{id: parent.id, list: true, before: []siyuan.ChildBlock{last}}
		if err := checkItems(t, list, true); err != nil {
			return nil, err
		}
	}
	tail := last.ID
	t, ids, err := tx.known(t, last.Type == "i")
	if err != nil {
		return nil, err
	}
	st := addStep("block.append", ids, Mark{Look: LookTail, ID: parent.ID(), Before: tailMark(tail)})
	var sent []siyuan.Tx
	err = tx.step(ctx, st, func(w *siyuan.Writer) error {
		sent, err = w.AppendBlock(ctx, parent.id, t.dataType(), t.Data)
		return err
	})
	switch {
	case errors.Is(err, siyuan.Rejected):
		return nil, tx.leaf(ctx, parent, err)
	case err != nil && !answered(err):
		return nil, err
	}
	fresh, readErr := tx.since(ctx, parent.id, tail)
	if readErr != nil {
		return nil, readErr
	}
	if len(fresh) == 0 {
		return nil, notPersisted("SiYuan reported the append to %s as done, but nothing new is there.", parent.ID())
	}
	return plainIDs(fresh), tx.compare(ctx, parent.id, fresh, sent)
}

// addStep is the step of an insertion: done when the blocks of the given ids are
// there, not done while they are not and the containers, which the other marks
// tell about, have the children they have now.
func addStep(op string, ids []string, containers ...Mark) Step {
	st := Step{Op: op, ID: containers[0].ID, New: ids}
	for _, id := range ids {
		st.Marks = append(st.Marks, thereMark(siyuan.ID(id), false, true))
	}
	st.Marks = append(st.Marks, containers...)
	return st
}

// answered: the kernel did answer, in a form that tells nothing. What happened
// can then be read, because the kernel is no longer at work on it.
func answered(err error) bool {
	e, ok := errors.AsType[*siyuan.Error](err)
	return ok && e.Kind == siyuan.OutcomeUnknown && e.Status == 200
}

// leaf explains a refused append.
func (tx *Tx) leaf(ctx context.Context, parent Block, cause error) error {
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{parent.id})
	if err != nil {
		return err
	}
	switch kind := infos[parent.id].Type; kind {
	case "NodeDocument", "NodeList", "NodeListItem", "NodeBlockquote", "NodeSuperBlock", "NodeCallout", "":
		return cause
	case "NodeHeading":
		return contract.Fail(contract.InvalidTarget, "Block %s is a heading and holds no blocks itself.", parent.ID()).
			WithHint("Insert after the last block of its section.")
	}
	return contract.Fail(contract.InvalidTarget, "Block %s cannot hold other blocks.", parent.ID()).
		WithHint("Append to its document, or insert after it.")
}

// tail is the last child of a container, the zero one when there is none.
func (tx *Tx) tail(ctx context.Context, parent siyuan.ID) (siyuan.ChildBlock, error) {
	last, err := tx.s.g.r.TailChildBlocks(ctx, parent, 1)
	if err != nil || len(last) == 0 {
		return siyuan.ChildBlock{}, err
	}
	return last[0], nil
}

// sinceStart is how many children are looked at first for new ones; the number
// doubles until the old tail is found.
const sinceStart = 8

// since lists the children behind the old tail. When that is gone (the kernel
// drops the empty paragraph of a new document), all children are new.
func (tx *Tx) since(ctx context.Context, parent, tail siyuan.ID) ([]siyuan.ID, error) {
	for n := sinceStart; ; n *= 2 {
		last, err := tx.s.g.r.TailChildBlocks(ctx, parent, n)
		if err != nil {
			return nil, err
		}
		var ids []siyuan.ID
		for _, c := range last { // the last comes first
			if c.ID == tail {
				return reversed(ids), nil
			}
			ids = append(ids, c.ID)
		}
		if len(last) < n {
			return reversed(ids), nil
		}
	}
}

func reversed(ids []siyuan.ID) []siyuan.ID {
	out := make([]siyuan.ID, len(ids))
	for i, id := range ids {
		out[len(ids)-1-i] = id
	}
	return out
}

func plainIDs(ids []siyuan.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// compare demands that the stored blocks say what the kernel's answer says it
// stored.
func (tx *Tx) compare(ctx context.Context, parent siyuan.ID, ids []siyuan.ID, sent []siyuan.Tx) error {
	want := sentDOM(sent)
	if want == "" {
		return nil
	}
	doms, err := tx.s.g.r.BlockDOMs(ctx, ids)
	if err != nil {
		return err
	}
	var have string
	for _, id := range ids {
		have += doms[id] + " "
	}
	if domText(have) != domText(want) {
		return notPersisted("SiYuan stored something else below %s than it reported.", string(parent))
	}
	return nil
}

// sentDOM is the DOM that the kernel's answer to an insert or update carries.
func sentDOM(sent []siyuan.Tx) string {
	var dom string
	for _, op := range siyuan.Ops(sent) {
		if data, ok := op.Data.(string); ok && op.Action != "delete" {
			dom += data + " "
		}
	}
	return dom
}
