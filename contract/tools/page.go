package tools

import "strings"

// PageIn selects a page of a list.
type PageIn struct {
	Page     *int `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int `json:"pageSize,omitempty" min:"1" max:"200" doc:"Entries on a page; default 50."`
}

// PageOut says where in a list a page stands. Totals count only what the caller
// may read.
type PageOut struct {
	Total       int  `json:"total"`
	Page        int  `json:"page"`
	PageSize    int  `json:"pageSize"`
	PageCount   int  `json:"pageCount"` // at least 1
	HasNextPage bool `json:"hasNextPage"`
}

// DocPageIn selects a page of a list that usually is one page.
type DocPageIn struct {
	Page     *int `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int `json:"pageSize,omitempty" min:"1" max:"1000" doc:"Entries on a page."`
}

// CutOut says that a list ends before its end, and how to get the rest.
type CutOut struct {
	Truncated bool   `json:"truncated"`
	Hint      string `json:"hint,omitempty"`
}

// Piece selects where in a long document to begin.
type Piece struct {
	BlockStart *int `json:"blockStart,omitempty" min:"0" max:"1000000" doc:"First top-level block of a document, counted from 0."`
}

// PieceOut says which blocks of a long document a text has. It is empty where
// the text is the whole.
type PieceOut struct {
	BlockStart     int        `json:"blockStart,omitempty"`
	ReturnedBlocks int        `json:"returnedBlocks,omitempty"`
	TotalBlocks    int        `json:"totalBlocks,omitempty"`
	Truncated      bool       `json:"truncated,omitempty"`
	NextWindow     *NextPiece `json:"nextWindow,omitempty"`
}

// NextPiece is the input that continues a piece.
type NextPiece struct {
	BlockStart int `json:"blockStart"`
}

// Cut takes whole blocks out of a text that is given block by block, at most
// chars characters. One block that is larger still comes, alone.
func (p Piece) Cut(blocks []string, chars int) (string, PieceOut) {
	start := min(or(p.BlockStart, 0), len(blocks))
	shown := Fit(blocks[start:], len(blocks), chars, TextChars)
	out := PieceOut{BlockStart: start, ReturnedBlocks: len(shown), TotalBlocks: len(blocks)}
	if end := start + len(shown); end < len(blocks) {
		out.Truncated, out.NextWindow = true, &NextPiece{BlockStart: end}
	}
	return strings.Join(shown, ""), out
}

// ChildDoc is a document in the list of a notebook's or document's children.
type ChildDoc struct {
	ID           string `json:"id"`
	Notebook     string `json:"notebook,omitempty" full:"true"`
	Path         string `json:"path"` // storage path
	HPath        string `json:"hPath"`
	Name         string `json:"name"`
	Icon         string `json:"icon,omitempty" full:"true"`
	SubFileCount int    `json:"subFileCount"` // documents directly below
}

// ChildBlock is a block in the list of its parent's children.
type ChildBlock struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // short code
	SubType  string `json:"subtype,omitempty"`
	Content  string `json:"content,omitempty" full:"true"` // plain text
	Markdown string `json:"markdown"`                      // the block's own text
}
