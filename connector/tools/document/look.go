package document

import (
	"context"
	"slices"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func setAttr(ctx context.Context, r *tools.Request, in catalogue.DocumentSetAttrIn) (out catalogue.DocumentSetAttrOut, err error) {
	d, err := r.Session.ExactDoc(ctx, in.ID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(d), func(ctx context.Context, tx *guard.Tx) error {
		cover, err := tx.SetLook(ctx, d, in.Attrs.Icon, in.Attrs.Cover)
		out = catalogue.DocumentSetAttrOut{Success: true, ID: d.ID(), TitleImg: cover}
		if in.Attrs.Icon != nil {
			out.Icon = *in.Attrs.Icon
		}
		if in.Attrs.Cover != nil {
			out.Cover, out.ClearedCover = *in.Attrs.Cover, *in.Attrs.Cover == ""
		}
		return err
	})
	return out, err
}

// reorder answers for the notebook's sort mode: SiYuan has none for the children
// of one document.
func reorder(ctx context.Context, r *tools.Request, in catalogue.DocumentReorderIn) (out catalogue.DocumentReorderOut, err error) {
	place, err := r.Session.Place(ctx, in.ParentID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	order, err := docsIn(ctx, r.Session, in.OrderedIDs, nil, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(place.Notebook), func(ctx context.Context, tx *guard.Tx) error {
		done, err := tx.Reorder(ctx, place, order)
		changed := !slices.Equal(done.Before, done.After)
		out = catalogue.DocumentReorderOut{
			Success: true, ParentID: in.ParentID, Notebook: place.Notebook.ID(), Changed: changed || done.SortMode, OrderChanged: changed,
			SortModeChanged: done.SortMode, SortModeScope: "notebook", PreviousOrder: done.Before, Order: done.After,
		}
		return err
	})
	return out, err
}

func createDailyNote(ctx context.Context, r *tools.Request, in catalogue.DocumentCreateDailyNoteIn) (out catalogue.DocumentCreateDailyNoteOut, err error) {
	nb, err := r.Session.Notebook(in.Notebook, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	known, err := r.Session.DailyNotes(ctx, nb)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(nb), func(ctx context.Context, tx *guard.Tx) error {
		note, created, err := tx.DailyNote(ctx, nb, known)
		if err != nil {
			return err
		}
		hpath, err := r.Session.HPath(ctx, note)
		out = catalogue.DocumentCreateDailyNoteOut{Success: true, Notebook: nb.ID(), ID: note.ID(), HPath: hpath, Created: created}
		return err
	})
	return out, err
}
