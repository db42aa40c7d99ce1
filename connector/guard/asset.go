package guard

import (
	"context"
	"errors"
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
}

// Path is the asset's path as notes link to it, beginning with assets/.
func (a Asset) Path() string { return a.path }

// assetPath accepts a clean path of a file below assets/, and nothing that
// could leave it: the kernel serves its configuration, token included, to
// whoever asks for the right path.
func assetPath(p string) (string, bool) {
	p = strings.TrimPrefix(strings.TrimPrefix(p, "/"), "data/")
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

// Asset proves a level for an asset: the least of the levels in all notebooks
// that link to it. One that nothing readable links to, or something hidden does,
// does not exist.
func (s *Session) Asset(ctx context.Context, file string, need contract.Level) (Asset, error) {
	missing := contract.Fail(contract.NotFound, "There is no such asset.")
	clean, ok := assetPath(file)
	if !ok {
		return Asset{}, missing
	}
	found, err := s.g.sql(ctx, "SELECT DISTINCT box FROM assets WHERE path = "+quoteSQL(clean)+" ORDER BY box LIMIT 10000")
	if err != nil {
		return Asset{}, err
	}
	if len(found) == 0 {
		return Asset{}, missing
	}
	a := Asset{s: s, path: clean, level: contract.ReadWriteDelete}
	for _, r := range found {
		a.level = min(a.level, s.level(siyuan.ID(r.Text("box"))))
	}
	if a.level == contract.None {
		return Asset{}, missing
	}
	for _, r := range found {
		s.touch(siyuan.ID(r.Text("box")))
		if err := s.prove(siyuan.ID(r.Text("box")), need); err != nil {
			return Asset{}, err
		}
	}
	return a, nil
}

// AssetFile reads an asset, with the content type the kernel guessed.
func (s *Session) AssetFile(ctx context.Context, a Asset) (data []byte, contentType string, err error) {
	if a.s != s {
		return nil, "", contract.Internalf(errors.New("guard: reference of another session"), "use asset")
	}
	f, err := s.g.r.GetFile(ctx, "/data/"+a.path)
	if siyuan.KindOf(err) == siyuan.Missing {
		err = contract.Fail(contract.NotFound, "There is no such asset.")
	}
	return f.Data, f.ContentType, err
}

// DocAssets lists the assets a document links to.
func (s *Session) DocAssets(ctx context.Context, d Doc) ([]string, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return nil, err
	}
	paths, err := s.g.r.DocAssets(ctx, d.id)
	return paths, s.vanished(err, "document", d.id)
}
