package guard

import (
	"context"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Node is a document in a tree.
type Node struct {
	ID, Name, Icon, Path string
	Children             []Node
	ChildCount           int  // documents right below
	Cut                  bool // children exist and are not in Children
}

// Tree limits: how many levels are listed at once, and how many documents.
const (
	maxListings = 256
	maxNodes    = 5000
)

// Tree lists the documents below a storage path, "/" for the whole notebook, to
// a depth. cut says that a limit, not the depth, left something out.
func (s *Session) Tree(ctx context.Context, n Notebook, storage string, depth int) (nodes []Node, cut bool, err error) {
	if err := s.use(n, contract.Read); err != nil {
		return nil, false, err
	}
	if err := n.Reachable(); err != nil {
		return nil, false, err
	}
	if storage != "/" {
		d, err := s.DocAt(ctx, n, storage, contract.Read)
		if err != nil {
			return nil, false, err
		}
		if storage = d.path; d.id == n.info.ID {
			storage = "/"
		}
	}
	w := treeWalk{s: s, box: n.info.ID, listings: maxListings, nodes: maxNodes}
	nodes, err = w.below(ctx, storage, depth)
	return nodes, w.cut, err
}

type treeWalk struct {
	s               *Session
	box             siyuan.ID
	listings, nodes int
	cut             bool
}

func (w *treeWalk) below(ctx context.Context, storage string, depth int) ([]Node, error) {
	w.listings--
	files, err := w.s.g.r.Docs(ctx, w.box, storage)
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, f := range files {
		if w.nodes--; w.nodes < 0 {
			w.cut = true
			break
		}
		node := Node{ID: string(f.ID), Name: f.Name, Icon: f.Icon, Path: f.Path, ChildCount: f.SubFileCount}
		switch {
		case f.SubFileCount == 0:
		case depth <= 1:
			node.Cut = true
		case w.listings <= 0:
			node.Cut, w.cut = true, true
		default:
			if node.Children, err = w.below(ctx, f.Path, depth-1); err != nil {
				return nil, err
			}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}
