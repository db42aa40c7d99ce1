package siyuan

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// File is a file's bytes with the content type the kernel guessed.
type File struct {
	Data        []byte
	ContentType string
}

// GetFile reads a file of the workspace, such as /data/assets/x.png. The kernel
// would also serve its own configuration with the token in it: callers confine
// the path. Missing, Rejected for a directory or a path outside.
func (r *Reader) GetFile(ctx context.Context, path string) (File, error) {
	k := call{path: "file/getFile", body: args{"path": path}, flags: slow | raw | direct}
	a, err := r.c.do(ctx, k)
	if err != nil {
		return File{}, err
	}
	// JSON files come as application/json too: only the status tells an error.
	if a.status != http.StatusOK {
		if _, err := decode[any](call{path: k.path, flags: nullable}, a); err != nil {
			return File{}, err
		}
		return File{}, malformed(k.path, "status %d without an error", a.status)
	}
	return File{Data: a.body, ContentType: a.contentType}, nil
}

// Download fetches a file the kernel serves by GET: an export it has just made
// (/export/...) or an asset (/assets/...).
func (r *Reader) Download(ctx context.Context, path string) (File, error) {
	k := call{path: path, flags: slow | download}
	clean := !strings.Contains(path, "..") && !strings.ContainsAny(path, "?#\\")
	if !clean || !strings.HasPrefix(path, "/export/") && !strings.HasPrefix(path, "/assets/") {
		return File{}, badArgument("download", "path is not below /export/ or /assets/")
	}
	a, err := r.c.do(ctx, k)
	if err != nil {
		return File{}, err
	}
	return File{Data: a.body, ContentType: a.contentType}, nil
}

// DirEntry is an entry of a directory.
type DirEntry struct {
	Name      string `json:"name" shape:"nonempty"`
	IsDir     bool   `json:"isDir"`
	IsSymlink bool   `json:"isSymlink"`
	Updated   int64  `json:"updated"` // Unix seconds
}

// ReadDir lists a directory of the workspace by name. Missing when there is
// none, Rejected for a file or a path outside.
func (r *Reader) ReadDir(ctx context.Context, path string) ([]DirEntry, error) {
	return read[[]DirEntry](ctx, r, "file/readDir", args{"path": path}, direct)
}

// DocAssets lists the asset paths a document uses.
func (r *Reader) DocAssets(ctx context.Context, doc ID) ([]string, error) {
	return readAt[[]string](ctx, r, "asset/getDocAssets", doc, args{"id": doc}, nullable)
}

// DocImages lists the image paths a document uses.
func (r *Reader) DocImages(ctx context.Context, doc ID) ([]string, error) {
	return readAt[[]string](ctx, r, "asset/getDocImageAssets", doc, args{"id": doc}, nullable)
}

// UnusedItem is a file nothing links to.
type UnusedItem struct {
	Item string `json:"item" shape:"nonempty"` // of an asset its path, assets/...
	Name string `json:"name"`
}

// UnusedAssets lists asset files of the workspace that no open notebook links
// to.
func (r *Reader) UnusedAssets(ctx context.Context) ([]UnusedItem, error) {
	return read[[]UnusedItem](ctx, r, "asset/getUnusedAssets", nil, indexed|slow)
}

// ImageOCR is the text recognised in an image, "" when there is none.
func (r *Reader) ImageOCR(ctx context.Context, path string) (string, error) {
	data, err := read[struct {
		Text string `json:"text"`
	}](ctx, r, "asset/getImageOCRText", args{"path": path}, 0)
	return data.Text, err
}

// AssetStat are the size and times of an asset file.
type AssetStat struct {
	Size     int64  `json:"size"`
	HSize    string `json:"hSize"`
	Created  int64  `json:"created"` // Unix milliseconds
	Updated  int64  `json:"updated"`
	HCreated string `json:"hCreated"`
	HUpdated string `json:"hUpdated"`
}

// StatAsset reads the size of an asset file. Missing when there is none, or a
// symbolic link leads out of the folder.
func (r *Reader) StatAsset(ctx context.Context, path string) (AssetStat, error) {
	const endpoint, none = "asset/statAsset", 1
	st, err := read[AssetStat](ctx, r, endpoint, args{"path": path}, direct)
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == Rejected && e.Code == none {
		return st, missing(endpoint)
	}
	return st, err
}

// Export chooses what ExportMarkdown writes; the zero value is the plain text.
type Export struct {
	FrontMatter bool // YAML with title and dates
	Title       bool // a first-level heading with the document's title
	RefMode     int  // 2 links, 3 anchor texts, 4 footnotes; 0 the user's setting
	EmbedMode   int  // 0 original text, 1 quotation; the user's setting does not matter
}

// Exported is a document as standard Markdown.
type Exported struct {
	HPath   string `json:"hPath"`
	Content string `json:"content"`
}

// ExportMarkdown exports a document, or the section of a block. Embed blocks
// are expanded with text of all notebooks, anchors show foreign titles. A
// missing document is Missing.
func (r *Reader) ExportMarkdown(ctx context.Context, id ID, e Export) (Exported, error) {
	const path = "export/exportMdContent"
	body := args{"id": id, "yfm": e.FrontMatter, "addTitle": e.Title, "embedMode": e.EmbedMode}
	if e.RefMode != 0 {
		body["refMode"] = e.RefMode
	}
	out, err := readAt[Exported](ctx, r, path, id, body, slow)
	if err == nil && out == (Exported{}) {
		return out, missing(path)
	}
	return out, err
}

// ExportPreview is a document as HTML; a missing one is Missing.
func (r *Reader) ExportPreview(ctx context.Context, id ID) (string, error) {
	const path = "export/preview"
	data, err := readAt[struct {
		HTML string `json:"html"`
	}](ctx, r, path, id, args{"id": id}, slow)
	if err == nil && data.HTML == "" {
		return "", missing(path)
	}
	return data.HTML, err
}

// ExportResources packs files and folders of the workspace into a zip for
// Download and returns its path. It writes only to the kernel's folder for
// temporary files, so it counts as reading.
func (r *Reader) ExportResources(ctx context.Context, paths []string, name string) (string, error) {
	data, err := read[struct {
		Path string `json:"path" shape:"nonempty"`
	}](ctx, r, "export/exportResources", args{"paths": list(paths), "name": name}, slow)
	return data.Path, err
}

// ExportZip packs a document with its assets as Markdown into a zip for
// Download and returns the path. It counts as reading, as ExportResources.
func (r *Reader) ExportZip(ctx context.Context, doc ID) (string, error) {
	const path = "export/exportMd"
	data, err := readAt[struct {
		Zip string `json:"zip"`
	}](ctx, r, path, doc, args{"id": doc}, slow|nullable)
	if err == nil && data.Zip == "" {
		return "", missing(path)
	}
	return data.Zip, err
}
