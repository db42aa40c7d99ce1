package samplekernel

import (
	"html"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/index"
	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func searchRoutes() map[string]route {
	return map[string]route{
		"/api/search/fullTextSearchBlock": {serve: fullTextSearchBlock},
		"/api/search/semanticSearchBlock": {serve: semanticSearchBlock},
	}
}

// The methods of fullTextSearchBlock.
const (
	searchKeyword = iota
	searchQuery
	searchSQL
	searchRegexp
)

// searchTypes maps the type switches of a search to codes of the index, in the
// state the settings of a new workspace have them.
func searchTypes() map[string]struct {
	code string
	on   bool
} {
	type t = struct {
		code string
		on   bool
	}
	return map[string]t{
		"document": {"d", true}, "heading": {"h", true}, "list": {"l", false}, "listItem": {"i", false},
		"codeBlock": {"c", true}, "mathBlock": {"m", true}, "table": {"t", true}, "blockquote": {"b", false},
		"superBlock": {"s", false}, "paragraph": {"p", true}, "htmlBlock": {"html", true}, "embedBlock": {"query_embed", false},
		"databaseBlock": {"av", true}, "audioBlock": {"audio", false}, "videoBlock": {"video", false},
		"iframeBlock": {"iframe", false}, "widgetBlock": {"widget", false}, "callout": {"callout", false},
	}
}

// search is one request of fullTextSearchBlock, understood.
type search struct {
	query          string
	method         int
	paths          []string
	types          []string
	page, pageSize int
	orderBy        int
	grouped        bool
}

func newSearch(a args) search {
	s := search{
		query: a.strOr("query", ""), method: a.intOr("method", searchKeyword), page: max(1, a.intOr("page", 1)),
		pageSize: a.intOr("pageSize", 32), orderBy: a.intOr("orderBy", 0), grouped: a.intOr("groupBy", 0) == 1,
	}
	if s.pageSize <= 0 {
		s.pageSize = 32
	}
	for _, p := range a.strsOr("paths") {
		if box, _, _ := strings.Cut(p, "/"); text.ValidID(box) {
			s.paths = append(s.paths, p)
		}
	}
	asked := or(a, "types", map[string]any(nil))
	for name, t := range searchTypes() {
		on := t.on
		if asked != nil {
			on, _ = asked[name].(bool)
		}
		if on {
			s.types = append(s.types, t.code)
		}
	}
	return s
}

type searchResult struct {
	Blocks            []*blockView `json:"blocks"`
	DocMode           bool         `json:"docMode"`
	MatchedBlockCount int          `json:"matchedBlockCount"`
	MatchedRootCount  int          `json:"matchedRootCount"`
	PageCount         int          `json:"pageCount"`
}

// fullTextSearchBlock answers every kind of failure with no blocks.
func fullTextSearchBlock(k *Kernel, a args) (any, error) {
	s := newSearch(a)
	if s.query == "" {
		return searchResult{Blocks: []*blockView{}}, nil
	}
	views, docMode, err := k.find(s)
	if err != nil {
		return searchResult{Blocks: []*blockView{}}, nil //nolint:nilerr // the trap being imitated
	}
	roots := map[string]bool{}
	for _, v := range views {
		roots[v.RootID] = true
	}
	out := searchResult{Blocks: views, DocMode: docMode, MatchedBlockCount: len(views), MatchedRootCount: len(roots)}
	if docMode {
		out.Blocks = k.withDocuments(s, views)
	}
	if s.grouped {
		out.Blocks = k.groupByDocument(views)
	}
	out.PageCount = (len(out.Blocks) + s.pageSize - 1) / s.pageSize
	out.Blocks = out.Blocks[min((s.page-1)*s.pageSize, len(out.Blocks)):min(s.page*s.pageSize, len(out.Blocks))]
	for _, v := range out.Blocks {
		k.finish(v, s.grouped)
	}
	return out, nil
}

// finish gives a hit its counts, and a document hit the path of its parent.
func (k *Kernel) finish(v *blockView, grouped bool) {
	if grouped {
		for _, c := range v.Children {
			c.RefCount = k.refCount(c.ID)
		}
		return
	}
	v.RefCount = k.refCount(v.ID)
	if v.Type == "NodeDocument" {
		v.HPath = parentHPath(v.HPath)
	}
}

func parentHPath(hpath string) string {
	if dir := path.Dir(hpath); dir != "/" {
		return dir + "/"
	}
	return "/"
}

// find runs the search over the index, hits in order, marked.
func (k *Kernel) find(s search) (views []*blockView, docMode bool, err error) {
	var rows []map[string]string
	words := strings.Fields(s.query)
	mark := func(string) string { return "" }
	switch s.method {
	case searchKeyword, searchQuery:
		rows, docMode, mark, err = k.findWords(s, words)
	case searchSQL:
		rows, err = k.findSQL(s)
	case searchRegexp:
		var re *regexp.Regexp
		if re, err = regexp.Compile(s.query); err == nil {
			rows = k.filtered(s, func(r map[string]string) bool { return re.MatchString(haystack(r)) })
			mark = func(v string) string { return re.ReplaceAllString(v, "<mark>$0</mark>") }
		}
	}
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		v := viewOf(r)
		if m := mark(v.Content); m != "" {
			v.Content, v.Name, v.Alias, v.Memo, v.Tag = m, mark(v.Name), mark(v.Alias), mark(v.Memo), mark(v.Tag)
		}
		views = append(views, v)
	}
	if views == nil {
		views = []*blockView{}
	}
	return views, docMode, nil
}

