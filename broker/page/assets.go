package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

//go:embed assets
var assetFiles embed.FS

// AssetsPath is where Assets is mounted.
const AssetsPath = "/assets/"

// assets are the style sheet, the scripts and the icon. Their paths carry a hash
// of their contents, so browsers keep them for good.
type assets struct {
	paths map[string]string // by name
	files map[string]asset  // by path
}

type asset struct {
	content []byte
	kind    string
}

func loadAssets() (*assets, error) {
	a := &assets{paths: map[string]string{}, files: map[string]asset{}}
	entries, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		b, err := fs.ReadFile(assetFiles, "assets/"+e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		at := AssetsPath + base64.RawURLEncoding.EncodeToString(sum[:9]) + "/" + e.Name()
		a.paths[e.Name()] = at
		a.files[at] = asset{b, contentType(e.Name())}
	}
	return a, nil
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (a *assets) path(name string) (string, error) {
	at, ok := a.paths[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return at, nil
}

// Assets serves what pages load: the same for everybody.
func (p *Pages) Assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := p.assets.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'") // an SVG opened by itself
		_, _ = w.Write(f.content)
	})
}
