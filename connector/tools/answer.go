package tools

import (
	"siyuan-broker/connector/guard"
	catalogue "siyuan-broker/contract/tools"
)

// DocInfo is a document's head as answers show it; refs says that its
// references were counted.
func DocInfo(h guard.DocHead, refs bool) catalogue.DocInfo {
	info := catalogue.DocInfo{ID: h.ID, Name: h.Title, Icon: h.Icon}
	if refs {
		info.RefCount = &h.Refs
	}
	for _, d := range h.Databases {
		info.AttrViews = append(info.AttrViews, catalogue.AVInfo{ID: d.ID, Name: d.Name})
	}
	return info
}

// TextBlocks are the blocks of a document as windows of its text are cut from.
func TextBlocks(children []guard.Child) []catalogue.TextBlock {
	blocks := make([]catalogue.TextBlock, len(children))
	for i, c := range children {
		blocks[i] = catalogue.TextBlock{ID: c.ID, Type: c.Type, Markdown: c.Markdown, Level: c.Level(), Title: c.Title}
	}
	return blocks
}

// Or is an optional number, or the standard where it was left out.
func Or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}
