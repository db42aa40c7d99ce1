package samplekernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel/index"
	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// document is one .sy file of an open notebook, in memory.
type document struct {
	box   string
	path  string // inside the notebook: /<id>/<id>.sy
	hpath string // of titles, as of creation, rename or move: the index keeps it
	root  *ast.Node
	size  int      // of the file
	ids   []string // the blocks planted for it, some of them ghosts
}

func (d *document) id() string    { return d.root.ID }
func (d *document) title() string { return text.Attr(d.root, "title") }

// folder is where the children of the document live.
func (d *document) folder() string { return strings.TrimSuffix(d.path, ".sy") }

// place is where the block tree knows a block to be.
type place struct {
	doc  *document
	node *ast.Node
}

// staleness is a document the index must read again.
type staleness struct {
	first, last time.Time
	copies      int
}

// maxStale bounds how long a stream of writes can keep a document from the index.
const maxStale = 4

// workspace is the absolute path of a workspace file.
func (k *Kernel) workspace(elem ...string) string {
	return filepath.Join(append([]string{k.dir}, elem...)...)
}

func (k *Kernel) docFile(box, syPath string) string {
	return k.workspace("data", box, filepath.FromSlash(syPath))
}

// load reads the workspace from disk into an empty kernel.
func (k *Kernel) load() error {
	k.notebooks, k.docs, k.blocks = map[string]*notebook{}, map[string]*document{}, map[string]place{}
	k.stale, k.deletes, k.mounts = map[string]staleness{}, nil, nil
	k.undo = map[string]*undoStack{}
	k.boot = bootState{}
	if err := k.loadConf(); err != nil {
		return err
	}
	x, err := index.Open(k.environment())
	if err != nil {
		return fmt.Errorf("samplekernel: %w", err)
	}
	k.index = x
	if err := k.loadNotebooks(); err != nil {
		return err
	}
	for _, id := range sortedKeys(k.notebooks) {
		if n := k.notebooks[id]; !n.conf.Closed {
			if err := k.loadDocs(n.id); err != nil {
				return err
			}
		}
	}
	k.loadStorage()
	k.flush()
	return nil
}

func (k *Kernel) environment() index.Environment {
	return index.Environment{
		NewID: k.newID,
		Definition: func(id string) (index.Definition, bool) {
			p, ok := k.block(id)
			if !ok {
				return index.Definition{}, false
			}
			return index.Definition{ParentID: parentID(p), RootID: p.doc.id(), Path: p.doc.path}, true
		},
		AssetHash: func(asset string) string { return assetHash(k.workspace("data", asset)) },
		Names:     k.databaseNames,
		Database:  k.databaseContent,
	}
}

func parentID(p place) string {
	if p.node == p.doc.root || p.node.Parent == nil {
		return ""
	}
	return p.node.Parent.ID
}

