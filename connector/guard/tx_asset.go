package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"path"
	"slices"
	"strings"
	"unicode"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Bounds of a change of a file: the documents that link to it, which are locked,
// the databases that are looked through, and the files one call removes.
const (
	maxFileDocs   = 500
	maxStored     = 500
	maxUnused     = 200
	avDir         = "/data/storage/av"
	maxFileName   = 120 // characters; SiYuan adds an id
	maxCoverLines = 10_000
)

func (a Asset) target() (Notebook, Block) { return Notebook{}, Block{} }
func (a Asset) owner() *Session           { return a.s }
func (a Asset) key() string               { return "file " + a.path }
func (a Asset) of() []siyuan.ID           { return a.boxes }

func (a Asset) also() []string {
	var names []string
	for _, d := range a.docs {
		names = append(names, "document "+string(d))
	}
	for _, d := range a.databases {
		names = append(names, d.lockName())
	}
	return names
}

func (a Asset) again(ctx context.Context) error {
	now, err := a.s.FileToChange(ctx, a.path, contract.ReadWrite)
	if err != nil {
		return err
	}
	docs := map[siyuan.ID]bool{}
	for _, d := range now.docs {
		docs[d] = true
	}
	if err = a.s.settledBySync(ctx, docs); err == nil && !slices.Equal(now.docs, a.docs) {
		err = contract.Fail(contract.StateChanged, "Other notes link to %s now than when the call began; nothing was changed.", a.path)
	}
	return err
}

func (a Asset) seen(ctx context.Context) (any, error) {
	st, err := a.s.g.r.StatAsset(ctx, a.path)
	if siyuan.KindOf(err) == siyuan.Missing {
		return "gone", nil
	}
	return map[string]any{"size": st.Size, "updated": st.Updated, "docs": a.docs}, err
}

// FileToChange proves a level for a file wherever it is used. SiYuan changes the
// links to a file in all notebooks, closed ones too, whoever asks, so nothing may
// be hidden from the caller.
func (s *Session) FileToChange(ctx context.Context, file string, need contract.Level) (Asset, error) {
	if !s.whole() {
		return Asset{}, contract.Fail(contract.Unsupported, "A file may be used in any notebook, closed ones too, so only those may rename or delete it who may read all of them.").
			WithHint("Take the link out of the note instead, or ask a tenant owner for the level r on every notebook.")
	}
	a, err := s.Asset(ctx, file, contract.Read)
	if err == nil && len(a.boxes) == 0 && !a.unused { // its own, perhaps, which it may read without a switch
		a.unused, err = s.proveLoose(ctx, a.path, contract.Read)
	}
	if err != nil {
		return a, err
	}
	plain, err := s.g.plainFile(ctx, map[string][]siyuan.DirEntry{}, "/data/assets", strings.Split(strings.TrimPrefix(a.path, "assets/"), "/"))
	switch {
	case err != nil:
		return a, err
	case !plain:
		return a, noAsset()
	case len(a.docs) > maxFileDocs:
		return a, contract.Fail(contract.TooLarge, "%d documents link to the file; an agent may change at most %d at once.", len(a.docs), maxFileDocs).
			WithHint("Ask the person to do it in SiYuan.")
	case a.unused:
		return a, nil
	}
	for _, box := range a.boxes {
		if err := s.prove(box, need); err != nil {
			return a, err
		}
	}
	for _, n := range s.started.all() {
		if n.Closed { // what links to the file there cannot be known
			if err := s.prove(n.ID, need); err != nil {
				return a, err
			}
		}
	}
	if a.databases, err = s.databasesWith(ctx, a.path, need); err == nil && len(a.boxes)+len(a.databases) == 0 {
		err = unowned()
	}
	return a, err
}

