package samplekernel

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func fileCopyRoutes() map[string]route {
	return map[string]route{
		"/api/file/getUniqueFilename":  {serve: getUniqueFilename},
		"/api/file/copyFile":           {serve: copyFile, write: true},
		"/api/file/workspaceCopyFiles": {serve: workspaceCopyFiles, write: true},
		"/api/file/globalCopyFiles":    {serve: globalCopyFiles, write: true},
		"/api/archive/zip":             {serve: archiveZip, write: true},
		"/api/archive/unzip":           {serve: archiveUnzip, write: true},
	}
}

// mine is an absolute path of a caller that must lead into the workspace.
func (k *Kernel) mine(p string) (string, error) {
	rel, err := filepath.Rel(k.dir, filepath.Clean(p))
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", errOutside
	}
	return k.inside(filepath.ToSlash(rel))
}

// getUniqueFilename adds a number to a name that is taken.
func getUniqueFilename(_ *Kernel, a args) (any, error) {
	p := a.str("path")
	base, ext := strings.TrimSuffix(p, path.Ext(p)), path.Ext(p)
	for i := 1; fileExists(p); i++ {
		p = fmt.Sprintf("%s (%d)%s", base, i, ext)
	}
	return map[string]any{"path": p}, nil
}

func copyTo(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, raw)
}

// copyFile copies an asset to an absolute path.
func copyFile(k *Kernel, a args) (any, error) {
	src, dest := a.str("src"), a.str("dest")
	from, ok := k.assetFile(src)
	if !ok {
		return nil, failToast("Query asset failed ["+src+"]", 5000)
	}
	if !filepath.IsAbs(dest) {
		return nil, failToast("Field [dest]: path must be absolute", 5000)
	}
	to, err := k.mine(dest)
	if err != nil {
		return nil, err
	}
	return nil, copyTo(from, to)
}

// copyAll copies files and folders into a folder of the workspace.
func (k *Kernel) copyAll(from []string, destDir string) error {
	dir, err := k.inside(destDir)
	if err != nil {
		return err
	}
	for _, f := range from {
		to := filepath.Join(dir, filepath.Base(f))
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		if info.IsDir() {
			err = os.CopyFS(to, os.DirFS(f))
		} else {
			err = copyTo(f, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func workspaceCopyFiles(k *Kernel, a args) (any, error) {
	var from []string
	for _, p := range a.strs("srcs") {
		name, err := k.inside(p)
		if err != nil {
			return nil, err
		}
		if !fileExists(name) {
			return nil, fail("file [" + p + "] does not exist")
		}
		from = append(from, name)
	}
	return nil, k.copyAll(from, a.str("destDir"))
}

// globalCopyFiles takes absolute paths; here only those of the workspace.
func globalCopyFiles(k *Kernel, a args) (any, error) {
	var from []string
	for _, p := range a.strs("srcs") {
		if !filepath.IsAbs(p) {
			return nil, fail("Field [srcs]: each path must be absolute")
		}
		name, err := k.mine(p)
		if err != nil {
			return nil, err
		}
		from = append(from, name)
	}
	return nil, k.copyAll(from, a.str("destDir"))
}

func archiveZip(k *Kernel, a args) (any, error) {
	from, err := k.inside(a.str("path"))
	if err != nil {
		return nil, err
	}
	to, err := k.inside(a.str("zipPath"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(to)
	if err != nil {
		return nil, err
	}
	z := zip.NewWriter(f)
	return nil, errors.Join(z.AddFS(os.DirFS(from)), z.Close(), f.Close())
}

func archiveUnzip(k *Kernel, a args) (any, error) {
	from, err := k.inside(a.str("zipPath"))
	if err != nil {
		return nil, err
	}
	to, err := k.inside(a.str("path"))
	if err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(from)
	if err != nil {
		return nil, fail("zip file does not exist")
	}
	defer z.Close()
	return nil, fs.WalkDir(z, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		r, err := z.Open(p)
		if err != nil {
			return err
		}
		defer r.Close()
		raw, err := io.ReadAll(io.LimitReader(r, maxBody))
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(to, filepath.FromSlash(p)), raw)
	})
}
