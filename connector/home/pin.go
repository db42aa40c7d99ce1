package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Pin is the identity of the workspace a connector was first started with. The
// API token goes to that workspace only.
type Pin struct {
	System    string `json:"system"`           // siyuan.Identity.System
	Workspace string `json:"workspace"`        // siyuan.Identity.Workspace
	Folder    string `json:"folder,omitempty"` // workspace folder of the listening process, where the system tells
}

// PinFile keeps the pin in the connector's data folder.
type PinFile string

// Load returns nil when nothing is pinned yet.
func (f PinFile) Load() (*Pin, error) {
	b, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pinned workspace: %w", err)
	}
	var p Pin
	if err := json.Unmarshal(b, &p); err != nil || p.System == "" {
		return nil, fmt.Errorf("%s is damaged; delete it to pin the workspace that answers next", f)
	}
	return &p, nil
}

// Save writes the pin so that a crash leaves the old or the new one.
func (f PinFile) Save(p Pin) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(string(f)), ".pin-*")
	if err != nil {
		return fmt.Errorf("write the pinned workspace: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write the pinned workspace: %w", err)
	}
	return os.Rename(tmp.Name(), string(f))
}

// Forget removes the pin: the workspace that answers next becomes the pinned
// one.
func (f PinFile) Forget() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the pinned workspace: %w", err)
	}
	return nil
}
