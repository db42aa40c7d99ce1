package siyuan

import "context"

// HistoryQuery selects entries of the file history.
type HistoryQuery struct {
	Query    string
	Notebook ID     // "" for all
	Op       string // all, update, delete, ...
	Type     int    // 0 title, 1 content, 2 assets, 3 document id, 4 database
}

func (q HistoryQuery) body() args {
	op := q.Op
	if op == "" {
		op = "all"
	}
	return args{"query": q.Query, "notebook": optional(q.Notebook), "op": op, "type": q.Type}
}

// HistoryTimes is a page of the times at which something was kept, as the
// kernel's Unix seconds in text.
type HistoryTimes struct {
	Histories  []string `json:"histories" shape:"nonnull"`
	PageCount  int      `json:"pageCount"`
	TotalCount int      `json:"totalCount"`
}

// SearchHistory pages through the times of the history, from 1. The index
// behind it is built in the background.
func (r *Reader) SearchHistory(ctx context.Context, q HistoryQuery, page int) (HistoryTimes, error) {
	body := q.body()
	body["page"] = page
	return read[HistoryTimes](ctx, r, "history/searchHistory", body, indexed)
}

// HistoryItem is a kept file.
type HistoryItem struct {
	Title    string `json:"title"`
	Path     string `json:"path" shape:"nonempty"` // /history/...
	Op       string `json:"op"`
	Notebook ID     `json:"notebook"`
}

// HistoryItems lists what was kept at one of SearchHistory's times; items
// repeat.
func (r *Reader) HistoryItems(ctx context.Context, created string, q HistoryQuery) ([]HistoryItem, error) {
	body := q.body()
	body["created"] = created
	data, err := read[struct {
		Items []HistoryItem `json:"items" shape:"nonnull"`
	}](ctx, r, "history/getHistoryItems", body, indexed)
	return data.Items, err
}

// HistoryDoc is a kept document as DOM.
type HistoryDoc struct {
	ID         ID     `json:"id"`
	RootID     ID     `json:"rootID"`
	Content    string `json:"content"`
	IsLargeDoc bool   `json:"isLargeDoc"` // Content is Markdown
}

// HistoryDoc reads a kept document; a missing path is Missing.
func (r *Reader) HistoryDoc(ctx context.Context, path string) (HistoryDoc, error) {
	const endpoint = "history/getDocHistoryContent"
	doc, err := read[HistoryDoc](ctx, r, endpoint, args{"historyPath": path, "highlight": false, "k": ""}, slow)
	if err == nil && doc.ID == "" && doc.Content == "" {
		return doc, missing(endpoint)
	}
	return doc, err
}

// Snapshot is a state of the whole workspace in the data repository.
type Snapshot struct {
	ID         string `json:"id" shape:"nonempty"` // 40 hex digits
	Memo       string `json:"memo"`
	Created    int64  `json:"created"` // Unix milliseconds
	HCreated   string `json:"hCreated"`
	Count      int    `json:"count"` // files
	Size       int64  `json:"size"`
	HSize      string `json:"hSize"`
	SystemName string `json:"systemName"`
	SystemOS   string `json:"systemOS"`
	Tag        string `json:"tag"`
	HTagged    string `json:"hTagUpdated"`
	TypesCount []struct {
		Type  string `json:"type"`
		Count int    `json:"count"`
	} `json:"typesCount"`
}

// SnapshotPage is a page of snapshots.
type SnapshotPage struct {
	Snapshots  []Snapshot `json:"snapshots" shape:"nonnull"`
	PageCount  int        `json:"pageCount"`
	TotalCount int        `json:"totalCount"`
}

// Snapshots pages through the snapshots, from 1. Rejected when the user has set
// no repository key.
func (r *Reader) Snapshots(ctx context.Context, page int) (SnapshotPage, error) {
	return read[SnapshotPage](ctx, r, "repo/getRepoSnapshots", args{"page": page}, slow)
}

// TaggedSnapshots lists the snapshots that have a tag.
func (r *Reader) TaggedSnapshots(ctx context.Context) ([]Snapshot, error) {
	data, err := read[struct {
		Snapshots []Snapshot `json:"snapshots" shape:"nonnull"`
	}](ctx, r, "repo/getRepoTagSnapshots", nil, slow)
	return data.Snapshots, err
}

// RepoFile is a file of a snapshot. Path starts with the notebook.
type RepoFile struct {
	FileID  string `json:"fileID" shape:"nonempty"`
	IndexID string `json:"indexID"`
	Title   string `json:"title"`
	Path    string `json:"path" shape:"nonempty"`
	HPath   string `json:"hPath"`
	HSize   string `json:"hSize"`
	Updated int64  `json:"updated"` // Unix milliseconds
}

// SnapshotDiff is what changed between two snapshots.
type SnapshotDiff struct {
	AddsLeft     []RepoFile `json:"addsLeft"`
	UpdatesLeft  []RepoFile `json:"updatesLeft"`
	UpdatesRight []RepoFile `json:"updatesRight"`
	RemovesRight []RepoFile `json:"removesRight"`
}

// DiffSnapshots compares two snapshots, over all notebooks.
func (r *Reader) DiffSnapshots(ctx context.Context, left, right string) (SnapshotDiff, error) {
	return read[SnapshotDiff](ctx, r, "repo/diffRepoSnapshots", args{"left": left, "right": right}, slow)
}

// RepoContent is a file of a snapshot.
type RepoContent struct {
	Title         string `json:"title"`
	Content       string `json:"content"`
	DisplayInText bool   `json:"displayInText"` // Content is no DOM
	Updated       int64  `json:"updated"`
}

// OpenRepoFile reads a file of a snapshot by its FileID.
func (r *Reader) OpenRepoFile(ctx context.Context, fileID string) (RepoContent, error) {
	return read[RepoContent](ctx, r, "repo/openRepoSnapshotFile", args{"id": fileID}, slow)
}

// RepoFilePage is a page of files of snapshots.
type RepoFilePage struct {
	Files      []RepoFile `json:"files" shape:"nonnull"`
	PageCount  int        `json:"pageCount"`
	TotalCount int        `json:"totalCount"`
}

// SearchRepo finds files of all snapshots.
func (r *Reader) SearchRepo(ctx context.Context, keyword string, page int) (RepoFilePage, error) {
	return read[RepoFilePage](ctx, r, "repo/searchRepoFile", args{"keyword": keyword, "page": page}, slow)
}
