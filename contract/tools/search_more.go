package tools

import (
	"encoding/json"

	"siyuan-broker/contract"
)

// SearchQuerySQLIn is the input of search.query_sql.
type SearchQuerySQLIn struct {
	Stmt    string `json:"stmt" doc:"One SELECT over SiYuan's tables (blocks, refs, attributes, spans, assets)." minlen:"1" maxlen:"16384"`
	MaxRows *int   `json:"maxRows,omitempty" min:"1" max:"1000" doc:"Most rows; default 200."`
}

// SearchQuerySQLOut is the output of search.query_sql.
type SearchQuerySQLOut struct {
	Data    []map[string]json.RawMessage `json:"data"` // column to value
	Showing int                          `json:"showing"`
	CutOut
}

// SearchGetBacklinksIn is the input of search.get_backlinks.
type SearchGetBacklinksIn struct {
	ID        string `json:"id" ref:"block" doc:"Block or document id."`
	Keyword   string `json:"keyword,omitempty" doc:"Keep only blocks with this text." maxlen:"512"`
	RefTreeID string `json:"refTreeID,omitempty" ref:"doc" doc:"Document id; only what stands in it."`
	Mode      string `json:"mode,omitempty" enum:"links|mentions|both" doc:"links, mentions of the name without a link, or both (default)."`
}

// SearchGetBacklinksOut is the output of search.get_backlinks.
type SearchGetBacklinksOut struct {
	Mode         string      `json:"mode"`
	Backlinks    []SearchHit `json:"backlinks"`
	Backmentions []SearchHit `json:"backmentions"`
	CutOut
}

// SearchRefsIn is the input of search.search_refs.
type SearchRefsIn struct {
	ID               string `json:"id" ref:"block" doc:"Block that is to hold the reference."`
	RootID           string `json:"rootID,omitempty" ref:"doc" doc:"Document of that block."`
	K                string `json:"k,omitempty" doc:"What to look for; without it the recent candidates." maxlen:"512"`
	BeforeLen        *int   `json:"beforeLen,omitempty" min:"0" max:"4096" doc:"Characters shown before a hit; default 512."`
	IsSquareBrackets bool   `json:"isSquareBrackets,omitempty" doc:"Only documents, as for a link by title."`
	IsDatabase       bool   `json:"isDatabase,omitempty" doc:"Look for rows to bind in a database."`
	ReqID            string `json:"reqId,omitempty" legacy:"true" doc:"Returned as given." maxlen:"128"`
}

// SearchRefsOut is the output of search.search_refs.
type SearchRefsOut struct {
	Data    []SearchHit `json:"data"`
	NewDoc  bool        `json:"newDoc"` // no document has that title: a reference could create one
	K       string      `json:"k,omitempty" full:"true"`
	ReqID   string      `json:"reqId,omitempty" full:"true"`
	Showing int         `json:"showing"`
	CutOut
}

