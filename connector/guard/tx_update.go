package guard

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Update is the new text of one block.
type Update struct {
	Block Block
	Text
}

// Updated is a block after its update.
type Updated struct {
	ID        string
	DOM       bool
	Kramdown  string // as stored now, as far as the caller may read it
	Preserved int    // attributes that were kept
}

// revision is an update made ready: what goes to the kernel, and what must be
// there afterwards.
type revision struct {
	asked  Block
	write  siyuan.BlockUpdate
	isDoc  bool
	attrs  siyuan.Attrs               // of the written block, afterwards
	kept   map[siyuan.ID]siyuan.Attrs // of blocks inside it, afterwards
	kind   string
	before string // kramdown
	task   byte   // new task marker of the asked list item, 0 for none
	loose  bool   // the attributes do not go with the text and have to be put back
}

// Update rewrites blocks, all or none, keeping their ids and attributes. What
// the kernel would lose is refused before anything is written.
func (tx *Tx) Update(ctx context.Context, updates []Update) ([]Updated, error) {
	var revisions []revision
	for _, u := range updates {
		if err := tx.covers(u.Block); err != nil {
			return nil, err
		}
		r, err := tx.revise(ctx, u)
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, r)
	}
	sent, err := tx.sendUpdates(ctx, revisions)
	if err != nil {
		return nil, err
	}
	var done []Updated
	for i, r := range revisions {
		if err := tx.settle(ctx, r, sent[r.write.ID]); err != nil {
			return nil, err
		}
		text, err := tx.s.Kramdown(ctx, r.asked)
		if err != nil {
			return nil, err
		}
		done = append(done, Updated{ID: r.asked.ID(), DOM: updates[i].DOM, Kramdown: text, Preserved: len(r.attrs)})
	}
	return done, nil
}

// revise reads the block as it is and works out what to send.
func (tx *Tx) revise(ctx context.Context, u Update) (revision, error) {
	r := revision{asked: u.Block, write: siyuan.BlockUpdate{ID: u.Block.id, DataType: u.dataType(), Data: u.Data}}
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{u.Block.id})
	if err != nil {
		return r, err
	}
	r.kind = infos[u.Block.id].Type
	r.isDoc = u.Block.IsDoc()
	if r.kind == "NodeAttributeView" {
		return r, contract.Fail(contract.InvalidTarget, "Block %s shows a database; its text cannot be rewritten.", u.Block.ID()).
			WithHint("Change the database with the av tool, or delete the block.")
	}
	attrs, err := tx.s.g.r.BlockAttrs(ctx, u.Block.id)
	if err != nil {
		return r, err
	}
	if r.before, err = tx.s.g.r.BlockKramdown(ctx, u.Block.id, siyuan.KramdownMarkdown); err != nil {
		return r, err
	}
	if u.DOM {
		return r, tx.reviseDOM(ctx, &r, attrs)
	}
	return r, tx.reviseMarkdown(ctx, &r, attrs)
}

func (tx *Tx) reviseMarkdown(ctx context.Context, r *revision, stored siyuan.Attrs) error {
	text := unmask(r.write.Data, r.before)
	if body, own := cutOwnIAL(text); r.isDoc && own["id"] == string(r.write.ID) {
		text = body // a document's own list at the end of its text is for reading only
	}
	if err := tx.checkText(ctx, r, text, false); err != nil {
		return err
	}
	if err := checkInline(r.write.ID, text, r.before); err != nil {
		return err
	}
	text, err := tx.s.anchor(ctx, text)
	if err != nil {
		return err
	}
	if r.kind == "NodeListItem" {
		return tx.reviseItem(ctx, r, stored, text)
	}
	if n := topBlocks(text); n > 1 && !r.isDoc {
		return contract.Fail(contract.InvalidTarget, "The text has %d blocks, and block %s can only become one: SiYuan would drop the rest.", n, r.write.ID).
			WithHint("Send one block, and add the others with block.append or block.insert.")
	}
	if err := tx.keepInside(ctx, r, text); err != nil {
		return err
	}
	body, own := text, siyuan.Attrs{}
	if !r.isDoc {
		body, own = cutOwnIAL(text)
	}
	body = dropForeignIDs(body, r.kept)
	r.attrs = mergeAttrs(stored, own)
	r.write.Data = body
	switch {
	case r.isDoc || len(r.attrs) == 0:
	case takesIAL(body):
		r.write.Data = body + "\n" + formatIAL(r.attrs)
	default:
		r.loose = true
	}
	return nil
}

