package timeline

import (
	"context"
	"slices"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// document proves the document of a call; nil where it names none.
func document(ctx context.Context, r *tools.Request, id string, need contract.Level) (*guard.Doc, error) {
	if id == "" {
		return nil, nil
	}
	d, err := r.Session.Doc(ctx, id, need)
	return &d, err
}

func showNode(n guard.Moment) catalogue.TimelineNode {
	out := catalogue.TimelineNode{Name: n.Name, Tag: n.Tag, Scope: "document"}
	if !n.Created.IsZero() {
		out.Created = stamp(n.Created)
	}
	if n.Doc == "" {
		out.Scope = "global"
	}
	return out
}

func listNodes(ctx context.Context, r *tools.Request, in catalogue.TimelineListNodesIn) (catalogue.TimelineListNodesOut, error) {
	out := catalogue.TimelineListNodesOut{Nodes: []catalogue.TimelineNode{}}
	d, err := document(ctx, r, in.DocumentID, contract.Read)
	if err != nil {
		return out, err
	}
	nodes, err := r.Session.Moments(ctx, d, in.Scope != "document")
	if err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(nodes), or(in.Page, 1), or(in.PageSize, pageSize))
	for _, n := range nodes[from:to] {
		out.Nodes = append(out.Nodes, showNode(n))
	}
	out.Nodes, out.PageOut = catalogue.Shrink(out.Nodes, page, r.Budget)
	return out, nil
}

func createNode(ctx context.Context, r *tools.Request, in catalogue.TimelineCreateNodeIn) (out catalogue.TimelineCreateNodeOut, err error) {
	d, err := document(ctx, r, in.DocumentID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	name := contract.PlainText(in.Name, contract.PreviewRunes)
	var n guard.Moment
	create := func(ctx context.Context, tx *guard.Tx) (err error) {
		n, err = tx.CreateMoment(ctx, name, d)
		return err
	}
	if d == nil {
		err = r.Session.WriteWorkspace(ctx, r.Intent(), contract.SwitchTimeline, create)
	} else {
		err = r.Session.Write(ctx, r.Intent(*d), create)
	}
	return catalogue.TimelineCreateNodeOut{Success: err == nil, Node: showNode(n), DocumentID: in.DocumentID}, err
}

const changesOnPage = 20

func compareNode(ctx context.Context, r *tools.Request, in catalogue.TimelineCompareNodeIn) (catalogue.TimelineCompareNodeOut, error) {
	out := catalogue.TimelineCompareNodeOut{DocumentID: in.DocumentID, Changes: []catalogue.TimelineChange{}}
	_, n, c, err := compared(ctx, r, in.DocumentID, in.Tag, contract.Read)
	if err != nil {
		return out, err
	}
	out.Node, out.NoChanges, out.Reordered = showNode(n), c.Same(), c.Reordered
	var all []catalogue.TimelineChange
	for _, b := range c.Blocks {
		change := catalogue.TimelineChange{ChangeKey: b.Key(), Status: string(b.Status), Old: b.Old, Current: b.Now, Rollbackable: rollbackable(b)}
		if b.Status != guard.BlockUnchanged {
			count(&out.Stats, change)
		} else if !in.IncludeUnchanged {
			continue
		}
		all = append(all, change)
	}
	from, to, page := catalogue.Page(len(all), or(in.Page, 1), or(in.PageSize, changesOnPage))
	out.Changes, out.PageOut = catalogue.Shrink(append(out.Changes, all[from:to]...), page, r.Budget)
	return out, nil
}

func rollbackable(b guard.BlockChange) bool { return b.Status != guard.BlockUnchanged && !b.Fixed }

// count adds the lines that are in one of a change's texts only.
func count(s *catalogue.TimelineStats, c catalogue.TimelineChange) {
	s.ChangedBlocks++
	if c.Rollbackable {
		s.RollbackableBlocks++
	}
	lines := map[string]int{}
	for line := range strings.Lines(c.Old) {
		lines[strings.TrimSuffix(line, "\n")]++
	}
	for line := range strings.Lines(c.Current) {
		if line = strings.TrimSuffix(line, "\n"); lines[line] > 0 {
			lines[line]--
			continue
		}
		s.AddedLines++
	}
	for _, n := range lines {
		s.RemovedLines += n
	}
}

// compared finds a document, a node of it and what differs.
func compared(ctx context.Context, r *tools.Request, id, tag string, need contract.Level) (d guard.Doc, n guard.Moment, c guard.Comparison, err error) {
	if d, err = r.Session.Doc(ctx, id, need); err != nil {
		return d, n, c, err
	}
	if n, err = r.Session.Moment(ctx, tag, &d); err != nil {
		return d, n, c, err
	}
	c, err = r.Session.Compare(ctx, d, n)
	return d, n, c, err
}

// node finds a node to delete, with the document that it is of.
func node(ctx context.Context, r *tools.Request, in catalogue.TimelineDeleteNodeIn) (*guard.Doc, guard.Moment, error) {
	d, err := document(ctx, r, in.DocumentID, contract.ReadWriteDelete)
	if err != nil {
		return d, guard.Moment{}, err
	}
	n, err := r.Session.Moment(ctx, in.Tag, d)
	return d, n, err
}

func previewDelete(ctx context.Context, r *tools.Request, in catalogue.TimelineDeleteNodeIn) (p contract.Preview, err error) {
	d, n, err := node(ctx, r, in)
	if err != nil {
		return p, err
	}
	p.Named = []contract.PreviewItem{{Kind: "node", Title: n.Name}}
	if d != nil {
		p.Target, err = r.Session.PreviewBlock(ctx, d.Block())
	}
	return p, err
}

func deleteNode(ctx context.Context, r *tools.Request, in catalogue.TimelineDeleteNodeIn) (out catalogue.TimelineDeleteNodeOut, err error) {
	d, n, err := node(ctx, r, in)
	if err != nil {
		return out, err
	}
	remove := func(ctx context.Context, tx *guard.Tx) error { return tx.DeleteMoment(ctx, n, d) }
	if n.Doc == "" {
		err = r.Session.WriteWorkspace(ctx, r.Intent(), contract.SwitchTimeline, remove)
	} else {
		err = r.Session.Write(ctx, r.Intent(*d), remove)
	}
	shown := showNode(n)
	return catalogue.TimelineDeleteNodeOut{Success: err == nil, Tag: n.Tag, Scope: shown.Scope, SnapshotRetained: true}, err
}

func previewRollback(ctx context.Context, r *tools.Request, in catalogue.TimelineRollbackDocumentIn) (p contract.Preview, err error) {
	d, _, c, err := compared(ctx, r, in.DocumentID, in.Tag, contract.ReadWriteDelete)
	if err != nil {
		return p, err
	}
	p.Target, err = r.Session.PreviewBlock(ctx, d.Block())
	for _, b := range c.Blocks {
		p = previewChange(p, b)
	}
	return p, err
}

// previewChange names a block that a rollback writes: by what it says now, or said.
func previewChange(p contract.Preview, b guard.BlockChange) contract.Preview {
	if b.Status == guard.BlockUnchanged {
		return p
	}
	p.Counts.Blocks++
	title := b.Now
	if b.Status == guard.BlockRemoved {
		title = b.Old
	}
	p.Named = append(p.Named, contract.PreviewItem{Kind: "block", Title: title})
	return p
}

func rollbackDocument(ctx context.Context, r *tools.Request, in catalogue.TimelineRollbackDocumentIn) (out catalogue.TimelineRollbackDocumentOut, err error) {
	d, n, _, err := compared(ctx, r, in.DocumentID, in.Tag, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	out = catalogue.TimelineRollbackDocumentOut{DocumentID: in.DocumentID, Tag: in.Tag}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		c, err := r.Session.Compare(ctx, d, n) // again, now that it is locked
		if err != nil || c.Same() {            // as after a call that was cut and is sent again
			return err
		}
		for _, b := range c.Blocks {
			if b.Status != guard.BlockUnchanged {
				out.Changed++
			}
		}
		return tx.RollbackDoc(ctx, d, c)
	})
	out.Success = err == nil
	return out, err
}

