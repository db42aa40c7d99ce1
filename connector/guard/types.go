package guard

import "strings"

// blockType is one kind of block in the three names it goes by.
type blockType struct {
	code   string // as in SQL and for agents
	node   string // as in DOM and search results
	search string // as in the types of a search; "" where it has none
}

var blockTypes = []blockType{
	{"d", "NodeDocument", "document"}, {"h", "NodeHeading", "heading"}, {"p", "NodeParagraph", "paragraph"},
	{"l", "NodeList", "list"}, {"i", "NodeListItem", "listItem"}, {"b", "NodeBlockquote", "blockquote"},
	{"callout", "NodeCallout", "callout"}, {"s", "NodeSuperBlock", "superBlock"}, {"c", "NodeCodeBlock", "codeBlock"},
	{"m", "NodeMathBlock", "mathBlock"}, {"t", "NodeTable", "table"}, {"html", "NodeHTMLBlock", "htmlBlock"},
	{"embed", "NodeBlockQueryEmbed", "embedBlock"}, {"av", "NodeAttributeView", "databaseBlock"},
	{"iframe", "NodeIFrame", "iframeBlock"}, {"video", "NodeVideo", "videoBlock"}, {"audio", "NodeAudio", "audioBlock"},
	{"widget", "NodeWidget", "widgetBlock"}, {"tb", "NodeThematicBreak", ""},
}

func typeCode(node string) string {
	for _, t := range blockTypes {
		if t.node == node {
			return t.code
		}
	}
	return strings.ToLower(strings.TrimPrefix(node, "Node"))
}

// TypeCode is the short code of a block type given by any of its names; ok is
// false for a name that is none.
func TypeCode(name string) (code string, ok bool) {
	for _, t := range blockTypes {
		if strings.EqualFold(name, t.code) || strings.EqualFold(name, t.node) || t.search != "" && strings.EqualFold(name, t.search) {
			return t.code, true
		}
	}
	return "", false
}

// kernelTypes is a choice of short codes as the kernel's search wants it. Query
// embeds are never searched.
func kernelTypes(codes map[string]bool) map[string]bool {
	if codes == nil {
		return nil
	}
	types := map[string]bool{}
	for _, t := range blockTypes {
		if t.search != "" {
			types[t.search] = codes[t.code] && t.code != "embed"
		}
	}
	return types
}
