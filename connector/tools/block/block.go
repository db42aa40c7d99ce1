// Package block has the handlers of the block tool.
package block

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.BlockGetKramdown, getKramdown),
		tools.Bind(catalogue.BlockBatchKramdown, batchKramdown),
		tools.Bind(catalogue.BlockGetChildren, getChildren),
		tools.Bind(catalogue.BlockGetAttrs, getAttrs),
		tools.Bind(catalogue.BlockInfo, info),
		tools.Bind(catalogue.BlockBreadcrumb, breadcrumb),
		tools.Bind(catalogue.BlockDOM, dom),
		tools.Bind(catalogue.BlockRecentUpdated, recentUpdated),
		tools.Bind(catalogue.BlockWordCount, wordCount),
		tools.Bind(catalogue.BlockDocsInfo, docsInfo),
		tools.Bind(catalogue.BlockAppend, appendBlock),
		tools.Bind(catalogue.BlockUpdate, update),
		tools.Bind(catalogue.BlockInsert, insert),
		tools.Bind(catalogue.BlockPrepend, prepend),
		tools.BindDangerous(catalogue.BlockDelete, previewDelete, deleteBlock),
		tools.BindDangerous(catalogue.BlockMove, previewMove, move),
		tools.Bind(catalogue.BlockSetAttrs, setAttrs),
		tools.Bind(catalogue.BlockReplace, replace),
		tools.Bind(catalogue.BlockSetFoldState, setFoldState),
		tools.Bind(catalogue.BlockTransferReferences, transferReferences),
		tools.Bind(catalogue.BlockAddToDailyNote, addToDailyNote),
	}
}

func getKramdown(ctx context.Context, r *tools.Request, in catalogue.BlockGetKramdownIn) (out catalogue.BlockGetKramdownOut, err error) {
	b, err := r.Session.Block(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	text, err := r.Session.Kramdown(ctx, b)
	if err != nil {
		return out, err
	}
	out.ID = b.ID()
	out.Kramdown, out.PieceOut, err = piece(ctx, r, b, in.Piece, text, guard.KramdownBlocks)
	return out, err
}

func appendBlock(ctx context.Context, r *tools.Request, in catalogue.BlockAppendIn) (out catalogue.BlockAppendOut, err error) {
	parent, err := r.Session.Block(ctx, in.ParentID, contract.ReadWrite)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(parent), func(ctx context.Context, tx *guard.Tx) error {
		ids, err := tx.Append(ctx, parent, text(in.DataType, in.Data))
		if err == nil {
			out = catalogue.BlockAppendOut{Success: true, ID: ids[0], IDs: ids, ParentID: parent.ID(), DataType: in.DataType}
		}
		return err
	})
	return out, err
}

func text(dataType, data string) guard.Text { return guard.Text{Data: data, DOM: dataType == "dom"} }

func update(ctx context.Context, r *tools.Request, in catalogue.BlockUpdateIn) (out catalogue.BlockUpdateOut, err error) {
	items := in.Items
	if items == nil {
		items = []catalogue.BlockUpdateItem{{ID: in.ID, Data: in.Data, DataType: in.DataType}}
	}
	var updates []guard.Update
	var targets []guard.Target
	for _, item := range items {
		b, err := r.Session.Block(ctx, item.ID, contract.ReadWrite)
		if err != nil {
			return out, err
		}
		updates = append(updates, guard.Update{Block: b, Text: text(item.DataType, item.Data)})
		targets = append(targets, b)
	}
	err = r.Session.Write(ctx, r.Intent(targets...), func(ctx context.Context, tx *guard.Tx) error {
		done, err := tx.Update(ctx, updates)
		if err == nil {
			out = updated(done, in.Items != nil)
		}
		return err
	})
	return out, err
}

func updated(done []guard.Updated, batch bool) catalogue.BlockUpdateOut {
	out := catalogue.BlockUpdateOut{Success: true}
	for _, d := range done {
		dataType := "markdown"
		if d.DOM {
			dataType = "dom"
		}
		out.Updated = append(out.Updated, catalogue.BlockUpdated{
			ID: d.ID, DataType: dataType, Kramdown: d.Kramdown, AttributesPreserved: true, PreservedAttributeCount: d.Preserved,
		})
	}
	if batch {
		out.Count = len(done)
		return out
	}
	out.BlockUpdated, out.Updated = &out.Updated[0], nil
	return out
}