// haystack is the text a search looks at.
func haystack(r map[string]string) string {
	return strings.Join([]string{r["name"], r["alias"], r["memo"], r["tag"], r["content"]}, "\n")
}

func (k *Kernel) findWords(s search, words []string) ([]map[string]string, bool, func(string) string, error) {
	if text.ValidID(s.query) {
		rows := k.filtered(search{paths: s.paths, types: allTypes(), orderBy: s.orderBy}, func(r map[string]string) bool { return r["id"] == s.query })
		return rows, false, func(string) string { return "" }, nil
	}
	expression := index.SpellQuery(s.query)
	if s.method == searchKeyword {
		var phrases []string
		for _, w := range words {
			phrases = append(phrases, index.Phrase(w))
		}
		expression = strings.Join(phrases, " ")
	} else {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "AND" || w == "OR" || w == "NOT" })
	}
	matches, err := k.index.Rows("SELECT rowid AS n FROM blocks_fts WHERE blocks_fts MATCH ? ORDER BY rank", "{name alias memo tag content fcontent} : ("+expression+")")
	if err != nil {
		return nil, false, nil, err
	}
	rank := map[string]int{}
	for i, m := range matches {
		rank[m["n"]] = i + 1
	}
	rows := k.filtered(s, func(r map[string]string) bool { return rank[r["n"]] > 0 })
	if !s.grouped && (s.orderBy == 0 || s.orderBy == 5) {
		sort.SliceStable(rows, func(i, j int) bool { return closeness(rows[i], s.query) < closeness(rows[j], s.query) })
	}
	if s.orderBy == 6 || s.orderBy == 7 {
		sort.SliceStable(rows, func(i, j int) bool {
			a, b := rank[rows[i]["n"]], rank[rows[j]["n"]]
			return (s.orderBy == 7) == (a < b) && a != b
		})
	}
	return rows, s.method == searchKeyword && len(words) > 1, marker(words), nil
}

// closeness puts hits whose name, alias or memo is the keyword first, then
// documents, then hits in a name or alias; the rest keeps the order of types.
func closeness(r map[string]string, query string) int {
	switch {
	case strings.EqualFold(r["name"], query):
		return 0
	case strings.EqualFold(r["alias"], query):
		return 1
	case strings.EqualFold(r["memo"], query):
		return 2
	case r["type"] == "d":
		return 3
	case containsFold(r["name"], query):
		return 4
	case containsFold(r["alias"], query):
		return 5
	}
	return 6
}

