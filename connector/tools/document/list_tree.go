package document

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const defaultDepth = 3

func listTree(ctx context.Context, r *tools.Request, in catalogue.DocumentListTreeIn) (catalogue.DocumentListTreeOut, error) {
	depth := or(in.MaxDepth, defaultDepth)
	out := catalogue.DocumentListTreeOut{Notebook: in.Notebook, Path: in.Path, MaxDepth: depth}
	nb, err := r.Session.Notebook(in.Notebook, contract.Read)
	if err != nil {
		return out, err
	}
	nodes, cut, err := r.Session.Tree(ctx, nb, in.Path, depth)
	if err != nil {
		return out, err
	}
	deeper := false
	out.Tree, deeper = treeNodes(nodes)
	out.Truncated = cut || deeper
	switch {
	case cut:
		out.Hint = "The tree is larger than one answer may be; call again with the path of a node that has childrenTruncated, or of a part you need."
	case deeper:
		out.Hint = "Nodes with childrenTruncated go deeper; call again with their path, or with a larger maxDepth."
	}
	return out, nil
}

func treeNodes(nodes []guard.Node) (out []catalogue.TreeNode, deeper bool) {
	out = make([]catalogue.TreeNode, len(nodes))
	for i, n := range nodes {
		t := catalogue.TreeNode{ID: n.ID, Name: n.Name, Icon: n.Icon, Path: n.Path}
		if n.Cut {
			t.ChildCount, t.ChildrenTruncated, deeper = n.ChildCount, true, true
		} else if len(n.Children) > 0 {
			var below bool
			t.Children, below = treeNodes(n.Children)
			deeper = deeper || below
		}
		out[i] = t
	}
	return out, deeper
}

func or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}