// SearchSemanticIn is the input of search.semantic.
type SearchSemanticIn struct {
	Query          string          `json:"query" minlen:"1" maxlen:"8192" doc:"What to look for."`
	Paths          []string        `json:"paths,omitempty" list:"words" maxlen:"64" doc:"Notebook ids, or notebookId/storage-path prefixes, to search in."`
	Types          map[string]bool `json:"types,omitempty" legacy:"true" doc:"Block types to search, each true, by short code or full name; joins typeShortcodes."`
	TypeShortcodes []string        `json:"typeShortcodes,omitempty" list:"words" maxlen:"32" doc:"Block types to search: d h p l i b c m t s html embed av video audio widget."`
	SubTypes       map[string]bool `json:"subTypes,omitempty" doc:"Subtypes such as h1 or o, each true."`
	Page           *int            `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize       *int            `json:"pageSize,omitempty" min:"1" max:"128" doc:"Hits on a page; default 32."`
}

// SearchSemanticOut is the output of search.semantic.
type SearchSemanticOut struct {
	Data []SearchHit `json:"data"`
	PageOut
	DataEgress   bool   `json:"dataEgress"`   // the query went to an embedding service
	ExternalCost bool   `json:"externalCost"` // which may cost money
	Hint         string `json:"hint,omitempty"`
}

// SearchFindReplaceIn is the input of search.find_replace.
type SearchFindReplaceIn struct {
	K            string          `json:"k" minlen:"1" maxlen:"8192" doc:"What to look for."`
	R            string          `json:"r" maxlen:"65536" doc:"Replacement; an empty one deletes what is found."`
	IDs          []string        `json:"ids" ref:"block" minlen:"1" maxlen:"128" doc:"Documents or blocks to change."`
	Paths        []string        `json:"paths,omitempty" list:"words" maxlen:"64" doc:"Notebook ids, or notebookId/storage-path prefixes, to search in."`
	Types        map[string]bool `json:"types,omitempty" legacy:"true" doc:"Block types by full name, each true."`
	Method       *int            `json:"method,omitempty" legacy:"true" min:"0" max:"3" doc:"0 keyword (default), 1 query syntax, 2 SQL, 3 regular expression."`
	MethodName   string          `json:"methodName,omitempty" enum:"keyword|query|query_syntax|sql|regex" doc:"Default keyword; query_syntax knows AND, OR, NOT and quotes."`
	OrderBy      *int            `json:"orderBy,omitempty" legacy:"true" min:"0" max:"7" doc:"0 by type (default), 1/2 created, 3/4 updated, 5 in the document, 6/7 relevance; odd is ascending."`
	SortBy       string          `json:"sortBy,omitempty" legacy:"true" enum:"relevance|date|updated_desc|updated_asc|created_desc|created_asc|type" doc:"Default type."`
	GroupBy      *int            `json:"groupBy,omitempty" legacy:"true" min:"0" max:"1" doc:"0 flat (default), 1 by document."`
	ReplaceTypes map[string]bool `json:"replaceTypes,omitempty" doc:"Kinds of text to change, such as text, code, docTitle, each true."`
}

// SearchFindReplaceOut is the output of search.find_replace.
type SearchFindReplaceOut struct {
	Success  bool     `json:"success"`
	Replaced bool     `json:"replaced"`
	IDs      []string `json:"ids"` // of the blocks that changed
	K        string   `json:"k"`
	R        string   `json:"r"`
	Paths    []string `json:"paths,omitempty"`
}

// SearchAssetsIn is the input of search.search_assets.
type SearchAssetsIn struct {
	K    string   `json:"k" maxlen:"512" doc:"Part of the file name."`
	Exts []string `json:"exts,omitempty" list:"words" maxlen:"64" doc:"File extensions such as .png."`
}

// AssetFile is a file that notes refer to.
type AssetFile struct {
	HName   string `json:"hName"` // name for people
	Path    string `json:"path"`  // assets/…
	Updated int64  `json:"updated,omitempty" full:"true"`
}

// SearchAssetsOut is the output of search.search_assets.
type SearchAssetsOut struct {
	Data []AssetFile `json:"data"`
	CutOut
}

// SearchAssetContentIn is the input of search.fulltext_asset_content.
type SearchAssetContentIn struct {
	Query       string          `json:"query,omitempty" minlen:"1" maxlen:"8192" doc:"What to look for."`
	AssetID     string          `json:"assetId,omitempty" minlen:"1" maxlen:"64" doc:"One entry of an earlier result."`
	QueryMethod *int            `json:"queryMethod,omitempty" legacy:"true" min:"0" max:"3" doc:"method for assetId."`
	Types       map[string]bool `json:"types,omitempty" doc:"File extensions such as .pdf, each true."`
	Method      *int            `json:"method,omitempty" legacy:"true" min:"0" max:"3" doc:"0 keyword (default), 1 query syntax, 2 SQL, 3 regular expression."`
	MethodName  string          `json:"methodName,omitempty" enum:"keyword|query|query_syntax|sql|regex" doc:"Default keyword; query_syntax knows AND, OR, NOT and quotes."`
	OrderBy     *int            `json:"orderBy,omitempty" legacy:"true" min:"0" max:"3" doc:"0/1 relevance, 2/3 updated; 1 and 2 are ascending."`
	SortBy      string          `json:"sortBy,omitempty" enum:"relevance|relevance_desc|relevance_asc|updated_asc|updated_desc" doc:"Default relevance."`
	Page        *int            `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize    *int            `json:"pageSize,omitempty" min:"1" max:"128" doc:"Hits on a page; default 32."`
}

// AssetContent is text found inside a file.
type AssetContent struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Ext     string `json:"ext"`
	Path    string `json:"path"` // assets/…
	Size    int64  `json:"size"` // bytes
	Updated int64  `json:"updated"`
	Content string `json:"content"` // around the hit
}

