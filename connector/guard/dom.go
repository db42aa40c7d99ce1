package guard

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/connector/siyuan"
)

// Block DOM is SiYuan's HTML of a block: a div per block with data-node-id and
// data-type, spans for inline marks. It is rewritten token by token, so that
// what is not touched stays byte for byte.

// hiddenAttrs are attributes of DOM elements that tell about other notebooks.
var hiddenAttrs = []string{"refcount", "av-names"}

// hiddenBadges are classes of elements that do.
var hiddenBadges = []string{"protyle-attr--refcount", "protyle-attr--av"}

type domElement struct {
	tag   string
	attrs map[string]string
}

func element(t html.Token) domElement {
	e := domElement{tag: t.Data, attrs: make(map[string]string, len(t.Attr))}
	for _, a := range t.Attr {
		e.attrs[a.Key] = a.Val
	}
	return e
}

func (e domElement) is(dataType string) bool {
	return slices.Contains(strings.Fields(e.attrs["data-type"]), dataType)
}

func (e domElement) hasClass(classes []string) bool {
	return slices.ContainsFunc(strings.Fields(e.attrs["class"]), func(c string) bool { return slices.Contains(classes, c) })
}

// dynamic reports whether the element is a reference with a dynamic anchor. A
// reference that does not say it is static counts as one.
func (e domElement) dynamic() bool { return e.is("block-ref") && e.attrs["data-subtype"] != "s" }

// void elements have no end tag.
var void = map[string]bool{"br": true, "col": true, "hr": true, "img": true, "input": true, "source": true, "wbr": true, "embed": true}

// walkDOM calls f for every token with its raw bytes and the elements it is in,
// the innermost last.
func walkDOM(dom string, f func(t html.Token, raw string, in []domElement)) {
	z := html.NewTokenizer(strings.NewReader(dom))
	var in []domElement
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		raw := string(z.Raw())
		t := z.Token()
		switch kind {
		case html.StartTagToken:
			f(t, raw, in)
			if !void[t.Data] {
				in = append(in, element(t))
			}
		case html.EndTagToken:
			for i := len(in) - 1; i >= 0; i-- {
				if in[i].tag == t.Data {
					in = in[:i]
					break
				}
			}
			f(t, raw, in)
		default:
			f(t, raw, in)
		}
	}
}

// maskDOM is maskText for block DOM. It also takes out reference counts and
// database names, which tell about other notebooks, and the rendered results of
// embed blocks.
func (s *Session) maskDOM(ctx context.Context, dom string) (string, error) {
	var ids []siyuan.ID
	walkDOM(dom, func(t html.Token, _ string, _ []domElement) {
		if t.Type == html.StartTagToken {
			if e := element(t); e.dynamic() {
				ids = append(ids, siyuan.ID(e.attrs["data-id"]))
			}
		}
	})
	can, err := s.showable(ctx, ids)
	if err != nil {
		return "", err
	}
	return rewriteDOM(dom, s.whole(), func(e domElement) (string, bool) {
		return Placeholder, e.dynamic() && !can[siyuan.ID(e.attrs["data-id"])]
	}), nil
}

// rewriteDOM replaces the content of the elements that fill picks, and removes
// what hiddenAttrs, hiddenBadges and rendered embeds tell. Elements go as a
// whole: an empty one would say that there is something to hide.
func rewriteDOM(dom string, whole bool, fill func(domElement) (string, bool)) string {
	var out strings.Builder
	skip, gone := -1, false // depth of the element whose content is left out; its tags too
	walkDOM(dom, func(t html.Token, raw string, in []domElement) {
		if skip >= 0 {
			if t.Type != html.EndTagToken || len(in) > skip {
				return
			}
			skip = -1
			if gone {
				return
			}
		}
		if t.Type != html.StartTagToken && t.Type != html.SelfClosingTagToken {
			out.WriteString(raw)
			return
		}
		e := element(t)
		if e.hasClass(hiddenBadges) || inEmbed(in) && e.attrs["data-node-id"] != "" {
			if t.Type == html.StartTagToken && !void[t.Data] {
				skip, gone = len(in), true
			}
			return
		}
		out.WriteString(withoutAttrs(t, raw, whole))
		if text, masked := fill(e); masked && t.Type == html.StartTagToken {
			out.WriteString(html.EscapeString(text))
			skip, gone = len(in), false
		}
	})
	return out.String()
}

