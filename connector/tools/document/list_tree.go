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
	depth := tools.Or(in.MaxDepth, defaultDepth)
	out := catalogue.DocumentListTreeOut{Notebook: in.Notebook, Path: in.Path, MaxDepth: depth}
	nb, err := r.Session.Notebook(in.Notebook, contract.Read)
	if err != nil {
		return out, err
	}
	nodes, more, err := r.Session.Tree(ctx, nb, in.Path, depth)
	if err != nil {
		return out, err
	}
	shown, whole := fit(nodes, r.Budget)
	deeper := false
	out.Tree, deeper = treeNodes(nodes, "", shown)
	out.Truncated = more || !whole || deeper
	switch {
	case more:
		out.Hint = "There are more documents than one tree looks at; call again with the path of a part."
	case !whole:
		out.Hint = "The tree is larger than one answer may be. Call again with the path of a node that has childrenTruncated; get_child_docs, here for a document and in the notebook tool for its top, lists one level by page."
	case deeper:
		out.Hint = "Nodes with childrenTruncated go deeper; call again with their path, or with a larger maxDepth."
	}
	return out, nil
}

// fit says how many children of each node, by its id, and of the top, by "", an
// answer has room for, one level after the other.
func fit(top []guard.Node, left int) (shown map[string]int, whole bool) {
	type list struct {
		of    string
		nodes []guard.Node
	}
	shown = map[string]int{}
	for level := []list{{"", top}}; len(level) > 0; {
		var next []list
		for _, l := range level {
			for _, n := range l.nodes {
				left -= catalogue.Chars(treeNode(n)) + 1
				if left < 0 && len(shown) > 0 {
					return shown, false
				}
				shown[l.of]++
				if len(n.Children) > 0 {
					next = append(next, list{n.ID, n.Children})
				}
			}
		}
		level = next
	}
	return shown, true
}

// treeNode is a node without what is below it, as large as it can be.
func treeNode(n guard.Node) catalogue.TreeNode {
	return catalogue.TreeNode{ID: n.ID, Name: n.Name, Icon: n.Icon, Path: n.Path, ChildCount: n.ChildCount, ChildrenTruncated: n.ChildCount > 0}
}

func treeNodes(nodes []guard.Node, of string, shown map[string]int) (out []catalogue.TreeNode, deeper bool) {
	out = make([]catalogue.TreeNode, shown[of])
	for i, n := range nodes[:shown[of]] {
		t := treeNode(n)
		if shown[n.ID] > 0 {
			var below bool
			t.Children, below = treeNodes(n.Children, n.ID, shown)
			deeper = deeper || below
		}
		if len(t.Children) == n.ChildCount {
			t.ChildCount, t.ChildrenTruncated = 0, false
		}
		deeper = deeper || t.ChildrenTruncated
		out[i] = t
	}
	return out, deeper
}
