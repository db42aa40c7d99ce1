package siyuan

import (
	"context"
	"errors"
)

// Notebook is a row of Notebooks.
type Notebook struct {
	ID           ID     `json:"id" shape:"nonempty"`
	Name         string `json:"name"`
	Icon         string `json:"icon"`
	Sort         int    `json:"sort"`
	SortMode     int    `json:"sortMode"`
	Closed       bool   `json:"closed"`
	SubFileCount int    `json:"subFileCount"`
	Encrypted    bool   `json:"encrypted"`
	Unlocked     bool   `json:"unlocked"`
}

// Notebooks lists all notebooks, closed ones too, in the order of the sidebar.
// boxDocs says that each has a root document with the notebook's own id.
func (r *Reader) Notebooks(ctx context.Context) (notebooks []Notebook, boxDocs bool, err error) {
	data, err := read[struct {
		BoxDocEnabled bool       `json:"boxDocEnabled"`
		Notebooks     []Notebook `json:"notebooks" shape:"nonnull"`
	}](ctx, r, "notebook/lsNotebooks", args{"flashcard": false}, 0)
	return data.Notebooks, data.BoxDocEnabled, err
}

// NotebookConf are the settings of a notebook.
type NotebookConf struct {
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
}

// NotebookConf reads the settings of a notebook, also of a closed one.
func (r *Reader) NotebookConf(ctx context.Context, notebook ID) (NotebookConf, error) {
	const path = "notebook/getNotebookConf"
	data, err := read[struct {
		Box  ID           `json:"box" shape:"nonempty"`
		Conf NotebookConf `json:"conf"`
	}](ctx, r, path, args{"notebook": notebook}, 0)
	return data.Conf, r.noNotebook(ctx, path, notebook, err)
}

// NotebookInfo are the sizes and times of a notebook.
type NotebookInfo struct {
	ID       ID     `json:"id" shape:"nonempty"`
	Name     string `json:"name"`
	DocCount int    `json:"docCount"` // without the root document
	Size     int64  `json:"size"`     // bytes
	HSize    string `json:"hSize"`    // for people, as all H fields
	MTime    int64  `json:"mtime"`    // Unix seconds
	CTime    int64  `json:"ctime"`
	HMTime   string `json:"hMtime"`
	HCTime   string `json:"hCtime"`
}

// NotebookInfo reads the sizes of an open notebook; a closed one is Rejected.
func (r *Reader) NotebookInfo(ctx context.Context, notebook ID) (NotebookInfo, error) {
	const path = "notebook/getNotebookInfo"
	data, err := read[struct {
		BoxInfo NotebookInfo `json:"boxInfo"`
	}](ctx, r, path, args{"notebook": notebook}, 0)
	return data.BoxInfo, r.noNotebook(ctx, path, notebook, err)
}

// noNotebook turns the refusal of a call about a notebook into Missing when the
// list of notebooks does not have it.
func (r *Reader) noNotebook(ctx context.Context, path string, id ID, err error) error {
	if !errors.Is(err, Rejected) {
		return err
	}
	all, _, listErr := r.Notebooks(ctx)
	if listErr != nil {
		return err
	}
	for _, n := range all {
		if n.ID == id {
			return err
		}
	}
	return missing(path)
}

// DocFile is a document as a file of its notebook.
type DocFile struct {
	ID           ID     `json:"id" shape:"nonempty"`
	Path         string `json:"path" shape:"nonempty"`
	Name         string `json:"name"` // the title
	Icon         string `json:"icon"`
	Name1        string `json:"name1"` // the name attribute
	Alias        string `json:"alias"`
	Memo         string `json:"memo"`
	Bookmark     string `json:"bookmark"`
	Count        int    `json:"count"` // references to it, over all notebooks
	Size         int64  `json:"size"`
	HSize        string `json:"hSize"`
	MTime        int64  `json:"mtime"` // Unix seconds
	CTime        int64  `json:"ctime"`
	HMTime       string `json:"hMtime"`
	HCTime       string `json:"hCtime"`
	Sort         int    `json:"sort"`
	SubFileCount int    `json:"subFileCount"`
}

// Docs lists one level of documents, all of them: path is "/" or a document's
// path. An unknown path has none; a closed or unknown notebook is Rejected or
// Missing.
func (r *Reader) Docs(ctx context.Context, notebook ID, path string) ([]DocFile, error) {
	return r.docs(ctx, notebook, path, nil)
}

// DocsSorted is Docs in a given order: 0/1 name, 2/3 updated, 4/5 natural name,
// 6 manual, 7/8 references, 9/10 created, 11/12 size, 13/14 children; the odd
// one of a pair descends.
func (r *Reader) DocsSorted(ctx context.Context, notebook ID, path string, sort int) ([]DocFile, error) {
	return r.docs(ctx, notebook, path, &sort)
}

func (r *Reader) docs(ctx context.Context, notebook ID, path string, sort *int) ([]DocFile, error) {
	const endpoint = "filetree/listDocsByPath"
	// Without sort the notebook's own order is used; maxListCount 0 means all.
	body := args{"notebook": notebook, "path": path, "maxListCount": 0, "ignoreMaxListHint": true}
	if sort != nil {
		body["sort"] = *sort
	}
	data, err := read[struct {
		Files []DocFile `json:"files" shape:"nonnull"`
	}](ctx, r, endpoint, body, 0)
	return data.Files, r.noNotebook(ctx, endpoint, notebook, err)
}

// DocNode is a document in a tree of ids.
type DocNode struct {
	ID       ID        `json:"id" shape:"nonempty"`
	Children []DocNode `json:"children"`
}

