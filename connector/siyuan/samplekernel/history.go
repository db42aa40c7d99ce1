package samplekernel

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func historyRoutes() map[string]route {
	const p = "/api/history/"
	return map[string]route{
		p + "createDocHistory":        {serve: createDocHistory, write: true},
		p + "searchHistory":           {serve: searchHistory},
		p + "getHistoryItems":         {serve: getHistoryItems},
		p + "getDocHistoryContent":    {serve: getDocHistoryContent},
		p + "rollbackDocHistory":      {serve: rollbackDocHistory, write: true},
		p + "rollbackNotebookHistory": {serve: rollbackMissing},
		p + "rollbackAssetsHistory":   {serve: rollbackMissing},
		p + "getNotebookHistory":      {serve: getNotebookHistory, noBody: true},
		p + "reindexHistory":          {serve: nothing, noBody: true},
		p + "clearWorkspaceHistory":   {serve: clearWorkspaceHistory, noBody: true, write: true},
	}
}

// version is a file in the history: history/<time>-<op>/<box>/<path>.
type version struct {
	created   time.Time
	op        string
	box, file string
	root      *ast.Node
}

// The kinds of things searchHistory looks for.
const (
	historyTitle = iota
	historyContent
	historyAssets
	historyID
	historyDatabase
)

// versions reads all document versions, newest first.
func (k *Kernel) versions() (list []version) {
	base := k.workspace("history")
	entries, _ := os.ReadDir(base) // no folder: no history
	for _, e := range entries {
		parts := strings.SplitN(e.Name(), "-", 5)
		if len(parts) < 5 {
			continue
		}
		created, err := time.ParseInLocation("2006-01-02-150405", strings.Join(parts[:4], "-"), k.now().Location())
		if err != nil {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(base, e.Name()), func(p string, f os.DirEntry, err error) error {
			if err != nil || f.IsDir() || !strings.HasSuffix(p, ".sy") {
				return nil
			}
			raw, err := os.ReadFile(p)
			if err != nil {
				return nil
			}
			rel, _ := filepath.Rel(filepath.Join(base, e.Name()), p)
			box, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
			if root, err := text.Decode(raw); err == nil {
				list = append(list, version{created, parts[4], box, p, root})
			}
			return nil
		})
	}
	slices.SortStableFunc(list, func(a, b version) int { return int(b.created.Unix() - a.created.Unix()) })
	return list
}

func createDocHistory(k *Kernel, a args) (any, error) {
	d, ok := k.docOf(a.str("id"))
	if !ok {
		return nil, fail(k.notFoundText())
	}
	to := k.workspace("history", k.now().Format("2006-01-02-150405")+"-update", d.box, filepath.FromSlash(d.path))
	return nil, writeFile(to, text.Encode(d.root))
}

// matching picks the versions a search asks for.
func (k *Kernel) matching(a args) (list []version) {
	query, box, op, kind := a.strOr("query", ""), a.strOr("notebook", ""), a.strOr("op", "all"), a.intOr("type", historyTitle)
	for _, v := range k.versions() {
		if box != "" && v.box != box || op != "all" && v.op != op {
			continue
		}
		found := false
		switch kind {
		case historyTitle:
			found = containsFold(text.Content(v.root), query)
		case historyContent:
			found = slices.ContainsFunc(text.Blocks(v.root), func(n *ast.Node) bool { return containsFold(text.Content(n), query) })
		case historyID:
			found = slices.ContainsFunc(text.Blocks(v.root), func(n *ast.Node) bool { return n.ID == query })
		}
		if found {
			list = append(list, v)
		}
	}
	return list
}

// historyPage is how many times one page of searchHistory lists.
const historyPage = 32

func searchHistory(k *Kernel, a args) (any, error) {
	times := []string{}
	for _, v := range k.matching(a) {
		if t := strconv.FormatInt(v.created.Unix(), 10); !slices.Contains(times, t) {
			times = append(times, t)
		}
	}
	total, page := len(times), max(1, a.intOr("page", 1))
	return map[string]any{
		"histories": times[min((page-1)*historyPage, total):min(page*historyPage, total)], "totalCount": total, "pageCount": (total + historyPage - 1) / historyPage,
	}, nil
}

func getHistoryItems(k *Kernel, a args) (any, error) {
	created := a.str("created")
	items := []any{}
	for _, v := range k.matching(a) {
		if strconv.FormatInt(v.created.Unix(), 10) == created {
			rel, _ := filepath.Rel(k.dir, v.file)
			items = append(items, map[string]any{"title": text.Content(v.root), "path": "/" + filepath.ToSlash(rel), "op": v.op, "notebook": v.box})
		}
	}
	return map[string]any{"items": items}, nil
}

// versionAt reads a version by the path getHistoryItems gives.
func (k *Kernel) versionAt(p string) (version, bool) {
	name := filepath.Clean(k.workspace(strings.TrimPrefix(p, k.dir)))
	for _, v := range k.versions() {
		if v.file == name {
			return v, true
		}
	}
	return version{}, false
}

// getDocHistoryContent of a version that is not there is empty, not an error.
func getDocHistoryContent(k *Kernel, a args) (any, error) {
	out := map[string]any{"content": "", "id": "", "isLargeDoc": false, "rootID": ""}
	if v, ok := k.versionAt(a.str("historyPath")); ok {
		out["content"], out["id"], out["rootID"] = frozen(dom(v.root)), v.root.ID, v.root.ID
	}
	return out, nil
}

// frozen is a DOM nobody can edit, as the past is shown.
func frozen(dom string) string {
	return strings.NewReplacer(`contenteditable="true"`, `contenteditable="false"`, `draggable="true"`, `draggable="false"`).Replace(dom)
}

// rollbackDocHistory puts a version back, under its old path if the document
// is gone.
func rollbackDocHistory(k *Kernel, a args) (any, error) {
	p := a.str("historyPath")
	v, ok := k.versionAt(p)
	if !ok {
		return nil, fail("history path [" + p + "] not exist")
	}
	_, rel, _ := strings.Cut(filepath.ToSlash(v.file), "/"+v.box+"/")
	return nil, k.restore(v.box, "/"+rel, v.root)
}

// restore makes root the tree of its document again, which is put at syPath if
// it is gone.
func (k *Kernel) restore(box, syPath string, root *ast.Node) error {
	if _, open := k.openBox(box); !open {
		return fail(msgNoNotebook)
	}
	d, exists := k.docs[root.ID]
	if !exists {
		d = &document{box: box, path: syPath}
	}
	d.root = root
	k.docs[root.ID] = d
	d.hpath = k.hpath(d)
	return k.save(d)
}

func rollbackMissing(_ *Kernel, a args) (any, error) {
	return nil, fail("history path [" + a.str("historyPath") + "] not exist")
}

func getNotebookHistory(*Kernel, args) (any, error) {
	return map[string]any{"histories": []any{}}, nil
}

func clearWorkspaceHistory(k *Kernel, _ args) (any, error) {
	if err := os.RemoveAll(k.workspace("history")); err != nil {
		return nil, err
	}
	return nil, os.MkdirAll(k.workspace("history"), 0o755)
}
