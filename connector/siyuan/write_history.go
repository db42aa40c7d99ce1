package siyuan

import "context"

// CreateDocHistory keeps the document of a block in the history.
func (w *Writer) CreateDocHistory(ctx context.Context, doc ID) error {
	return exec(ctx, w, "history/createDocHistory", args{"id": doc}, slow)
}

// RollbackDoc puts a kept document back in place.
func (w *Writer) RollbackDoc(ctx context.Context, historyPath string) error {
	return exec(ctx, w, "history/rollbackDocHistory", args{"historyPath": historyPath}, slow|queued)
}

// CreateSnapshot takes a snapshot of the workspace; without changes since the
// last one there is no new one. A file that changed twice in one second counts as
// unchanged by the second change.
func (w *Writer) CreateSnapshot(ctx context.Context, memo string) error {
	return exec(ctx, w, "repo/createSnapshot", args{"memo": memo}, slow)
}

// TagSnapshot names a snapshot.
func (w *Writer) TagSnapshot(ctx context.Context, snapshot, name string) error {
	return exec(ctx, w, "repo/tagSnapshot", args{"id": snapshot, "name": name}, slow)
}

// RemoveSnapshotTag removes a name; a missing one is not an error.
func (w *Writer) RemoveSnapshotTag(ctx context.Context, tag string) error {
	return exec(ctx, w, "repo/removeRepoTagSnapshot", args{"tag": tag}, slow)
}

// RollbackRepoFile puts a file of a snapshot back in place, by its FileID.
func (w *Writer) RollbackRepoFile(ctx context.Context, fileID string) error {
	return exec(ctx, w, "repo/rollbackRepoSnapshotFile", args{"id": fileID}, slow|queued)
}
