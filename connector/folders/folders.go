package folders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"siyuan-broker/contract"
)

// Config of Folders.
type Config struct {
	// Upload and Export are the folders that the owner allows now, as whole paths.
	Upload, Export func() []string
	// Private are folders that are never entered, besides those that show what they
	// are; one that does not exist is no harm.
	Private []string
}

// Folders are the folders of this machine that agents may use. It is safe for
// concurrent use; a nil *Folders has none.
type Folders struct{ cfg Config }

// New makes Folders. It looks at no disk yet: every use does.
func New(cfg Config) *Folders { return &Folders{cfg} }

// use is one way to use a folder.
type use struct {
	key   string // of the policy file
	verb  string
	other string // what to do where the owner allows none
}

var (
	uploads = use{"upload_folders", "read", "or send the file itself: in content, or with size to a one-time URL"}
	exports = use{"export_folders", "write to", "or leave the path out and get a one-time URL"}
)

func (f *Folders) allowed(u use) []string {
	switch {
	case f == nil:
		return nil
	case u == uploads:
		return f.cfg.Upload()
	}
	return f.cfg.Export()
}

// refused says how the owner allows what is not allowed.
func refused(u use, format string, args ...any) error {
	return contract.Fail(contract.PermissionDenied, format, args...).
		WithHint("Ask the home owner to name the folder in %s in the connector's policy file (policy.yaml; `siyuan-connector policy --example` shows how), %s.", u.key, u.other)
}

// candidate is an allowed folder and a path below it.
type candidate struct {
	folder string
	parts  []string
}

// candidates are the allowed folders that a path may lie in: of a whole path the
// one above it, of any other path all of them.
func (f *Folders) candidates(u use, path string) ([]candidate, error) {
	allowed := f.allowed(u)
	if len(allowed) == 0 {
		return nil, refused(u, "Agents may not %s folders of the machine of this home.", u.verb)
	}
	var all []candidate
	for _, folder := range allowed {
		rel := filepath.Clean(path)
		if filepath.IsAbs(path) {
			var err error
			if rel, err = filepath.Rel(folder, rel); err != nil {
				continue
			}
		}
		if !filepath.IsLocal(rel) {
			continue
		}
		c := candidate{folder: folder}
		if rel != "." {
			c.parts = strings.Split(filepath.ToSlash(rel), "/")
		}
		if i := slices.IndexFunc(c.parts, unfit); i >= 0 {
			return nil, contract.Fail(contract.PermissionDenied, "%q is not used: names that begin with a dot, and SiYuan's own files, are left alone.", c.parts[i])
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, refused(u, "%q is in no folder that agents may %s. They are: %s.", path, u.verb, strings.Join(allowed, ", "))
	}
	return all, nil
}

// unfit reports names that are never used, on any system.
func unfit(name string) bool {
	return strings.HasPrefix(name, ".") || len(name) > 255 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) ||
		strings.EqualFold(filepath.Ext(name), ".sy") // a note: its notebook may be hidden
}

// marks are what a folder has that nobody is let into: a workspace of SiYuan, a
// notebook, and data folders of connector and broker.
var marks = []string{"conf/conf.json", ".siyuan/conf.json", ".siyuan/indexignore", "storage/petal", "connector.key", "up.json"}

// private reports whether a folder is never entered. lstat looks at what is in it.
func (f *Folders) private(info fs.FileInfo, lstat func(name string) (fs.FileInfo, error)) bool {
	for _, p := range f.cfg.Private {
		if own, err := os.Stat(p); err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return slices.ContainsFunc(marks, func(mark string) bool {
		_, err := lstat(mark)
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) // what cannot be looked at may be there
	})
}

func isPrivate(path string) error {
	return contract.Fail(contract.PermissionDenied, "%q belongs to SiYuan or to this service itself and is not used.", path).
		WithHint("Name another folder.")
}

// open opens an allowed folder, which may be a link that the owner made. Neither
// it nor a folder above it may be private.
func (f *Folders) open(folder string) (*os.Root, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, unusable(folder, err)
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, errors.Join(unusable(folder, err), root.Close())
	}
	opened, err := root.Stat(".")
	if err != nil {
		return nil, errors.Join(unusable(folder, err), root.Close())
	}
	for first, dir := true, real; ; first, dir = false, filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err != nil:
			return nil, errors.Join(unusable(folder, err), root.Close())
		case first && !os.SameFile(info, opened):
			return nil, errors.Join(exchanged(folder), root.Close())
		case f.private(info, func(name string) (fs.FileInfo, error) { return os.Lstat(filepath.Join(dir, filepath.FromSlash(name))) }):
			return nil, errors.Join(isPrivate(folder), root.Close())
		case filepath.Dir(dir) == dir:
			return root, nil
		}
	}
}

func unusable(folder string, err error) error {
	return contract.Fail(contract.NotFound, "The folder %q, which the home owner allows, cannot be used.", folder).
		WithHint("Ask the home owner to run `siyuan-connector doctor` there.").WithCause(err)
}

func exchanged(name string) error {
	return contract.Fail(contract.StateChanged, "%q was exchanged while it was looked at; nothing was done.", name)
}

// errNone is the end of a way that leads nowhere.
var errNone = fs.ErrNotExist

// enter walks to a folder below an allowed one. The error is errNone where there
// is none.
func (f *Folders) enter(folder string, parts []string) (*os.Root, error) {
	at, err := f.open(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range parts {
		next, err := f.step(at, name)
		_ = at.Close() // it was only read
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// step opens a folder within an opened one, if it is really in there: no link, and
// still what it was when it was looked at.
func (f *Folders) step(at *os.Root, name string) (*os.Root, error) {
	info, err := at.Lstat(name)
	switch {
	case err != nil:
		return nil, lookedAt(name, err)
	case !info.IsDir():
		return nil, contract.Fail(contract.PermissionDenied, "%q is no folder; links are not followed.", name)
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, lookedAt(name, err)
	}
	opened, err := next.Stat(".")
	switch {
	case err != nil:
		err = lookedAt(name, err)
	case !os.SameFile(info, opened):
		err = exchanged(name)
	case f.private(opened, func(mark string) (fs.FileInfo, error) { return next.Lstat(filepath.FromSlash(mark)) }):
		err = isPrivate(name)
	default:
		return next, nil
	}
	return nil, errors.Join(err, next.Close())
}

// lookedAt is an error of the disk as agents are told it.
func lookedAt(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNone
	case errors.Is(err, fs.ErrPermission):
		return contract.Fail(contract.PermissionDenied, "The connector may not open %q on its machine.", name).WithCause(err)
	}
	return contract.Fail(contract.InvalidValue, "%q cannot be used on the machine of the connector.", name).WithCause(err)
}

// Check looks at the folders of the policy as a use would, for people: one text
// for each that cannot be used.
func (f *Folders) Check() (problems []string) {
	for _, u := range []use{uploads, exports} {
		for _, folder := range f.allowed(u) {
			root, err := f.open(folder)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s", u.key, contract.AsError(err).Message))
				continue
			}
			_ = root.Close()
		}
	}
	return problems
}
