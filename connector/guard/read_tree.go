package guard

import (
	"context"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/contract"
)

// Node is a document in a tree.
type Node struct {
	ID, Name, Icon, Path string
	Children             []Node
	ChildCount           int  // documents right below
	Cut                  bool // children exist and are not in Children
}

// maxNodes is how many documents a tree looks at.
const maxNodes = 5000

// Tree lists the documents below a storage path, "/" for the whole notebook, to
// a depth, by title: the index is asked once, and it does not know SiYuan's own
// order. more says that there are more documents than are looked at.
func (s *Session) Tree(ctx context.Context, n Notebook, storage string, depth int) (nodes []Node, more bool, err error) {
	place, err := s.PlaceAt(ctx, n, storage, contract.Read)
	if err != nil {
		return nil, false, err
	}
	where, err := s.below([]Place{place})
	if err != nil {
		return nil, false, err
	}
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT id, box, path, content, ial, updated FROM blocks WHERE type = 'd' AND id <> box AND (%s) ORDER BY path, id, updated DESC LIMIT %d", where, maxNodes+1))
	if err != nil {
		return nil, false, err
	}
	below := map[string][]Node{} // by the folder of the storage path
	seen := map[string]bool{}    // the index may have a document twice for a while: before and after a change
	for _, r := range found[:min(len(found), maxNodes)] {
		if seen[r.Text("id")] {
			continue
		}
		seen[r.Text("id")] = true
		node := Node{ID: r.Text("id"), Name: withoutZWSP(r.Text("content")), Icon: iconOf(r.Text("ial")), Path: r.Text("path")}
		folder := strings.TrimSuffix(path.Dir(node.Path), "/")
		below[folder] = append(below[folder], node)
	}
	top := ""
	if place.Doc != nil {
		top = place.folder()
	}
	return branch(below, top, depth), len(found) > maxNodes, nil
}

// branch puts together what is in a folder, to a depth.
func branch(below map[string][]Node, folder string, depth int) []Node {
	nodes := below[folder]
	slices.SortFunc(nodes, func(a, b Node) int {
		if c := strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	for i, n := range nodes {
		in := strings.TrimSuffix(n.Path, ".sy")
		nodes[i].ChildCount = len(below[in])
		switch {
		case len(below[in]) == 0:
		case depth <= 1:
			nodes[i].Cut = true
		default:
			nodes[i].Children = branch(below, in, depth-1)
		}
	}
	return nodes
}

var iconAttr = regexp.MustCompile(`(?:^|\s)icon="([^"]*)"`)

// iconOf is the icon in an attribute list of the index.
func iconOf(ial string) string {
	if m := iconAttr.FindStringSubmatch(ial); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}
