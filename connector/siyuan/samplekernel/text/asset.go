package text

import (
	"slices"
	"strings"

	"github.com/88250/lute/ast"
)

// Assets lists the assets a document links to, each once, in order.
func Assets(root *ast.Node) (assets []string) {
	eachAsset(root, func(dest string) string {
		if !slices.Contains(assets, dest) {
			assets = append(assets, dest)
		}
		return dest
	})
	return assets
}

// Images lists where the images of a document are, in order and as often as they
// occur, those of the internet too.
func Images(root *ast.Node) (images []string) {
	ast.Walk(root, func(n *ast.Node, entering bool) ast.WalkStatus {
		if entering && n.Type == ast.NodeLinkDest && n.Parent != nil && n.Parent.Type == ast.NodeImage {
			images = append(images, string(n.Tokens))
		}
		return ast.WalkContinue
	})
	return images
}

// ReplaceAsset lets links to one asset point to another and reports whether
// there were any.
func ReplaceAsset(root *ast.Node, old, renamed string) (changed bool) {
	eachAsset(root, func(dest string) string {
		if dest != old {
			return dest
		}
		changed = true
		return renamed
	})
	return changed
}

func eachAsset(root *ast.Node, visit func(dest string) string) {
	ast.Walk(root, func(n *ast.Node, entering bool) ast.WalkStatus {
		if !entering {
			return ast.WalkContinue
		}
		switch {
		case n.Type == ast.NodeLinkDest && strings.HasPrefix(string(n.Tokens), "assets/"):
			n.Tokens = []byte(visit(string(n.Tokens)))
		case n.Type == ast.NodeTextMark && strings.HasPrefix(n.TextMarkAHref, "assets/"):
			n.TextMarkAHref = visit(n.TextMarkAHref)
		}
		return ast.WalkContinue
	})
}
