package samplekernel

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

const (
	msgNoRepoKey  = "Please initialize the data repo key first in [Settings - Account & Sync - Data repo key]"
	snapshotFails = "Failed to create data snapshot: "
	repoPage      = 32
)

func repoRoutes() map[string]route {
	const p = "/api/repo/"
	return map[string]route{
		p + "initRepoKeyFromPassphrase": {serve: initRepoKey, write: true},
		p + "createSnapshot":            {serve: createSnapshot, write: true},
		p + "getRepoSnapshots":          {serve: getRepoSnapshots},
		p + "getRepoTagSnapshots":       {serve: getRepoTagSnapshots, noBody: true},
		p + "diffRepoSnapshots":         {serve: diffRepoSnapshots},
		p + "tagSnapshot":               {serve: tagSnapshot, write: true},
		p + "removeRepoTagSnapshot":     {serve: removeRepoTagSnapshot, write: true},
		p + "openRepoSnapshotFile":      {serve: openRepoSnapshotFile},
		p + "rollbackRepoSnapshotFile":  {serve: rollbackRepoSnapshotFile, write: true},
		p + "searchRepoFile":            {serve: searchRepoFile},
		p + "setRepoIndexRetentionDays": {serve: nothing},
		p + "setRetentionIndexesDaily":  {serve: nothing},
		p + "purgeRepo":                 {serve: nothing, noBody: true},
	}
}

// snapshot is the state of the data folder at a time, kept as repo/indexes/<id>.
type snapshot struct {
	ID      string         `json:"id"`
	Memo    string         `json:"memo"`
	Created int64          `json:"created"` // Unix milliseconds
	Files   []snapshotFile `json:"files"`
}

// snapshotFile is a file as it was; its bytes are in repo/objects. The real
// kernel packs and encrypts them: only the names of the answers are the same.
type snapshotFile struct {
	ID      string `json:"id"`
	Path    string `json:"path"` // below data, with a slash in front
	Size    int    `json:"size"`
	Updated int64  `json:"updated"` // Unix milliseconds
}

// repoTag names a snapshot; it is kept as repo/tags/<name>.
type repoTag struct {
	Name     string    `json:"name"`
	Snapshot string    `json:"snapshot"`
	Updated  time.Time `json:"updated"`
}

func (k *Kernel) repo(elem ...string) string {
	return k.workspace(append([]string{"repo"}, elem...)...)
}

func (k *Kernel) repoIndex(id string) string { return k.repo("indexes", filepath.Base(id)) }

// repoObject is where the bytes of a file are; ids shorter than a real one have
// no such place.
func (k *Kernel) repoObject(id string) string {
	id = filepath.Base(id)
	n := min(2, len(id))
	return k.repo("objects", id[:n], id[n:])
}

func (k *Kernel) hasRepoKey() bool {
	_, err := os.Stat(k.repo("key"))
	return err == nil
}

// initRepoKey derives the key from a passphrase, and takes the first snapshot.
func initRepoKey(k *Kernel, a args) (any, error) {
	pass, err := a.needText("pass")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(pass))
	key := base64.StdEncoding.EncodeToString(sum[:])
	if err := os.RemoveAll(k.repo()); err != nil {
		return nil, err
	}
	if err := writeFile(k.repo("key"), []byte(key)); err != nil {
		return nil, err
	}
	return map[string]any{"key": key}, k.takeSnapshot("[Init] Init local data repo")
}

func createSnapshot(k *Kernel, a args) (any, error) {
	memo, err := a.needStr("memo")
	if err != nil {
		return nil, err
	}
	if !k.hasRepoKey() {
		return nil, failToast(snapshotFails+msgNoRepoKey, 5000)
	}
	return nil, k.takeSnapshot(memo)
}

// takeSnapshot keeps the data folder as it is, unless nothing has changed since
// the newest snapshot.
func (k *Kernel) takeSnapshot(memo string) error {
	s := snapshot{Memo: memo, Created: k.now().UnixMilli()}
	state := sha1.New()
	err := filepath.WalkDir(k.workspace("data"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := k.keepFile(name)
		if err == nil {
			s.Files = append(s.Files, f)
			_, err = state.Write([]byte(f.ID))
		}
		return err
	})
	if err != nil {
		return err
	}
	if all := k.snapshots(); len(all) > 0 && slices.Equal(all[0].Files, s.Files) {
		return nil
	}
	_, _ = state.Write([]byte(k.now().String()))
	s.ID = hex.EncodeToString(state.Sum(nil))
	return writeJSONFile(k.repoIndex(s.ID), s)
}

