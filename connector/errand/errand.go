package errand

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siyuan-broker/contract"
)

// Life is how long an errand waits to be begun. It is short because whoever asked
// may be gone: nothing is done later behind the owner's back.
const Life = 10 * time.Second

// Bounds of the folder.
const (
	MaxWaiting = 16       // errands that are not begun
	maxErrand  = 16 << 10 // bytes
	maxAnswer  = 16 << 20 // bytes
)

const (
	look  = 200 * time.Millisecond // how often either side looks at the folder
	beat  = 2 * time.Second        // how often the connector says that it is at work
	quiet = 30 * time.Second       // no living connector is silent that long
	keep  = 5 * time.Minute        // of an answer that nobody fetched
)

// Errand is one thing to be done.
type Errand struct {
	ID      string          `json:"id"` // a UUIDv7
	Do      string          `json:"do"`
	Args    json.RawMessage `json:"args"`
	Asked   time.Time       `json:"asked"`
	Expires time.Time       `json:"expires"`
}

// answer is what became of an errand.
type answer struct {
	Body json.RawMessage `json:"body,omitempty"`
	Err  *contract.Error `json:"error,omitempty"`
}

// The files of an errand, told by how their names end.
const (
	waiting  = ".json"   // written by the command
	taken    = ".taken"  // the same file, renamed by the connector that begins it
	answered = ".answer" // written by the connector
)

// Folder is where errands lie. Each program makes its own on the same path.
type Folder struct {
	path string
	now  func() time.Time
}

// In is the folder of a connector's data folder. It is made when it is needed.
func In(data string, now func() time.Time) *Folder {
	return &Folder{path: filepath.Join(data, "errands"), now: now}
}

func (f *Folder) file(id, kind string) string { return filepath.Join(f.path, id+kind) }

func (f *Folder) has(id, kind string) bool {
	_, err := os.Stat(f.file(id, kind))
	return err == nil
}

// put lets a file appear whole, for the owner's eyes only.
func (f *Folder) put(name string, v any, most int) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > most {
		return fmt.Errorf("%d bytes are more than %d", len(b), most)
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(f.path, 0o700); err != nil { // it may have been made by hand
		return err
	}
	tmp, err := os.CreateTemp(f.path, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}

// get reads a file that put wrote.
func get(name string, into any, most int64) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := json.NewDecoder(io.LimitReader(file, most)).Decode(into); err != nil {
		return fmt.Errorf("%s is damaged: %w", filepath.Base(name), err)
	}
	return nil
}

// remove removes files; those that are gone already are no error.
func remove(names ...string) error {
	var all []error
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// entry is a file of the folder.
type entry struct {
	id, kind string
	at       time.Time // it was last written
}

// list gives the files of the folder, the oldest first.
func (f *Folder) list() ([]entry, error) {
	files, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the owner's errands: %w", err)
	}
	var all []entry
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			continue // fetched meanwhile
		}
		kind := filepath.Ext(file.Name())
		all = append(all, entry{strings.TrimSuffix(file.Name(), kind), kind, info.ModTime()})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	return all, nil
}