// withDocuments adds the documents that hold all words somewhere, each in any
// block, unless they are hits themselves.
func (k *Kernel) withDocuments(s search, views []*blockView) []*blockView {
	words := strings.Fields(strings.ToLower(s.query))
	whole := map[string]string{}
	for _, r := range k.rows("SELECT root_id, name, alias, memo, tag, content FROM blocks") {
		whole[r["root_id"]] += strings.ToLower(haystack(r)) + "\n"
	}
	hit := map[string]bool{}
	for _, v := range views {
		hit[v.ID] = true
	}
	mark := marker(strings.Fields(s.query))
	docs := k.filtered(search{types: []string{"d"}, paths: s.paths}, func(r map[string]string) bool {
		return !hit[r["id"]] && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(whole[r["id"]], w) })
	})
	for _, r := range docs {
		v := viewOf(r)
		v.Content = mark(v.Content)
		views = append(views, v)
	}
	return views
}

func allTypes() (codes []string) {
	for _, t := range searchTypes() {
		codes = append(codes, t.code)
	}
	return codes
}

// marker puts <mark> around every word, case ignored, in escaped text.
func marker(words []string) func(string) string {
	var alternatives []string
	for _, w := range words {
		alternatives = append(alternatives, regexp.QuoteMeta(html.EscapeString(strings.Trim(w, `"`))))
	}
	re, err := regexp.Compile("(?i)" + strings.Join(alternatives, "|"))
	if err != nil || len(alternatives) == 0 {
		return func(s string) string { return s }
	}
	return func(s string) string {
		return re.ReplaceAllString(html.EscapeString(s), "<mark>$0</mark>")
	}
}

// filtered reads the blocks of the wanted types below the wanted paths.
func (k *Kernel) filtered(s search, keep func(map[string]string) bool) (rows []map[string]string) {
	order := map[int]string{
		0: "sort ASC, updated DESC", 1: "created ASC", 2: "created DESC", 3: "updated ASC", 4: "updated DESC",
	}[s.orderBy]
	if order == "" {
		order = "sort ASC, updated DESC"
	}
	for _, r := range k.rows("SELECT rowid AS n, " + viewColumns + " FROM blocks ORDER BY " + order) {
		if slices.Contains(s.types, r["type"]) && below(r, s.paths) && keep(r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func below(r map[string]string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	at := r["box"] + r["path"]
	for _, p := range paths {
		p = strings.TrimSuffix(p, "/")
		if r["box"] == p || strings.HasPrefix(at, p+"/") || at == p+".sy" {
			return true
		}
	}
	return false
}

func (k *Kernel) findSQL(s search) ([]map[string]string, error) {
	if err := k.index.ReadOnly(s.query); err != nil {
		return nil, err
	}
	found, err := k.index.Query(s.query, "readonly")
	if err != nil {
		return nil, err
	}
	var rows []map[string]string
	for _, f := range found {
		id, _ := f["id"].(string)
		if hit := k.rows("SELECT "+viewColumns+" FROM blocks WHERE id = ? LIMIT 1", id); len(hit) > 0 && below(hit[0], s.paths) {
			rows = append(rows, hit[0])
		}
	}
	return rows, nil
}

// groupByDocument puts hits under their documents, in order of first hit.
func (k *Kernel) groupByDocument(views []*blockView) []*blockView {
	groups, byRoot := []*blockView{}, map[string]*blockView{}
	for _, v := range views {
		g := byRoot[v.RootID]
		if g == nil {
			hit := k.rows("SELECT "+viewColumns+" FROM blocks WHERE id = ? LIMIT 1", v.RootID)
			if len(hit) == 0 {
				continue
			}
			g = viewOf(hit[0])
			g.Sort = 0
			byRoot[v.RootID] = g
			groups = append(groups, g)
		}
		g.Children = append(g.Children, v)
	}
	return groups
}

// semanticSearchBlock finds nothing: no model is configured.
func semanticSearchBlock(_ *Kernel, _ args) (any, error) {
	return map[string]any{"blocks": []any{}, "matchedBlockCount": 0, "matchedRootCount": 0, "pageCount": 0}, nil
}
