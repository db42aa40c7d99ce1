package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Form of a snapshot's answer, and documents of a page where the call does not say.
const (
	snapshotKind    = "siyuan-markdown-snapshot"
	snapshotVersion = 1
	snapshotPage    = 20
)

// inventory are the documents that a snapshot is about, in their order.
type inventory struct {
	notebook guard.Notebook
	rows     []guard.Row
	files    []string         // the relative path of each
	folded   map[string][]int // by the path as systems without case read it
	mode     string
	scope    string // hash of what was asked for
	hash     string // of which documents there are, and where
}

func inventoryOf(ctx context.Context, r *tools.Request, in catalogue.FileSnapshotIn) (v inventory, err error) {
	var list []string
	if len(in.Roots) > 0 {
		v.mode, list = "roots", in.Roots
		err = v.walk(ctx, r, in)
	} else {
		v.mode, list = "documentIDs", in.DocumentIDs
		err = v.choose(ctx, r, in)
	}
	if err != nil {
		return v, err
	}
	slices.SortFunc(v.rows, func(a, b guard.Row) int {
		if c := strings.Compare(a.HPath, b.HPath); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	v.scope = digest([]any{v.notebook.ID(), v.mode, list})
	where := []any{}
	for _, row := range v.rows {
		where = append(where, []string{row.ID, row.Path, row.HPath})
	}
	v.hash = digest(where)
	v.place()
	return v, nil
}

// walk lists the documents at the roots and below.
func (v *inventory) walk(ctx context.Context, r *tools.Request, in catalogue.FileSnapshotIn) (err error) {
	if v.notebook, err = r.Session.Notebook(in.NotebookID, contract.Read); err != nil {
		return err
	}
	var places []guard.Place
	for _, root := range in.Roots {
		p, err := r.Session.PlaceAt(ctx, v.notebook, root, contract.Read)
		if err != nil {
			return err
		}
		places = append(places, p)
	}
	v.rows, err = r.Session.Inventory(ctx, places)
	return err
}

// choose lists the documents that were named.
func (v *inventory) choose(ctx context.Context, r *tools.Request, in catalogue.FileSnapshotIn) (err error) {
	if v.rows, err = r.Session.DocsOf(ctx, in.DocumentIDs); err != nil {
		return err
	}
	if v.notebook, err = r.Session.Notebook(in.NotebookID, contract.Read); err != nil {
		return err
	}
	for _, row := range v.rows {
		if row.Notebook.ID() != v.notebook.ID() {
			return contract.Fail(contract.InvalidTarget, "Document %s is in another notebook than %s.", row.ID, v.notebook.ID()).WithHint("Make a snapshot of each notebook.")
		}
	}
	return nil
}

// digest is the SHA-256 of a value's JSON, in hex.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // lists of texts always have a JSON form
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// place gives every document a path of its own.
func (v *inventory) place() {
	times, fold := map[string]int{}, cases.Fold()
	v.files, v.folded = make([]string, len(v.rows)), map[string][]int{}
	for i, row := range v.rows {
		v.files[i] = safePath(row)
		times[v.files[i]]++
	}
	for i, row := range v.rows {
		if v.mode == "documentIDs" || times[v.files[i]] > 1 {
			v.files[i] += " [" + row.ID + "]"
		}
		v.files[i] += ".md"
		key := fold.String(norm.NFC.String(v.files[i]))
		v.folded[key] = append(v.folded[key], i)
	}
}

// safePath is a readable path without names that lead elsewhere.
func safePath(row guard.Row) string {
	parts := strings.Split(strings.Trim(row.HPath, "/"), "/")
	for i, name := range parts {
		if name = strings.ReplaceAll(name, "\x00", ""); name == "" || name == "." || name == ".." {
			name = "[" + strconv.Itoa(i+1) + "]"
			if i == len(parts)-1 {
				name = "[" + row.ID + "]"
			}
		}
		parts[i] = strings.ReplaceAll(name, `\`, "_")
	}
	return strings.Join(parts, "/")
}

// cursor names the place of a page, and what it is a page of.
func (v *inventory) cursor(offset int) string {
	return fmt.Sprintf("%d.%s.%s", offset, v.scope[:16], v.hash[:16])
}

func (v *inventory) offset(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	at, _, _ := strings.Cut(cursor, ".")
	offset, err := strconv.Atoi(at)
	if err != nil || offset < 0 || offset > len(v.rows) || cursor != v.cursor(offset) {
		return 0, contract.Fail(contract.StateChanged, "The cursor is not good any more: it is of another call, or documents came, went or moved since.").
			WithHint("Begin anew without a cursor.")
	}
	return offset, nil
}

// conflicts are the documents of a page whose files others may take for theirs.
func (v *inventory) conflicts(from, to int) []catalogue.SnapshotConflict {
	all := []catalogue.SnapshotConflict{}
	for key, at := range v.folded {
		if len(at) < 2 || !slices.ContainsFunc(at, func(i int) bool { return from <= i && i < to }) {
			continue
		}
		c := catalogue.SnapshotConflict{Path: key}
		for _, i := range at {
			c.IDs = append(c.IDs, v.rows[i].ID)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b catalogue.SnapshotConflict) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func snapshot(ctx context.Context, r *tools.Request, in catalogue.FileSnapshotIn) (out catalogue.FileSnapshotOut, err error) {
	v, err := inventoryOf(ctx, r, in)
	if err != nil {
		return out, err
	}
	from, err := v.offset(in.Cursor)
	if err != nil {
		return out, err
	}
	out = catalogue.FileSnapshotOut{Kind: snapshotKind, SchemaVersion: snapshotVersion, Status: "complete", Source: catalogue.SnapshotSource{NotebookID: v.notebook.ID(), Name: v.notebook.Name()},
		Scope: catalogue.SnapshotScope{Mode: v.mode, ScopeHash: v.scope}, InventoryHash: v.hash, Documents: []catalogue.SnapshotDoc{}, Errors: []catalogue.SnapshotError{}}
	limit, used, to := tools.Or(in.Limit, snapshotPage), 0, from
	for ; to < min(len(v.rows), from+limit); to++ {
		doc, err := v.read(ctx, r, to)
		if err != nil {
			return out, err
		}
		if used += catalogue.Chars(doc); to > from && used > r.Budget {
			break
		}
		out.Documents = append(out.Documents, doc)
		for _, text := range doc.Errors {
			out.Status = "partial"
			out.Errors = append(out.Errors, catalogue.SnapshotError{ID: doc.ID, Error: text})
		}
		r.Progress(contract.Progress{Done: float64(to - from + 1), Total: float64(min(limit, len(v.rows)-from)), Message: "Reading documents"})
	}
	out.Conflicts = v.conflicts(from, to)
	out.Page = catalogue.SnapshotPage{Offset: from, Limit: limit, Total: len(v.rows), HasNext: to < len(v.rows)}
	if out.Page.HasNext {
		out.Page.NextCursor = v.cursor(to)
		out.Truncated, out.Hint = true, "Go on with cursor "+out.Page.NextCursor+" and the same notebookID and "+v.mode+"."
	}
	return out, nil
}

// read reads a document. One that went while the page was made is told as an error.
func (v *inventory) read(ctx context.Context, r *tools.Request, i int) (doc catalogue.SnapshotDoc, err error) {
	row := v.rows[i]
	tags := append([]string{}, row.Tags...)
	doc = catalogue.SnapshotDoc{ID: row.ID, Title: row.Content, HPath: row.HPath, StoragePath: row.Path, RelativePath: v.files[i], Errors: []string{},
		Metadata: catalogue.SnapshotMetadata{Name: row.Name, Alias: row.Alias, Memo: row.Memo, Tags: tags, Created: row.Created, Updated: row.Updated}}
	doc.MetadataHash = digest(doc.Metadata)
	d, err := r.Session.ExactDoc(ctx, row.ID, contract.Read)
	if err == nil && d.Notebook().ID() != v.notebook.ID() {
		err = contract.Fail(contract.NotFound, "The document is in another notebook now.")
	}
	if err == nil {
		doc.Content, err = r.Session.Export(ctx, d)
	}
	if err != nil && contract.CodeOf(guard.Public(err)) == contract.NotFound {
		doc.Content, doc.Errors, err = "", []string{"There is no such document any more."}, nil
	}
	sum := sha256.Sum256([]byte(doc.Content))
	doc.ContentHash = hex.EncodeToString(sum[:])
	return doc, err
}