func (k *Kernel) keepFile(name string) (snapshotFile, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return snapshotFile{}, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return snapshotFile{}, err
	}
	rel, err := filepath.Rel(k.workspace("data"), name)
	if err != nil {
		return snapshotFile{}, err
	}
	f := snapshotFile{Path: "/" + filepath.ToSlash(rel), Size: len(raw), Updated: info.ModTime().UnixMilli()}
	sum := sha1.Sum([]byte(f.Path + "\x00" + info.ModTime().String() + "\x00" + string(raw)))
	f.ID = hex.EncodeToString(sum[:])
	return f, writeFile(k.repoObject(f.ID), raw)
}

// snapshots reads all snapshots, newest first.
func (k *Kernel) snapshots() (all []snapshot) {
	entries, _ := os.ReadDir(k.repo("indexes")) // no folder: none taken
	for _, e := range entries {
		var s snapshot
		if readJSONFile(k.repoIndex(e.Name()), &s) == nil {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return cmp.Compare(b.Created, a.Created) })
	return all
}

func (k *Kernel) snapshotView(s snapshot, tag repoTag) map[string]any {
	size, kinds := 0, map[string]int{}
	for _, f := range s.Files {
		size += f.Size
		kinds[cmp.Or(path.Ext(f.Path), "NoExt")]++
	}
	types := []map[string]any{}
	for _, kind := range sortedKeys(kinds) {
		types = append(types, map[string]any{"type": kind, "count": kinds[kind]})
	}
	slices.SortStableFunc(types, func(a, b map[string]any) int { return b["count"].(int) - a["count"].(int) })
	const format = "2006-01-02 15:04:05"
	tagged := ""
	if tag.Name != "" {
		tagged = tag.Updated.Format(format)
	}
	return map[string]any{
		"id": s.ID, "memo": s.Memo, "created": s.Created, "hCreated": time.UnixMilli(s.Created).In(k.now().Location()).Format(format),
		"files": nil, "count": len(s.Files), "size": size, "hSize": humanSize(size), "systemID": k.id, "systemName": "sample",
		"systemOS": "linux", "tag": tag.Name, "hTagUpdated": tagged, "typesCount": types,
	}
}

func getRepoSnapshots(k *Kernel, a args) (any, error) {
	if !k.hasRepoKey() {
		return nil, fail(msgNoRepoKey)
	}
	views := []any{}
	for _, s := range k.snapshots() {
		views = append(views, k.snapshotView(s, repoTag{}))
	}
	total := len(views)
	return map[string]any{"snapshots": pageOf(views, a), "pageCount": (total + repoPage - 1) / repoPage, "totalCount": total}, nil
}

func pageOf(list []any, a args) []any {
	page, total := max(1, a.intOr("page", 1)), len(list)
	return list[min((page-1)*repoPage, total):min(page*repoPage, total)]
}

func getRepoTagSnapshots(k *Kernel, _ args) (any, error) {
	if !k.hasRepoKey() {
		return nil, fail(msgNoRepoKey)
	}
	views := []any{}
	entries, _ := os.ReadDir(k.repo("tags")) // no folder: no tags
	for _, e := range entries {
		var tag repoTag
		var s snapshot
		if readJSONFile(k.repo("tags", e.Name()), &tag) == nil && readJSONFile(k.repoIndex(tag.Snapshot), &s) == nil {
			views = append(views, k.snapshotView(s, tag))
		}
	}
	return map[string]any{"snapshots": views}, nil
}

func tagSnapshot(k *Kernel, a args) (any, error) {
	id, name := a.str("id"), a.str("name")
	if strings.ContainsAny(name, `\/:*?"'<>|`) {
		return nil, failToast(snapshotFails+`Do not include symbols \ / : * ? &quot; &#039; &lt; &gt; |`, 5000)
	}
	if _, err := os.Stat(k.repoIndex(id)); err != nil {
		return nil, failToast(snapshotFails+openFails(k.repoIndex(id)), 5000)
	}
	return nil, writeJSONFile(k.repo("tags", name), repoTag{name, id, k.now()})
}

// openFails is how the real kernel says that a file is missing, path and all.
func openFails(name string) string { return "open " + name + ": no such file or directory" }

// removeRepoTagSnapshot of a tag that is not there succeeds.
func removeRepoTagSnapshot(k *Kernel, a args) (any, error) {
	_ = os.Remove(k.repo("tags", filepath.Base(a.str("tag"))))
	return nil, nil
}

