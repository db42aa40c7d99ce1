package siyuan

import (
	"context"
	"encoding/json"
)

// SQL runs one SELECT in the kernel's read-only mode, over all open notebooks.
// A SELECT without LIMIT is cut to 64 rows by the kernel; unknown columns come
// back as text. The statement must have been judged before: read-only is not
// harmless. Of a statement that the kernel cannot parse but SQLite can, no rows
// come as null.
func (r *Reader) SQL(ctx context.Context, stmt string) ([]Row, error) {
	return read[[]Row](ctx, r, "query/sql", args{"stmt": stmt, "mode": "readonly"}, indexed|nullable)
}

// Flush waits until the kernel has indexed every write it has answered. It does
// not wait for notebooks being opened or closed.
func (r *Reader) Flush(ctx context.Context) error {
	_, err := read[json.RawMessage](ctx, r, "sqlite/flushTransaction", nil, direct|nullable)
	return err
}

// SearchMethod is how a full-text query is read.
type SearchMethod int

// The methods of FullText and FindReplace.
const (
	SearchKeyword SearchMethod = iota
	SearchQuery                // FTS5 query syntax
	SearchSQL                  // a SELECT on blocks; must be judged like Reader.SQL
	SearchRegexp
)

// Search is a full-text query. Every field is sent.
type Search struct {
	Query  string
	Method SearchMethod
	// Paths restrict the search: a notebook id, or id and path without ".sy".
	// The kernel drops malformed entries silently and then searches everything.
	Paths []string
	// Types are the block types to find, by the kernel's names (heading,
	// listItem, ...); nil means the user's search settings.
	Types   map[string]bool
	OrderBy int // 0 type, 1/2 created, 3/4 updated, 5 in document, 6/7 relevance
	GroupBy int // 0 none, 1 by document
	Page    int // from 1
	Size    int // hits per page; 0 is the kernel's usual 32
}

func (s Search) size() int {
	const usual = 32
	if s.Size <= 0 {
		return usual
	}
	return s.Size
}

// SearchResult is a page of hits. Counts are over everything that was searched.
type SearchResult struct {
	Blocks            []Block `json:"blocks" shape:"nonnull"`
	MatchedBlockCount int     `json:"matchedBlockCount"`
	MatchedRootCount  int     `json:"matchedRootCount"`
	PageCount         int     `json:"pageCount"`
	DocMode           bool    `json:"docMode"`
}

// FullText searches blocks. A query the kernel cannot read finds nothing.
func (r *Reader) FullText(ctx context.Context, s Search) (SearchResult, error) {
	body := args{
		"query": s.Query, "method": s.Method, "paths": list(s.Paths), "orderBy": s.OrderBy,
		"groupBy": s.GroupBy, "page": max(s.Page, 1), "pageSize": s.size(),
	}
	if s.Types != nil {
		body["types"] = s.Types
	}
	return read[SearchResult](ctx, r, "search/fullTextSearchBlock", body, indexed)
}

// RefHits are candidates for a reference.
type RefHits struct {
	Blocks []Block `json:"blocks" shape:"nonnull"` // Content with <mark>, HPath with the notebook's name
	NewDoc bool    `json:"newDoc"`                 // no document has the keyword as its title
}

// SearchRef is the editor's "((" picker, over all notebooks: id is the block
// being written in, root its document, beforeLen the length of context.
func (r *Reader) SearchRef(ctx context.Context, id, root ID, keyword string, beforeLen int) (RefHits, error) {
	return read[RefHits](ctx, r, "search/searchRefBlock", args{
		"id": id, "rootID": root, "k": keyword, "beforeLen": beforeLen, "reqId": 0,
	}, indexed)
}

// SearchTags finds labels of all notebooks by a part, with <mark>.
func (r *Reader) SearchTags(ctx context.Context, keyword string) ([]string, error) {
	data, err := read[struct {
		Tags []string `json:"tags" shape:"nonnull"`
	}](ctx, r, "search/searchTag", args{"k": keyword}, indexed)
	return data.Tags, err
}

// AssetHit is an asset file found by name.
type AssetHit struct {
	HName   string `json:"hName"`
	Path    string `json:"path" shape:"nonempty"`
	Updated int64  `json:"updated"`
}

// SearchAssets finds asset files of the workspace by name; exts such as ".png"
// restrict them. The kernel learns of new files in the background.
func (r *Reader) SearchAssets(ctx context.Context, keyword string, exts []string) ([]AssetHit, error) {
	return read[[]AssetHit](ctx, r, "search/searchAsset", args{"k": keyword, "exts": list(exts)}, direct)
}

// InvalidRefs lists blocks of all notebooks that cite something missing.
func (r *Reader) InvalidRefs(ctx context.Context, page, size int) (SearchResult, error) {
	return read[SearchResult](ctx, r, "search/listInvalidBlockRefs", args{"page": page, "pageSize": size}, indexed)
}

