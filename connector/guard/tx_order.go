package guard

import (
	"context"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// manualSort is the kernel's number for the order by hand.
const manualSort = 6

// Reordered is what a change of order did.
type Reordered struct {
	Before, After []string // ids of the documents right below the place
	SortMode      bool     // the notebook had to be switched to the order by hand
}

// Reorder puts the documents right below a place in an order, which must name
// all of them. The notebook of the place must be a target of the intent.
func (tx *Tx) Reorder(ctx context.Context, p Place, order []Doc) (done Reordered, err error) {
	if err := firstErr(tx.coversTree(p.Notebook), p.Notebook.Reachable()); err != nil {
		return done, err
	}
	if _, p, err = tx.current(ctx, nil, p); err != nil {
		return done, err
	}
	if done.Before, err = tx.level(ctx, p); err != nil {
		return done, err
	}
	if err := checkComplete(done.Before, order); err != nil {
		return done, err
	}
	want, paths := make([]string, len(order)), make([]string, len(order))
	for i, d := range order {
		want[i], paths[i] = d.ID(), p.folder()+"/"+d.ID()+".sy"
	}
	if slices.Equal(done.Before, want) {
		done.After = want
		return done, nil
	}
	if err := tx.reorders(ctx, p, Order{Before: done.Before, After: want}); err != nil {
		return done, err
	}
	const again = "the whole order is set, so setting it again changes nothing"
	err = tx.step(ctx, Step{Op: "document.reorder", ID: string(p.id()), Repeatable: again}, func(w *siyuan.Writer) error {
		return w.ChangeSort(ctx, p.Notebook.id, paths)
	})
	if err != nil && !answered(err) {
		return done, err
	}
	if done.After, err = tx.level(ctx, p); err != nil || slices.Equal(done.After, want) {
		return done, err
	}
	err = tx.step(ctx, Step{Op: "notebook.conf", ID: p.Notebook.ID(), Repeatable: again}, func(w *siyuan.Writer) error {
		_, err := w.SetNotebookConf(ctx, p.Notebook.id, map[string]any{"sortMode": manualSort})
		return err
	})
	if err != nil && !answered(err) {
		return done, err
	}
	done.SortMode = true
	if done.After, err = tx.level(ctx, p); err == nil && !slices.Equal(done.After, want) {
		err = notPersisted("SiYuan reported the documents as reordered, but they are not.")
	}
	return done, err
}

// level lists the documents right below a place, in the notebook's order.
func (tx *Tx) level(ctx context.Context, p Place) ([]string, error) {
	nodes, err := tx.s.DocsIn(ctx, p)
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID
	}
	return ids, err
}

// checkComplete demands that an order names every document there is, once.
func checkComplete(there []string, order []Doc) error {
	var given []string
	for _, d := range order {
		if slices.Contains(given, d.ID()) {
			return contract.Fail(contract.InvalidTarget, "Document %s is named twice.", d.ID())
		}
		if !slices.Contains(there, d.ID()) {
			return contract.Fail(contract.InvalidTarget, "Document %s is not right below that place.", d.ID()).
				WithDetail(map[string]any{"documents": there})
		}
		given = append(given, d.ID())
	}
	if missing := without(there, given); len(missing) > 0 {
		return contract.Fail(contract.InvalidTarget, "The order leaves out %d of the %d documents there.", len(missing), len(there)).
			WithHint("Name every document right below the place.").
			WithDetail(map[string]any{"documents": there, "missing": missing})
	}
	return nil
}
