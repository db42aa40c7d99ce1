package guard

import (
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/contract"
)

// The kernel puts whatever it is given between the items of a list: a paragraph
// becomes a bare child of the list, which no Markdown can say, an item of
// another kind keeps its own marker, and of several items beside an item only
// the first is stored. So what goes into a list is checked here.

// itemNames name the kinds of list item for people, with an example.
var itemNames = map[string]string{"u": `bulleted, such as "- text"`, "o": `numbered, such as "1. text"`, "t": `tasks, such as "- [ ] text"`}

// checkItems refuses a text that would damage the list it goes into. many says
// that the kernel would store several items.
func checkItems(t Text, c *container, many bool) error {
	kind := c.itemKind()
	if kind == "" {
		return nil
	}
	items, ok := markdownItems(t.Data)
	if t.DOM {
		items, ok = domItems(t.Data)
	}
	hint := "The items of this list are " + itemNames[kind] + "."
	switch {
	case !ok:
		return contract.Fail(contract.InvalidTarget, "The place is inside list %s, and a list holds only items.", string(c.id)).
			WithHint("%s To write beside the list, name the list itself as previousID or nextID.", hint)
	case len(items) > 1 && !many:
		return contract.Fail(contract.InvalidTarget, "The text has %d items, and SiYuan would store one of them in list %s.", len(items), string(c.id)).
			WithHint("Send each item as an entry of blocks, or use block.append or block.prepend with the list as parentID.")
	}
	for _, k := range items {
		if k != kind {
			return contract.Fail(contract.InvalidTarget, "The item is of another kind than those of list %s.", string(c.id)).WithHint("%s", hint)
		}
	}
	return nil
}

// markdownItems are the kinds of the items of a text; ok is false when it is not
// one list.
func markdownItems(text string) (kinds []string, ok bool) {
	if topBlocks(text) != 1 {
		return nil, false
	}
	outsideFences(text, func(part string) string {
		for line := range strings.Lines(part) {
			if topLevelItem.MatchString(line) {
				kinds = append(kinds, markerKind(line))
			}
		}
		return part
	})
	return kinds, len(kinds) > 0 && listLine.MatchString(strings.TrimLeft(text, "\n"))
}

// markerKind is the kind of a list item by its first line.
func markerKind(line string) string {
	switch m := itemLine.FindStringSubmatch(line); {
	case m != nil && m[1] != "":
		return "t"
	case line[0] >= '0' && line[0] <= '9':
		return "o"
	}
	return "u"
}

// domItems are the kinds of the items of a DOM whose blocks are all list items.
func domItems(dom string) (kinds []string, ok bool) {
	ok = true
	walkDOM(dom, func(t html.Token, _ string, in []domElement) {
		if t.Type != html.StartTagToken || len(in) > 0 {
			return
		}
		e := element(t)
		ok = ok && e.is("NodeListItem")
		kinds = append(kinds, e.attrs["data-subtype"])
	})
	return kinds, ok && len(kinds) > 0
}
