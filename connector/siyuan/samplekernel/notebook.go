package samplekernel

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// notebookConf is data/<box>/.siyuan/conf.json.
type notebookConf struct {
	Name                  string `json:"name"`
	Sort                  int    `json:"sort"`
	Icon                  string `json:"icon"`
	Closed                bool   `json:"closed"`
	RefCreateSaveBox      string `json:"refCreateSaveBox"`
	RefCreateSavePath     string `json:"refCreateSavePath"`
	DocCreateSaveBox      string `json:"docCreateSaveBox"`
	DocCreateSavePath     string `json:"docCreateSavePath"`
	DailyNoteSavePath     string `json:"dailyNoteSavePath"`
	DailyNoteTemplatePath string `json:"dailyNoteTemplatePath"`
	SortMode              int    `json:"sortMode"`
	Encrypted             bool   `json:"encrypted"`
	BoxCrypt              any    `json:"boxCrypt"`
}

func defaultNotebookConf() notebookConf {
	return notebookConf{
		Name: "Untitled", SortMode: sortAsSetting,
		DailyNoteSavePath: `/daily note/{{now | date "2006/01"}}/{{now | date "2006-01-02"}}`,
	}
}

type notebook struct {
	id   string
	conf notebookConf
	sort map[string]int // manual order of documents, .siyuan/sort.json
}

func (k *Kernel) loadNotebooks() error {
	entries, err := os.ReadDir(k.workspace("data"))
	if err != nil {
		return fmt.Errorf("samplekernel: read workspace: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && text.ValidID(e.Name()) {
			k.readNotebook(e.Name())
		}
	}
	return nil
}

// readNotebook reads the settings of one notebook folder; missing ones default.
func (k *Kernel) readNotebook(id string) *notebook {
	n := &notebook{id: id, conf: defaultNotebookConf(), sort: map[string]int{}}
	if readJSONFile(k.workspace("data", id, ".siyuan", "conf.json"), &n.conf) != nil {
		n.conf.Closed = true
	}
	_ = readJSONFile(k.workspace("data", id, ".siyuan", "sort.json"), &n.sort) // no file: no manual order yet
	k.notebooks[id] = n
	return n
}

func (k *Kernel) saveNotebook(n *notebook) error {
	return writeJSONFile(k.workspace("data", n.id, ".siyuan", "conf.json"), n.conf)
}

func (k *Kernel) saveSort(n *notebook) error {
	return writeJSONFile(k.workspace("data", n.id, ".siyuan", "sort.json"), n.sort)
}

// openBox is a notebook that is open.
func (k *Kernel) openBox(id string) (*notebook, bool) {
	n, ok := k.notebooks[id]
	return n, ok && !n.conf.Closed
}

func (k *Kernel) boxName(id string) string {
	if n, ok := k.notebooks[id]; ok {
		return n.conf.Name
	}
	return ""
}

func (k *Kernel) orderedNotebooks() []*notebook {
	list := make([]*notebook, 0, len(k.notebooks))
	for _, id := range sortedKeys(k.notebooks) {
		list = append(list, k.notebooks[id])
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].conf.Sort < list[j].conf.Sort })
	return list
}

func (k *Kernel) notebookItem(n *notebook) map[string]any {
	subs := 0
	if !n.conf.Closed {
		subs = len(k.children(n.id, "/"))
	}
	return map[string]any{
		"id": n.id, "name": n.conf.Name, "icon": n.conf.Icon, "sort": n.conf.Sort, "sortMode": n.conf.SortMode,
		"closed": n.conf.Closed, "subFileCount": subs, "newFlashcardCount": 0, "dueFlashcardCount": 0,
		"flashcardCount": 0, "encrypted": n.conf.Encrypted, "unlocked": false,
	}
}

func notebookRoutes() map[string]route {
	return map[string]route{
		"/api/notebook/lsNotebooks":                {serve: lsNotebooks, noBody: true},
		"/api/notebook/createNotebook":             {serve: createNotebook, write: true},
		"/api/notebook/openNotebook":               {serve: openNotebook, write: true},
		"/api/notebook/closeNotebook":              {serve: closeNotebook, write: true},
		"/api/notebook/removeNotebook":             {serve: removeNotebook, write: true},
		"/api/notebook/renameNotebook":             {serve: renameNotebook, write: true},
		"/api/notebook/getNotebookConf":            {serve: getNotebookConf},
		"/api/notebook/setNotebookConf":            {serve: setNotebookConf, write: true},
		"/api/notebook/getNotebookInfo":            {serve: getNotebookInfo},
		"/api/notebook/setNotebookIcon":            {serve: setNotebookIcon, write: true},
		"/api/notebook/changeSortNotebook":         {serve: changeSortNotebook, write: true},
		"/api/notebook/getEncryptedNotebookStatus": {serve: getEncryptedNotebookStatus},
	}
}