// takesIAL: an attribute list on the line behind the text belongs to the block.
// HTML swallows it, and so does a fence that was not closed.
func takesIAL(body string) bool {
	return strings.TrimSpace(body) != "" && !strings.HasPrefix(strings.TrimSpace(body), "<") && !fenced(body)
}

// checkText refuses what the writer may not pull in, and references that could
// not stay.
func (tx *Tx) checkText(ctx context.Context, r *revision, text string, dom bool) error {
	if err := tx.s.checkPulls(ctx, text, r.before, dom); err != nil {
		return err
	}
	return tx.s.checkKept(ctx, r.write.ID, text)
}

// mergeAttrs are the attributes a block has afterwards: the stored ones, with
// those given in the text on top. Ties to databases and decks cannot be given.
func mergeAttrs(stored, given siyuan.Attrs) siyuan.Attrs {
	all := maps.Clone(stored)
	for k, v := range given {
		if !protected(k) {
			all[k] = v
		}
	}
	for _, k := range computedAttrs {
		delete(all, k)
	}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

func (tx *Tx) reviseDOM(ctx context.Context, r *revision, stored siyuan.Attrs) error {
	storedDOM, err := tx.s.g.r.BlockDOM(ctx, r.write.ID)
	if err != nil {
		return err
	}
	dom := unmaskDOM(r.write.Data, storedDOM)
	if err := tx.checkText(ctx, r, dom, true); err != nil {
		return err
	}
	if n := len(domBlocks(dom)); n != 1 && !r.isDoc {
		return contract.Fail(contract.InvalidTarget, "The DOM has %d top-level elements; block %s needs exactly one.", n, r.write.ID)
	}
	own := domAttrs(storedDOM)
	if err := tx.keepIn(ctx, r, own, domAttrs(dom), dom); err != nil {
		return err
	}
	keep := map[string]bool{}
	for id := range own {
		keep[string(id)] = true
	}
	r.attrs = mergeAttrs(stored, nil)
	if r.isDoc {
		r.write.Data, err = reissue(dom, keep, tx.newID)
		return err
	}
	keep[string(r.write.ID)] = true
	r.write.Data, err = reissue(withRoot(dom, string(r.write.ID), r.attrs), keep, tx.newID)
	return err
}

var itemLine = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\{:[^}\n]*\})?(?:\[([^\]\n])\][ \t]+)?([^\n]*)`)

// reviseItem updates a list item. Its text is its first paragraph: one line
// rewrites that and leaves the item, its other children and all ids alone.
// Text with more levels replaces the item's content.
func (tx *Tx) reviseItem(ctx context.Context, r *revision, stored siyuan.Attrs, text string) error {
	m := itemLine.FindStringSubmatch(text)
	if m == nil {
		return contract.Fail(contract.InvalidTarget, "Block %s is a list item; plain text would break its list.", r.write.ID).
			WithHint("Send the item as \"- text\".")
	}
	rest := strings.TrimPrefix(text, m[0])
	if topLevelItem.MatchString(rest) {
		return contract.Fail(contract.InvalidTarget, "The text has several items, and block %s is one: SiYuan would drop the rest.", r.write.ID).
			WithHint("Send one item, or update the whole list by its id.")
	}
	if strings.TrimSpace(ialPattern.ReplaceAllString(rest, "")) != "" {
		return tx.reviseWholeItem(ctx, r, stored, text)
	}
	children, err := tx.s.g.r.ChildBlocks(ctx, r.write.ID)
	if err != nil {
		return err
	}
	if len(children) == 0 || children[0].Type != "p" {
		return tx.reviseWholeItem(ctx, r, stored, text)
	}
	if m[1] != "" && !strings.EqualFold(m[1], taskMarker(r.before)) {
		r.task = strings.ToUpper(m[1])[0]
	}
	return tx.reviseFirstLine(ctx, r, children[0].ID, m[2])
}

var topLevelItem = regexp.MustCompile(`(?m)^(?:[-*+]|\d{1,9}[.)])[ \t]`)

func taskMarker(kramdown string) string {
	if m := itemLine.FindStringSubmatch(kramdown); m != nil {
		return m[1]
	}
	return ""
}

func (tx *Tx) reviseWholeItem(ctx context.Context, r *revision, stored siyuan.Attrs, text string) error {
	if err := tx.keepInside(ctx, r, text); err != nil {
		return err
	}
	r.attrs = mergeAttrs(stored, nil)
	r.loose = len(r.attrs) > 0
	r.write.Data = dropForeignIDs(text, r.kept)
	return nil
}

func (tx *Tx) reviseFirstLine(ctx context.Context, r *revision, paragraph siyuan.ID, text string) error {
	attrs, err := tx.s.g.r.BlockAttrs(ctx, paragraph)
	if err != nil {
		return err
	}
	r.write.ID = paragraph
	r.kind = "NodeParagraph"
	r.attrs = mergeAttrs(attrs, nil)
	r.write.Data = text
	if r.loose = len(r.attrs) > 0 && !takesIAL(text); !r.loose && len(r.attrs) > 0 {
		r.write.Data += "\n" + formatIAL(r.attrs)
	}
	return nil
}

// sendUpdates writes all revisions with one kernel call and tells what the
// kernel says it stored, by block.
func (tx *Tx) sendUpdates(ctx context.Context, revisions []revision) (map[siyuan.ID][]siyuan.Tx, error) {
	var all []siyuan.BlockUpdate
	for _, r := range revisions {
		if slices.ContainsFunc(all, func(u siyuan.BlockUpdate) bool { return u.ID == r.write.ID }) {
			return nil, contract.InvalidFields(contract.Field{Path: "items", Message: "name the same block twice"})
		}
		all = append(all, r.write)
	}
	var sent []siyuan.Tx
	st, err := tx.updateStep(ctx, revisions)
	if err != nil {
		return nil, err
	}
	err = tx.step(ctx, st, func(w *siyuan.Writer) (err error) {
		if len(all) == 1 {
			sent, err = w.UpdateBlock(ctx, all[0].ID, all[0].DataType, all[0].Data)
		} else {
			sent, err = w.UpdateBlocks(ctx, all)
		}
		return err
	})
	if err != nil && !answered(err) {
		return nil, err
	}
	byBlock := map[siyuan.ID][]siyuan.Tx{}
	for _, t := range sent {
		for _, op := range t.Do {
			byBlock[op.ID] = append(byBlock[op.ID], siyuan.Tx{Do: []siyuan.Op{op}})
		}
	}
	if len(all) == 1 {
		byBlock[all[0].ID] = sent
	}
	return byBlock, nil
}

// updateStep is the step of an update: the text as it is now, and the words it
// will have.
func (tx *Tx) updateStep(ctx context.Context, revisions []revision) (Step, error) {
	st := Step{Op: "block.update", ID: revisions[0].asked.ID()}
	for _, r := range revisions {
		before := r.before
		if r.write.ID != r.asked.id {
			var err error
			if before, err = tx.s.g.r.BlockKramdown(ctx, r.write.ID, siyuan.KramdownMarkdown); err != nil {
				return st, err
			}
		}
		after := Mark{Look: LookWords, ID: string(r.write.ID), After: wordsMark(r.write.Data)}
		if r.write.DataType == siyuan.DOM {
			after.Look, after.After = LookDOMWords, wordsMark(domText(r.write.Data))
		}
		st.Marks = append(st.Marks, Mark{Look: LookText, ID: string(r.write.ID), Before: textMark(before)}, after)
		st.More = st.More || r.task != 0 || r.loose
	}
	return st, nil
}

// settle reads an updated block back, and puts back attributes that could not
// go with the text.
func (tx *Tx) settle(ctx context.Context, r revision, sent []siyuan.Tx) error {
	if err := tx.settleText(ctx, r, sent); err != nil {
		return err
	}
	if err := tx.settleAttrs(ctx, r.write.ID, r.attrs); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.kept)) {
		if err := tx.settleAttrs(ctx, id, r.kept[id]); err != nil {
			return err
		}
	}
	if r.task == 0 {
		return nil
	}
	mark := Mark{LookTask, r.asked.ID(), taskMark(taskMarker(r.before)), taskMark(string(r.task))}
	err := tx.step(ctx, Step{Op: "block.task", ID: r.asked.ID(), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
		_, err := w.UpdateTaskMarker(ctx, r.asked.id, r.task)
		return err
	})
	if err != nil {
		return err
	}
	after, err := tx.s.g.r.BlockKramdown(ctx, r.asked.id, siyuan.KramdownMarkdown)
	if err == nil && !strings.EqualFold(taskMarker(after), string(r.task)) {
		return notPersisted("SiYuan reported the task of %s as changed, but it is not.", r.asked.ID())
	}
	return err
}

func (tx *Tx) settleText(ctx context.Context, r revision, sent []siyuan.Tx) error {
	notThere := func() error {
		return notPersisted("SiYuan reported block %s as updated, but it does not show the new text.", string(r.write.ID))
	}
	want := sentDOM(sent)
	if want == "" {
		after, err := tx.s.g.r.BlockKramdown(ctx, r.asked.id, siyuan.KramdownMarkdown)
		if err != nil {
			return err
		}
		if body(after) == body(r.before) {
			return notThere()
		}
		return nil
	}
	have, err := tx.readDOM(ctx, r)
	if errors.Is(err, siyuan.Missing) {
		return notThere()
	}
	if err != nil {
		return err
	}
	if domText(have) != domText(want) {
		return notThere()
	}
	return nil
}

// body is kramdown without attribute lists: their order is random and their
// times change.
func body(kramdown string) string { return ialPattern.ReplaceAllString(kramdown, "") }

// readDOM is the block as stored; of a document its children, as the kernel's
// answer to an update has them.
func (tx *Tx) readDOM(ctx context.Context, r revision) (string, error) {
	if !r.isDoc {
		return tx.s.g.r.BlockDOM(ctx, r.write.ID)
	}
	children, err := tx.s.g.r.ChildBlocks(ctx, r.write.ID)
	if err != nil {
		return "", err
	}
	ids := make([]siyuan.ID, len(children))
	for i, c := range children {
		ids[i] = c.ID
	}
	doms, err := tx.s.g.r.BlockDOMs(ctx, ids)
	var all strings.Builder
	for _, id := range ids {
		all.WriteString(doms[id] + " ")
	}
	return all.String(), err
}

// settleAttrs compares the attributes of a block with what they must be, and
// writes those that are missing.
func (tx *Tx) settleAttrs(ctx context.Context, id siyuan.ID, want siyuan.Attrs) error {
	if len(want) == 0 {
		return nil
	}
	have, err := tx.s.g.r.BlockAttrs(ctx, id)
	if err != nil {
		return err
	}
	if includes(have, want) {
		return nil
	}
	then := maps.Clone(have)
	maps.Copy(then, want)
	mark := Mark{LookAttrs, string(id), attrsMark(have), attrsMark(then)}
	err = tx.step(ctx, Step{Op: "block.attrs", ID: string(id), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
		return w.SetBlockAttrs(ctx, id, want)
	})
	if err != nil {
		return err
	}
	if have, err = tx.s.g.r.BlockAttrs(ctx, id); err != nil {
		return err
	}
	if !includes(have, want) {
		return notPersisted("SiYuan did not keep the attributes of block %s.", string(id))
	}
	return nil
}
