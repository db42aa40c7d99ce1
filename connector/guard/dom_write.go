package guard

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/connector/siyuan"
)

// reissue gives the blocks of a DOM new ids, except those kept, and takes their
// ties to databases and decks away, so that pasted DOM makes blocks of its own.
func reissue(dom string, keep map[string]bool, newID func() (siyuan.ID, error)) (string, error) {
	ids := map[string]siyuan.ID{}
	var out strings.Builder
	var failed error
	walkDOM(dom, func(t html.Token, raw string, _ []domElement) {
		old := element(t).attrs["data-node-id"]
		if t.Type != html.StartTagToken && t.Type != html.SelfClosingTagToken || old == "" || keep[old] {
			out.WriteString(raw)
			return
		}
		if ids[old] == "" {
			if ids[old], failed = newID(); failed != nil {
				return
			}
		}
		t.Attr = slices.DeleteFunc(t.Attr, func(a html.Attribute) bool {
			return protected(a.Key) || a.Key == "updated"
		})
		setAttr(&t, "data-node-id", string(ids[old]))
		out.WriteString(t.String())
	})
	return out.String(), failed
}

// withRoot gives the one top-level block of a DOM its id and attributes.
func withRoot(dom, id string, attrs siyuan.Attrs) string {
	var out strings.Builder
	done := false
	walkDOM(dom, func(t html.Token, raw string, in []domElement) {
		if done || t.Type != html.StartTagToken || len(in) > 0 {
			out.WriteString(raw)
			return
		}
		done = true
		setAttr(&t, "data-node-id", id)
		for _, k := range slices.Sorted(maps.Keys(attrs)) {
			setAttr(&t, k, attrs[k])
		}
		out.WriteString(t.String())
	})
	return out.String()
}

func setAttr(t *html.Token, key, value string) {
	for i := range t.Attr {
		if t.Attr[i].Key == key {
			t.Attr[i].Val = value
			return
		}
	}
	t.Attr = append(t.Attr, html.Attribute{Key: key, Val: value})
}

// namedAttrs are a block's attributes besides the custom- ones.
var namedAttrs = []string{"name", "alias", "memo", "bookmark"}

// domAttrs are the blocks in a DOM with their own attributes.
func domAttrs(dom string) map[siyuan.ID]siyuan.Attrs {
	all := map[siyuan.ID]siyuan.Attrs{}
	walkDOM(dom, func(t html.Token, _ string, _ []domElement) {
		e := element(t)
		id := siyuan.ID(e.attrs["data-node-id"])
		if t.Type != html.StartTagToken && t.Type != html.SelfClosingTagToken || id == "" {
			return
		}
		own := siyuan.Attrs{}
		for k, v := range e.attrs {
			if strings.HasPrefix(k, "custom-") || slices.Contains(namedAttrs, k) {
				own[k] = v
			}
		}
		all[id] = own
	})
	return all
}
