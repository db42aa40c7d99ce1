package fs

import (
	"context"
	"path"
	"slices"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	"siyuan-broker/contract/fspath"
	catalogue "siyuan-broker/contract/tools"
)

const (
	listed    = 200 // entries on a page of ls
	treeDepth = 3
	treeDocs  = 5000 // documents one tree looks at
)

func ls(ctx context.Context, r *tools.Request, in catalogue.FSLsIn) (out catalogue.FSLsOut, err error) {
	at, err := resolve(ctx, r.Session, "path", in.Path, contract.Read)
	if err != nil {
		return out, err
	}
	items, err := items(ctx, r.Session, at)
	if err != nil {
		return out, err
	}
	from, to, page := catalogue.Page(len(items), tools.Or(in.Page, 1), tools.Or(in.PageSize, listed))
	out.Path = at.path.String()
	out.Items, out.PageOut = catalogue.Shrink(items[from:to], page, r.Budget)
	out.Hint = catalogue.NextPage(out.PageOut)
	return out, nil
}

func items(ctx context.Context, s *guard.Session, at spot) ([]catalogue.FSItem, error) {
	list := []catalogue.FSItem{}
	if at.isRoot() {
		for _, n := range s.Notebooks() {
			item := catalogue.FSItem{Name: n.Name(), Path: notebookPath(s, n).String(), Closed: n.Reachable() != nil}
			if !item.Closed {
				item.Children = n.TopDocs()
			}
			list = append(list, item)
		}
		return list, nil
	}
	docs, err := s.DocsIn(ctx, *at.place)
	if err != nil {
		return nil, err
	}
	shared := repeated(docs, func(d guard.Node) string { return d.Name })
	for _, d := range docs {
		list = append(list, catalogue.FSItem{Name: d.Name, Path: child(at.path, d.Name, d.ID, shared).String(), Children: d.ChildCount})
	}
	return list, nil
}

// repeated are the names that several have.
func repeated[T any](list []T, name func(T) string) map[string]bool {
	seen, twice := map[string]bool{}, map[string]bool{}
	for _, v := range list {
		twice[name(v)] = twice[name(v)] || seen[name(v)]
		seen[name(v)] = true
	}
	return twice
}

// child is the path of a document below another: by title, or by id where the
// title does not tell it from its siblings.
func child(above fspath.Path, title, id string, shared map[string]bool) fspath.Path {
	if shared[title] || title == "" {
		return fspath.Path{id}
	}
	return above.Child(title)
}

// node is a notebook or document of a tree that is being put together.
type node struct {
	name  string
	id    string
	path  fspath.Path
	below []*node
	shown int // of below
}

func tree(ctx context.Context, r *tools.Request, in catalogue.FSTreeIn) (out catalogue.FSTreeOut, err error) {
	s, depth := r.Session, tools.Or(in.MaxDepth, treeDepth)
	at, err := resolve(ctx, s, "path", in.Path, contract.Read)
	if err != nil {
		return out, err
	}
	top := &node{path: at.path}
	folders := map[string]*node{} // by notebook and storage path of what is below
	places, err := places(s, at)
	if err != nil {
		return out, err
	}
	for _, p := range places {
		n := top
		if at.isRoot() {
			n = &node{name: p.Notebook.Name(), path: notebookPath(s, p.Notebook)}
			top.below = append(top.below, n)
		}
		folders[p.Notebook.ID()+strings.TrimSuffix(strings.TrimSuffix(p.Storage(), ".sy"), "/")] = n
	}
	docs, more, err := s.DocsBelow(ctx, places, treeDocs)
	if err != nil {
		return out, err
	}
	hang(folders, docs)
	for _, n := range folders {
		n.order()
	}
	cut := show(top, depth+1, r.Budget)
	out = catalogue.FSTreeOut{Path: at.path.String(), Tree: top.children(), MaxDepth: depth}
	switch {
	case more:
		out.Truncated = true
		out.Hint = "There are more documents than one tree looks at; call again with a deeper path."
	case cut:
		out.Truncated = true
		out.Hint = "The tree is larger than one answer may be; where count is set, call again with that path, or list it with fs.ls."
	}
	return out, nil
}

// places are where to look for what is below a spot.
func places(s *guard.Session, at spot) ([]guard.Place, error) {
	if !at.isRoot() {
		return []guard.Place{*at.place}, at.place.Notebook.Reachable()
	}
	var all []guard.Place
	for _, n := range s.Notebooks() {
		if n.Reachable() == nil {
			all = append(all, guard.Place{Notebook: n})
		}
	}
	return all, nil
}

// hang puts documents below the folders they are in. Those of a folder that is
// not known have lost their parent in the index and are left to the next call.
func hang(folders map[string]*node, docs []guard.DocEntry) {
	slices.SortFunc(docs, func(a, b guard.DocEntry) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	for _, d := range docs {
		above, ok := folders[d.Notebook.ID()+strings.TrimSuffix(path.Dir(d.Path), "/")]
		if !ok {
			continue
		}
		n := &node{name: d.Title, id: d.ID}
		above.below = append(above.below, n)
		folders[d.Notebook.ID()+strings.TrimSuffix(d.Path, ".sy")] = n
	}
}

// order sorts what is right below by title.
func (n *node) order() {
	slices.SortFunc(n.below, func(a, b *node) int {
		if c := strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
}

// show decides what of a tree is shown, level by level, until the depth or the
// characters are used up; cut says that it was the characters.
func show(top *node, depth, left int) (cut bool) {
	for level := []*node{top}; len(level) > 0 && depth > 0; depth-- {
		var next []*node
		for _, n := range level {
			shared := repeated(n.below, func(b *node) string { return b.name })
			for _, b := range n.below {
				if b.path == nil {
					b.path = child(n.path, b.name, b.id, shared)
				}
				left -= catalogue.Chars(catalogue.FSTreeNode{Name: b.name, Path: b.path.String(), Count: len(b.below)}) + len(`,"children":[]`)
				if left < 0 {
					return true
				}
				n.shown++
				next = append(next, b)
			}
		}
		level = next
	}
	return false
}

func (n *node) children() []catalogue.FSTreeNode {
	list := []catalogue.FSTreeNode{}
	for _, b := range n.below[:n.shown] {
		out := catalogue.FSTreeNode{Name: b.name, Path: b.path.String(), Count: len(b.below) - b.shown}
		if b.shown > 0 {
			out.Children = b.children()
		}
		list = append(list, out)
	}
	return list
}
