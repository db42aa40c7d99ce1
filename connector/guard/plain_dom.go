package guard

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/connector/siyuan"
)

// shownAttrs are attributes of DOM elements that depend on how and where a block
// is shown, not on what is stored.
var shownAttrs = []string{"contenteditable", "spellcheck", "draggable", "data-node-index", "updated", "refcount", "av-names", "class", "data-eof"}

// plainDOM is block DOM in one form: attributes sorted, without what depends on
// how it is shown and without the anchors that the kernel fills. Equal blocks have
// equal plain DOM, whether they come from a document or from the history.
func plainDOM(dom string) string {
	var out strings.Builder
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		if slices.ContainsFunc(in, decoration) {
			return
		}
		switch t.Type {
		case html.TextToken:
			if !slices.ContainsFunc(in, domElement.dynamic) {
				out.WriteString(withoutZWSP(t.Data))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			if decoration(element(t)) {
				return
			}
			t.Attr = slices.DeleteFunc(t.Attr, func(a html.Attribute) bool {
				return slices.Contains(shownAttrs, a.Key) || a.Val == ""
			})
			slices.SortFunc(t.Attr, func(a, b html.Attribute) int { return strings.Compare(a.Key, b.Key) })
			out.WriteString(t.String())
		}
	})
	return strings.TrimSpace(out.String())
}

// domPiece is a top-level block of a DOM.
type domPiece struct {
	id   siyuan.ID
	kind string
	dom  string
}

// domPieces takes a DOM apart.
func domPieces(dom string) []domPiece {
	var pieces []domPiece
	walkDOM(dom, func(t html.Token, raw string, in []domElement) {
		if len(in) == 0 && (t.Type == html.StartTagToken || t.Type == html.SelfClosingTagToken) {
			e := element(t)
			pieces = append(pieces, domPiece{id: siyuan.ID(e.attrs["data-node-id"]), kind: e.attrs["data-type"]})
		}
		if n := len(pieces); n > 0 {
			pieces[n-1].dom += raw
		}
	})
	return pieces
}

// thawed makes the DOM of a kept document one that can be written: SiYuan shows the
// past with texts that cannot be edited, and takes such for no text of a block.
func thawed(dom string) string {
	var out strings.Builder
	walkDOM(dom, func(t html.Token, raw string, _ []domElement) {
		e := element(t)
		if t.Type == html.StartTagToken && e.attrs["contenteditable"] == "false" && e.attrs["spellcheck"] != "" {
			setAttr(&t, "contenteditable", "true")
			raw = t.String()
		}
		out.WriteString(raw)
	})
	return out.String()
}
