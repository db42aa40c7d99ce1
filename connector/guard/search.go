package guard

import (
	"context"
	"html"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Method is how a search query is read.
type Method int

// The methods of Search.
const (
	Keyword Method = iota
	QuerySyntax
	Statement
	Regexp
)

// Query is a full-text search.
type Query struct {
	Text   string
	Method Method
	Types  map[string]bool // short codes; nil: the kernel's search settings
	// SubTypes such as h1 or o; nil: all. Only Semantic looks at them.
	SubTypes map[string]bool
	Within   []string // notebook ids, or notebook id and storage path; nil: all readable
	Inside   *Block   // only hits in this block or document
	Order    int      // the kernel's 0..7
	Grouped  bool     // hits of one document stand together
	HasTags  *bool
}

// Hit is a block found.
type Hit struct {
	ID, Type, SubType string // Type and SubType as short codes
	Notebook          Notebook
	RootID, HPath     string
	Content           string // plain text around the first match
	Cut               bool   // Content is not the whole text
	Updated           string // yyyyMMddHHmmss
}

// Limits of one search: how many rows the kernel is asked for at once and in
// all. What is left out is told, and only counts rows the caller may see.
const (
	searchPage = 256
	searchRows = 2048
)

// Search finds blocks in what the caller may read. more says that the search
// stopped at its limit. The number of hits counts nothing hidden: rows of query
// embeds carry other notebooks' text and are left out, and a block that matches
// only by the title of something hidden does not match.
func (s *Session) Search(ctx context.Context, q Query) (hits []Hit, more bool, err error) {
	if q.Method == Regexp {
		if _, err := regexp.Compile(q.Text); err != nil {
			return nil, false, contract.InvalidFields(contract.Field{Path: "query", Message: "is not a valid regular expression"})
		}
	}
	paths, err := s.searchPaths(q.Within)
	if err != nil || len(paths) == 0 {
		return nil, false, err
	}
	inside, err := s.insideOf(ctx, q.Inside)
	if err != nil {
		return nil, false, err
	}
	if q.Method == Statement {
		hits, more, err = s.searchStatement(ctx, q, paths, inside)
		if q.Grouped {
			groupHits(hits)
		}
		return hits, more, err
	}
	req := siyuan.Search{
		Query: q.Text, Method: siyuan.SearchMethod(q.Method), Paths: paths, Types: kernelTypes(q.Types),
		OrderBy: s.searchOrder(q), Size: searchPage,
	}
	rows, more, err := s.searchPages(ctx, req, s.g.r.FullText)
	if err != nil {
		return nil, false, err
	}
	hits, err = s.filterHits(ctx, q, rows, inside)
	if q.Grouped {
		groupHits(hits)
	}
	return hits, more, err
}

// relevance orders are 6 and 7.
func relevance(order int) bool { return order >= 6 }

// searchOrder avoids the kernel's relevance where something is hidden: it is
// worked out over the whole corpus and would tell about it.
func (s *Session) searchOrder(q Query) int {
	if relevance(q.Order) && !s.whole() {
		return 4 // updated, the newest first
	}
	return q.Order
}

// searchPages asks for pages of a search until there are no more rows, or as many
// as one search may have.
func (s *Session) searchPages(ctx context.Context, req siyuan.Search, ask func(context.Context, siyuan.Search) (siyuan.SearchResult, error)) (rows []siyuan.Block, more bool, err error) {
	for req.Page = 1; ; req.Page++ {
		res, err := ask(ctx, req)
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, res.Blocks...)
		switch {
		case len(res.Blocks) < req.Size:
			return rows, false, nil
		case len(rows) >= searchRows:
			return rows, req.Page < res.PageCount, nil
		}
	}
}

var searchPath = regexp.MustCompile(`^(` + idPattern + `)((?:/` + idPattern + `)*)(?:\.sy|/)?$`)

