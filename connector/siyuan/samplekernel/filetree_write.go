package samplekernel

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func renameDoc(k *Kernel, a args) (any, error) {
	box, p, title := a.str("notebook"), a.str("path"), a.str("title")
	if _, ok := k.openBox(box); !ok {
		return nil, fail(msgNoNotebook)
	}
	d, ok := k.docAt(box, p)
	if !ok {
		return nil, fail("open " + k.docFile(box, p) + ": no such file or directory")
	}
	return nil, k.rename(d, title)
}

// renameDocByID takes the id of any block of the document.
func renameDocByID(k *Kernel, a args) (any, error) {
	id, title := a.str("id"), a.str("title")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	d, ok := k.docOf(id)
	if !ok {
		return nil, failToast(k.notFoundText(), 7000)
	}
	return nil, k.rename(d, title)
}

func (k *Kernel) rename(d *document, title string) error {
	if utf8.RuneCountInString(title) > maxTitle {
		return fail(msgTooLong)
	}
	title = cleanName(title)
	if title == "" {
		return nil
	}
	text.SetAttr(d.root, "title", title)
	d.root.SetIALAttr("updated", stamp(k.now()))
	return k.saveRenamed(d)
}

// saveRenamed saves a document and gives everything below it its new path of titles.
func (k *Kernel) saveRenamed(d *document) error {
	if d.id() == d.box {
		d.hpath = "/" + d.title()
		return k.save(d)
	}
	for _, below := range k.subtree(d) {
		below.hpath = k.hpath(below)
		k.touch(below)
	}
	return k.save(d)
}

// subtree lists a document and all documents below it.
func (k *Kernel) subtree(d *document) []*document {
	list := []*document{d}
	for _, id := range sortedKeys(k.docs) {
		if o := k.docs[id]; o.box == d.box && strings.HasPrefix(o.path, d.folder()+"/") {
			list = append(list, o)
		}
	}
	return list
}

func moveDocs(k *Kernel, a args) (any, error) {
	box, err := boxArg(a, "toNotebook")
	if err != nil {
		return nil, err
	}
	from, to := a.strs("fromPaths"), a.str("toPath")
	if _, ok := k.openBox(box); !ok {
		return nil, failToast(msgNoNotebook, 7000)
	}
	var docs []*document
	for _, p := range from {
		d, ok := k.docs[strings.TrimSuffix(path.Base(p), ".sy")]
		if !ok || d.path != p {
			return nil, failToast(msgNoBlock, 7000)
		}
		docs = append(docs, d)
	}
	if to != "/" {
		if _, ok := k.docAt(box, to); !ok {
			return nil, failToast(msgNoBlock, 7000)
		}
	}
	return nil, k.move(docs, box, strings.TrimSuffix(to, ".sy"))
}

func moveDocsByID(k *Kernel, a args) (any, error) {
	ids, to := a.strs("fromIDs"), a.str("toID")
	var docs []*document
	for _, id := range append(ids, to) {
		if !text.ValidID(id) {
			return nil, fail(msgBadID)
		}
	}
	for _, id := range ids {
		d, ok := k.docOf(id)
		if !ok {
			return nil, failToast(k.notFoundText(), 7000)
		}
		docs = append(docs, d)
	}
	if _, ok := k.openBox(to); ok {
		return nil, k.move(docs, to, "/")
	}
	target, ok := k.docOf(to)
	if !ok {
		return nil, failToast("can't found box or tree by id ["+to+"]", 7000)
	}
	return nil, k.move(docs, target.box, target.folder())
}

// move puts documents and all below them into a folder. A move into a document
// itself or below it is passed over without an error.
func (k *Kernel) move(docs []*document, box, folder string) error {
	for _, d := range docs {
		if d.box == box && (folder == d.folder() || strings.HasPrefix(folder, d.folder()+"/") || path.Dir(d.path) == folder) || d.id() == d.box {
			continue
		}
		if err := k.moveOne(d, box, folder); err != nil {
			return err
		}
	}
	k.flush()
	return nil
}

