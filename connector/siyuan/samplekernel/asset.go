package samplekernel

import (
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func assetRoutes() map[string]route {
	const p = "/api/asset/"
	return map[string]route{
		p + "upload":                  {raw: serveUpload, write: true},
		p + "insertLocalAssets":       {serve: insertLocalAssets, write: true},
		p + "getDocAssets":            {serve: getDocAssets},
		p + "getDocImageAssets":       {serve: getDocImages},
		p + "getUnusedAssets":         {serve: getUnusedAssets, noBody: true},
		p + "getMissingAssets":        {serve: getMissingAssets, noBody: true},
		p + "removeUnusedAsset":       {serve: removeUnusedAsset, write: true},
		p + "removeUnusedAssets":      {serve: removeUnusedAssets, noBody: true, write: true},
		p + "renameAsset":             {serve: renameAsset, write: true},
		p + "resolveAssetPath":        {serve: resolveAssetPath},
		p + "statAsset":               {serve: statAsset},
		p + "getImageOCRText":         {serve: getImageOCRText},
		p + "setImageOCRText":         {serve: setImageOCRText, write: true},
		p + "getFileAnnotation":       {serve: getFileAnnotation},
		p + "fullReindexAssetContent": {serve: nothing, noBody: true},
	}
}

// assetFile is the real path of assets/…, false when there is no such file, or
// when a symbolic link leads out of the folder.
func (k *Kernel) assetFile(asset string) (string, bool) {
	if !strings.HasPrefix(asset, "assets/") {
		return "", false
	}
	name, err := k.inside("data/" + asset)
	if err != nil || !fileExists(name) {
		return "", false
	}
	target, err := filepath.EvalSymlinks(name)
	root, rootErr := filepath.EvalSymlinks(k.workspace("data", "assets"))
	return name, err == nil && rootErr == nil && strings.HasPrefix(target, root+string(filepath.Separator))
}

// addAsset stores a file under its name and a new id; a file with the same
// content is found again instead.
func (k *Kernel) addAsset(name string, raw []byte) (string, error) {
	base, ext := strings.TrimSuffix(path.Base(name), path.Ext(name)), path.Ext(name)
	for _, asset := range k.assetFiles() {
		if !strings.HasPrefix(asset, "assets/"+base+"-") {
			continue
		}
		if have, err := os.ReadFile(k.workspace("data", asset)); err == nil && string(have) == string(raw) {
			return asset, nil
		}
	}
	asset := "assets/" + base + "-" + k.newID() + ext
	return asset, writeFile(k.workspace("data", asset), raw)
}

// assetFiles lists the files in data/assets as assets/….
func (k *Kernel) assetFiles() (list []string) {
	entries, _ := os.ReadDir(k.workspace("data", "assets")) // no folder: no assets
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != ocrName {
			list = append(list, "assets/"+e.Name())
		}
	}
	return list
}

func serveUpload(k *Kernel, w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, err := k.upload(r)
	reply(w, http.StatusOK, data, err)
}

func (k *Kernel) upload(r *http.Request) (any, error) {
	if err := r.ParseMultipartForm(32 << 20); err != nil {
		return nil, fail(err.Error())
	}
	if id := r.FormValue("id"); id != "" {
		if _, ok := k.docOf(id); !ok {
			return nil, fail("Failed to insert asset file, please reopen the document")
		}
	} else if dir := r.FormValue("assetsDirPath"); dir != "" {
		if clean := path.Clean("/" + dir); clean != "/assets" {
			return nil, fail("Path [" + clean + "] is not in workspace")
		}
	}
	stored := map[string]string{}
	for _, header := range r.MultipartForm.File["file[]"] {
		f, err := header.Open()
		if err != nil {
			return nil, fail(err.Error())
		}
		raw, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return nil, fail(err.Error())
		}
		if stored[header.Filename], err = k.addAsset(header.Filename, raw); err != nil {
			return nil, err
		}
	}
	return map[string]any{"errFiles": nil, "succMap": stored}, nil
}

func insertLocalAssets(k *Kernel, a args) (any, error) {
	paths := a.strs("assetPaths")
	if _, ok := k.docOf(a.str("id")); !ok {
		return nil, fail(k.notFoundText())
	}
	stored := map[string]string{}
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, k.workspace("data")+string(filepath.Separator)); ok {
			stored[path.Base(p)] = filepath.ToSlash(rest)
			continue
		}
		return nil, fail("Path [" + p + "] is not in workspace") // a sample kernel reads nothing else of the machine
	}
	return map[string]any{"succMap": stored}, nil
}

func getDocAssets(k *Kernel, a args) (any, error) {
	d, ok := k.docOf(a.str("id"))
	if !ok {
		return nil, fail(k.notFoundText())
	}
	return append([]string{}, text.Assets(d.root)...), nil
}