// loadDocs reads the documents of a notebook that are not known yet and marks
// them stale. A file that
// cannot be read is left out, as a real kernel leaves it out.
func (k *Kernel) loadDocs(box string) error {
	base := k.workspace("data", box)
	var loaded []*document
	err := filepath.WalkDir(base, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(p, ".sy") {
			return nil
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		root, err := text.Decode(raw)
		if err != nil {
			return nil //nolint:nilerr // an unreadable file is not the end of the notebook
		}
		rel, _ := filepath.Rel(base, p)
		loaded = append(loaded, &document{box: box, path: "/" + filepath.ToSlash(rel), root: root, size: len(raw)})
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("samplekernel: read notebook %s: %w", box, err)
	}
	sort.Slice(loaded, func(i, j int) bool { return loaded[i].path < loaded[j].path })
	for _, d := range loaded {
		if _, known := k.docs[d.id()]; known {
			continue // the root document of a notebook being opened
		}
		k.docs[d.id()] = d
		k.plant(d)
		k.touch(d)
	}
	for _, d := range loaded {
		if k.docs[d.id()] == d {
			d.hpath = k.hpath(d)
		}
	}
	return nil
}

// plant enters all blocks of a document into the block tree. A block that is no
// longer in the document stays behind as a ghost without a node: like a real
// kernel, the tree knows of it until the document is indexed again.
func (k *Kernel) plant(d *document) {
	for _, id := range d.ids {
		if p, ok := k.blocks[id]; ok && p.doc == d {
			k.blocks[id] = place{doc: d}
		}
	}
	for _, n := range text.Blocks(d.root) {
		if _, known := k.blocks[n.ID]; !known {
			d.ids = append(d.ids, n.ID)
		}
		k.blocks[n.ID] = place{d, n}
	}
}

// uproot takes the blocks of a document out of the block tree.
func (k *Kernel) uproot(d *document) {
	for _, id := range d.ids {
		if p, ok := k.blocks[id]; ok && p.doc == d {
			delete(k.blocks, id)
		}
	}
	d.ids = nil
}

// touch queues a document for the index.
func (k *Kernel) touch(d *document) {
	now := k.now()
	s, queued := k.stale[d.id()]
	if !queued {
		s = staleness{first: now, copies: 1}
	}
	s.last = now
	k.stale[d.id()] = s
}

// save writes a changed document, refreshes the block tree and queues it for
// the index.
func (k *Kernel) save(d *document) error {
	raw := text.Encode(d.root)
	d.size = len(raw)
	if err := writeFile(k.docFile(d.box, d.path), raw); err != nil {
		return err
	}
	k.docs[d.id()] = d
	k.plant(d)
	k.touch(d)
	return nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

func writeJSONFile(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(name, raw)
}

func readJSONFile(name string, v any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// settle lets everything happen whose time has come.
func (k *Kernel) settle() {
	now := k.now()
	k.deletes = runDue(k.deletes, now)
	k.mounts = runDue(k.mounts, now)
	k.removals = runDue(k.removals, now)
	for _, id := range k.queue() {
		s := k.stale[id]
		if !s.last.Add(k.opt.IndexLag).After(now) || !s.first.Add(maxStale*k.opt.IndexLag).After(now) {
			k.reindex(id, s)
		}
	}
	k.renders = runDue(k.renders, now)
}

func runDue(tasks []task, now time.Time) (left []task) {
	for _, t := range tasks {
		if t.due.After(now) {
			left = append(left, t)
			continue
		}
		t.run()
	}
	return left
}

// drainDeletes runs the delete queue: writes come after the deletes before them.
func (k *Kernel) drainDeletes() { drain(&k.deletes) }

func drain(queue *[]task) {
	tasks := *queue
	*queue = nil
	for _, t := range tasks {
		t.run()
	}
}

// flush brings the index up to date with every write, but not with notebooks
// that are still being opened or closed.
func (k *Kernel) flush() {
	k.drainDeletes()
	for _, id := range k.queue() {
		k.reindex(id, k.stale[id])
	}
	drain(&k.renders)
}

// queue lists the documents to index in the order they were first written.
func (k *Kernel) queue() []string {
	ids := sortedKeys(k.stale)
	sort.SliceStable(ids, func(i, j int) bool { return k.stale[ids[i]].first.Before(k.stale[ids[j]].first) })
	return ids
}

func (k *Kernel) reindex(id string, s staleness) {
	delete(k.stale, id)
	d, exists := k.docs[id]
	var err error
	if exists {
		k.uproot(d)
		k.plant(d)
		err = k.index.Put(index.Document{Box: d.box, Path: d.path, HPath: d.hpath, Root: d.root, Copies: s.copies})
	} else {
		err = k.index.Delete(id)
	}
	if err != nil {
		panic(err) // an in-memory database with our own rows: a bug, not a condition
	}
}

// indexing reports whether a notebook is being opened or closed, which changes
// what "not found" looks like.
func (k *Kernel) indexing() bool { return len(k.mounts) > 0 || k.boot.progress(k.now()) < 100 }

// notFoundText is how a missing tree is reported right now.
func (k *Kernel) notFoundText() string {
	if k.indexing() {
		return msgIndexing
	}
	return msgNoTree
}

// block finds a block of an open notebook, ghosts excepted.
func (k *Kernel) block(id string) (place, bool) {
	p, ok := k.blocks[id]
	return p, ok && p.node != nil
}

// docOf finds the document a block, or the ghost of one, belongs to.
func (k *Kernel) docOf(id string) (*document, bool) {
	p, ok := k.blocks[id]
	return p.doc, ok
}

// docAt finds a document by its path.
func (k *Kernel) docAt(box, syPath string) (*document, bool) {
	d, ok := k.docs[strings.TrimSuffix(path.Base(syPath), ".sy")]
	if !ok || d.box != box || d.path != syPath {
		return nil, false
	}
	return d, true
}

// children lists the documents directly below a folder such as "/" or "/<id>",
// by id.
func (k *Kernel) children(box, folder string) (kids []*document) {
	for _, d := range k.docs {
		dir := d.path[:max(1, strings.LastIndexByte(d.path, '/'))] // path.Dir of a clean path, for workspaces of thousands
		if dir == folder && d.box == box && d.id() != box {
			kids = append(kids, d)
		}
	}
	sort.Slice(kids, func(i, j int) bool { return kids[i].id() < kids[j].id() })
	return kids
}

// hpath is the path of titles of a document as its ancestors are called now.
// That of a root document is its own title.
func (k *Kernel) hpath(d *document) string {
	var titles []string
	for _, id := range strings.Split(strings.Trim(d.folder(), "/"), "/") {
		title := "Untitled"
		if a, ok := k.docs[id]; ok {
			title = a.title()
		}
		titles = append(titles, title)
	}
	return "/" + strings.Join(titles, "/")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
