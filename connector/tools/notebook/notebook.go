// Package notebook has the handlers of the notebook tool.
package notebook

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
		tools.Bind(catalogue.NotebookList, list),
		tools.Bind(catalogue.NotebookCreate, create),
		tools.Bind(catalogue.NotebookSetOpenState, setOpenState),
		tools.BindDangerous(catalogue.NotebookRemove, previewRemove, remove),
		tools.Bind(catalogue.NotebookRename, rename),
		tools.Bind(catalogue.NotebookGetConf, getConf),
		tools.Bind(catalogue.NotebookSetConf, setConf),
		tools.Bind(catalogue.NotebookSetIcon, setIcon),
		tools.Bind(catalogue.NotebookGetPermissions, getPermissions),
		tools.Bind(catalogue.NotebookGetChildDocs, getChildDocs),
	}
}

func list(_ context.Context, r *tools.Request, _ catalogue.NotebookListIn) (catalogue.NotebookListOut, error) {
	out := catalogue.NotebookListOut{Notebooks: []catalogue.Notebook{}}
	for _, n := range r.Session.Notebooks() {
		out.Notebooks = append(out.Notebooks, show(n))
	}
	return out, nil
}

func create(ctx context.Context, r *tools.Request, in catalogue.NotebookCreateIn) (out catalogue.NotebookCreateOut, err error) {
	err = r.Session.WriteWorkspace(ctx, r.Intent(), contract.SwitchWorkspace, func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.CreateNotebook(ctx, in.Name, in.Icon)
		if err == nil {
			out.Notebook = show(made)
		}
		return err
	})
	return out, err
}

func show(n guard.Notebook) catalogue.Notebook {
	return catalogue.Notebook{ID: n.ID(), Name: n.Name(), Icon: n.Icon(), Closed: n.Closed(), Level: n.Level()}
}