// DocTree is the tree of documents below a document. The kernel refuses "/" and
// documents without children: use Docs to tell those.
func (r *Reader) DocTree(ctx context.Context, notebook ID, path string) ([]DocNode, error) {
	data, err := read[struct {
		Tree []DocNode `json:"tree" shape:"nonnull"`
	}](ctx, r, "filetree/listDocTree", args{"notebook": notebook, "path": path}, 0)
	return data.Tree, err
}

// IDsByHPath finds the documents of an exact, case-sensitive title path such as
// "/Projects/Alpha"; several may share one, in no particular order.
func (r *Reader) IDsByHPath(ctx context.Context, notebook ID, hpath string) ([]ID, error) {
	return read[[]ID](ctx, r, "filetree/getIDsByHPath", args{"notebook": notebook, "path": hpath}, 0)
}

// Location is the place of a document's file.
type Location struct {
	Notebook ID     `json:"notebook" shape:"nonempty"`
	Path     string `json:"path" shape:"nonempty"`
}

// PathByID finds the document of a block. Like BlockInfo it is current at once.
func (r *Reader) PathByID(ctx context.Context, id ID) (Location, error) {
	return readAt[Location](ctx, r, "filetree/getPathByID", id, args{"id": id}, 0)
}

// HPathByID is the title path of a block's document; "/" of a notebook.
func (r *Reader) HPathByID(ctx context.Context, id ID) (string, error) {
	return readAt[string](ctx, r, "filetree/getHPathByID", id, args{"id": id}, 0)
}

// FullHPathByID is HPathByID with the notebook's name in front and no leading
// slash.
func (r *Reader) FullHPathByID(ctx context.Context, id ID) (string, error) {
	return readAt[string](ctx, r, "filetree/getFullHPathByID", id, args{"id": id}, 0)
}

// HPathByPath is the title path of a document file.
func (r *Reader) HPathByPath(ctx context.Context, notebook ID, path string) (string, error) {
	return read[string](ctx, r, "filetree/getHPathByPath", args{"notebook": notebook, "path": path}, 0)
}

// DocHit is a document found by title.
type DocHit struct {
	Box     ID     `json:"box" shape:"nonempty"`
	BoxIcon string `json:"boxIcon"`
	HPath   string `json:"hPath"` // starts with the notebook's name
	Path    string `json:"path" shape:"nonempty"`
}

// SearchDocs finds documents of all notebooks by a part of their title; ""
// lists the notebooks' root documents.
func (r *Reader) SearchDocs(ctx context.Context, keyword string) ([]DocHit, error) {
	return read[[]DocHit](ctx, r, "filetree/searchDocs",
		args{"k": keyword, "flashcard": false, "excludeIDs": []string{}}, indexed)
}

// DocPage is a part of a document as DOM.
type DocPage struct {
	ID         ID     `json:"id" shape:"nonempty"`
	RootID     ID     `json:"rootID" shape:"nonempty"`
	ParentID   ID     `json:"parentID"`
	Parent2ID  ID     `json:"parent2ID"`
	Box        ID     `json:"box" shape:"nonempty"`
	Path       string `json:"path"`
	Type       string `json:"type"`
	Content    string `json:"content"`
	BlockCount int    `json:"blockCount"`
	EOF        bool   `json:"eof"` // told in modes 2 and 4 only
	Mode       int    `json:"mode"`
	Syncing    bool   `json:"isSyncing"` // sync has fetched another version that is about to replace the document
}

// Doc loads size blocks of a document from a block on; mode is the kernel's 0
// (this block and its surroundings) to 4 (the end).
func (r *Reader) Doc(ctx context.Context, id ID, size, mode int) (DocPage, error) {
	return readAt[DocPage](ctx, r, "filetree/getDoc", id, args{"id": id, "size": size, "mode": mode}, 0)
}

// SavePath is where a kind of new document goes.
type SavePath struct {
	Box  string `json:"box"`
	Path string `json:"path"`
}

// DocCreateSavePath is where the notebook puts new documents, templates
// rendered.
func (r *Reader) DocCreateSavePath(ctx context.Context, notebook ID) (SavePath, error) {
	return read[SavePath](ctx, r, "filetree/getDocCreateSavePath", args{"notebook": notebook}, 0)
}

// Outline are the headings of a document, nested: the first level as Paths,
// deeper ones in Blocks and their Children. None when it has no headings.
func (r *Reader) Outline(ctx context.Context, id ID) ([]Path, error) {
	return readAt[[]Path](ctx, r, "outline/getDocOutline", id, args{"id": id, "preview": false}, nullable)
}

// RecentDoc is a document somebody had open.
type RecentDoc struct {
	RootID   ID     `json:"rootID" shape:"nonempty"`
	Title    string `json:"title"`
	Icon     string `json:"icon"`
	ViewedAt int64  `json:"viewedAt"` // Unix seconds, 0 when unknown
	OpenAt   int64  `json:"openAt"`
}

// RecentOrder chooses what "recent" means.
type RecentOrder string

// The orders of RecentDocs; RecentUpdatedOrder lists every document.
const (
	RecentViewed       RecentOrder = "viewedAt"
	RecentOpened       RecentOrder = "openAt"
	RecentClosed       RecentOrder = "closedAt"
	RecentUpdatedOrder RecentOrder = "updated"
)

// RecentDocs lists documents of all notebooks; the answer does not say which
// notebook each is in.
func (r *Reader) RecentDocs(ctx context.Context, by RecentOrder) ([]RecentDoc, error) {
	return read[[]RecentDoc](ctx, r, "storage/getRecentDocs", args{"sortBy": by}, indexed)
}
