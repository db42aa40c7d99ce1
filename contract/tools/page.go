package tools

// PageIn selects a page of a list.
type PageIn struct {
	Page     *int `json:"page,omitempty" min:"1" max:"1000000" doc:"Page, from 1."`
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

// CutOut says that a list ends before its end, and how to get the rest.
type CutOut struct {
	Truncated bool   `json:"truncated"`
	Hint      string `json:"hint,omitempty"`
}

// ChildDoc is a document in the list of a notebook's or document's children.
type ChildDoc struct {
	ID           string `json:"id"`
	Notebook     string `json:"notebook"`
	Path         string `json:"path"` // storage path
	HPath        string `json:"hPath"`
	Name         string `json:"name"`
	Icon         string `json:"icon,omitempty"`
	SubFileCount int    `json:"subFileCount"` // documents directly below
}

// ChildBlock is a block in the list of its parent's children.
type ChildBlock struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // short code
	SubType  string `json:"subtype,omitempty"`
	Content  string `json:"content"`  // plain text
	Markdown string `json:"markdown"` // the block's own text
}
