package siyuan

import (
	"context"
	"encoding/json"
	"time"
)

// CurrentTime is the kernel's clock.
func (r *Reader) CurrentTime(ctx context.Context) (time.Time, error) {
	ms, err := read[int64](ctx, r, "system/currentTime", nil, direct)
	return time.UnixMilli(ms), err
}

// RawConf is the kernel's whole configuration as JSON. It contains the API
// token, the access code and other secrets: callers pick known fields and drop
// the rest.
func (r *Reader) RawConf(ctx context.Context) (json.RawMessage, error) {
	data, err := read[struct {
		Conf json.RawMessage `json:"conf" shape:"nonnull"`
	}](ctx, r, "system/getConf", nil, direct)
	return data.Conf, err
}

// WorkspaceInfo is the workspace's directory on the home machine, for local
// eyes only, and the kernel's version.
type WorkspaceInfo struct {
	Dir     string `json:"workspaceDir" shape:"nonempty"`
	Version string `json:"siyuanVer" shape:"nonempty"`
}

// WorkspaceInfo says where the workspace is. Template.Path needs it.
func (r *Reader) WorkspaceInfo(ctx context.Context) (WorkspaceInfo, error) {
	return read[WorkspaceInfo](ctx, r, "system/getWorkspaceInfo", nil, direct)
}

// Network is how the kernel reaches the internet.
type Network struct {
	Proxy struct {
		Scheme string `json:"scheme"`
		Host   string `json:"host"`
		Port   string `json:"port"`
	} `json:"proxy"`
}

// Network reads the kernel's proxy settings.
func (r *Reader) Network(ctx context.Context) (Network, error) {
	return read[Network](ctx, r, "system/getNetwork", nil, direct)
}

// SyncInfo is the state of data synchronisation.
type SyncInfo struct {
	Kernel  string `json:"kernel"`
	Stat    string `json:"stat"`   // localized
	Synced  int64  `json:"synced"` // Unix milliseconds, 0 for never
	Kernels []struct {
		ID       string `json:"id"`
		Hostname string `json:"hostname"`
		OS       string `json:"os"`
		Ver      string `json:"ver"`
	} `json:"kernels"`
}

// SyncInfo reads the state of data synchronisation.
func (r *Reader) SyncInfo(ctx context.Context) (SyncInfo, error) {
	return read[SyncInfo](ctx, r, "sync/getSyncInfo", nil, direct)
}

// Template is a template file.
type Template struct {
	Path         string `json:"path" shape:"nonempty"` // absolute, on the home machine
	RelativePath string `json:"relativePath" shape:"nonempty"`
	Content      string `json:"content"` // its name, with <mark>
}

// Templates finds template files by name.
func (r *Reader) Templates(ctx context.Context, keyword string) ([]Template, error) {
	data, err := read[struct {
		Templates []Template `json:"templates" shape:"nonnull"`
	}](ctx, r, "search/searchTemplate", args{"k": keyword}, direct)
	return data.Templates, err
}

// RenderTemplate renders a template, by its absolute path, for the document of
// a block and returns block DOM. Templates may query all notebooks.
func (r *Reader) RenderTemplate(ctx context.Context, path string, id ID) (string, error) {
	data, err := readAt[struct {
		Content string `json:"content"`
	}](ctx, r, "template/render", id, args{"path": path, "id": id, "preview": true}, indexed)
	return data.Content, err
}

// RenderSprig renders a template text such as a save path; it too may query all
// notebooks.
func (r *Reader) RenderSprig(ctx context.Context, template string) (string, error) {
	return read[string](ctx, r, "template/renderSprig", args{"template": template}, indexed)
}

// Snippets lists the user's CSS and JS snippets: kind css, js or all.
func (r *Reader) Snippets(ctx context.Context, kind string) ([]json.RawMessage, error) {
	const enabledOrNot = 2
	data, err := read[struct {
		Snippets []json.RawMessage `json:"snippets" shape:"nonnull"`
	}](ctx, r, "snippet/getSnippet", args{"type": kind, "enabled": enabledOrNot, "keyword": ""}, direct)
	return data.Snippets, err
}