func lsNotebooks(k *Kernel, a args) (any, error) {
	items := []any{}
	flashcard, _ := a["flashcard"].(bool)
	for _, n := range k.orderedNotebooks() {
		item := k.notebookItem(n)
		if flashcard {
			due := k.due(must(k.deck(builtInDeck)), k.inBox(n.id))
			cards := len(k.builtInCards(k.inBox(n.id)))
			if cards == 0 {
				continue
			}
			item["subFileCount"], item["flashcardCount"] = 0, cards
			item["newFlashcardCount"], item["dueFlashcardCount"] = due["unreviewedNewCardCount"], due["unreviewedCount"]
		}
		items = append(items, item)
	}
	return map[string]any{"boxDocEnabled": true, "notebooks": items}, nil
}

// cleanName drops what a notebook or document title cannot hold.
func cleanName(s string) string {
	return strings.NewReplacer("/", "", "\n", "", "\r", "", "\t", "").Replace(s)
}

func createNotebook(k *Kernel, a args) (any, error) {
	name, err := a.needStr("name")
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(name) > 512 {
		return nil, fail(msgTooLong)
	}
	for _, n := range k.notebooks {
		n.conf.Sort++
		if err := k.saveNotebook(n); err != nil {
			return nil, err
		}
	}
	n := &notebook{id: k.newID(), conf: defaultNotebookConf(), sort: map[string]int{}}
	if name = cleanName(name); name != "" {
		n.conf.Name = name
	}
	k.notebooks[n.id] = n
	if err := k.mount(n); err != nil {
		return nil, err
	}
	return map[string]any{"notebook": k.notebookItem(n)}, nil
}

// mount opens a notebook: its root document is there at once, everything else
// once the mount lag has passed.
func (k *Kernel) mount(n *notebook) error {
	n.conf.Closed = false
	if err := k.saveNotebook(n); err != nil {
		return err
	}
	if !fileExists(k.docFile(n.id, "/"+n.id+".sy")) {
		if err := k.createRootDoc(n); err != nil {
			return err
		}
	}
	k.mounts = append(k.mounts, task{due: k.now().Add(max(0, k.opt.MountLag)), run: func() {
		if !n.conf.Closed {
			k.remount(n.id)
		}
	}})
	k.settle()
	return nil
}

// remount reads what is on disk but not in memory yet and indexes it.
func (k *Kernel) remount(box string) {
	stale := k.stale
	k.stale = map[string]staleness{}
	if err := k.loadDocs(box); err == nil {
		for _, id := range sortedKeys(k.stale) {
			k.reindex(id, k.stale[id])
		}
	}
	k.stale = stale
}

// createRootDoc makes the document that has the notebook's id and name. Its
// rows are written twice, which a real kernel does too.
func (k *Kernel) createRootDoc(n *notebook) error {
	root := k.newDocNode(n.id, n.conf.Name)
	text.SetAttr(root, "custom-hidden", "true")
	text.SetAttr(root, "icon", n.conf.Icon)
	root.AppendChild(k.emptyParagraph())
	d := &document{box: n.id, path: "/" + n.id + ".sy", hpath: "/" + n.conf.Name, root: root}
	if err := k.save(d); err != nil {
		return err
	}
	k.reindex(n.id, staleness{copies: 2})
	return nil
}

func (k *Kernel) newDocNode(id, title string) *ast.Node {
	root := &ast.Node{Type: ast.NodeDocument, ID: id, Spec: text.Spec}
	root.SetIALAttr("id", id)
	text.SetAttr(root, "title", title)
	root.SetIALAttr("type", "doc")
	root.SetIALAttr("updated", id[:min(14, len(id))])
	return root
}

func (k *Kernel) emptyParagraph() *ast.Node {
	p := &ast.Node{Type: ast.NodeParagraph}
	text.SetID(p, k.newID())
	p.SetIALAttr("updated", p.ID[:14])
	return p
}

// boxArg is the notebook field, checked for its shape.
func boxArg(a args, field string) (string, error) {
	id := a.str(field)
	if !text.ValidID(id) {
		return "", fail(msgBadID)
	}
	return id, nil
}

func openNotebook(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	n, known := k.notebooks[id]
	if !known {
		if !fileExists(k.workspace("data", id)) {
			return nil, fail("can not open file, just support open folder only")
		}
		n = k.readNotebook(id)
		n.conf.Closed = true
	}
	if !n.conf.Closed {
		return nil, nil
	}
	if err := k.mount(n); err != nil {
		return nil, err
	}
	if root, err := os.ReadFile(k.docFile(id, "/"+id+".sy")); err == nil && k.docs[id] == nil {
		k.plantRoot(n, root)
	}
	return nil, nil
}

