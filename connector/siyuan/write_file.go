package siyuan

import (
	"bytes"
	"context"
	"mime/multipart"
	"strconv"
	"time"
)

// field is a part of a multipart form: a text, or a file when it has a name.
type field struct {
	key, name string
	data      []byte
}

func multipartBody(fields ...field) (payload, error) {
	var buf bytes.Buffer
	m := multipart.NewWriter(&buf)
	for _, f := range fields {
		part, err := m.CreateFormField(f.key)
		if f.name != "" {
			part, err = m.CreateFormFile(f.key, f.name)
		}
		if err != nil {
			return payload{}, err
		}
		if _, err := part.Write(f.data); err != nil {
			return payload{}, err
		}
	}
	if err := m.Close(); err != nil {
		return payload{}, err
	}
	return payload{contentType: m.FormDataContentType(), bytes: buf.Bytes()}, nil
}

// PutFile writes a file of the workspace, making its folders. It overwrites,
// reaches the whole workspace, and does not index .sy files: callers confine
// the path.
func (w *Writer) PutFile(ctx context.Context, path string, data []byte, modified time.Time) error {
	const endpoint = "file/putFile"
	if path == "" {
		return badArgument(endpoint, "no path")
	}
	body, err := multipartBody(
		field{key: "path", data: []byte(path)},
		field{key: "isDir", data: []byte("false")},
		field{key: "modTime", data: []byte(strconv.FormatInt(modified.UnixMilli(), 10))},
		field{key: "file", name: "file", data: data},
	)
	if err != nil {
		return badArgument(endpoint, "encode: %w", err)
	}
	return exec(ctx, w, endpoint, body, slow)
}

// MakeDir makes a folder of the workspace.
func (w *Writer) MakeDir(ctx context.Context, path string, modified time.Time) error {
	const endpoint = "file/putFile"
	if path == "" {
		return badArgument(endpoint, "no path")
	}
	body, err := multipartBody(
		field{key: "path", data: []byte(path)},
		field{key: "isDir", data: []byte("true")},
		field{key: "modTime", data: []byte(strconv.FormatInt(modified.UnixMilli(), 10))},
	)
	if err != nil {
		return badArgument(endpoint, "encode: %w", err)
	}
	return exec(ctx, w, endpoint, body, slow)
}

// RemoveFile removes a file, or a folder with all it holds. Missing when there
// is none.
func (w *Writer) RemoveFile(ctx context.Context, path string) error {
	const endpoint = "file/removeFile"
	if path == "" || path == "/" {
		return badArgument(endpoint, "would remove the workspace")
	}
	return exec(ctx, w, endpoint, args{"path": path}, slow)
}

// RenameFile moves a file, making folders. Missing when there is none, Rejected
// when the target exists.
func (w *Writer) RenameFile(ctx context.Context, from, to string) error {
	return exec(ctx, w, "file/renameFile", args{"path": from, "newPath": to}, 0)
}

// UploadAsset stores a file below dir ("/assets/") under its name and a new id
// and returns its path, or the path of a file with the same name and bytes
// that some document links to.
func (w *Writer) UploadAsset(ctx context.Context, dir, name string, data []byte) (string, error) {
	const path = "asset/upload"
	if name == "" {
		return "", badArgument(path, "no file name")
	}
	body, err := multipartBody(
		field{key: "assetsDirPath", data: []byte(dir)},
		field{key: "file[]", name: name, data: data},
	)
	if err != nil {
		return "", badArgument(path, "encode: %w", err)
	}
	out, err := write[struct {
		ErrFiles []string          `json:"errFiles"`
		SuccMap  map[string]string `json:"succMap" shape:"nonnull"`
	}](ctx, w, path, body, slow)
	if err != nil {
		return "", err
	}
	for _, stored := range out.SuccMap {
		return stored, nil // one file was sent; its key may be a cleaned name
	}
	return "", &Error{Kind: Rejected, Endpoint: path}
}

// RenameAsset renames an asset file and rewrites the links to it. For a missing
// file the kernel makes up a new path: look it up before.
func (w *Writer) RenameAsset(ctx context.Context, path, newName string) (string, error) {
	data, err := write[struct {
		NewPath string `json:"newPath" shape:"nonempty"`
	}](ctx, w, "asset/renameAsset", args{"oldPath": path, "newName": newName}, slow|queued)
	return data.NewPath, err
}

// SetImageOCR replaces the text recognised in an image.
func (w *Writer) SetImageOCR(ctx context.Context, path, text string) error {
	return exec(ctx, w, "asset/setImageOCRText", args{"path": path, "text": text}, 0)
}

// RemoveUnusedAsset moves an asset file to the history; a missing one is not an
// error.
func (w *Writer) RemoveUnusedAsset(ctx context.Context, path string) error {
	return exec(ctx, w, "asset/removeUnusedAsset", args{"path": path}, slow)
}

// RemoveUnusedAssets moves all unused asset files to the history and returns
// their paths, absolute on the home machine.
func (w *Writer) RemoveUnusedAssets(ctx context.Context) ([]string, error) {
	data, err := write[struct {
		Paths []string `json:"paths" shape:"nonnull"`
	}](ctx, w, "asset/removeUnusedAssets", nil, slow)
	return data.Paths, err
}

// Zip packs a folder of the workspace into a zip file of the workspace.
func (w *Writer) Zip(ctx context.Context, path, zipPath string) error {
	return exec(ctx, w, "archive/zip", args{"path": path, "zipPath": zipPath}, slow)
}

// Unzip unpacks a zip file of the workspace into a folder.
func (w *Writer) Unzip(ctx context.Context, zipPath, path string) error {
	return exec(ctx, w, "archive/unzip", args{"zipPath": zipPath, "path": path}, slow)
}
