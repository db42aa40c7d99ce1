package text

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/88250/lute/ast"
	"github.com/88250/lute/parse"
	"github.com/88250/lute/render"
)

// Spec is the version of the .sy format this package writes.
const Spec = "2"

// Encode renders a document as the JSON of a .sy file.
func Encode(root *ast.Node) []byte {
	e := engine()
	c := Clone(root)
	c.Spec = Spec
	tree := &parse.Tree{Root: c, ID: c.ID, Context: &parse.Context{ParseOption: e.ParseOptions}}
	return render.NewJSONRenderer(tree, e.RenderOptions, e.ParseOptions).Render()
}

// Decode reads the JSON of a .sy file.
func Decode(sy []byte) (*ast.Node, error) {
	root := &ast.Node{}
	if err := json.Unmarshal(sy, root); err != nil {
		return nil, fmt.Errorf("text: decode document: %w", err)
	}
	adopt(root)
	if root.Type != ast.NodeDocument {
		return nil, fmt.Errorf("text: decode document: root is a %s", root.Type)
	}
	if root.ID == "" {
		root.ID = root.IALAttr("id")
	}
	return root, nil
}

// adopt turns the plain fields json.Unmarshal filled into a linked tree.
func adopt(n *ast.Node) {
	n.Type, n.Tokens, n.KramdownIAL = ast.Str2NodeType(n.TypeStr), []byte(n.Data), ialOf(n.Properties)
	kids := n.Children
	n.Children, n.Properties, n.Data, n.TypeStr = nil, nil, "", ""
	for _, k := range kids {
		adopt(k)
		n.AppendChild(k)
	}
}

// ialOf lists attributes in name order: the file format has no order.
func ialOf(properties map[string]string) (ial [][]string) {
	for k, v := range properties {
		ial = append(ial, []string{k, v})
	}
	slices.SortFunc(ial, func(a, b []string) int {
		if a[0] < b[0] {
			return -1
		}
		return 1
	})
	return ial
}

// Clone copies a block and everything in it, detached.
func Clone(n *ast.Node) *ast.Node {
	c := *n
	c.Parent, c.Previous, c.Next, c.FirstChild, c.LastChild, c.Children = nil, nil, nil, nil, nil, nil
	c.Tokens = slices.Clone(n.Tokens)
	if n.ListData != nil {
		ld := *n.ListData
		c.ListData = &ld
	}
	c.KramdownIAL = make([][]string, len(n.KramdownIAL))
	for i, kv := range n.KramdownIAL {
		c.KramdownIAL[i] = slices.Clone(kv)
	}
	for k := n.FirstChild; k != nil; k = k.Next {
		c.AppendChild(Clone(k))
	}
	return &c
}

// Blocks lists the blocks in root in document order, root first.
func Blocks(root *ast.Node) (blocks []*ast.Node) {
	ast.Walk(root, func(n *ast.Node, entering bool) ast.WalkStatus {
		if entering && n.ID != "" && n.IsBlock() {
			blocks = append(blocks, n)
		}
		return ast.WalkContinue
	})
	return blocks
}

// ChildBlocks lists the blocks directly in n.
func ChildBlocks(n *ast.Node) (kids []*ast.Node) {
	for c := n.FirstChild; c != nil; c = c.Next {
		if c.ID != "" && c.IsBlock() {
			kids = append(kids, c)
		}
	}
	return kids
}

// NextBlock is the following sibling block, nil at the end.
func NextBlock(n *ast.Node) *ast.Node {
	for s := n.Next; s != nil; s = s.Next {
		if s.ID != "" && s.IsBlock() {
			return s
		}
	}
	return nil
}

// PreviousBlock is the preceding sibling block, nil at the start.
func PreviousBlock(n *ast.Node) *ast.Node {
	for s := n.Previous; s != nil; s = s.Previous {
		if s.ID != "" && s.IsBlock() {
			return s
		}
	}
	return nil
}

// Section lists the siblings a heading governs: up to the next heading of the
// same or a higher rank.
func Section(heading *ast.Node) (section []*ast.Node) {
	for s := NextBlock(heading); s != nil; s = NextBlock(s) {
		if s.Type == ast.NodeHeading && s.HeadingLevel <= heading.HeadingLevel {
			break
		}
		section = append(section, s)
	}
	return section
}

// LogicalParent is the heading whose section holds n, else the block around it.
// The index and breadcrumbs use it; siblings and moves use the real parent.
func LogicalParent(n *ast.Node) *ast.Node {
	for s := PreviousBlock(n); s != nil; s = PreviousBlock(s) {
		if s.Type == ast.NodeHeading && (n.Type != ast.NodeHeading || s.HeadingLevel < n.HeadingLevel) {
			return s
		}
	}
	return n.Parent
}

// SetID gives a block another id.
func SetID(n *ast.Node, id string) {
	n.ID = id
	n.SetIALAttr("id", id)
}

var (
	taskMarker = regexp.MustCompile(`data-task="[^"]*"`)
	idPattern  = regexp.MustCompile(`^\d{14}-[0-9a-z]{7}$`)
	ialID      = regexp.MustCompile(`(?m)\{:[^}\n]*\bid="([^"]*)"`)
)

// ValidID reports whether s has the shape of a SiYuan id.
func ValidID(s string) bool { return idPattern.MatchString(s) }

func checkIDs(markdown string) error {
	for _, m := range ialID.FindAllStringSubmatch(markdown, -1) {
		if !ValidID(m[1]) {
			return fmt.Errorf("%w: malformed id %q", ErrUnparsable, m[1])
		}
	}
	return nil
}

// WithTaskMarker copies a task list item with another character between its
// brackets.
func WithTaskMarker(item *ast.Node, marker byte) (*ast.Node, error) {
	dom := DOM(item)
	at := taskMarker.FindStringIndex(dom)
	if at == nil {
		return nil, fmt.Errorf("%w: no task list item", ErrUnparsable)
	}
	blocks, err := DOMToBlocks(dom[:at[0]] + `data-task="` + string(rune(marker)) + `"` + dom[at[1]:])
	if err != nil || len(blocks) == 0 {
		return nil, fmt.Errorf("%w: task list item", ErrUnparsable)
	}
	if fresh := blocks[0]; fresh.Type == ast.NodeList { // a lone item is parsed into a list
		if kids := ChildBlocks(fresh); len(kids) > 0 {
			kids[0].Unlink()
			return kids[0], nil
		}
	}
	return blocks[0], nil
}
