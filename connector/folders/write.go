package folders

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"siyuan-broker/contract"
)

// MaxExport is how many bytes one export may write.
const MaxExport = 1 << 30

// Export is something new in an export folder. Close keeps it; Abandon, which
// does nothing behind Close, takes away what this export made and nothing else.
type Export struct {
	Root  string // the allowed folder
	Path  string // of the new file or folder
	First bool   // Root was not named but is the first of the policy

	parent *os.Root
	dir    *os.Root // of a folder
	name   string   // in parent
	left   int64
	made   []made // each behind the folder that it is in
	closed bool
}

// made is a file or folder that an export made.
type made struct {
	in   *os.Root
	path string
	info fs.FileInfo // of a file, as it was closed; nil: a folder
}

// NewFile makes a file at a path that nothing has: a whole path in an export
// folder, or one below the first export folder. The folder it is in must exist.
func (f *Folders) NewFile(path string) (*Export, *File, error) {
	e, err := f.place(path, "")
	if err != nil {
		return nil, nil, err
	}
	file, err := e.create(e.parent, e.name)
	if err != nil {
		return nil, nil, errors.Join(err, e.Abandon())
	}
	return e, file, nil
}

// NewFolder makes a folder of a name that nothing has, in an export folder or one
// below it; with an empty path in the first export folder.
func (f *Folders) NewFolder(path, name string) (*Export, error) {
	e, err := f.place(path, name)
	if err != nil {
		return nil, err
	}
	if err := e.mkdir(e.parent, e.name); err != nil {
		return nil, errors.Join(err, e.Abandon())
	}
	if e.dir, err = e.parent.OpenRoot(e.name); err != nil {
		return nil, errors.Join(lookedAt(name, err), e.Abandon())
	}
	return e, nil
}

// Place finds where an export would go, and that nothing is there, without making
// anything. name is of a folder to make at the path, or "" for a file.
func (f *Folders) Place(path, name string) (target string, err error) {
	e, err := f.place(path, name)
	if err != nil {
		return "", err
	}
	return e.Path, e.parent.Close()
}

func (f *Folders) place(path, name string) (*Export, error) {
	all, err := f.candidates(exports, path)
	if err != nil {
		return nil, err
	}
	c := all[0]
	if name != "" {
		c.parts = append(slices.Clone(c.parts), name)
	}
	if len(c.parts) == 0 {
		return nil, contract.Fail(contract.InvalidValue, "%q is a folder; name the new file in it.", path)
	}
	if i := slices.IndexFunc(c.parts, strange); i >= 0 {
		return nil, contract.Fail(contract.InvalidValue, "%q is no name of a file on every system.", c.parts[i]).
			WithHint("Use letters, digits, spaces, dots and dashes.")
	}
	e := &Export{Root: c.folder, Path: filepath.Join(append([]string{c.folder}, c.parts...)...), First: path == "", name: c.parts[len(c.parts)-1], left: MaxExport}
	if e.parent, err = f.enter(c.folder, c.parts[:len(c.parts)-1]); errors.Is(err, errNone) {
		return nil, contract.Fail(contract.NotFound, "There is no folder %q to write to.", filepath.Dir(e.Path)).WithHint("Agents make no folders there; name one that exists.")
	} else if err != nil {
		return nil, err
	}
	if _, err := e.parent.Lstat(e.name); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(taken(e.Path), e.parent.Close())
	}
	return e, nil
}

func taken(path string) error {
	return contract.Fail(contract.AlreadyExists, "There is already something at %q; nothing was written.", path).
		WithHint("Choose another name, or ask the person to move the old one away.")
}

// strange reports names that some system takes for something else.
func strange(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimRight(stem, " ")
	device := slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}, stem) ||
		(strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && slices.Contains([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"}, stem[3:])
	return name == "" || device || unfit(name) || strings.ContainsAny(name, `<>:"|?*\/`) || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ")
}

// Usable reports whether Create takes a path.
func Usable(path string) bool { return !slices.ContainsFunc(strings.Split(path, "/"), strange) }

// Create makes a file in a new folder, with the folders that lead to it; path has
// slashes.
func (e *Export) Create(path string) (*File, error) {
	if !Usable(path) {
		return nil, contract.Fail(contract.InvalidValue, "%q is no path of a file on every system.", path)
	}
	parts := strings.Split(path, "/")
	for i := range len(parts) - 1 {
		dir := strings.Join(parts[:i+1], "/")
		if slices.ContainsFunc(e.made, func(m made) bool { return m.in == e.dir && m.path == dir }) {
			continue
		}
		if err := e.mkdir(e.dir, dir); err != nil {
			return nil, err
		}
	}
	return e.create(e.dir, path)
}

func (e *Export) mkdir(in *os.Root, path string) error {
	err := in.Mkdir(filepath.FromSlash(path), 0o777) // less what the system takes away, as for every program
	switch {
	case errors.Is(err, fs.ErrExist):
		return taken(filepath.Join(in.Name(), filepath.FromSlash(path)))
	case err != nil:
		return lookedAt(path, err)
	}
	e.made = append(e.made, made{in: in, path: path})
	return nil
}

func (e *Export) create(in *os.Root, path string) (*File, error) {
	file, err := in.OpenFile(filepath.FromSlash(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, taken(filepath.Join(in.Name(), filepath.FromSlash(path)))
	case err != nil:
		return nil, lookedAt(path, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(lookedAt(path, err), file.Close())
	}
	e.made = append(e.made, made{in, path, info})
	return &File{file: file, export: e, at: len(e.made) - 1}, nil
}

// Close ends an export that is complete.
func (e *Export) Close() error {
	e.closed = true
	err := e.parent.Close()
	if e.dir != nil {
		err = errors.Join(err, e.dir.Close())
	}
	return err
}

// Abandon ends an export that is not complete. A folder in which somebody put
// something meanwhile stays, and so does a file that took the place of one of ours.
// Its files must be closed.
func (e *Export) Abandon() error {
	if e.closed {
		return nil
	}
	var errs []error
	for _, m := range slices.Backward(e.made) {
		path := filepath.FromSlash(m.path)
		if m.info != nil {
			now, err := m.in.Lstat(path)
			if err != nil || !os.SameFile(now, m.info) || now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime()) {
				continue // the number of a file that is gone is given to another
			}
		}
		if m.in == e.parent && e.dir != nil { // an open folder cannot be removed everywhere
			errs = append(errs, e.dir.Close())
			e.dir = nil
		}
		errs = append(errs, m.in.Remove(path))
	}
	return errors.Join(append(errs, e.Close())...)
}

// File is a file that is being written.
type File struct {
	file   *os.File
	export *Export
	at     int // among those that the export made
}

// Write writes at most what is left of MaxExport in the whole export.
func (f *File) Write(p []byte) (int, error) {
	if f.export.left -= int64(len(p)); f.export.left < 0 {
		return 0, contract.Fail(contract.TooLarge, "An export may have %d bytes.", MaxExport).WithHint("Export fewer files at once.")
	}
	n, err := f.file.Write(p)
	if err != nil {
		err = contract.Fail(contract.Unsupported, "The file could not be written on the machine of the connector.").WithCause(err).
			WithHint("Ask the home owner whether the disk is full.")
	}
	return n, err
}

// Close puts the file on disk.
func (f *File) Close() error {
	err := f.file.Sync()
	if info, failed := f.file.Stat(); failed == nil {
		f.export.made[f.at].info = info
	}
	return errors.Join(err, f.file.Close())
}
