package guard

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Semantic finds blocks by meaning, the nearest first. The query goes to the
// embedding service that SiYuan is set up with. Which rows come is worked out
// over every notebook, so nothing may be hidden from the caller. more says that
// the search stopped at its limit.
func (s *Session) Semantic(ctx context.Context, q Query) (hits []Hit, more bool, err error) {
	if !s.whole() {
		return nil, false, contract.Fail(contract.Unsupported, "A search by meaning ranks the notes of every notebook, so it runs only for those who may read all of them.").
			WithHint("Use search.fulltext, or ask a tenant owner for the level r on every notebook.")
	}
	if model, err := s.g.r.EmbeddingModel(ctx); err != nil {
		return nil, false, err
	} else if !model {
		return nil, false, contract.Fail(contract.Unsupported, "SiYuan at home has no embedding service set up, so it cannot search by meaning.").
			WithHint("Use search.fulltext with the words that a note would have.")
	}
	paths, err := s.searchPaths(q.Within)
	if err != nil || len(paths) == 0 {
		return nil, false, err
	}
	rows, more, err := s.searchPages(ctx, siyuan.Search{Query: q.Text, Paths: paths, Size: searchPage}, s.g.r.Semantic)
	if err != nil {
		return nil, false, err
	}
	rows = slices.DeleteFunc(uniqueRows(rows), func(r siyuan.Block) bool {
		_, readable := s.sidebar().notebooks[r.Box]
		return !readable || r.Type == "NodeBlockQueryEmbed" || q.Types != nil && !q.Types[typeCode(r.Type)] ||
			q.SubTypes != nil && !q.SubTypes[r.SubType]
	})
	for _, r := range rows {
		content, cut := excerpt(r.Content)
		hits = append(hits, s.hit(r, content, cut))
	}
	return hits, more, nil
}

// FileText is text found in a file that notes link to.
type FileText struct {
	ID, Name, Ext, Path string
	Size, Updated       int64 // bytes; Unix seconds
	Content             string
}

// FileQuery is a search in the text of files.
type FileQuery struct {
	Text   string
	Method Method          // all but Statement
	Exts   map[string]bool // such as .pdf; nil: all
	Order  int             // the kernel's 0..3
}

// byUpdate is the newest first, in the order of file searches.
const byUpdate = 3

// SearchFiles finds text in files, among those whose every link the caller may
// read, as [Session.Asset] judges them. more says that the search stopped at its
// limit. While something is hidden there is no order by relevance, which the
// kernel works out over the files of every notebook.
func (s *Session) SearchFiles(ctx context.Context, q FileQuery) (files []FileText, more bool, err error) {
	if q.Method == Statement {
		return nil, false, contract.InvalidFields(contract.Field{Path: "methodName", Message: "the text of files is searched by keyword, query_syntax or regex"})
	}
	if q.Method == Regexp {
		if _, err := regexp.Compile(q.Text); err != nil {
			return nil, false, contract.InvalidFields(contract.Field{Path: "query", Message: "is not a valid regular expression"})
		}
	}
	if q.Order < 2 && !s.whole() {
		q.Order = byUpdate
	}
	req := siyuan.Search{Query: q.Text, Method: siyuan.SearchMethod(q.Method), Types: q.Exts, OrderBy: q.Order, Size: searchPage}
	var found []siyuan.AssetContent
	for req.Page = 1; ; req.Page++ {
		res, err := s.g.r.SearchAssetContent(ctx, req)
		if err != nil {
			return nil, false, err
		}
		found = append(found, res.AssetContents...)
		if more = len(found) >= searchRows && req.Page < res.PageCount; more || len(res.AssetContents) < req.Size {
			break
		}
	}
	files, err = s.linkedFiles(ctx, found)
	return files, more, err
}

// FileTextByID is one entry of an earlier search. One in a file that the caller
// may not read does not exist.
func (s *Session) FileTextByID(ctx context.Context, id string, q FileQuery) (FileText, error) {
	missing := contract.Fail(contract.NotFound, "There is no such entry in the index of files.")
	if !contract.IsID(id) || q.Method == Statement {
		return FileText{}, missing
	}
	found, err := s.g.r.AssetContent(ctx, siyuan.ID(id), q.Text, siyuan.SearchMethod(q.Method))
	if siyuan.KindOf(err) == siyuan.Missing {
		return FileText{}, missing
	}
	if err != nil {
		return FileText{}, err
	}
	files, err := s.linkedFiles(ctx, []siyuan.AssetContent{found})
	if err == nil && len(files) == 0 {
		err = missing
	}
	if err != nil {
		return FileText{}, err
	}
	return files[0], nil
}

// linkedFiles keeps the files that readable notes link to and hidden ones do not.
func (s *Session) linkedFiles(ctx context.Context, found []siyuan.AssetContent) ([]FileText, error) {
	open, shut := map[string]bool{}, map[string]bool{}
	for batch := range slices.Chunk(found, existAtOnce) {
		var paths string
		for _, f := range batch {
			paths += ", " + quoteSQL(f.Path)
		}
		rows, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT path, box FROM assets WHERE path IN (%s) ORDER BY path, box LIMIT %d", paths[2:], maxLinkRows))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if s.level(siyuan.ID(r.Text("box"))).Allows(contract.Read) {
				open[r.Text("path")] = true
			} else {
				shut[r.Text("path")] = true
			}
		}
		if len(rows) == maxLinkRows { // what was cut off may be hidden
			return nil, contract.Fail(contract.TooLarge, "The files found are linked from too many notebooks.").WithHint("Narrow the search with more words or types.")
		}
	}
	var files []FileText
	for _, f := range found {
		if open[f.Path] && !shut[f.Path] {
			files = append(files, FileText{
				ID: string(f.ID), Name: f.Name, Ext: f.Ext, Path: f.Path, Size: f.Size, Updated: f.Updated, Content: unmarked(f.Content),
			})
		}
	}
	return files, nil
}

// maxLinkRows bounds the notebooks of the files of one batch.
const maxLinkRows = 100_000