func diffRepoSnapshots(k *Kernel, a args) (any, error) {
	var sides [2]snapshot
	for i, id := range []string{a.str("left"), a.str("right")} {
		if err := readJSONFile(k.repoIndex(id), &sides[i]); err != nil {
			return nil, fail(openFails(k.repoIndex(id)))
		}
	}
	left, right := sides[0], sides[1]
	removes, updatesLeft := k.against(left, right) // what the left one alone has is "removed" on the right
	adds, updatesRight := k.against(right, left)
	return map[string]any{
		"left": map[string]any{"id": left.ID, "created": left.Created}, "right": map[string]any{"id": right.ID, "created": right.Created},
		"addsLeft": adds, "updatesLeft": updatesLeft, "removesRight": removes, "updatesRight": updatesRight,
	}, nil
}

// against lists the files of one snapshot that another has not, or has
// differently.
func (k *Kernel) against(s, other snapshot) (only, changed []any) {
	only, changed = []any{}, []any{}
	ids := map[string]string{}
	for _, f := range other.Files {
		ids[f.Path] = f.ID
	}
	for _, f := range s.Files {
		switch id, both := ids[f.Path]; {
		case !both:
			only = append(only, k.fileView(f, ""))
		case id != f.ID:
			changed = append(changed, k.fileView(f, ""))
		}
	}
	return only, changed
}

func (k *Kernel) fileView(f snapshotFile, index string) map[string]any {
	title, _ := k.openObject(f)
	return map[string]any{"fileID": f.ID, "indexID": index, "title": title, "path": f.Path, "hSize": humanSize(f.Size), "updated": f.Updated}
}

// openObject reads a kept file: its title, and its tree if it is a document.
func (k *Kernel) openObject(f snapshotFile) (title string, root *ast.Node) {
	if path.Ext(f.Path) == ".sy" {
		if raw, err := os.ReadFile(k.repoObject(f.ID)); err == nil {
			if root, err = text.Decode(raw); err == nil {
				return text.Content(root), root
			}
		}
	}
	return path.Base(f.Path), nil
}

// kept finds a file by its id in the snapshots.
func (k *Kernel) kept(id string) (snapshotFile, error) {
	for _, s := range k.snapshots() {
		if i := slices.IndexFunc(s.Files, func(f snapshotFile) bool { return f.ID == id }); i >= 0 {
			return s.Files[i], nil
		}
	}
	return snapshotFile{}, fail(openFails(k.repoObject(id)))
}

func openRepoSnapshotFile(k *Kernel, a args) (any, error) {
	f, err := k.kept(a.str("id"))
	if err != nil {
		return nil, err
	}
	title, root := k.openObject(f)
	if root != nil {
		return map[string]any{"title": title, "content": frozen(dom(root)), "displayInText": false, "updated": f.Updated}, nil
	}
	raw, err := os.ReadFile(k.repoObject(f.ID))
	return map[string]any{"title": title, "content": string(raw), "displayInText": true, "updated": f.Updated}, err
}

func rollbackRepoSnapshotFile(k *Kernel, a args) (any, error) {
	f, err := k.kept(a.str("id"))
	if err != nil {
		return nil, err
	}
	box, rel, _ := strings.Cut(strings.TrimPrefix(f.Path, "/"), "/")
	if _, root := k.openObject(f); root != nil {
		return nil, k.restore(box, "/"+rel, root)
	}
	raw, err := os.ReadFile(k.repoObject(f.ID))
	if err != nil {
		return nil, err
	}
	return nil, writeFile(k.workspace("data", filepath.FromSlash(f.Path)), raw)
}

// searchRepoFile finds files of all snapshots by title or path, newest first.
func searchRepoFile(k *Kernel, a args) (any, error) {
	keyword, seen := a.str("keyword"), map[string]bool{}
	found := []any{}
	for _, s := range k.snapshots() {
		for _, f := range s.Files {
			title, root := k.openObject(f)
			if seen[f.ID] || !containsFold(title, keyword) && !containsFold(f.Path, keyword) {
				continue
			}
			seen[f.ID] = true
			v := k.fileView(f, s.ID)
			v["hPath"] = ""
			if root != nil {
				v["hPath"] = "/" + title
				if d, ok := k.docs[root.ID]; ok {
					v["hPath"] = k.hpath(d)
				}
			}
			found = append(found, v)
		}
	}
	total := len(found)
	return map[string]any{"files": pageOf(found, a), "pageCount": (total + repoPage - 1) / repoPage, "totalCount": total}, nil
}
