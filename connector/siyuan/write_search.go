package siyuan

import "context"

// Replacement is a find-and-replace.
type Replacement struct {
	Find    string
	Replace string
	Method  SearchMethod
	IDs     []ID     // the blocks or documents to change; must not be empty
	Paths   []string // as Search.Paths
	Boxes   []ID
	Types   map[string]bool // as Search.Types
	// Kinds are the places to change, by the kernel's names (text, code,
	// docTitle, ...). The kernel replaces nothing when there is none.
	Kinds   map[string]bool
	OrderBy int
	GroupBy int
}

// FindReplace changes text in the given blocks. The kernel tells neither how
// often it replaced nor whether it failed: read back.
func (w *Writer) FindReplace(ctx context.Context, p Replacement) error {
	const path = "search/findReplace"
	if len(p.IDs) == 0 {
		return badArgument(path, "no blocks to replace in")
	}
	if len(p.Kinds) == 0 {
		return badArgument(path, "no kinds of text to replace")
	}
	types := p.Types
	if types == nil {
		types = map[string]bool{}
	}
	return exec(ctx, w, path, args{
		"k": p.Find, "r": p.Replace, "method": p.Method, "ids": p.IDs, "paths": list(p.Paths),
		"boxes": list(p.Boxes), "types": types, "replaceTypes": p.Kinds,
		"orderBy": p.OrderBy, "groupBy": p.GroupBy,
	}, slow)
}

// SearchEmbed runs the query of an embed block, over all notebooks. It is a
// write because the kernel puts the text of the results into the embed block's
// index row.
func (w *Writer) SearchEmbed(ctx context.Context, embed ID, stmt string, exclude []ID) ([]Embedded, error) {
	data, err := write[embeddedAnswer](ctx, w, "search/searchEmbedBlock", args{
		"embedBlockID": embed, "stmt": stmt, "excludeIDs": list(exclude), "headingMode": 0, "breadcrumb": false,
	}, 0)
	return data.Blocks, err
}

// RenameTag renames a label in all notebooks. A missing one is not an error.
func (w *Writer) RenameTag(ctx context.Context, from, to string) error {
	return exec(ctx, w, "tag/renameTag", args{"oldLabel": from, "newLabel": to}, slow)
}

// RemoveTag removes a label, with its text, in all notebooks.
func (w *Writer) RemoveTag(ctx context.Context, label string) error {
	return exec(ctx, w, "tag/removeTag", args{"label": label}, slow)
}

// RenameBookmark renames a bookmark in all notebooks. A missing one is not an
// error.
func (w *Writer) RenameBookmark(ctx context.Context, from, to string) error {
	return exec(ctx, w, "bookmark/renameBookmark", args{"oldBookmark": from, "newBookmark": to}, slow)
}

// RemoveBookmark removes a bookmark in all notebooks.
func (w *Writer) RemoveBookmark(ctx context.Context, label string) error {
	return exec(ctx, w, "bookmark/removeBookmark", args{"bookmark": label}, slow)
}