// databasesWith proves a level in every database with a file in a cell. The index
// has no cells, so the stored files are looked through.
func (s *Session) databasesWith(ctx context.Context, file string, need contract.Level) ([]Database, error) {
	list, err := s.g.r.ReadDir(ctx, avDir)
	if siyuan.KindOf(err) == siyuan.Missing {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(list) > maxStored {
		return nil, contract.Fail(contract.TooLarge, "There are more than %d databases to look through for the file.", maxStored).WithHint("Ask the person to do it in SiYuan.")
	}
	quoted, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("encode path: %w", err)
	}
	var all []Database
	for _, e := range list {
		id, isView := strings.CutSuffix(e.Name, ".json")
		if e.IsDir || !isView || !contract.IsID(id) {
			continue
		}
		f, err := s.g.r.GetFile(ctx, avDir+"/"+e.Name)
		if siyuan.KindOf(err) == siyuan.Missing {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(f.Data, []byte(file)) && !bytes.Contains(f.Data, bytes.Trim(quoted, `"`)) {
			continue
		}
		d, err := s.Database(ctx, id, need)
		if contract.CodeOf(err) == contract.NotFound {
			continue // no note shows it any more
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// PreviewFile says what uses a file.
func (s *Session) PreviewFile(ctx context.Context, a Asset) (p contract.Preview, err error) {
	p.Counts.Assets, p.Counts.Documents = 1, len(a.docs)
	p.Named = []contract.PreviewItem{{Kind: "file", Title: a.path}}
	for _, d := range a.databases {
		p.Named = append(p.Named, contract.PreviewItem{Kind: "database", Title: d.Name()})
	}
	if len(a.docs) > 0 {
		rows, err := s.rows(ctx, "id IN ("+sqlList(a.docs)+")", "hpath, id", contract.PreviewNamed)
		if err != nil {
			return p, err
		}
		p.Named = append(p.Named, named(rows, nil)...)
		p.More = len(a.docs) - len(rows)
	}
	return p.Clean(), nil
}

// FileName accepts a new name for a file, without the ending that SiYuan keeps.
func FileName(field, name, file string) (string, error) {
	ending := path.Ext(file)
	if n := len(name) - len(ending); n > 0 && ending != "" && strings.EqualFold(name[n:], ending) {
		name = name[:n]
	}
	return name, checkName(field, name)
}

// checkName refuses a name that SiYuan or a file system would read as something
// else.
func checkName(field, name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return strings.ContainsRune(`/\:*?"<>|%#[]()`, r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
	if bad || name == "" || strings.HasPrefix(name, ".") || strings.TrimSpace(name) != name || strings.HasSuffix(name, ".") || len([]rune(name)) > maxFileName || len(name) > 2*maxFileName {
		return contract.InvalidFields(contract.Field{Path: field, Message: fmt.Sprintf(`must be a plain name of at most %d characters: no folders, no dot at the ends, none of \ : * ? " < > | %% # [ ] ( )`, maxFileName)})
	}
	return nil
}

// Renamable refuses a file with a place in a database: SiYuan 3.7.3 changes the
// stored database and goes on with the one in its memory, so the next change of
// that database brings the old path back.
func (a Asset) Renamable() error {
	if len(a.databases) == 0 {
		return nil
	}
	return contract.Fail(contract.Unsupported, "The database %q has the file in a cell, and SiYuan would bring the old path back there.", contract.PlainText(a.databases[0].Name(), contract.PreviewRunes)).
		WithHint("Take the file out of the cell with av.set_cells, rename it, and put it in again.")
}

// RenameAsset gives a file another name, and every link to it the new path, which
// it returns. SiYuan adds an id and the old ending to the name.
func (tx *Tx) RenameAsset(ctx context.Context, a Asset, name string) (string, error) {
	if err := tx.holds(a); err != nil {
		return "", err
	}
	renamed := ""
	st := Step{Op: "file.rename", ID: a.path, Marks: []Mark{{LookFile, a.path, fileMark(a.size), "gone"}}}
	err := tx.step(ctx, st, func(w *siyuan.Writer) (err error) {
		renamed, err = w.RenameAsset(ctx, a.path, name)
		return err
	})
	if err != nil {
		if there, lookErr := tx.s.fileThere(ctx, a.path); answered(err) && there && lookErr == nil {
			err = notPersisted("SiYuan answered, but %s has its old name.", a.path)
		}
		return "", err
	}
	moved, err := tx.until(ctx, func() (bool, error) {
		if there, err := tx.s.fileThere(ctx, a.path); there || err != nil {
			return false, err
		}
		boxes, _, err := tx.s.linking(ctx, a.path)
		if err != nil || len(boxes) > 0 {
			return false, err
		}
		return tx.s.fileThere(ctx, renamed)
	})
	if err == nil && !moved {
		err = notPersisted("SiYuan took the new name of %s, but the file or a link to it still has the old one.", a.path)
	}
	return renamed, err
}

// fileThere reports whether there is a file below assets.
func (s *Session) fileThere(ctx context.Context, file string) (bool, error) {
	_, err := s.g.r.StatAsset(ctx, file)
	if siyuan.KindOf(err) == siyuan.Missing {
		return false, nil
	}
	return err == nil, err
}

// RemoveAsset removes a file; the links to it stay and lead nowhere. SiYuan keeps
// it in its history for some time.
func (tx *Tx) RemoveAsset(ctx context.Context, a Asset) error {
	if err := tx.holds(a); err != nil {
		return err
	}
	return tx.removeFile(ctx, a.path, a.size)
}

func (tx *Tx) removeFile(ctx context.Context, file string, size int64) error {
	st := Step{Op: "file.remove", ID: file, Marks: []Mark{{LookFile, file, fileMark(size), "gone"}}}
	if err := tx.step(ctx, st, func(w *siyuan.Writer) error { return w.RemoveUnusedAsset(ctx, file) }); err != nil && !answered(err) {
		return err
	}
	there, err := tx.s.fileThere(ctx, file)
	if err == nil && there {
		err = notPersisted("SiYuan took the removal of %s, but the file is still there.", file)
	}
	return err
}

// Unused are files of the workspace that nothing links to.
type Unused struct {
	s     *Session
	files []string
}

// Files are their paths, sorted.
func (u Unused) Files() []string { return u.files }

// First are the first of them that one call may remove.
func (u Unused) First() Unused { return Unused{u.s, u.files[:min(len(u.files), maxUnused)]} }

func (u Unused) target() (Notebook, Block) { return Notebook{}, Block{} }
func (u Unused) owner() *Session           { return u.s }
func (u Unused) key() string               { return "unused files" }
func (u Unused) also() []string            { return nil }
func (u Unused) of() []siyuan.ID           { return nil }

func (u Unused) again(ctx context.Context) error {
	now, err := u.s.Unused(ctx)
	if err == nil && slices.ContainsFunc(u.files, func(f string) bool { return !slices.Contains(now.files, f) }) {
		err = contract.Fail(contract.StateChanged, "A note links to one of the unused files now; nothing was removed.")
	}
	return err
}

func (u Unused) seen(ctx context.Context) (any, error) {
	now, err := u.s.Unused(ctx)
	return now.files, err
}

// Unused lists the files that nothing links to. It needs the assets switch and
// that nothing is hidden from the caller: a file may have been a hidden note's.
func (s *Session) Unused(ctx context.Context) (Unused, error) {
	u := Unused{s: s}
	if err := s.holds(contract.SwitchAssets); err != nil {
		return u, err
	}
	if !s.whole() {
		return u, contract.Fail(contract.Unsupported, "A file that nothing links to may have been in any notebook, so only those see them who may read all of them.").
			WithHint("Ask a tenant owner for the level r on every notebook.")
	}
	found, err := s.g.r.UnusedAssets(ctx)
	if err != nil || len(found) == 0 {
		return u, err
	}
	covers, err := s.covers(ctx)
	if err != nil {
		return u, err
	}
	folders := map[string][]siyuan.DirEntry{}
	for _, f := range found {
		clean, ok := assetPath(f.Item)
		if !ok || strings.Contains(covers, clean) {
			continue
		}
		plain, err := s.g.plainFile(ctx, folders, "/data/assets", strings.Split(strings.TrimPrefix(clean, "assets/"), "/"))
		if err != nil {
			return u, err
		}
		if plain {
			u.files = append(u.files, clean)
		}
	}
	slices.Sort(u.files)
	return u, nil
}

// covers are the attributes of all documents that have a cover, as one text.
// SiYuan takes a file for unused when only a cover with a slash before its path
// shows it.
func (s *Session) covers(ctx context.Context) (string, error) {
	rows, err := s.g.sql(ctx, fmt.Sprintf("SELECT ial FROM blocks WHERE type = 'd' AND instr(ial, '%s=') LIMIT %d", coverAttr, maxCoverLines))
	if err != nil {
		return "", err
	}
	if len(rows) == maxCoverLines {
		return "", contract.Fail(contract.TooLarge, "There are too many documents with a cover to tell which files are unused.")
	}
	var all strings.Builder
	for _, r := range rows {
		all.WriteString(html.UnescapeString(r.Text("ial")) + "\n")
	}
	return all.String(), nil
}

// PreviewUnused names files.
func PreviewUnused(u Unused) contract.Preview {
	p := contract.Preview{}
	p.Counts.Assets = len(u.files)
	for _, f := range u.files {
		p.Named = append(p.Named, contract.PreviewItem{Kind: "file", Title: f})
	}
	return p.Clean()
}

// RemoveUnused removes the files, one after the other.
func (tx *Tx) RemoveUnused(ctx context.Context, u Unused) error {
	if err := tx.holds(u); err != nil {
		return err
	}
	var parts []func() error
	for _, f := range u.files {
		parts = append(parts, func() error {
			st, err := tx.s.g.r.StatAsset(ctx, f)
			if err != nil {
				return err
			}
			return tx.removeFile(ctx, f, st.Size)
		})
	}
	return tx.All(parts...)
}
