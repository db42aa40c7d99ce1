package folders

import (
	"errors"
	"io/fs"
	"os"

	"siyuan-broker/contract"
)

// MaxUpload is the largest file that is read, in bytes.
const MaxUpload = 512 << 20

// Source is an opened file. Its reader ends after Size bytes, or earlier where
// the file became shorter.
type Source struct {
	*os.File
	Name string // without folders
	Size int64
}

// Open opens a regular file in an upload folder: by its whole path, or by a path
// below any of them, the first of which has it.
func (f *Folders) Open(path string) (*Source, error) {
	all, err := f.candidates(uploads, path)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if len(c.parts) == 0 {
			return nil, contract.Fail(contract.InvalidValue, "%q is a folder; name a file in it.", path)
		}
		s, err := f.source(c)
		if !errors.Is(err, errNone) {
			return s, err
		}
	}
	return nil, contract.Fail(contract.NotFound, "There is no file %q in the folders that agents may read.", path)
}

func (f *Folders) source(c candidate) (*Source, error) {
	name := c.parts[len(c.parts)-1]
	dir, err := f.enter(c.folder, c.parts[:len(c.parts)-1])
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, lookedAt(name, err)
	}
	if err := plain(name, info); err != nil {
		return nil, err
	}
	// What is no regular file any more must not keep the opener waiting.
	file, err := dir.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, lookedAt(name, err)
	}
	opened, err := file.Stat()
	switch {
	case err != nil:
		err = lookedAt(name, err)
	case !os.SameFile(info, opened):
		err = exchanged(name)
	default:
		err = plain(name, opened)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Source{File: file, Name: name, Size: opened.Size()}, nil
}

// plain accepts regular files of a size that is carried.
func plain(name string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return contract.Fail(contract.PermissionDenied, "%q is no ordinary file; folders, links and devices are not read.", name)
	case info.Size() > MaxUpload:
		return contract.Fail(contract.TooLarge, "%q has %d bytes; an agent may store %d at once.", name, info.Size(), MaxUpload).
			WithHint("Ask the person to add the file in SiYuan.")
	}
	return nil
}