func inEmbed(in []domElement) bool {
	return slices.ContainsFunc(in, func(e domElement) bool { return e.is("NodeBlockQueryEmbed") })
}

func withoutAttrs(t html.Token, raw string, whole bool) string {
	hidden := func(a html.Attribute) bool {
		return slices.Contains(hiddenAttrs, a.Key) || !whole && databaseAttr(a.Key)
	}
	if !slices.ContainsFunc(t.Attr, hidden) {
		return raw
	}
	t.Attr = slices.DeleteFunc(t.Attr, hidden)
	return t.String()
}

// unmaskDOM is unmask for block DOM.
func unmaskDOM(dom, stored string) string {
	anchors := map[string][]string{}
	for _, r := range domRefs(stored) {
		anchors[r.id] = append(anchors[r.id], r.text)
	}
	refs := domRefs(dom)
	i := -1
	var out strings.Builder
	depth := -1
	walkDOM(dom, func(t html.Token, raw string, in []domElement) {
		if depth >= 0 {
			if len(in) > depth || t.Type != html.EndTagToken {
				return
			}
			depth = -1
		}
		out.WriteString(raw)
		if t.Type != html.StartTagToken || !element(t).dynamic() {
			return
		}
		i++
		queue := anchors[refs[i].id]
		if len(queue) == 0 {
			return
		}
		anchors[refs[i].id] = queue[1:]
		if refs[i].text == Placeholder {
			out.WriteString(html.EscapeString(queue[0]))
			depth = len(in)
		}
	})
	return out.String()
}

type domRef struct{ id, text string }

// domRefs are the dynamic references of a DOM, in order, with their anchors.
func domRefs(dom string) []domRef {
	var refs []domRef
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		if t.Type == html.StartTagToken {
			if e := element(t); e.dynamic() {
				refs = append(refs, domRef{id: e.attrs["data-id"]})
			}
			return
		}
		if t.Type == html.TextToken && len(refs) > 0 && slices.ContainsFunc(in, domElement.dynamic) {
			refs[len(refs)-1].text += t.Data
		}
	})
	return refs
}

// domText is what a DOM says: its text and the content that math, HTML and embed
// blocks keep in an attribute, without badges, menus, dynamic anchors and the
// kernel's zero width spaces. It is what a write is compared by.
func domText(dom string) string {
	var out strings.Builder
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		switch t.Type {
		case html.StartTagToken, html.SelfClosingTagToken:
			e := element(t)
			if e.attrs["data-node-id"] != "" {
				out.WriteString(" ")
			}
			out.WriteString(e.attrs["data-content"] + e.attrs["data-href"] + e.attrs["data-av-id"])
			if t.Data == "br" {
				out.WriteString("\n")
			}
		case html.TextToken:
			if !slices.ContainsFunc(in, func(e domElement) bool { return e.dynamic() || decoration(e) }) {
				out.WriteString(t.Data)
			}
		}
	})
	return strings.Join(strings.Fields(withoutZWSP(out.String())), " ")
}

func decoration(e domElement) bool {
	return strings.HasPrefix(e.attrs["class"], "protyle-attr") || strings.HasPrefix(e.attrs["class"], "protyle-action") ||
		strings.HasPrefix(e.attrs["class"], "protyle-icons")
}

// domBlocks are the ids of the top-level blocks of a DOM; "" for one without.
func domBlocks(dom string) []siyuan.ID {
	var ids []siyuan.ID
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		if t.Type == html.StartTagToken && len(in) == 0 {
			ids = append(ids, siyuan.ID(element(t).attrs["data-node-id"]))
		}
	})
	return ids
}
