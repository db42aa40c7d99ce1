package siyuan

import "context"

// CreateNotebook makes and opens a notebook. Names need not be unique. For about
// a second the kernel indexes it in the background, and what is written
// meanwhile gets its rows twice, for good: whoever reads rows must take those of
// one id for one.
func (w *Writer) CreateNotebook(ctx context.Context, name string) (Notebook, error) {
	data, err := write[struct {
		Notebook Notebook `json:"notebook"`
	}](ctx, w, "notebook/createNotebook", args{"name": name}, 0)
	return data.Notebook, err
}

// OpenNotebook mounts a notebook; its index is built in the background for
// seconds, which no flush waits for. Rows may be doubled as in CreateNotebook.
func (w *Writer) OpenNotebook(ctx context.Context, notebook ID) error {
	return exec(ctx, w, "notebook/openNotebook", args{"notebook": notebook}, slow)
}

// CloseNotebook unmounts a notebook; its rows leave the index within seconds,
// which no flush waits for. An unknown notebook is not an error.
func (w *Writer) CloseNotebook(ctx context.Context, notebook ID) error {
	return exec(ctx, w, "notebook/closeNotebook", args{"notebook": notebook}, 0)
}

// RemoveNotebook moves a notebook to the history. An unknown one is not an
// error. A background task of the kernel that still knew its documents can make
// it again, closed and named Untitled: look after a second, and remove it again.
func (w *Writer) RemoveNotebook(ctx context.Context, notebook ID) error {
	return exec(ctx, w, "notebook/removeNotebook", args{"notebook": notebook}, slow)
}

// RenameNotebook renames an open notebook.
func (w *Writer) RenameNotebook(ctx context.Context, notebook ID, name string) error {
	return exec(ctx, w, "notebook/renameNotebook", args{"notebook": notebook, "name": name}, 0)
}

// SetNotebookConf merges the given settings, by their JSON names, and returns
// them all.
func (w *Writer) SetNotebookConf(ctx context.Context, notebook ID, changes map[string]any) (NotebookConf, error) {
	return write[NotebookConf](ctx, w, "notebook/setNotebookConf",
		args{"notebook": notebook, "conf": changes}, 0)
}

// SetNotebookIcon sets an emoji's code or an icon's path. An unknown notebook
// would be created by it, so it is looked up first.
func (w *Writer) SetNotebookIcon(ctx context.Context, notebook ID, icon string) error {
	const path = "notebook/setNotebookIcon"
	if _, err := w.NotebookConf(ctx, notebook); err != nil {
		return err
	}
	return exec(ctx, w, path, args{"notebook": notebook, "icon": icon}, 0)
}

// SortNotebooks sets the order of the sidebar.
func (w *Writer) SortNotebooks(ctx context.Context, order []ID) error {
	return exec(ctx, w, "notebook/changeSortNotebook", args{"notebooks": list(order)}, 0)
}

// NewDoc describes a document to create.
type NewDoc struct {
	Notebook ID
	HPath    string // of titles; missing parents are created, "/" always separates
	Markdown string
	ID       ID     // of the new document; the kernel chooses when it is ""
	ParentID ID     // which one, when several documents have HPath's parent path; "" for any
	Tags     string // comma-separated
}

// CreateDoc makes a document from Markdown. The same path again makes a second
// document of the same name. An id in use is Rejected only where its document is
// already: elsewhere the kernel makes a second document of that id, so look it
// up before.
func (w *Writer) CreateDoc(ctx context.Context, d NewDoc) (ID, error) {
	const path = "filetree/createDocWithMd"
	body := args{"notebook": d.Notebook, "path": d.HPath, "markdown": d.Markdown, "tags": d.Tags}
	id, err := write[ID](ctx, w, path, body.with("id", d.ID).with("parentID", d.ParentID), 0)
	if err == nil && !id.Valid() {
		return "", unknown(malformed(path, "the new document's id is malformed"))
	}
	return id, err
}

