package guard

import (
	"context"
	"errors"
	"path"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// MoveAndRename puts a document below a place under a title. SiYuan does that in
// two steps; where the second fails, the first is taken back. All notebooks
// involved must be targets of the intent.
func (tx *Tx) MoveAndRename(ctx context.Context, d Doc, to Place, title string) error {
	if err := firstErr(tx.covers(d.Block()), d.notRoot(), tx.s.MayLeave(d.nb, to.Notebook)); err != nil {
		return err
	}
	attrs, err := tx.s.g.r.BlockAttrs(ctx, d.id)
	if err != nil {
		return tx.s.vanished(err, "document", d.id)
	}
	rename := attrs["title"] != title
	if rename {
		if err := CheckTitle("to", title); err != nil {
			return err
		}
	}
	before, err := tx.s.above(ctx, d)
	if err != nil {
		return err
	}
	moved := before.id() != to.id()
	if moved {
		tx.more = rename
		_, err := tx.MoveDocs(ctx, []Doc{d}, to)
		tx.more = false
		if err != nil {
			return err
		}
		b, err := tx.s.block(ctx, d.id, "document", contract.ReadWrite)
		if err != nil {
			return err
		}
		d = b.doc
	}
	if !rename {
		return nil
	}
	err = tx.RenameDoc(ctx, d, title)
	if err == nil || !moved {
		return err
	}
	tx.more = true // being back is not the end that was asked for
	_, back := tx.MoveDocs(ctx, []Doc{d}, before)
	if told, ok := errors.AsType[*contract.Error](err); ok && back != nil {
		return told.WithHint("The document was moved, but has its old title; rename it with document.rename.")
	}
	return err
}

// above is the place a document is right below.
func (s *Session) above(ctx context.Context, d Doc) (Place, error) {
	folder := path.Dir(d.path)
	if folder == "/" {
		return Place{Notebook: d.nb}, nil
	}
	b, err := s.block(ctx, siyuan.ID(strings.TrimPrefix(path.Base(folder), "/")), "document", contract.Read)
	return Place{Notebook: d.nb, Doc: &b.doc}, err
}
