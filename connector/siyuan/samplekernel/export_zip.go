package samplekernel

import (
	"archive/zip"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

// exportMd packs a document as Markdown with its assets into a zip below
// /export/. A document that is not there has no zip and is no error.
func exportMd(k *Kernel, a args) (any, error) {
	d, ok := k.docOf(a.str("id"))
	if !ok {
		return nil, nil
	}
	markdown, err := exportMdContent(k, a)
	if err != nil {
		return nil, err
	}
	content := markdown.(map[string]any)["content"].(string)
	files := map[string][]byte{cleanName(d.title()) + ".md": []byte(content)}
	for _, asset := range text.Assets(d.root) {
		if name, found := k.assetFile(asset); found {
			raw, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			files[asset] = raw
		}
	}
	packed, err := pack(files)
	if err != nil {
		return nil, err
	}
	name := cleanName(d.title()) + ".md.zip"
	if err := writeFile(k.workspace("temp", "export", name), packed); err != nil {
		return nil, err
	}
	return map[string]any{"name": d.id(), "zip": "/export/" + url.PathEscape(name)}, nil
}

// exportResources packs files and folders of the workspace, whatever they are.
func exportResources(k *Kernel, a args) (any, error) {
	failed := func(msg string) error {
		return &apiError{code: 1, msg: msg, data: map[string]any{"closeTimeout": 7000}}
	}
	files := map[string][]byte{}
	for _, p := range a.strs("paths") {
		root, err := k.inside(p)
		if err != nil {
			return nil, failed("resource path [" + p + "] is not in workspace")
		}
		if err := collect(root, files); errors.Is(err, fs.ErrNotExist) {
			return nil, failed("Export failed: lstat " + root + ": no such file or directory")
		} else if err != nil {
			return nil, err
		}
	}
	packed, err := pack(files)
	if err != nil {
		return nil, err
	}
	sum := md5.Sum(packed)
	to := path.Join("temp", "export", hex.EncodeToString(sum[:])+"-"+cleanName(a.strOr("name", ""))+".zip")
	return map[string]any{"path": to}, writeFile(k.workspace(filepath.FromSlash(to)), packed)
}

// collect reads a file, or all files below a folder, under the name of that.
func collect(root string, files map[string][]byte) error {
	return filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel := strings.TrimPrefix(name, filepath.Dir(root)+string(filepath.Separator))
		files[filepath.ToSlash(rel)], err = os.ReadFile(name)
		return err
	})
}

func pack(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range sortedKeys(files) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
