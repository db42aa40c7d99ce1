package tools

import "siyuan-broker/contract"

// SearchFulltextIn is the input of search.fulltext.
type SearchFulltextIn struct {
	Query          string          `json:"query" doc:"What to look for." minlen:"1" maxlen:"8192"`
	Method         *int            `json:"method,omitempty" legacy:"true" min:"0" max:"3" doc:"0 keyword (default), 1 query syntax, 2 SQL, 3 regular expression."`
	MethodName     string          `json:"methodName,omitempty" enum:"keyword|query|query_syntax|sql|regex" doc:"Default keyword; query_syntax knows AND, OR, NOT and quotes."`
	Types          map[string]bool `json:"types,omitempty" legacy:"true" doc:"Block types to search, each true, by short code or full name; joins typeShortcodes."`
	TypeShortcodes []string        `json:"typeShortcodes,omitempty" list:"words" maxlen:"32" doc:"Block types to search: d h p l i b c m t s html embed av video audio widget."`
	Paths          []string        `json:"paths,omitempty" list:"words" maxlen:"64" doc:"Notebook ids, or notebookId/storage-path prefixes, to search in."`
	GroupBy        *int            `json:"groupBy,omitempty" min:"0" max:"1" doc:"0 flat (default), 1 by document."`
	OrderBy        *int            `json:"orderBy,omitempty" legacy:"true" min:"0" max:"7" doc:"0 by type (default), 1/2 created, 3/4 updated, 5 in the document, 6/7 relevance; odd is ascending."`
	SortBy         string          `json:"sortBy,omitempty" enum:"relevance|date|updated_desc|updated_asc|created_desc|created_asc|type" doc:"Default type."`
	Page           *int            `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize       *int            `json:"pageSize,omitempty" min:"1" max:"128" doc:"Hits on a page; default 32."`
	ParentID       string          `json:"parentId,omitempty" ref:"block" doc:"Keep only hits inside this block or document."`
	HasTags        *bool           `json:"hasTags,omitempty" doc:"Keep only blocks with tags, or only blocks without."`
	StripHTML      *bool           `json:"stripHtml,omitempty" legacy:"true" doc:"Accepted for compatibility; content is always plain."`
}

// SearchHit is one block found.
type SearchHit struct {
	ID           string `json:"id"`
	Type         string `json:"type"` // short code
	SubType      string `json:"subtype,omitempty"`
	Notebook     string `json:"notebook,omitempty" full:"true"`
	NotebookName string `json:"notebookName"`
	RootID       string `json:"rootID"`
	HPath        string `json:"hPath"`
	Content      string `json:"content"`                       // plain text around the hit
	Truncated    bool   `json:"truncated,omitempty"`           // content is not the whole block
	Updated      string `json:"updated,omitempty" full:"true"` // yyyyMMddHHmmss, home time
}

// SearchFulltextOut is the output of search.fulltext.
type SearchFulltextOut struct {
	Data        []SearchHit `json:"data"`
	Total       int         `json:"total"`
	Page        int         `json:"page"`
	PageSize    int         `json:"pageSize"`
	PageCount   int         `json:"pageCount"`
	HasNextPage bool        `json:"hasNextPage"`
	Showing     int         `json:"showing"`
	Truncated   bool        `json:"truncated"`
	Hint        string      `json:"hint,omitempty"`
}

// The actions of the search tool.
var (
	SearchFulltext = define[SearchFulltextIn, SearchFulltextOut](Action{
		Name: "fulltext", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary: "Find blocks by words, query syntax or regular expression.",
		Guidance: []string{
			"What was just written is found: the index is brought up to date first.",
			"methodName and sortBy win over the numbers method and orderBy.",
			"Method 2 runs a SELECT over the blocks table; search.query_sql is the better form.",
		},
		Examples: []string{`{"query":"invoice"}`, `{"query":"^# ","methodName":"regex","typeShortcodes":["h"]}`},
	})
)

func searchTool() *Tool {
	return &Tool{
		Name:    "search",
		Title:   "Search",
		Purpose: "Find blocks when you do not know where they are.",
		Fields:  map[string]string{"id": "Block or document id.", "k": "What to look for.", "sortBy": "Order; the default depends on the action."},
		Actions: []*Action{
			SearchFulltext.Action, SearchQuerySQL.Action, SearchGetBacklinks.Action, SearchRefs.Action, SearchInvalidRefs.Action, SearchAssets.Action,
			SearchSemantic.Action, SearchFindReplace.Action, SearchAssetContent.Action,
		},
	}
}
