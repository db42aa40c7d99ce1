package samplekernel

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func fileRoutes() map[string]route {
	return map[string]route{
		"/api/file/getFile":    {raw: serveGetFile},
		"/api/file/putFile":    {raw: servePutFile, write: true},
		"/api/file/readDir":    {serve: readDir},
		"/api/file/removeFile": {serve: removeFile, write: true},
		"/api/file/renameFile": {serve: renameFile, write: true},
	}
}

var errOutside = failCode(http.StatusForbidden, "permission denied")

// inside turns a workspace path into a real one and refuses to leave the workspace.
func (k *Kernel) inside(p string) (string, error) {
	abs := filepath.Join(k.dir, filepath.FromSlash(p))
	if abs != k.dir && !strings.HasPrefix(abs, k.dir+string(filepath.Separator)) {
		return "", errOutside
	}
	return abs, nil
}

// serveGetFile sends the bytes with 200; every error is a 202 with the code inside.
func serveGetFile(k *Kernel, w http.ResponseWriter, r *http.Request) {
	name, err := k.fileArg(r)
	if err != nil {
		reply(w, http.StatusAccepted, nil, err)
		return
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		reply(w, http.StatusAccepted, nil, failCode(http.StatusInternalServerError, err.Error()))
		return
	}
	w.Header().Set("Content-Type", contentType(name, raw))
	w.WriteHeader(http.StatusOK)
	w.Write(raw)
}

func (k *Kernel) fileArg(r *http.Request) (string, error) {
	a, err := readArgs(r)
	if err != nil {
		return "", err
	}
	p, err := a.needText("path")
	if err != nil {
		return "", err
	}
	name, err := k.inside(p)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", failCode(http.StatusNotFound, "file does not exist")
	case info.IsDir():
		return "", failCode(http.StatusConflict, "path is a directory")
	}
	return name, nil
}

// contentType knows the extensions a workspace has; the system's tables differ
// from machine to machine.
func contentType(name string, raw []byte) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".sy", ".json":
		return "application/json"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".db":
		return "application/vnd.sqlite3"
	case "":
		return "text/plain"
	default:
		if t := mime.TypeByExtension(ext); t != "" {
			return t
		}
	}
	return http.DetectContentType(raw)
}

func (k *Kernel) serveFile(w http.ResponseWriter, p string) {
	name, err := k.inside(path.Clean("/" + p))
	if err != nil {
		notFound(w)
		return
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", contentType(name, raw))
	w.Write(raw)
}

func servePutFile(k *Kernel, w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reply(w, http.StatusOK, nil, k.putFile(r))
}

// putFile writes a file of the workspace; documents written this way are not
// indexed until upsertIndexes.
func (k *Kernel) putFile(r *http.Request) error {
	_ = r.ParseMultipartForm(32 << 20) // another content type has no path, which is the error then
	p := r.FormValue("path")
	if p == "" {
		return failCode(http.StatusBadRequest, "path must not be empty")
	}
	name, err := k.inside(p)
	if err != nil {
		return err
	}
	if strings.ContainsAny(path.Base(p), `:?*"<>|`) {
		return failCode(http.StatusBadRequest, "invalid file path. For details, please check https://github.com/siyuan-note/siyuan/issues/14658")
	}
	if isDir, _ := strconv.ParseBool(r.FormValue("isDir")); isDir {
		return os.MkdirAll(name, 0o755)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return failCode(http.StatusBadRequest, "path is a directory")
	}
	f, _, err := r.FormFile("file")
	if err != nil {
		return failCode(http.StatusBadRequest, "Field [file] must not be empty")
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if err := writeFile(name, raw); err != nil {
		return err
	}
	return setModTime(name, r.FormValue("modTime"))
}

func setModTime(name, ms string) error {
	if ms == "" {
		return nil
	}
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return failCode(http.StatusInternalServerError, err.Error())
	}
	return os.Chtimes(name, time.UnixMilli(n), time.UnixMilli(n))
}

func readDir(k *Kernel, a args) (any, error) {
	p, err := a.needStr("path")
	if err != nil {
		return nil, err
	}
	name, err := k.inside(p)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, failCode(http.StatusNotFound, "path does not exist")
	case !info.IsDir():
		return nil, failCode(http.StatusConflict, "path is not a directory")
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, failCode(http.StatusInternalServerError, err.Error())
	}
	out := []any{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone between listing and looking
		}
		out = append(out, map[string]any{
			"name": e.Name(), "isDir": e.IsDir(), "isSymlink": e.Type()&fs.ModeSymlink != 0, "updated": info.ModTime().Unix(),
		})
	}
	return out, nil
}

func removeFile(k *Kernel, a args) (any, error) {
	p, err := a.needText("path")
	if err != nil {
		return nil, err
	}
	name, err := k.inside(p)
	if err != nil {
		return nil, err
	}
	if !fileExists(name) {
		return nil, failCode(http.StatusNotFound, "path does not exist")
	}
	return nil, os.RemoveAll(name)
}

func renameFile(k *Kernel, a args) (any, error) {
	from, err := a.needText("path")
	if err != nil {
		return nil, err
	}
	to, err := a.needText("newPath")
	if err != nil {
		return nil, err
	}
	oldName, err := k.inside(from)
	if err != nil {
		return nil, err
	}
	newName, err := k.inside(to)
	if err != nil {
		return nil, err
	}
	if !fileExists(oldName) {
		return nil, failCode(http.StatusNotFound, "Field [path]: path does not exist")
	}
	if _, err := os.Stat(newName); !errors.Is(err, fs.ErrNotExist) {
		return nil, failCode(http.StatusConflict, "Field [newPath]: path already exists")
	}
	if err := os.MkdirAll(filepath.Dir(newName), 0o755); err != nil {
		return nil, err
	}
	return nil, os.Rename(oldName, newName)
}