// Embedded is one result of an embed block.
type Embedded struct {
	Block      Block   `json:"block"`
	BlockPaths []Crumb `json:"blockPaths"`
}

type embeddedAnswer struct {
	Blocks []Embedded `json:"blocks" shape:"nonnull"`
}

// EmbedBlocks renders blocks, by id and from any notebook, as an embed block
// would show them.
func (r *Reader) EmbedBlocks(ctx context.Context, embed ID, include []ID) ([]Embedded, error) {
	data, err := read[embeddedAnswer](ctx, r, "search/getEmbedBlock", args{
		"embedBlockID": embed, "includeIDs": list(include), "headingMode": 0, "breadcrumb": false,
	}, indexed)
	return data.Blocks, err
}

// AssetContent is the text of an asset file, of any notebook. Content of a match
// is cut and HTML with <mark>.
type AssetContent struct {
	ID      ID     `json:"id" shape:"nonempty"` // of the entry in the index
	Name    string `json:"name"`
	Ext     string `json:"ext"`
	Path    string `json:"path" shape:"nonempty"` // assets/...
	Size    int64  `json:"size"`
	HSize   string `json:"hSize"`
	Updated int64  `json:"updated"` // Unix seconds
	Content string `json:"content"`
}

// AssetContents is a page of matches inside files.
type AssetContents struct {
	AssetContents     []AssetContent `json:"assetContents" shape:"nonnull"`
	MatchedAssetCount int            `json:"matchedAssetCount"`
	PageCount         int            `json:"pageCount"`
}

// SearchAssetContent searches the text of asset files of the workspace.
func (r *Reader) SearchAssetContent(ctx context.Context, s Search) (AssetContents, error) {
	body := args{"query": s.Query, "method": s.Method, "orderBy": s.OrderBy, "page": max(s.Page, 1), "pageSize": s.size()}
	if s.Types != nil {
		body["types"] = s.Types
	}
	return read[AssetContents](ctx, r, "search/fullTextSearchAssetContent", body, indexed)
}

// AssetContent is one entry of the index of file texts; an unknown one is
// Missing.
func (r *Reader) AssetContent(ctx context.Context, id ID, query string, method SearchMethod) (AssetContent, error) {
	const path = "search/getAssetContent"
	data, err := read[struct {
		AssetContent *AssetContent `json:"assetContent"`
	}](ctx, r, path, args{"id": id, "query": query, "queryMethod": method}, indexed)
	switch {
	case err != nil:
		return AssetContent{}, err
	case data.AssetContent == nil:
		return AssetContent{}, missing(path)
	}
	return *data.AssetContent, nil
}

// EmbeddingModel reports whether an embedding service is set up, which Semantic
// needs. Nothing else of the configuration is read.
func (r *Reader) EmbeddingModel(ctx context.Context) (bool, error) {
	data, err := read[struct {
		Conf struct {
			AI struct {
				Embedding struct {
					Enabled bool `json:"enabled"`
				} `json:"embedding"`
			} `json:"ai"`
		} `json:"conf"`
	}](ctx, r, "system/getConf", nil, direct)
	return data.Conf.AI.Embedding.Enabled, err
}

// Semantic searches by meaning, with the query, paths and page of s; without a
// model it finds nothing.
func (r *Reader) Semantic(ctx context.Context, s Search) (SearchResult, error) {
	return read[SearchResult](ctx, r, "search/semanticSearchBlock", args{
		"query": s.Query, "paths": list(s.Paths), "page": max(s.Page, 1), "pageSize": s.size(),
	}, indexed|slow)
}

// Backlinks are the documents that cite a block and those that mention its
// name. The counts are totals over all notebooks.
type Backlinks struct {
	Box           ID     `json:"box"`
	Links         []Path `json:"backlinks"`
	Mentions      []Path `json:"backmentions"`
	LinkRefsCount int    `json:"linkRefsCount"`
	MentionsCount int    `json:"mentionsCount"`
}

// Backlinks lists citing and mentioning documents; k and mk filter the two. A
// missing block has none.
func (r *Reader) Backlinks(ctx context.Context, id ID, k, mk string, containChildren bool) (Backlinks, error) {
	// sort 3: newest first, as a string; a number makes the handler fail.
	return read[Backlinks](ctx, r, "ref/getBacklink2", args{
		"id": id, "k": k, "mk": mk, "sort": "3", "mSort": "3", "containChildren": containChildren,
	}, indexed|slow)
}

// BacklinkBlock is a citing block as DOM.
type BacklinkBlock struct {
	DOM        string  `json:"dom"`
	BlockPaths []Crumb `json:"blockPaths"`
	Expand     bool    `json:"expand"`
}

