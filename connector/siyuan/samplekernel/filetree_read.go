package samplekernel

import (
	"path"
	"slices"
	"sort"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func filetreeRoutes() map[string]route {
	return map[string]route{
		"/api/filetree/createDoc":            {serve: createDoc, write: true},
		"/api/filetree/createDocWithMd":      {serve: createDocWithMd, write: true},
		"/api/filetree/createDailyNote":      {serve: createDailyNote, write: true},
		"/api/filetree/getDoc":               {serve: getDoc},
		"/api/filetree/listDocsByPath":       {serve: listDocsByPath},
		"/api/filetree/listDocTree":          {serve: listDocTree},
		"/api/filetree/getIDsByHPath":        {serve: getIDsByHPath},
		"/api/filetree/getPathByID":          {serve: getPathByID},
		"/api/filetree/getHPathByID":         {serve: getHPathByID},
		"/api/filetree/getHPathByPath":       {serve: getHPathByPath},
		"/api/filetree/getHPathsByPaths":     {serve: getHPathsByPaths},
		"/api/filetree/getFullHPathByID":     {serve: getFullHPathByID},
		"/api/filetree/searchDocs":           {serve: searchDocs},
		"/api/filetree/getDocCreateSavePath": {serve: getDocCreateSavePath},
		"/api/filetree/getRefCreateSavePath": {serve: getRefCreateSavePath},
		"/api/filetree/getShorthandSavePath": {serve: getShorthandSavePath},
		"/api/filetree/getPublishAccess":     {serve: getPublishAccess},
		"/api/filetree/renameDoc":            {serve: renameDoc, write: true},
		"/api/filetree/renameDocByID":        {serve: renameDocByID, write: true},
		"/api/filetree/moveDocs":             {serve: moveDocs, write: true},
		"/api/filetree/moveDocsByID":         {serve: moveDocsByID, write: true},
		"/api/filetree/removeDoc":            {serve: removeDoc, write: true},
		"/api/filetree/removeDocByID":        {serve: removeDocByID, write: true},
		"/api/filetree/removeDocs":           {serve: removeDocs, write: true},
		"/api/filetree/duplicateDoc":         {serve: duplicateDoc, write: true},
		"/api/filetree/changeSort":           {serve: changeSort, write: true},
		"/api/filetree/upsertIndexes":        {serve: upsertIndexes, write: true},
		"/api/filetree/removeIndexes":        {serve: removeIndexes, write: true},
		"/api/filetree/heading2Doc":          {serve: heading2Doc, write: true},
		"/api/filetree/li2Doc":               {serve: li2Doc, write: true},
		"/api/filetree/doc2Heading":          {serve: doc2Heading, write: true},
		"/api/filetree/moveLocalShorthands":  {serve: moveLocalShorthands, write: true},
	}
}

// The orders of listDocsByPath; an odd number is its predecessor descending.
const (
	sortName        = 0
	sortUpdated     = 2
	sortNaturalName = 4
	sortManual      = 6
	sortReferences  = 7 // descending first, unlike the others
	sortCreated     = 9
	sortSize        = 11
	sortChildren    = 13
	sortAsSetting   = 15
)

// defaultSort is the global setting a notebook with sortAsSetting follows.
const defaultSort = sortManual

// maxList is how many entries one level lists unless asked otherwise.
const maxList = 512

func listDocsByPath(k *Kernel, a args) (any, error) {
	box, p := a.str("notebook"), a.str("path")
	n, ok := k.openBox(box)
	if !ok {
		return nil, fail(msgNoNotebook)
	}
	if slices.Contains(strings.Split(p, "/"), "..") {
		return nil, fail("path must not contain '..' and must be relative")
	}
	mode := a.intOr("sort", -1)
	if mode < 0 {
		if mode = n.conf.SortMode; mode == sortAsSetting {
			mode = defaultSort
		}
	}
	docs := k.children(box, strings.TrimSuffix(p, ".sy"))
	k.sortDocs(docs, mode, n)
	if limit := a.intOr("maxListCount", maxList); limit > 0 && len(docs) > limit {
		docs = docs[:limit]
	}
	files := []any{}
	for _, d := range docs {
		files = append(files, k.fileItem(d, mode, n))
	}
	return map[string]any{"box": box, "path": p, "files": files}, nil
}

// sortDocs orders one level. sortAsSetting asked for by name is order of creation.
func (k *Kernel) sortDocs(docs []*document, mode int, n *notebook) {
	less := map[int]func(a, b *document) bool{
		sortName:       func(a, b *document) bool { return a.title() < b.title() },
		sortUpdated:    func(a, b *document) bool { return a.root.IALAttr("updated") < b.root.IALAttr("updated") },
		sortManual:     func(a, b *document) bool { return n.sort[a.id()] < n.sort[b.id()] },
		sortReferences: func(a, b *document) bool { return k.treeRefCount(a) < k.treeRefCount(b) },
		sortCreated:    func(a, b *document) bool { return a.id() < b.id() },
		sortSize:       func(a, b *document) bool { return a.size < b.size },
		sortChildren: func(a, b *document) bool {
			return len(k.children(a.box, a.folder())) < len(k.children(b.box, b.folder()))
		},
		sortAsSetting: func(a, b *document) bool { return a.id() < b.id() },
	}
	less[sortNaturalName] = less[sortName]
	f, ascending := less[mode]
	if !ascending {
		f = less[mode-1]
	}
	if f == nil {
		return
	}
	sort.SliceStable(docs, func(i, j int) bool {
		if ascending {
			return f(docs[i], docs[j])
		}
		return f(docs[j], docs[i])
	})
}

func (k *Kernel) fileItem(d *document, mode int, n *notebook) map[string]any {
	now := k.now()
	modified, created := docTime(d.root.IALAttr("updated"), now), docTime(d.id(), now)
	order := 0
	if mode == sortManual {
		order = n.sort[d.id()]
	}
	return map[string]any{
		"path": d.path, "name": d.title(), "icon": text.Attr(d.root, "icon"), "name1": text.Attr(d.root, "name"),
		"alias": text.Attr(d.root, "alias"), "memo": text.Attr(d.root, "memo"), "bookmark": text.Attr(d.root, "bookmark"),
		"id": d.id(), "count": k.treeRefCount(d), "size": d.size, "hSize": humanSize(d.size),
		"mtime": modified.Unix(), "ctime": created.Unix(), "hMtime": humanTime(modified, now), "hCtime": humanTime(created, now),
		"sort": order, "subFileCount": len(k.children(d.box, d.folder())),
		"newFlashcardCount": 0, "dueFlashcardCount": 0, "flashcardCount": 0,
	}
}

// treeRefCount counts the blocks of other documents that cite this one.
func (k *Kernel) treeRefCount(d *document) int {
	return len(k.citing("def_block_root_id = ?", d.id()))
}

func listDocTree(k *Kernel, a args) (any, error) {
	box, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	p := strings.TrimSuffix(a.str("path"), ".sy")
	if strings.Trim(p, "/") == "" || slices.Contains(strings.Split(p, "/"), "..") {
		return nil, fail("path escapes notebook directory")
	}
	if dir := k.workspace("data", box, p); !fileExists(dir) {
		return nil, fail("open " + dir + ": no such file or directory")
	}
	return map[string]any{"tree": k.docTree(box, path.Clean(p))}, nil
}

func (k *Kernel) docTree(box, folder string) []any {
	tree := []any{}
	for _, d := range k.children(box, folder) {
		node := map[string]any{"id": d.id()}
		if kids := k.docTree(box, d.folder()); len(kids) > 0 {
			node["children"] = kids
		}
		tree = append(tree, node)
	}
	return tree
}

func getIDsByHPath(k *Kernel, a args) (any, error) {
	box, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	p, ids := strings.ReplaceAll(a.str("path"), "\u200d", ""), []string{} // titles keep the joiner
	for _, id := range sortedKeys(k.docs) {
		d := k.docs[id]
		if d.box == box && (id == box && p == "/" || id != box && d.hpath == p) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func getPathByID(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	d, ok := k.docOf(id)
	if !ok {
		return nil, fail(k.notFoundText())
	}
	return map[string]any{"notebook": d.box, "path": d.path}, nil
}

func getHPathByID(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	d, ok := k.docOf(id)
	if !ok {
		return nil, fail(k.notFoundText())
	}
	if d.id() == d.box {
		return "/", nil
	}
	return k.hpath(d), nil
}

func getFullHPathByID(k *Kernel, a args) (any, error) {
	d, ok := k.docOf(a.str("id"))
	if !ok {
		return nil, fail(k.notFoundText())
	}
	return k.fullHPath(d), nil
}

// fullHPath starts with the notebook's name.
func (k *Kernel) fullHPath(d *document) string {
	if d.id() == d.box {
		return k.boxName(d.box)
	}
	return k.boxName(d.box) + k.hpath(d)
}

func getHPathByPath(k *Kernel, a args) (any, error) {
	box, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	p := a.str("path")
	if p == "/" {
		return "/", nil
	}
	d, ok := k.docAt(box, p)
	if !ok {
		return nil, fail(msgNoBlock)
	}
	return k.hpath(d), nil
}

func getHPathsByPaths(k *Kernel, a args) (any, error) {
	out := []string{}
	for _, p := range a.strs("paths") {
		if d, ok := k.docs[strings.TrimSuffix(path.Base(p), ".sy")]; ok && d.path == p {
			out = append(out, k.fullHPath(d))
		}
	}
	return out, nil
}

// searchDocs looks into the paths of titles of all open notebooks; notebooks
// come first.
func searchDocs(k *Kernel, a args) (any, error) {
	keyword := strings.ToLower(a.str("k"))
	out := []any{}
	item := func(box, hpath, p string) {
		out = append(out, map[string]any{"box": box, "boxIcon": k.notebooks[box].conf.Icon, "hPath": hpath, "path": p})
	}
	for _, n := range k.notebooksByName() {
		if !n.conf.Closed && strings.Contains(strings.ToLower(n.conf.Name), keyword) {
			item(n.id, n.conf.Name+"/", "/")
		}
	}
	if keyword == "" {
		return out, nil
	}
	type hit struct{ box, hpath, path string }
	var hits []hit
	for _, row := range k.rows("SELECT id, box, hpath, path FROM blocks WHERE type = 'd' AND instr(lower(hpath), ?) > 0", keyword) {
		hits = append(hits, hit{row["box"], k.boxName(row["box"]) + row["hpath"], row["path"]})
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].hpath < hits[j].hpath })
	for _, h := range hits {
		item(h.box, h.hpath, h.path)
	}
	return out, nil
}

func (k *Kernel) notebooksByName() []*notebook {
	list := k.orderedNotebooks()
	sort.SliceStable(list, func(i, j int) bool { return list[i].conf.Name < list[j].conf.Name })
	return list
}

func savePath(k *Kernel, a args, box, template func(notebookConf) string) (any, error) {
	id := a.str("notebook")
	out := map[string]any{"box": id, "path": ""}
	n, ok := k.notebooks[id]
	if !ok {
		return out, nil
	}
	if b := box(n.conf); b != "" {
		out["box"] = b
	}
	p, err := k.sprig(template(n.conf))
	if err != nil {
		return nil, fail(err.Error())
	}
	out["path"] = p
	return out, nil
}

func getDocCreateSavePath(k *Kernel, a args) (any, error) {
	return savePath(k, a, func(c notebookConf) string { return c.DocCreateSaveBox }, func(c notebookConf) string { return c.DocCreateSavePath })
}

func getRefCreateSavePath(k *Kernel, a args) (any, error) {
	return savePath(k, a, func(c notebookConf) string { return c.RefCreateSaveBox }, func(c notebookConf) string { return c.RefCreateSavePath })
}

func getShorthandSavePath(k *Kernel, a args) (any, error) {
	none := func(notebookConf) string { return "" }
	return savePath(k, a, none, none)
}

func getPublishAccess(_ *Kernel, a args) (any, error) {
	list := []any{}
	for _, id := range a.strs("ids") {
		list = append(list, map[string]any{"id": id, "visible": true, "password": "", "disable": false})
	}
	return map[string]any{"publishAccess": list}, nil
}
