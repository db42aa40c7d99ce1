package pair

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// State is what a home knows about its pairing. It holds no secret.
type State struct {
	Broker      string    `json:"broker"`
	Connector   string    `json:"connector"`
	Tenant      string    `json:"tenant"`
	TenantName  string    `json:"tenant_name"`
	Instance    string    `json:"instance"`
	Name        string    `json:"instance_name"`
	Fingerprint string    `json:"fingerprint"` // of the key that was paired
	At          time.Time `json:"paired_at"`
	Revoked     bool      `json:"revoked,omitempty"` // the broker will not have it any more
}

// File is where a home keeps its State.
type File string

// FileIn is the file of a data folder.
func FileIn(data string) File { return File(filepath.Join(data, "pairing.json")) }

// ErrNotPaired means that there is no State.
var ErrNotPaired = errors.New("this connector is not paired; pair it with: siyuan-connector pair https://your-broker")

// Read returns the State, or ErrNotPaired.
func (f File) Read() (State, error) {
	b, err := os.ReadFile(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, ErrNotPaired
	case err != nil:
		return State{}, fmt.Errorf("read what this connector is paired with: %w", err)
	}
	return f.decode(b)
}

func (f File) decode(b []byte) (s State, err error) {
	if err := json.Unmarshal(b, &s); err != nil || s.Broker == "" {
		return State{}, fmt.Errorf("%s is damaged; delete it and pair again", f)
	}
	return s, nil
}

func encode(s State) ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// MarkRevoked notes that the broker took back the key of this fingerprint. It
// writes into the file that it read: one that is forgotten meanwhile is not made
// again, and one that took its place stays as it is.
func (f File) MarkRevoked(fingerprint string) (err error) {
	file, err := os.OpenFile(string(f), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("note that the pairing has ended: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("note that the pairing has ended: %w", err)
	}
	s, err := f.decode(b)
	if err != nil || s.Fingerprint != fingerprint || s.Revoked {
		return err
	}
	s.Revoked = true
	if b, err = encode(s); err != nil {
		return err
	}
	if _, err := file.WriteAt(b, 0); err != nil { // longer than before
		return fmt.Errorf("note that the pairing has ended: %w", err)
	}
	return nil
}

// Write replaces the State; after a crash the file is the old or the new one.
func (f File) Write(s State) error {
	b, err := encode(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return fmt.Errorf("make the connector's data folder: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(string(f)), ".pairing-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep what this connector is paired with: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("keep what this connector is paired with: %w", err)
	}
	return os.Rename(tmp.Name(), string(f))
}

// Forget removes the State; it may be gone.
func (f File) Forget() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the pairing: %w", err)
	}
	return nil
}