func getDocImages(k *Kernel, a args) (any, error) {
	d, ok := k.docOf(a.str("id"))
	if !ok {
		return nil, fail(k.notFoundText())
	}
	return append([]string{}, text.Images(d.root)...), nil
}

// usedAssets are those the documents of open notebooks link to.
func (k *Kernel) usedAssets() map[string]bool {
	used := map[string]bool{}
	for _, d := range k.docs {
		for _, asset := range text.Assets(d.root) {
			used[asset] = true
		}
	}
	return used
}

func (k *Kernel) unusedAssets() (list []string) {
	used := k.usedAssets()
	for _, asset := range k.assetFiles() {
		if !used[asset] {
			list = append(list, asset)
		}
	}
	return list
}

func assetItems(list []string) []any {
	out := []any{}
	for _, asset := range list {
		out = append(out, map[string]any{"item": asset, "name": path.Base(asset)})
	}
	return out
}

func getUnusedAssets(k *Kernel, _ args) (any, error) {
	list := k.unusedAssets()
	sort.SliceStable(list, func(i, j int) bool { return modTime(k, list[i]) > modTime(k, list[j]) })
	return assetItems(list), nil
}

func modTime(k *Kernel, asset string) int64 {
	info, err := os.Stat(k.workspace("data", asset))
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func getMissingAssets(k *Kernel, _ args) (any, error) {
	var missing []string
	for asset := range k.usedAssets() {
		if _, ok := k.assetFile(asset); !ok {
			missing = append(missing, asset)
		}
	}
	slices.Sort(missing)
	return assetItems(missing), nil
}

func (k *Kernel) dropAsset(asset string) (string, error) {
	name, err := k.inside("data/" + asset)
	if err != nil {
		return "", err
	}
	to := k.workspace("history", k.now().Format("2006-01-02-150405")+"-clean", filepath.FromSlash(asset))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	_ = os.Rename(name, to) // missing is as good as moved
	return name, nil
}

func removeUnusedAsset(k *Kernel, a args) (any, error) {
	name, err := k.dropAsset(a.str("path"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"path": name}, nil
}

func removeUnusedAssets(k *Kernel, _ args) (any, error) {
	names := []string{}
	for _, asset := range k.unusedAssets() {
		name, err := k.dropAsset(asset)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return map[string]any{"paths": names}, nil
}

// renameAsset answers with a new path even when there is no such asset.
func renameAsset(k *Kernel, a args) (any, error) {
	old, name := a.str("oldPath"), a.str("newName")
	renamed := "assets/" + cleanName(name) + "-" + k.newID() + path.Ext(old)
	if from, ok := k.assetFile(old); ok {
		if err := os.Rename(from, k.workspace("data", renamed)); err != nil {
			return nil, fail(err.Error())
		}
		for _, id := range sortedKeys(k.docs) {
			if d := k.docs[id]; text.ReplaceAsset(d.root, old, renamed) {
				if err := k.save(d); err != nil {
					return nil, err
				}
			}
		}
	}
	return map[string]any{"newPath": renamed}, nil
}

func resolveAssetPath(k *Kernel, a args) (any, error) {
	asset := a.str("path")
	name, ok := k.assetFile(asset)
	if !ok {
		return nil, failToast("Query asset failed ["+asset+"]", 3000)
	}
	return name, nil
}

func statAsset(k *Kernel, a args) (any, error) {
	name, ok := k.assetFile(a.str("path"))
	if !ok {
		return nil, failCode(1, "")
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, failCode(1, "")
	}
	const layout = "2006-01-02 15:04:05"
	t := info.ModTime()
	return map[string]any{"size": info.Size(), "hSize": humanSize(int(info.Size())), "created": t.UnixMilli(), "updated": t.UnixMilli(),
		"hCreated": t.Format(layout), "hUpdated": t.Format(layout)}, nil
}

// ocrName is the file beside the assets that holds recognised text.
const ocrName = "ocr-texts.json"

func (k *Kernel) ocrFile() string { return k.workspace("data", "assets", ocrName) }

func (k *Kernel) ocrTexts() map[string]string {
	texts := map[string]string{}
	_ = readJSONFile(k.ocrFile(), &texts) // no file: no texts yet
	return texts
}

func getImageOCRText(k *Kernel, a args) (any, error) {
	return map[string]any{"text": k.ocrTexts()[a.str("path")]}, nil
}

func setImageOCRText(k *Kernel, a args) (any, error) {
	texts := k.ocrTexts()
	texts[a.str("path")] = a.str("text")
	return nil, writeJSONFile(k.ocrFile(), texts)
}

func getFileAnnotation(k *Kernel, a args) (any, error) {
	name, ok := k.assetFile(a.str("path"))
	if !ok {
		return nil, failCode(1, "")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, failCode(1, "")
	}
	return map[string]any{"data": string(raw)}, nil
}
