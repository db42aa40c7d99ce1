package samplekernel

import (
	"path"
	"slices"
	"sort"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func tagRoutes() map[string]route {
	return map[string]route{
		"/api/tag/getTag":              {serve: getTag},
		"/api/tag/renameTag":           {serve: renameTag, write: true},
		"/api/tag/removeTag":           {serve: removeTag, write: true},
		"/api/bookmark/getBookmark":    {serve: getBookmark, noBody: true},
		"/api/bookmark/renameBookmark": {serve: renameBookmark, write: true},
		"/api/bookmark/removeBookmark": {serve: removeBookmark, write: true},
	}
}

// tagNode is a level of the tag tree; a level that is no tag itself counts 0.
type tagNode struct {
	Name     string     `json:"name"`
	Label    string     `json:"label"`
	Children []*tagNode `json:"children"`
	Type     string     `json:"type"`
	Depth    int        `json:"depth"`
	Count    int        `json:"count"`
}

func getTag(k *Kernel, a args) (any, error) {
	mode := a.intOr("sort", 0)
	root, byLabel := &tagNode{}, map[string]*tagNode{}
	counts := k.tagCounts()
	for _, label := range sortedKeys(counts) {
		parent := root
		for i, name := range strings.Split(label, "/") {
			at := strings.Join(strings.Split(label, "/")[:i+1], "/")
			n := byLabel[at]
			if n == nil {
				n = &tagNode{Name: name, Label: at, Type: "tag", Depth: i}
				byLabel[at] = n
				parent.Children = append(parent.Children, n)
			}
			parent = n
		}
		parent.Count = counts[label]
	}
	sortTags(root, mode)
	if root.Children == nil {
		return []any{}, nil
	}
	return root.Children, nil
}

func sortTags(n *tagNode, mode int) {
	less := func(a, b *tagNode) bool { return a.Name < b.Name }
	switch mode {
	case 1, 5:
		less = func(a, b *tagNode) bool { return a.Name > b.Name }
	case sortReferences:
		less = func(a, b *tagNode) bool { return a.Count < b.Count || a.Count == b.Count && a.Name > b.Name }
	case sortReferences + 1:
		less = func(a, b *tagNode) bool { return a.Count > b.Count }
	}
	sort.SliceStable(n.Children, func(i, j int) bool { return less(n.Children[i], n.Children[j]) })
	for _, c := range n.Children {
		sortTags(c, mode)
	}
}

// eachTag calls change for every tag mark of all open notebooks that is the
// label or below it, and with the tags of documents; change says whether it did
// anything, and "" takes a document's tag away. `updated` is left alone.
func (k *Kernel) eachTag(label string, mark func(n *ast.Node, rest string) bool, ofDoc func(rest string) (string, bool)) error {
	for _, id := range sortedKeys(k.docs) {
		d, changed := k.docs[id], false
		var marks []*ast.Node
		ast.Walk(d.root, func(n *ast.Node, entering bool) ast.WalkStatus {
			if entering && n.Type == ast.NodeTextMark && n.IsTextMarkType("tag") {
				marks = append(marks, n)
			}
			return ast.WalkContinue
		})
		for _, n := range marks {
			name := strings.Trim(text.MarkText(n), "#")
			if rest, below := strings.CutPrefix(name, label); below && (rest == "" || rest[0] == '/') {
				changed = mark(n, rest) || changed
			}
		}
		var kept []string
		for _, name := range strings.Split(text.Attr(d.root, "tags"), ",") {
			if rest, below := strings.CutPrefix(name, label); below && (rest == "" || rest[0] == '/') {
				if to, does := ofDoc(rest); does {
					name, changed = to, true
				}
			}
			if name != "" {
				kept = append(kept, name)
			}
		}
		if changed {
			text.SetAttr(d.root, "tags", strings.Join(kept, ","))
		}
		if changed {
			if err := k.save(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func renameTag(k *Kernel, a args) (any, error) {
	old, err := a.needText("oldLabel")
	if err != nil {
		return nil, err
	}
	label, err := a.needText("newLabel")
	if err != nil {
		return nil, err
	}
	return nil, k.eachTag(old, func(n *ast.Node, rest string) bool {
		n.TextMarkTextContent = path.Clean(label + rest)
		return true
	}, func(rest string) (string, bool) { return path.Clean(label + rest), true })
}

// removeTag takes the mark out together with its text; tags below it stay.
func removeTag(k *Kernel, a args) (any, error) {
	label, err := a.needText("label")
	if err != nil {
		return nil, err
	}
	return nil, k.eachTag(label, func(n *ast.Node, rest string) bool {
		if rest == "" {
			n.Unlink()
		}
		return rest == ""
	}, func(rest string) (string, bool) { return "", rest == "" })
}

// getBookmark groups bookmarked blocks by label, newest labels of use aside:
// labels are sorted, blocks are in index order.
func getBookmark(k *Kernel, _ args) (any, error) {
	out := []any{}
	labels := []string{}
	byLabel := map[string][]*blockView{}
	for _, r := range k.rows("SELECT DISTINCT a.value AS label, b.* FROM attributes a JOIN blocks b ON b.id = a.block_id WHERE a.name = 'bookmark'") {
		v := viewOf(r)
		v.Depth, v.Content = 1, k.bookmarkText(v)
		if !slices.Contains(labels, r["label"]) {
			labels = append(labels, r["label"])
		}
		byLabel[r["label"]] = append(byLabel[r["label"]], v)
	}
	slices.Sort(labels)
	for _, l := range labels {
		out = append(out, map[string]any{"name": l, "blocks": byLabel[l], "type": "bookmark", "depth": 0, "count": len(byLabel[l])})
	}
	return out, nil
}

// bookmarkText is the name of a block, else its text as HTML.
func (k *Kernel) bookmarkText(v *blockView) string {
	if v.Name != "" {
		return v.Name
	}
	if p, ok := k.block(v.ID); ok && !p.node.IsContainerBlock() && p.node != p.doc.root {
		return text.InlineDOM(p.node)
	}
	return spaced(v.Content)
}

func (k *Kernel) setBookmarks(label, to string) error {
	for _, id := range sortedKeys(k.docs) {
		d, changed := k.docs[id], false
		for _, n := range text.Blocks(d.root) {
			if text.Attr(n, "bookmark") == label {
				text.SetAttr(n, "bookmark", to)
				changed = true
			}
		}
		if changed {
			if err := k.save(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func renameBookmark(k *Kernel, a args) (any, error) {
	old, err := a.needText("oldBookmark")
	if err != nil {
		return nil, err
	}
	label, err := a.needText("newBookmark")
	if err != nil {
		return nil, err
	}
	return nil, k.setBookmarks(old, label)
}

func removeBookmark(k *Kernel, a args) (any, error) {
	label, err := a.needText("bookmark")
	if err != nil {
		return nil, err
	}
	return nil, k.setBookmarks(label, "")
}