func (k *Kernel) moveOne(d *document, box, folder string) error {
	oldFolder, newFolder := d.folder(), path.Join(folder, d.id())
	oldDir, oldFile := k.workspace("data", d.box, oldFolder), k.docFile(d.box, d.path)
	tree := k.subtree(d)
	for _, o := range tree {
		o.path = newFolder + strings.TrimPrefix(o.path, oldFolder)
		o.box = box
	}
	if err := os.MkdirAll(k.workspace("data", box, folder), 0o755); err != nil {
		return err
	}
	if err := os.Rename(oldFile, k.docFile(box, d.path)); err != nil {
		return err
	}
	if err := os.Rename(oldDir, k.workspace("data", box, newFolder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	removeEmpty(filepath.Dir(oldFile))
	for _, o := range tree {
		o.hpath = k.hpath(o)
		k.touch(o)
	}
	return k.sortLast(d)
}

// removeEmpty removes a folder that holds nothing any more.
func removeEmpty(dir string) { _ = os.Remove(dir) }

func removeDoc(k *Kernel, a args) (any, error) {
	box, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	p := a.str("path")
	if _, ok := k.openBox(box); !ok {
		return nil, fail("notebook not found")
	}
	d, ok := k.docAt(box, p)
	if !ok {
		return nil, fail(msgNoBlock)
	}
	return nil, k.remove(d)
}

// removeDocByID takes the id of any block of the document.
func removeDocByID(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	d, ok := k.docOf(id)
	if !ok {
		return nil, failToast(k.notFoundText(), 7000)
	}
	return nil, k.remove(d)
}

func removeDocs(k *Kernel, a args) (any, error) {
	var docs []*document
	for _, p := range a.strs("paths") {
		d, ok := k.docs[strings.TrimSuffix(path.Base(p), ".sy")]
		if !ok || d.path != p {
			return nil, fail(msgNoBlock)
		}
		docs = append(docs, d)
	}
	if len(docs) == 0 {
		return nil, fail(msgNoBlock)
	}
	for _, d := range docs {
		if err := k.remove(d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// remove moves a document and everything below it to the history.
func (k *Kernel) remove(d *document) error {
	box, p := d.box, d.path
	if d.id() == box {
		return nil // a root document goes with its notebook only
	}
	tree := k.subtree(d)
	if err := k.toHistory("delete", box, p); err != nil {
		return err
	}
	if fileExists(k.workspace("data", box, d.folder())) {
		if err := k.toHistory("delete", box, d.folder()); err != nil {
			return err
		}
	}
	removeEmpty(filepath.Dir(k.docFile(box, p)))
	n := k.notebooks[box]
	for _, o := range tree {
		k.uproot(o)
		delete(k.docs, o.id())
		delete(n.sort, o.id())
		if k.opt.RemoveLag <= 0 {
			k.touch(o)
			continue
		}
		delete(k.stale, o.id())
		k.removals = append(k.removals, task{due: k.now().Add(k.opt.RemoveLag), run: func() { k.reindex(o.id(), staleness{}) }})
	}
	return k.saveSort(n)
}

// toHistory moves a file or folder of a notebook into the history. Of the whole
// notebook the path is "/" and its id.
func (k *Kernel) toHistory(op, box, p string) error {
	from := k.workspace("data", box, filepath.FromSlash(p))
	to := k.workspace("history", k.now().Format("2006-01-02-150405")+"-"+op, box, filepath.FromSlash(p))
	if p == "/"+box && !strings.HasSuffix(p, ".sy") {
		from = k.workspace("data", box)
		to = filepath.Dir(to)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func duplicateDoc(k *Kernel, a args) (any, error) {
	id := a.str("id")
	d, ok := k.docOf(id)
	if !ok {
		return nil, failToast(k.notFoundText(), 7000)
	}
	root := text.Clone(d.root)
	newID := k.newID()
	for _, b := range text.Blocks(root) {
		if b != root {
			text.SetID(b, k.newID())
			b.SetIALAttr("updated", b.ID[:14])
		}
	}
	text.SetID(root, newID)
	root.SetIALAttr("updated", newID[:14])
	text.SetAttr(root, "title", d.title()+"  (Duplicated "+k.now().Format("2006-01-02 15:04:05")+")")
	copied := &document{box: d.box, path: path.Join(path.Dir(d.path), newID+".sy"), root: root}
	k.docs[newID] = copied
	copied.hpath = k.hpath(copied)
	if err := k.save(copied); err != nil {
		return nil, err
	}
	if err := k.sortLast(copied); err != nil {
		return nil, err
	}
	return map[string]any{"hPath": copied.hpath, "id": newID, "notebook": d.box, "path": copied.path}, nil
}

// changeSort numbers the given paths; others keep their number.
func changeSort(k *Kernel, a args) (any, error) {
	n, ok := k.openBox(a.str("notebook"))
	paths := a.strs("paths")
	if !ok {
		return nil, nil
	}
	for i, p := range paths {
		n.sort[strings.TrimSuffix(path.Base(p), ".sy")] = i + 1
	}
	return nil, k.saveSort(n)
}

// upsertIndexes reads files again that were written past the API.
func upsertIndexes(k *Kernel, a args) (any, error) {
	for _, p := range a.strs("paths") {
		box, rel, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
		if _, ok := k.openBox(box); !ok {
			continue
		}
		raw, err := os.ReadFile(k.docFile(box, rel))
		if err != nil {
			continue
		}
		root, err := text.Decode(raw)
		if err != nil {
			continue
		}
		if old, ok := k.docs[root.ID]; ok {
			k.uproot(old)
		}
		d := &document{box: box, path: "/" + rel, root: root, size: len(raw)}
		k.docs[d.id()] = d
		d.hpath = k.hpath(d)
		k.plant(d)
		k.touch(d)
	}
	return nil, nil
}

// removeIndexes drops documents from block tree and index; their files stay.
func removeIndexes(k *Kernel, a args) (any, error) {
	for _, p := range a.strs("paths") {
		box, rel, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
		if d, ok := k.docAt(box, "/"+rel); ok {
			k.uproot(d)
			delete(k.docs, d.id())
			k.touch(d)
		}
	}
	return nil, nil
}

func moveLocalShorthands(_ *Kernel, a args) (any, error) {
	_ = a.str("notebook")
	return nil, nil
}