// searchPaths are the places to search, in the kernel's form. The kernel drops
// malformed ones and then searches everything, so none gets there. Notebooks
// that are unknown or hidden have no hits.
func (s *Session) searchPaths(within []string) ([]string, error) {
	var paths []string
	if within == nil {
		return plainIDs(s.sidebar().order), nil
	}
	for _, p := range within {
		m := searchPath.FindStringSubmatch(strings.TrimPrefix(p, "/"))
		if m == nil {
			return nil, contract.InvalidFields(contract.Field{Path: "paths", Message: "must be notebook ids, or notebook id and storage path such as <notebook>/<document>.sy"})
		}
		if _, ok := s.sidebar().notebooks[siyuan.ID(m[1])]; ok {
			paths = append(paths, m[1]+m[2])
		}
	}
	return paths, nil
}

// insideOf tells which rows are in a block: nil for no restriction.
func (s *Session) insideOf(ctx context.Context, b *Block) (func(siyuan.Block) bool, error) {
	if b == nil {
		return nil, nil
	}
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, err
	}
	if b.IsDoc() {
		folder := strings.TrimSuffix(b.doc.path, ".sy") + "/"
		if b.doc.id == b.doc.nb.id {
			folder = "/"
		}
		box := b.doc.nb.id
		return func(r siyuan.Block) bool {
			return r.RootID == b.id || r.Box == box && strings.HasPrefix(r.Path, folder)
		}, nil
	}
	section, err := s.g.r.HeadingChildren(ctx, b.id)
	if err != nil {
		return nil, s.vanished(err, "block", b.id)
	}
	texts, err := s.g.r.BlockKramdowns(ctx, append(section, b.id), siyuan.KramdownMarkdown)
	if err != nil {
		return nil, err
	}
	ids := map[siyuan.ID]bool{b.id: true}
	for _, text := range texts {
		for id := range ialsByID(text) {
			ids[id] = true
		}
	}
	return func(r siyuan.Block) bool { return ids[r.ID] }, nil
}

// filterHits keeps the rows the caller may see, with everything hidden taken
// out of them.
func (s *Session) filterHits(ctx context.Context, q Query, rows []siyuan.Block, inside func(siyuan.Block) bool) ([]Hit, error) {
	rows = slices.DeleteFunc(rows, func(r siyuan.Block) bool {
		_, readable := s.sidebar().notebooks[r.Box]
		return !readable || r.Type == "NodeBlockQueryEmbed" || q.Types != nil && !q.Types[typeCode(r.Type)] || inside != nil && !inside(r) ||
			q.HasTags != nil && *q.HasTags != (r.Tag != "")
	})
	rows = uniqueRows(rows)
	texts := make([]string, len(rows))
	for i, r := range rows {
		texts[i] = r.Markdown
	}
	masked, err := s.maskTexts(ctx, texts)
	if err != nil {
		return nil, err
	}
	genuine, err := s.genuineDocs(ctx, q, rows)
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for i, r := range rows {
		if r.Type == "NodeDocument" && !genuine[r.ID] {
			continue
		}
		content, cut := excerpt(r.Content)
		if masked[i] != texts[i] || rendered(typeCode(r.Type), texts[i]) {
			text := plain(ownText(masked[i]))
			if !matches(q, r, text, ownText(masked[i])) {
				continue
			}
			content, cut = excerpt(html.EscapeString(text))
		}
		hits = append(hits, s.hit(r, content, cut))
	}
	if relevance(q.Order) && !s.whole() {
		rankHits(hits, q)
	}
	return hits, nil
}

// uniqueRows drops repeated blocks: the kernel's index has root documents twice.
func uniqueRows(rows []siyuan.Block) []siyuan.Block {
	seen := make(map[siyuan.ID]bool, len(rows))
	return slices.DeleteFunc(rows, func(r siyuan.Block) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again
	})
}

