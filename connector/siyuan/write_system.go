package siyuan

import (
	"context"
	"time"
)

// PushMessage shows a message in SiYuan and returns its id; it goes away after
// the given time.
func (w *Writer) PushMessage(ctx context.Context, msg string, shown time.Duration) (string, error) {
	return w.push(ctx, "notification/pushMsg", msg, shown)
}

// PushError shows a message as an error.
func (w *Writer) PushError(ctx context.Context, msg string, shown time.Duration) (string, error) {
	return w.push(ctx, "notification/pushErrMsg", msg, shown)
}

func (w *Writer) push(ctx context.Context, path, msg string, shown time.Duration) (string, error) {
	if msg == "" {
		return "", badArgument(path, "no message")
	}
	data, err := write[struct {
		ID string `json:"id" shape:"nonempty"`
	}](ctx, w, path, args{"msg": msg, "timeout": shown.Milliseconds()}, 0)
	return data.ID, err
}

// ReloadDoc makes open editors of a document load it again.
func (w *Writer) ReloadDoc(ctx context.Context, doc ID) error {
	return exec(ctx, w, "ui/reloadProtyle", args{"id": doc}, 0)
}

// ReloadAttributeView makes open views of a database load it again.
func (w *Writer) ReloadAttributeView(ctx context.Context, av ID) error {
	return exec(ctx, w, "ui/reloadAttributeView", args{"id": av}, 0)
}

// ReloadFiletree makes the sidebar load the documents again.
func (w *Writer) ReloadFiletree(ctx context.Context) error {
	return exec(ctx, w, "ui/reloadFiletree", nil, 0)
}

// ReloadTags makes the tag panel load again.
func (w *Writer) ReloadTags(ctx context.Context) error {
	return exec(ctx, w, "ui/reloadTag", nil, 0)
}

// SaveTemplate saves a document as a template. A missing document is not an
// error; an existing template is Rejected unless overwrite is set.
func (w *Writer) SaveTemplate(ctx context.Context, doc ID, name string, overwrite bool) error {
	return exec(ctx, w, "template/docSaveAsTemplate", args{"id": doc, "name": name, "overwrite": overwrite}, 0)
}

// RemoveTemplate removes a template by its absolute path; a missing one is not
// an error.
func (w *Writer) RemoveTemplate(ctx context.Context, path string) error {
	return exec(ctx, w, "search/removeTemplate", args{"path": path}, 0)
}

// TouchRecentDoc records a document as just viewed.
func (w *Writer) TouchRecentDoc(ctx context.Context, doc ID) error {
	return exec(ctx, w, "storage/updateRecentDocViewTime", args{"rootID": doc}, 0)
}
