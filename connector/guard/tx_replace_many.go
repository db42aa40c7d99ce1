package guard

import (
	"context"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// maxReplaced bounds the blocks one call looks through.
const maxReplaced = 2000

// Scope is where a replacement in many blocks looks: what is in the given blocks
// and documents, as far as it is of the given kinds.
type Scope struct {
	Blocks []Block
	Types  map[string]bool // short codes; nil: every kind that holds text
	Titles bool            // also the titles of the documents
}

// ReplaceMany makes an edit in every block of a scope that has the text. What
// cannot be edited safely is an error before anything is written, which names
// the block. It returns the ids of the blocks that changed.
func (tx *Tx) ReplaceMany(ctx context.Context, in Scope, e Edit) ([]string, error) {
	e.All = true
	for _, b := range in.Blocks {
		if err := tx.covers(b); err != nil {
			return nil, err
		}
	}
	blocks, kinds, err := tx.s.textBlocks(ctx, in)
	if err != nil {
		return nil, err
	}
	changed := []string{}
	var updates []Update
	stored, doms, err := tx.s.contents(ctx, blocks)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		kind, was := kinds[b.id], stored[b.id]
		if own, _ := cutOwnIAL(was); len(e.find(shownText(kind, own, doms[b.id]))) == 0 {
			continue
		}
		text, done, err := edited(b.id, kind, was, doms[b.id], []Edit{e})
		if err != nil {
			return nil, err
		}
		if done.Changed {
			updates = append(updates, Update{Block: b, Text: Text{Data: text}})
			changed = append(changed, b.ID())
		}
	}
	titles, err := tx.newTitles(ctx, in, e)
	if err != nil {
		return nil, err
	}
	var parts []func() error
	if len(updates) > 0 {
		parts = append(parts, func() error {
			_, err := tx.Update(ctx, updates)
			return err
		})
	}
	for _, t := range titles {
		parts = append(parts, func() error {
			if err := tx.RenameDoc(ctx, t.doc, t.title); err != nil {
				return afterSome(err, changed)
			}
			changed = append(changed, t.doc.ID())
			return nil
		})
	}
	if err := tx.All(parts...); err != nil {
		return nil, err
	}
	return changed, nil
}

// PreviewReplace counts the places that an edit would change, in all and in each
// document. A place that cannot be edited safely is among them: it ends the call
// before anything is written.
func (s *Session) PreviewReplace(ctx context.Context, in Scope, e Edit) (p contract.Preview, err error) {
	places := map[siyuan.ID]int{}
	for _, b := range in.Blocks {
		if err := s.use(b.doc.nb, contract.Read); err != nil {
			return p, err
		}
		if !in.Titles || !b.IsDoc() {
			continue
		}
		attrs, err := s.g.r.BlockAttrs(ctx, b.id)
		if err != nil {
			return p, s.vanished(err, "document", b.id)
		}
		places[b.doc.id] += len(e.find(attrs["title"]))
	}
	blocks, kinds, err := s.textBlocks(ctx, in)
	if err != nil {
		return p, err
	}
	stored, doms, err := s.contents(ctx, blocks)
	if err != nil {
		return p, err
	}
	for _, b := range blocks {
		own, _ := cutOwnIAL(stored[b.id])
		n := len(e.find(shownText(kinds[b.id], own, doms[b.id])))
		if places[b.doc.id] += n; n > 0 {
			p.Counts.Blocks++
		}
	}
	var docs []siyuan.ID
	for id, n := range places {
		if p.Counts.Places += n; n > 0 {
			docs = append(docs, id)
		}
	}
	p.Counts.Documents = len(docs)
	rows, err := s.rows(ctx, "id IN ("+sqlList(docs)+")", "hpath, id", contract.PreviewNamed)
	if err != nil {
		return p, err
	}
	p.Named = named(rows, nil)
	for i, r := range rows {
		p.Named[i].Places = places[siyuan.ID(r.ID)]
	}
	p.More = len(docs) - len(p.Named)
	return p.Clean(), nil
}

// contents are the Kramdown, as far as the caller may read it, and the DOM of
// blocks.
func (s *Session) contents(ctx context.Context, blocks []Block) (texts, doms map[siyuan.ID]string, err error) {
	ids := make([]siyuan.ID, len(blocks))
	for i, b := range blocks {
		ids[i] = b.id
	}
	if texts, err = s.kramdowns(ctx, ids, false); err != nil || len(ids) == 0 {
		return texts, nil, err
	}
	doms, err = s.g.r.BlockDOMs(ctx, ids)
	return texts, doms, err
}

// textBlocks are the blocks of a scope that may hold the text, each once, in the
// order of their documents.
func (s *Session) textBlocks(ctx context.Context, in Scope) ([]Block, map[siyuan.ID]string, error) {
	var blocks []Block
	kinds := map[siyuan.ID]string{}
	for _, b := range in.Blocks {
		text, err := s.g.r.BlockKramdown(ctx, b.id, siyuan.KramdownMarkdown)
		if err != nil {
			return nil, nil, s.vanished(err, "block", b.id)
		}
		ids := idsInOrder(text)
		if len(ids)+len(blocks) > maxReplaced {
			return nil, nil, contract.Fail(contract.TooLarge, "There are more than %d blocks to look through.", maxReplaced).
				WithHint("Name fewer documents or blocks at once.")
		}
		infos, err := s.g.r.BlockTreeInfos(ctx, ids)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			kind := infos[id].Type
			if _, twice := kinds[id]; twice || !slices.Contains(editable, kind) || in.Types != nil && !in.Types[typeCode(kind)] {
				continue
			}
			kinds[id] = kind
			blocks = append(blocks, Block{doc: b.doc, id: id})
		}
	}
	return blocks, kinds, nil
}

// idsInOrder are the blocks of a kramdown text as they stand in it.
func idsInOrder(text string) []siyuan.ID {
	var ids []siyuan.ID
	outsideFences(text, func(part string) string {
		for _, list := range ialPattern.FindAllString(part, -1) {
			if id := siyuan.ID(parseIAL(list)["id"]); id.Valid() && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return part
	})
	return ids
}

type newTitle struct {
	doc   Doc
	title string
}

func (tx *Tx) newTitles(ctx context.Context, in Scope, e Edit) (titles []newTitle, err error) {
	if !in.Titles {
		return nil, nil
	}
	for _, b := range in.Blocks {
		if !b.IsDoc() {
			continue
		}
		attrs, err := tx.s.g.r.BlockAttrs(ctx, b.id)
		if err != nil {
			return nil, tx.s.vanished(err, "document", b.id)
		}
		title := e.put(attrs["title"], e.find(attrs["title"]))
		if title == attrs["title"] {
			continue
		}
		if err := firstErr(tx.coversTree(b.doc.nb), b.doc.notRoot(), CheckTitle("r", title)); err != nil {
			return nil, err
		}
		titles = append(titles, newTitle{b.doc, title})
	}
	return titles, nil
}