func (s *Session) hit(r siyuan.Block, content string, cut bool) Hit {
	hpath := unmarked(r.HPath)
	if r.Type == "NodeDocument" {
		hpath += unmarked(r.Content)
	}
	return Hit{
		ID: string(r.ID), Type: typeCode(r.Type), SubType: r.SubType, Notebook: s.sidebar().notebooks[r.Box],
		RootID: string(r.RootID), HPath: hpath, Content: content, Cut: cut, Updated: r.IAL["updated"],
	}
}

// matches repeats a search on a text from which hidden titles were taken. The
// query syntax cannot be repeated here; such rows count as not matching. The
// placeholder is no text: a hidden title that has its words must not be found.
func matches(q Query, r siyuan.Block, text, markdown string) bool {
	text, markdown = strings.ReplaceAll(text, Placeholder, ""), strings.ReplaceAll(markdown, Placeholder, "")
	fields := strings.Join([]string{text, markdown, unmarked(r.Name), unmarked(r.Alias), unmarked(r.Memo), unmarked(r.Tag)}, "\n")
	switch q.Method {
	case Keyword:
		fields = strings.ToLower(fields)
		for _, term := range strings.Fields(strings.ToLower(q.Text)) {
			if !strings.Contains(fields, term) {
				return false
			}
		}
		return true
	case Regexp:
		re, err := regexp.Compile(q.Text)
		return err == nil && re.MatchString(fields)
	}
	return false
}

// genuineDocs tells which document rows match by what the caller may read. The
// kernel also finds documents whose blocks have the words between them, and
// among those words may be a hidden title.
func (s *Session) genuineDocs(ctx context.Context, q Query, rows []siyuan.Block) (map[siyuan.ID]bool, error) {
	genuine := map[siyuan.ID]bool{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for _, r := range rows {
		if r.Type != "NodeDocument" {
			continue
		}
		if s.whole() || matches(q, r, unmarked(r.Content), "") {
			mu.Lock()
			genuine[r.ID] = true
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			text, err := s.Kramdown(ctx, s.refer(place{box: r.Box, root: r.ID, path: r.Path}, r.ID))
			if err != nil && contract.CodeOf(Public(err)) != contract.NotFound {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			genuine[r.ID] = err == nil && matches(q, r, plain(ownText(body(text))), ownText(body(text)))
			return nil
		})
	}
	return genuine, group.Wait()
}

// rankHits orders by how often the words of the query occur, best first (7) or
// last (6); equals keep their order.
func rankHits(hits []Hit, q Query) {
	terms := strings.Fields(strings.ToLower(q.Text))
	score := make(map[string]int, len(hits))
	for _, h := range hits {
		for _, t := range terms {
			score[h.ID] += strings.Count(strings.ToLower(h.Content), t)
		}
	}
	sort.SliceStable(hits, func(i, j int) bool {
		if q.Order == 6 {
			i, j = j, i
		}
		return score[hits[i].ID] > score[hits[j].ID]
	})
}

// groupHits brings the hits of a document together, documents in the order of
// their first hit.
func groupHits(hits []Hit) {
	first := map[string]int{}
	for i, h := range hits {
		if _, ok := first[h.RootID]; !ok {
			first[h.RootID] = i
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return first[hits[i].RootID] < first[hits[j].RootID] })
}

// Excerpts are cut to this many characters, some of them before the match.
const (
	excerptRunes  = 400
	excerptBefore = 150
)

const (
	markOpen  = "<mark>"
	markClose = "</mark>"
)

func unmarked(text string) string {
	return html.UnescapeString(strings.NewReplacer(markOpen, "", markClose, "").Replace(withoutZWSP(text)))
}

// excerpt is the plain text of a hit around its first mark.
func excerpt(content string) (text string, cut bool) {
	before, _, found := strings.Cut(content, markOpen)
	runes := []rune(unmarked(content))
	if len(runes) <= excerptRunes {
		return string(runes), false
	}
	from := 0
	if found {
		from = max(0, utf8.RuneCountInString(unmarked(before))-excerptBefore)
	}
	from = min(from, len(runes)-excerptRunes)
	return string(runes[from : from+excerptRunes]), true
}
