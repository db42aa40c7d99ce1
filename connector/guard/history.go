package guard

import (
	"context"
	"path"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Version is a kept state of a document.
type Version struct {
	doc  Doc
	path string

	Kept string // Unix seconds
	Op   string // update, delete, ...
}

// maxVersions bounds a document's listed history.
const maxVersions = 256

// History lists the kept states of a document, the newest first. Only those
// kept under the document's own notebook and id count: history files of other
// notebooks are none of its business.
func (s *Session) History(ctx context.Context, d Doc) ([]Version, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return nil, err
	}
	const byID = 3
	q := siyuan.HistoryQuery{Query: string(d.id), Notebook: d.nb.id, Type: byID}
	var versions []Version
	for page := 1; ; page++ {
		times, err := s.g.r.SearchHistory(ctx, q, page)
		if err != nil {
			return nil, err
		}
		for _, t := range times.Histories {
			items, err := s.g.r.HistoryItems(ctx, t, q)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				v := Version{doc: d, path: item.Path, Kept: t, Op: item.Op}
				known := slices.ContainsFunc(versions, func(w Version) bool { return w.path == v.path })
				if !known && ofDoc(item.Path, d) {
					versions = append(versions, v)
				}
			}
		}
		if page >= times.PageCount || len(versions) >= maxVersions {
			return versions[:min(len(versions), maxVersions)], nil
		}
	}
}

// ofDoc reports whether a history file is a state of the document:
// /history/<time>/<notebook>/…/<document>.sy.
func ofDoc(file string, d Doc) bool {
	parts := strings.Split(strings.TrimPrefix(file, "/"), "/")
	return path.Clean(file) == file && len(parts) >= 4 && parts[0] == "history" &&
		parts[2] == string(d.nb.id) && parts[len(parts)-1] == string(d.id)+".sy"
}

// VersionDOM is a kept state of a document as block DOM; isMarkdown says that
// the kernel gave a large one as Markdown.
func (s *Session) VersionDOM(ctx context.Context, v Version) (text string, isMarkdown bool, err error) {
	if err := s.use(v.doc.nb, contract.Read); err != nil {
		return "", false, err
	}
	kept, err := s.g.r.HistoryDoc(ctx, v.path)
	if err != nil {
		return "", false, s.vanished(err, "document", v.doc.id)
	}
	if kept.IsLargeDoc {
		text, err = s.maskText(ctx, kept.Content)
		return text, true, err
	}
	text, err = s.maskDOM(ctx, kept.Content)
	return text, false, err
}