// plantRoot shows the root document of a reopened notebook before the others.
func (k *Kernel) plantRoot(n *notebook, raw []byte) {
	node, err := text.Decode(raw)
	if err != nil {
		return
	}
	d := &document{box: n.id, path: "/" + n.id + ".sy", hpath: "/" + n.conf.Name, root: node, size: len(raw)}
	k.docs[n.id] = d
	k.plant(d)
	k.reindex(n.id, staleness{copies: 1})
}

func closeNotebook(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	n, ok := k.openBox(id)
	if !ok {
		return nil, nil
	}
	n.conf.Closed = true
	if err := k.saveNotebook(n); err != nil {
		return nil, err
	}
	gone := k.unmount(id)
	k.mounts = append(k.mounts, task{due: k.now().Add(max(0, k.opt.MountLag)), run: func() { k.dropRows(gone) }})
	k.settle()
	return nil, nil
}

// unmount forgets the documents of a notebook; their rows are still there.
func (k *Kernel) unmount(box string) (ids []string) {
	for id, d := range k.docs {
		if d.box == box {
			k.uproot(d)
			delete(k.docs, id)
			delete(k.stale, id)
			ids = append(ids, id)
		}
	}
	return ids
}

func (k *Kernel) dropRows(ids []string) {
	for _, id := range ids {
		if _, back := k.docs[id]; !back {
			k.reindex(id, staleness{})
		}
	}
}

func removeNotebook(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	if _, known := k.notebooks[id]; !known {
		return nil, nil
	}
	k.dropRows(k.unmount(id))
	delete(k.notebooks, id)
	return nil, k.toHistory("delete", id, "/"+id)
}

func renameNotebook(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	name := a.str("name")
	if utf8.RuneCountInString(name) > 512 {
		return nil, failToast(msgTooLong, 5000)
	}
	n, ok := k.openBox(id)
	if !ok {
		return nil, failToast(msgNoNotebook, 5000)
	}
	if n.conf.Name = cleanName(name); n.conf.Name == "" {
		n.conf.Name = "Untitled"
	}
	if err := k.saveNotebook(n); err != nil {
		return nil, err
	}
	if d, ok := k.docs[id]; ok {
		text.SetAttr(d.root, "title", n.conf.Name)
		d.hpath = "/" + n.conf.Name
		return nil, k.save(d)
	}
	return nil, nil
}

func getNotebookConf(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	n, ok := k.notebooks[id]
	if !ok {
		return nil, fail("notebook [" + id + "] not found")
	}
	return map[string]any{"box": id, "conf": n.conf, "name": n.conf.Name}, nil
}

func setNotebookConf(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	n, ok := k.openBox(id)
	if !ok {
		return nil, fail("notebook [" + id + "] not found")
	}
	raw, err := json.Marshal(a.object("conf"))
	if err != nil {
		return nil, err
	}
	conf := n.conf
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, fail(err.Error())
	}
	conf.Closed = n.conf.Closed
	if strings.Trim(conf.DailyNoteSavePath, "/ ") == "" {
		return nil, fail("Please specify the daily note save path in the Notebook Settings")
	}
	n.conf = conf
	return n.conf, k.saveNotebook(n)
}

func getNotebookInfo(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	n, ok := k.openBox(id)
	if !ok {
		return nil, fail("notebook [" + id + "] not found")
	}
	docs, size, modified := 0, 0, int64(0)
	for _, d := range k.docs {
		if d.box == id {
			if d.id() != id {
				docs++
			}
			size += d.size
			modified = max(modified, docTime(d.root.IALAttr("updated"), k.now()).Unix())
		}
	}
	created := docTime(id, k.now())
	return map[string]any{"boxInfo": map[string]any{
		"id": id, "name": n.conf.Name, "docCount": docs, "size": size, "hSize": humanSize(size),
		"mtime": modified, "ctime": created.Unix(), "hMtime": humanTime(unixTime(modified), k.now()), "hCtime": humanTime(created, k.now()),
	}}, nil
}

// setNotebookIcon creates a closed notebook when there is none of that id.
func setNotebookIcon(k *Kernel, a args) (any, error) {
	id, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	n, known := k.notebooks[id]
	if !known {
		n = &notebook{id: id, conf: defaultNotebookConf(), sort: map[string]int{}}
		n.conf.Closed = true
		k.notebooks[id] = n
	}
	n.conf.Icon = a.str("icon")
	return nil, k.saveNotebook(n)
}

func changeSortNotebook(k *Kernel, a args) (any, error) {
	for i, id := range a.strs("notebooks") {
		if n, ok := k.notebooks[id]; ok {
			n.conf.Sort = i + 1
			if err := k.saveNotebook(n); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

func getEncryptedNotebookStatus(_ *Kernel, _ args) (any, error) {
	return map[string]any{
		"boxes": []any{}, "count": 0, "enabled": false, "hasHistoryDependency": false, "migrationBoxes": nil, "migrationPending": false,
	}, nil
}