// SearchAssetContentOut is the output of search.fulltext_asset_content.
type SearchAssetContentOut struct {
	Data []AssetContent `json:"data"`
	PageOut
	Showing int `json:"showing"`
	CutOut
}

// SearchInvalidRefsIn is the input of search.list_invalid_refs.
type SearchInvalidRefsIn struct {
	Page     *int `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int `json:"pageSize,omitempty" min:"1" max:"128" doc:"Hits on a page; default 32."`
}

// SearchInvalidRefsOut is the output of search.list_invalid_refs.
type SearchInvalidRefsOut struct {
	Data []SearchHit `json:"data"` // the blocks that hold the references
	PageOut
	Showing int `json:"showing"`
	CutOut
}

// The other actions of the search tool.
var (
	SearchQuerySQL = define[SearchQuerySQLIn, SearchQuerySQLOut](Action{
		Name: "query_sql", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:      "Query SiYuan's SQLite tables with one SELECT; only notebooks you may read are in them.",
		ParamAliases: map[string]string{"sql": "stmt", "query": "stmt"},
		Guidance: []string{
			"blocks has id, parent_id, root_id, box (notebook), path, hpath, name, alias, memo, tag, content, markdown, type, subtype, ial, created, updated (yyyyMMddHHmmss).",
			"Full text: content MATCH 'word'.",
			"Only SELECT and WITH … SELECT run; names of other schemas, PRAGMA and ATTACH do not.",
			"A block that shows the title of something you may not read has [not available] as its content. A column named twice comes back as a and a:1.",
			"In refs, spans, attributes and assets the id column may be empty: use block_id and def_block_id.",
		},
		Examples: []string{`{"stmt":"SELECT id, hpath FROM blocks WHERE type = 'd' ORDER BY updated DESC","maxRows":20}`},
	})
	SearchGetBacklinks = define[SearchGetBacklinksIn, SearchGetBacklinksOut](Action{
		Name: "get_backlinks", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:      "Find the blocks that link to a block or document, or mention its name.",
		ParamAliases: map[string]string{"scopeRootId": "refTreeID"},
		Examples:     []string{`{"id":"20240102100100-alphadc","mode":"links"}`},
	})
	SearchRefs = define[SearchRefsIn, SearchRefsOut](Action{
		Name: "search_refs", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:      "Find blocks to refer to, as typing (( does; for references to a block use get_backlinks.",
		ParamAliases: map[string]string{"keyword": "k", "query": "k"},
		Examples:     []string{`{"id":"20240102110002-block02","k":"alpha"}`},
	})
	SearchSemantic = define[SearchSemanticIn, SearchSemanticOut](Action{
		Name: "semantic", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:  "Find blocks by meaning, where SiYuan has an embedding service.",
		Guidance: []string{"The query leaves the home for the embedding service that SiYuan is set up with."},
		Examples: []string{`{"query":"how did we decide about the heating?"}`},
	})
	SearchFindReplace = define[SearchFindReplaceIn, SearchFindReplaceOut](Action{
		Name: "find_replace", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnManifest, Dangerous: true,
		Agreement: ByPerson,
		Summary:   "Replace text in many documents or blocks at once.",
		Guidance:  []string{"For one block use block.replace."},
		Examples:  []string{`{"k":"colour","r":"color","ids":["20240102100100-alphadc"]}`},
	})
	SearchAssets = define[SearchAssetsIn, SearchAssetsOut](Action{
		Name: "search_assets", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:      "Find files by name, among those that notes you may read refer to.",
		ParamAliases: map[string]string{"query": "k"},
		Examples:     []string{`{"k":"invoice","exts":[".pdf"]}`},
	})
	SearchAssetContent = define[SearchAssetContentIn, SearchAssetContentOut](Action{
		Name: "fulltext_asset_content", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:  "Find text inside files, among those that notes you may read refer to.",
		Rules:    []Rule{AtLeastOne("query", "assetId")},
		Examples: []string{`{"query":"warranty"}`},
	})
	SearchInvalidRefs = define[SearchInvalidRefsIn, SearchInvalidRefsOut](Action{
		Name: "list_invalid_refs", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:  "List blocks that refer to something that no longer exists.",
		Guidance: []string{"What you may not read counts as not existing."},
		Examples: []string{`{}`},
	})
)
