package guard

import (
	"context"
	"maps"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// loss is what a block inside a rewritten one would lose.
type loss struct {
	Block      siyuan.ID   `json:"block"`
	Attributes []string    `json:"attributes,omitempty"`
	CitedBy    []siyuan.ID `json:"cited_by,omitempty"` // blocks whose references would lead nowhere
}

// keepInside is keepIn for Markdown.
func (tx *Tx) keepInside(ctx context.Context, r *revision, text string) error {
	return tx.keepIn(ctx, r, ialsByID(r.before), ialsByID(text), text)
}

// keepIn demands that every block inside that has attributes of its own or is
// cited is in the new content, by id and with its attributes: the kernel makes
// blocks without an id anew. The error names all that would be lost.
func (tx *Tx) keepIn(ctx context.Context, r *revision, stored, given map[siyuan.ID]siyuan.Attrs, text string) error {
	r.kept = map[siyuan.ID]siyuan.Attrs{}
	losses := map[siyuan.ID]*loss{}
	var gone []siyuan.ID
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if id == r.write.ID {
			continue
		}
		now, there := given[id]
		own := mergeAttrs(stored[id], nil)
		delete(own, "colgroup") // the kernel works out the columns of a table itself
		if there {
			r.kept[id] = own
		} else {
			gone = append(gone, id)
		}
		shown := maps.Clone(own) // what databases wrote is not shown, and comes back by itself
		maps.DeleteFunc(shown, func(k, _ string) bool { return protected(k) })
		if !includes(now, shown) || !there && len(own) > 0 {
			losses[id] = &loss{Block: id, Attributes: slices.Sorted(maps.Keys(own))}
		}
	}
	if err := tx.citations(ctx, stored, gone, text, losses); err != nil || len(losses) == 0 {
		return err
	}
	all := make([]*loss, 0, len(losses))
	for _, id := range slices.Sorted(maps.Keys(losses)) {
		all = append(all, losses[id])
	}
	what := "its attributes " + strings.Join(all[0].Attributes, ", ")
	if len(all[0].Attributes) == 0 {
		what = "the references to it"
	}
	return contract.Fail(contract.WouldLoseAttrs, "Block %s inside %s would lose %s.", all[0].Block, r.write.ID, what).
		WithDetail(map[string]any{"blocks": all}).
		WithHint("Update those blocks by themselves, or send their attribute lists, with ids, as block.get_kramdown shows them.")
}

// citedAtOnce bounds the ids of one statement.
const citedAtOnce = 256

// citations adds the blocks that would be gone although something cites them:
// readable blocks outside of the rewritten one, or its own new text.
func (tx *Tx) citations(ctx context.Context, inside map[siyuan.ID]siyuan.Attrs, gone []siyuan.ID, text string, losses map[siyuan.ID]*loss) error {
	cite := func(target, by siyuan.ID) {
		if losses[target] == nil {
			losses[target] = &loss{Block: target}
		}
		losses[target].CitedBy = append(losses[target].CitedBy, by)
	}
	for batch := range slices.Chunk(gone, citedAtOnce) {
		rows, err := tx.s.refRows(ctx, "def_block_id IN ("+sqlList(batch)+")")
		if err != nil {
			return err
		}
		for _, row := range rows {
			by := siyuan.ID(row.Text("block_id"))
			if _, within := inside[by]; !within {
				cite(siyuan.ID(row.Text("def_block_id")), by)
			}
		}
	}
	for _, target := range unique(append(firstGroup(refTarget, text), firstGroup(domTarget, text)...)) {
		if slices.Contains(gone, target) {
			cite(target, target)
		}
	}
	return nil
}
