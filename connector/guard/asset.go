package guard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Asset is a file below assets/ whose level is proven in every notebook that
// links to it.
type Asset struct {
	s     *Session
	path  string
	level contract.Level
	boxes []siyuan.ID // that link to it; none of a file that no note links to
	docs  []siyuan.ID // that link to it

	unused    bool       // nothing at all links to it
	databases []Database // with it in a cell, of one that is to be changed
	size      int64
}

// Path is the asset's path as notes link to it, beginning with assets/.
func (a Asset) Path() string { return a.path }

// Documents is how many documents link to it.
func (a Asset) Documents() int { return len(a.docs) }

// Size is how many bytes the file has.
func (a Asset) Size() int64 { return a.size }

// assetPath accepts a clean path of a file below assets/, and nothing that
// could leave it: the kernel serves its configuration, token included, to
// whoever asks for the right path.
func assetPath(p string) (string, bool) {
	p = strings.TrimPrefix(strings.TrimPrefix(p, "/"), "data/")
	p, _, _ = strings.Cut(p, "?") // the page of a PDF
	if !strings.HasPrefix(p, "assets/") || path.Clean(p) != p || strings.ContainsAny(p, "\\%\x00") {
		return "", false
	}
	return p, !slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
}

// leavesAssets: the path leads out of the assets folder once it is decoded and
// cleaned.
func leavesAssets(p string) bool {
	for range 2 { // some decode what is decoded already
		if plain, err := url.PathUnescape(p); err == nil {
			p = plain
		}
	}
	return slices.Contains(strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// Asset proves a level for a file: the least of the levels in all notebooks that
// link to it. One that something hidden links to does not exist, and neither does
// one that nothing readable links to, but for those from whom nothing is hidden:
// they reach it with the assets switch, and read what only databases or closed
// notebooks link to. What the agent stored itself it may read before anything
// links to it.
func (s *Session) Asset(ctx context.Context, file string, need contract.Level) (Asset, error) {
	clean, ok := assetPath(file)
	if !ok {
		return Asset{}, noAsset()
	}
	boxes, docs, err := s.linking(ctx, clean)
	if err != nil {
		return Asset{}, err
	}
	a := Asset{s: s, path: clean, level: contract.ReadWriteDelete, boxes: boxes, docs: docs}
	for _, box := range boxes {
		a.level = min(a.level, s.level(box))
	}
	own := len(boxes) == 0 && contract.Read.Allows(need) && s.stored(clean)
	if a.level == contract.None || len(boxes) == 0 && !own && !s.whole() {
		return Asset{}, noAsset()
	}
	for _, box := range boxes {
		s.touch(box)
		if err := s.prove(box, need); err != nil {
			return Asset{}, err
		}
	}
	if len(boxes) == 0 && !own {
		if a.unused, err = s.proveLoose(ctx, clean, need); err != nil {
			return Asset{}, err
		}
	}
	st, err := s.g.r.StatAsset(ctx, clean) // follows no symbolic link out of the folder
	if siyuan.KindOf(err) == siyuan.Missing {
		return Asset{}, noAsset()
	}
	a.size = st.Size
	return a, err
}

func noAsset() error { return contract.Fail(contract.NotFound, "There is no such asset.") }

// linking lists the notebooks with a note that links to a file, hidden ones too,
// and those notes.
// A link may have a page or a fragment behind it, be percent-encoded, or take a
// detour. Covers that begin with a slash are not among SiYuan's links.
func (s *Session) linking(ctx context.Context, clean string) (boxes, docs []siyuan.ID, err error) {
	n := len([]rune(clean))
	found, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT path, box, root_id FROM assets WHERE path = %[1]s OR substr(path, 1, %[2]d) IN (%[1]s || '?', %[1]s || '#')"+
		" OR instr(path, '%%') OR instr(path, './') OR instr(path, '//') UNION SELECT %[1]s, box, root_id FROM blocks WHERE type = 'd' AND instr(ial, '%[3]s=') AND instr(replace(ial, '&amp;', '&'), '/' || %[1]s) ORDER BY 2, 3 LIMIT %[4]d",
		quoteSQL(clean), n+1, coverAttr, maxLinkRows))
	if err != nil {
		return nil, nil, err
	}
	if len(found) == maxLinkRows { // what was cut off may be hidden
		return nil, nil, contract.Fail(contract.TooLarge, "There are too many links to tell which notebooks a file belongs to.")
	}
	for _, r := range found {
		if leadsTo(r.Text("path"), clean) {
			boxes, docs = append(boxes, siyuan.ID(r.Text("box"))), append(docs, siyuan.ID(r.Text("root_id")))
		}
	}
	return unique(boxes), unique(docs), nil
}

// leadsTo reports whether a link of a note leads to a file.
func leadsTo(link, clean string) bool {
	link, _, _ = strings.Cut(link, "?")
	if plain, err := url.PathUnescape(link); err == nil {
		link = plain
	}
	link = path.Clean(link)
	return link == clean || strings.HasPrefix(link, clean+"#")
}

// proveLoose proves a level for a file that no note in an open notebook links to,
// for a caller from whom nothing is hidden. unused says that nothing else links to
// it either.
func (s *Session) proveLoose(ctx context.Context, clean string, need contract.Level) (unused bool, err error) {
	all, err := s.g.r.UnusedAssets(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case slices.ContainsFunc(all, func(u siyuan.UnusedItem) bool { return u.Item == clean }):
		return true, s.holds(contract.SwitchAssets)
	case !contract.Read.Allows(need):
		return false, unowned()
	}
	return false, nil
}

func unowned() error {
	return contract.Fail(contract.Unsupported, "No note of an open notebook links to this file, so it cannot be told whose it is.").
		WithHint("Link to it in a note of an open notebook first, or ask the person to change it in SiYuan.")
}

// useAsset checks that a reference is of this session.
func (s *Session) useAsset(a Asset) error {
	if a.s != s {
		return contract.Internalf(errors.New("guard: reference of another session"), "use asset")
	}
	return nil
}

// AssetFile reads an asset, with the content type the kernel guessed.
func (s *Session) AssetFile(ctx context.Context, a Asset) (data []byte, contentType string, err error) {
	if err := s.useAsset(a); err != nil {
		return nil, "", err
	}
	f, err := s.g.r.GetFile(ctx, "/data/"+a.path)
	if siyuan.KindOf(err) == siyuan.Missing {
		err = noAsset()
	}
	return f.Data, f.ContentType, err
}

// DocAssets lists the files a document links to, or only the images. While
// anything is hidden from the caller, those in the cells of databases are left
// out: the cell may be of a hidden note.
func (s *Session) DocAssets(ctx context.Context, d Doc, images bool) ([]string, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return nil, err
	}
	list := s.g.r.DocAssets
	if images {
		list = s.g.r.DocImages
	}
	paths, err := list(ctx, d.id)
	if err != nil || len(paths) == 0 || s.whole() {
		return paths, s.vanished(err, "document", d.id)
	}
	rows, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT path FROM assets WHERE root_id = %s LIMIT %d", quoteSQL(d.ID()), maxLinkRows))
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, r := range rows {
		own[r.Text("path")] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool { return !own[p] }), nil
}

// ImageText is the text that SiYuan recognised in an image, "" when there is none.
func (s *Session) ImageText(ctx context.Context, a Asset) (string, error) {
	if err := s.useAsset(a); err != nil {
		return "", err
	}
	return s.g.r.ImageOCR(ctx, a.path)
}