// CreateDocAt makes a document at a file path such as /parent-id/new-id.sy; the
// parent must exist. Slashes are dropped from the title. sorts, when given, are
// all siblings in their order.
func (w *Writer) CreateDocAt(ctx context.Context, notebook ID, path, title, markdown string, sorts []ID) (ID, error) {
	data, err := write[struct {
		ID ID `json:"id" shape:"nonempty"`
	}](ctx, w, "filetree/createDoc", args{
		"notebook": notebook, "path": path, "title": title, "md": markdown, "sorts": list(sorts),
	}, 0)
	return data.ID, err
}

// CreateDailyNote makes today's note, or finds it.
func (w *Writer) CreateDailyNote(ctx context.Context, notebook ID) (ID, error) {
	data, err := write[struct {
		ID ID `json:"id" shape:"nonempty"`
	}](ctx, w, "filetree/createDailyNote", args{"notebook": notebook}, 0)
	return data.ID, err
}

// RenameDoc renames the document that id is, or is in: callers make sure that
// id is a document. "" keeps the title, slashes are dropped.
func (w *Writer) RenameDoc(ctx context.Context, doc ID, title string) error {
	return exec(ctx, w, "filetree/renameDocByID", args{"id": doc, "title": title}, queued)
}

// MoveDocs moves documents below a document or notebook. Moving one below
// itself does nothing, successfully.
func (w *Writer) MoveDocs(ctx context.Context, docs []ID, to ID) error {
	return exec(ctx, w, "filetree/moveDocsByID", args{"fromIDs": list(docs), "toID": to}, slow|queued)
}

// RemoveDoc moves the document that id is, or is in, to the history, with all
// documents below it: callers make sure that id is a document. Tree reads miss it
// at once; its rows leave the index by a background task, at once or up to two
// seconds later, which no flush waits for.
func (w *Writer) RemoveDoc(ctx context.Context, doc ID) error {
	return exec(ctx, w, "filetree/removeDocByID", args{"id": doc}, slow|queued)
}

// DocCopy is a duplicated document.
type DocCopy struct {
	ID       ID     `json:"id" shape:"nonempty"`
	Notebook ID     `json:"notebook" shape:"nonempty"`
	Path     string `json:"path"`
	HPath    string `json:"hPath"`
}

// DuplicateDoc copies a document without the ones below it.
func (w *Writer) DuplicateDoc(ctx context.Context, doc ID) (DocCopy, error) {
	return write[DocCopy](ctx, w, "filetree/duplicateDoc", args{"id": doc}, slow)
}

// ChangeSort sets the manual order of documents of one level, by path; those
// not listed keep their number.
func (w *Writer) ChangeSort(ctx context.Context, notebook ID, paths []string) error {
	return exec(ctx, w, "filetree/changeSort", args{"notebook": notebook, "paths": list(paths)}, queued)
}

// DocToHeading makes a document a heading behind (after) or below the target.
func (w *Writer) DocToHeading(ctx context.Context, doc, target ID, after bool) error {
	_, err := write[struct {
		Box ID `json:"srcTreeBox" shape:"nonempty"`
	}](ctx, w, "filetree/doc2Heading", args{"srcID": doc, "targetID": target, "after": after}, queued)
	return err
}

// HeadingToDoc makes a heading with its section a document of the same id,
// below targetPath ("" or "/" for the notebook, else a document's path).
func (w *Writer) HeadingToDoc(ctx context.Context, heading, notebook ID, targetPath string) error {
	return exec(ctx, w, "filetree/heading2Doc",
		args{"srcHeadingID": heading, "targetNoteBook": notebook, "targetPath": targetPath}, queued)
}

// ListItemToDoc makes a list item a document, as HeadingToDoc.
func (w *Writer) ListItemToDoc(ctx context.Context, item, notebook ID, targetPath string) error {
	return exec(ctx, w, "filetree/li2Doc",
		args{"srcListItemID": item, "targetNoteBook": notebook, "targetPath": targetPath}, queued)
}