// change finds a change by its key, which says what the block is now. What was
// rolled back before, as by a call that was cut, is found as done.
func change(c guard.Comparison, key string) (b guard.BlockChange, done bool, err error) {
	i := slices.IndexFunc(c.Blocks, func(b guard.BlockChange) bool { return b.Key() == key })
	if i < 0 || c.Blocks[i].Status == guard.BlockUnchanged {
		if b, done := rolledBack(c, key); done {
			return b, true, nil
		}
		return b, false, contract.Fail(contract.StateChanged, "There is no change %q in the document any more.", key).
			WithHint("timeline.compare_node tells what differs now.")
	}
	if c.Blocks[i].Fixed {
		return b, false, contract.Fail(contract.InvalidTarget, "The block shows a database, which is for the whole workspace and is not rolled back.")
	}
	return c.Blocks[i], false, nil
}

// rolledBack reports whether the block of a key is as it was at the node.
func rolledBack(c guard.Comparison, key string) (b guard.BlockChange, done bool) {
	parts := strings.Split(key, ":")
	if len(parts) != 3 {
		return b, false
	}
	b = guard.BlockChange{Status: guard.BlockStatus(parts[0]), Was: parts[1], Is: parts[2]}
	switch b.Status {
	case guard.BlockAdded:
		return b, b.Is != "" && !slices.ContainsFunc(c.Blocks, func(x guard.BlockChange) bool { return x.Is == b.Is || x.Was == b.Is })
	case guard.BlockModified, guard.BlockRemoved:
		return b, slices.ContainsFunc(c.Blocks, func(x guard.BlockChange) bool { return x.Status == guard.BlockUnchanged && x.Was == b.Was })
	}
	return b, false
}

func previewBlock(ctx context.Context, r *tools.Request, in catalogue.TimelineRollbackBlockIn) (p contract.Preview, err error) {
	d, _, c, err := compared(ctx, r, in.DocumentID, in.Tag, contract.ReadWriteDelete)
	if err != nil {
		return p, err
	}
	b, done, err := change(c, in.ChangeKey)
	if err != nil {
		return p, err
	}
	if !done {
		p = previewChange(p, b)
	}
	p.Target, err = r.Session.PreviewBlock(ctx, d.Block())
	return p, err
}

func rollbackBlock(ctx context.Context, r *tools.Request, in catalogue.TimelineRollbackBlockIn) (out catalogue.TimelineRollbackBlockOut, err error) {
	d, n, _, err := compared(ctx, r, in.DocumentID, in.Tag, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	out = catalogue.TimelineRollbackBlockOut{DocumentID: in.DocumentID, Tag: in.Tag, ChangeKey: in.ChangeKey}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		c, err := r.Session.Compare(ctx, d, n)
		if err != nil {
			return err
		}
		b, done, err := change(c, in.ChangeKey)
		if err != nil {
			return err
		}
		if out.Status = string(b.Status); done {
			return nil
		}
		return tx.RollbackBlock(ctx, d, c, b)
	})
	out.Success = err == nil
	return out, err
}