// BacklinkDoc lists the blocks of one document that cite def. The answer names
// no notebook: the caller knows refTree's.
func (r *Reader) BacklinkDoc(ctx context.Context, def, refTree ID, keyword string, containChildren bool) ([]BacklinkBlock, error) {
	data, err := read[struct {
		Backlinks []BacklinkBlock `json:"backlinks"`
	}](ctx, r, "ref/getBacklinkDoc", args{
		"defID": def, "refTreeID": refTree, "keyword": keyword,
		"containChildren": containChildren, "highlight": false,
	}, indexed)
	return data.Backlinks, err
}

// BackmentionDoc lists the blocks of one document that mention def's name.
func (r *Reader) BackmentionDoc(ctx context.Context, def, refTree ID, keyword string) ([]BacklinkBlock, error) {
	data, err := read[struct {
		Backmentions []BacklinkBlock `json:"backmentions"`
	}](ctx, r, "ref/getBackmentionDoc", args{
		"defID": def, "refTreeID": refTree, "keyword": keyword, "highlight": false,
	}, indexed)
	return data.Backmentions, err
}

// Tag is a node of the tree of labels; parents that are no tag themselves count
// 0.
type Tag struct {
	Name     string `json:"name"`
	Label    string `json:"label" shape:"nonempty"`
	Children []Tag  `json:"children"`
	Depth    int    `json:"depth"`
	Count    int    `json:"count"`
}

// Tags is the tree of labels of all notebooks, in the order the user has set:
// sending another order would store it, so none is sent.
func (r *Reader) Tags(ctx context.Context) ([]Tag, error) {
	return read[[]Tag](ctx, r, "tag/getTag", args{"ignoreMaxListHint": true}, indexed)
}

// Bookmark is a label with its blocks.
type Bookmark struct {
	Name   string  `json:"name" shape:"nonempty"`
	Blocks []Block `json:"blocks"`
	Depth  int     `json:"depth"`
	Count  int     `json:"count"`
}

// Bookmarks lists the bookmarked blocks of all notebooks by label.
func (r *Reader) Bookmarks(ctx context.Context) ([]Bookmark, error) {
	return read[[]Bookmark](ctx, r, "bookmark/getBookmark", nil, indexed)
}

// BookmarkLabels lists the labels of all notebooks.
func (r *Reader) BookmarkLabels(ctx context.Context) ([]string, error) {
	return read[[]string](ctx, r, "attr/getBookmarkLabels", nil, indexed)
}

// Graph is the network of blocks.
type Graph struct {
	Nodes []GraphNode `json:"nodes" shape:"nonnull"`
	Links []GraphLink `json:"links" shape:"nonnull"`
}

// GraphNode is a block, or a tag, which belongs to no notebook.
type GraphNode struct {
	ID    string  `json:"id" shape:"nonempty"`
	Box   ID      `json:"box"`
	Path  string  `json:"path"`
	Size  float64 `json:"size"`
	Title string  `json:"title"`
	Label string  `json:"label"`
	Type  string  `json:"type"`
	Refs  int     `json:"refs"`
	Defs  int     `json:"defs"`
}

// GraphLink joins two nodes.
type GraphLink struct {
	From string `json:"from"`
	To   string `json:"to"`
	Ref  bool   `json:"ref"` // a reference, not a parent
}

// Graph is the network of all notebooks; keyword "" is no filter. The kernel
// stores the settings it is sent, so it is sent the user's own.
func (r *Reader) Graph(ctx context.Context, keyword string) (Graph, error) {
	conf, err := r.graphConf(ctx)
	if err != nil {
		return Graph{}, err
	}
	return read[Graph](ctx, r, "graph/getGraph",
		args{"k": keyword, "conf": conf.Global, "reqId": 0}, indexed|slow)
}

// LocalGraph is the network around a block, with the user's own settings as in
// Graph. A missing block has none.
func (r *Reader) LocalGraph(ctx context.Context, id ID, keyword string) (Graph, error) {
	conf, err := r.graphConf(ctx)
	if err != nil {
		return Graph{}, err
	}
	return read[Graph](ctx, r, "graph/getLocalGraph",
		args{"id": id, "k": keyword, "conf": conf.Local, "reqId": 0}, indexed|slow)
}

type graphConf struct {
	Local  json.RawMessage `json:"local" shape:"nonnull"`
	Global json.RawMessage `json:"global" shape:"nonnull"`
}

// graphConf is the user's settings of both graphs.
func (r *Reader) graphConf(ctx context.Context) (graphConf, error) {
	data, err := read[struct {
		Conf struct {
			Graph graphConf `json:"graph"`
		} `json:"conf"`
	}](ctx, r, "system/getConf", nil, direct)
	return data.Conf.Graph, err
}
