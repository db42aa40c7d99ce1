package notebook

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// change runs a write whose one target is a notebook.
func change(ctx context.Context, r *tools.Request, id string, need contract.Level, do func(ctx context.Context, tx *guard.Tx, n guard.Notebook) error) error {
	n, err := r.Session.Notebook(id, need)
	if err != nil {
		return err
	}
	return r.Session.Write(ctx, r.Intent(n), func(ctx context.Context, tx *guard.Tx) error { return do(ctx, tx, n) })
}

func setOpenState(ctx context.Context, r *tools.Request, in catalogue.NotebookSetOpenStateIn) (catalogue.NotebookSetOpenStateOut, error) {
	err := change(ctx, r, in.Notebook, contract.ReadWrite, func(ctx context.Context, tx *guard.Tx, n guard.Notebook) error {
		_, err := tx.SetNotebookOpen(ctx, n, in.Opened)
		return err
	})
	return catalogue.NotebookSetOpenStateOut{Success: true, Notebook: in.Notebook, Opened: in.Opened}, err
}

func remove(ctx context.Context, r *tools.Request, in catalogue.NotebookIn) (catalogue.NotebookRemoveOut, error) {
	err := change(ctx, r, in.Notebook, contract.ReadWriteDelete, func(ctx context.Context, tx *guard.Tx, n guard.Notebook) error {
		return tx.RemoveNotebook(ctx, n)
	})
	return catalogue.NotebookRemoveOut{Success: true, Notebook: in.Notebook}, err
}

func previewRemove(ctx context.Context, r *tools.Request, in catalogue.NotebookIn) (contract.Preview, error) {
	n, err := r.Session.Notebook(in.Notebook, contract.ReadWriteDelete)
	if err != nil {
		return contract.Preview{}, err
	}
	return r.Session.PreviewNotebook(ctx, n)
}

func rename(ctx context.Context, r *tools.Request, in catalogue.NotebookRenameIn) (catalogue.NotebookRenameOut, error) {
	err := change(ctx, r, in.Notebook, contract.ReadWrite, func(ctx context.Context, tx *guard.Tx, n guard.Notebook) error {
		return tx.RenameNotebook(ctx, n, in.Name)
	})
	return catalogue.NotebookRenameOut{Success: true, Notebook: in.Notebook, Name: in.Name}, err
}

func setIcon(ctx context.Context, r *tools.Request, in catalogue.NotebookSetIconIn) (catalogue.NotebookSetIconOut, error) {
	err := change(ctx, r, in.Notebook, contract.ReadWrite, func(ctx context.Context, tx *guard.Tx, n guard.Notebook) error {
		return tx.SetNotebookIcon(ctx, n, in.Icon)
	})
	return catalogue.NotebookSetIconOut{Success: true, Notebook: in.Notebook, Icon: in.Icon}, err
}
