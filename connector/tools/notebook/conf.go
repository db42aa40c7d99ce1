package notebook

import (
	"context"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func getConf(ctx context.Context, r *tools.Request, in catalogue.NotebookIn) (out catalogue.NotebookGetConfOut, err error) {
	n, err := r.Session.Notebook(in.Notebook, contract.Read)
	if err != nil {
		return out, err
	}
	conf, err := r.Session.NotebookConf(ctx, n)
	return catalogue.NotebookGetConfOut{Box: n.ID(), Name: conf.Name, Conf: showConf(conf)}, err
}

// setConf changes settings. Name and open state are no settings to SiYuan: set
// as such they would leave the notebook half changed, so they go their own ways.
func setConf(ctx context.Context, r *tools.Request, in catalogue.NotebookSetConfIn) (out catalogue.NotebookSetConfOut, err error) {
	c := in.Conf
	if c == (catalogue.NotebookConfUpdate{}) {
		return out, contract.InvalidFields(contract.Field{Path: "conf", Message: "name at least one setting to change"})
	}
	err = change(ctx, r, in.Notebook, contract.ReadWrite, func(ctx context.Context, tx *guard.Tx, n guard.Notebook) error {
		if err := checkName(n, c); err != nil {
			return err
		}
		if err := apply(ctx, tx, n, c); err != nil {
			return err
		}
		conf, err := r.Session.NotebookConf(ctx, n)
		out = catalogue.NotebookSetConfOut{Success: true, Notebook: n.ID(), Conf: showConf(conf)}
		return err
	})
	return out, err
}

// checkName refuses a name that could not be set after the rest was: a closed
// notebook cannot be renamed.
func checkName(n guard.Notebook, c catalogue.NotebookConfUpdate) error {
	if c.Name == nil {
		return nil
	}
	if opens := c.Closed != nil && !*c.Closed; !opens {
		if err := n.Reachable(); err != nil {
			return err
		}
	}
	return guard.CheckTitle("conf.name", *c.Name)
}

// apply opens before and closes after everything else.
func apply(ctx context.Context, tx *guard.Tx, n guard.Notebook, c catalogue.NotebookConfUpdate) error {
	var parts []func() error
	paths := guard.NotebookPaths{
		RefCreate: c.RefCreateSavePath, DocCreate: c.CreateDocNameTemplate,
		DailyNote: c.DailyNoteSavePath, DailyTemplate: c.DailyNoteTemplatePath,
	}
	if paths != (guard.NotebookPaths{}) {
		parts = append(parts, func() error { return tx.SetNotebookPaths(ctx, n, paths) })
	}
	setOpen := func() (err error) {
		n, err = tx.SetNotebookOpen(ctx, n, !*c.Closed)
		return err
	}
	if c.Closed != nil && !*c.Closed {
		parts = append(parts, setOpen)
	}
	if c.Name != nil {
		parts = append(parts, func() error { return tx.RenameNotebook(ctx, n, *c.Name) })
	}
	if c.Closed != nil && *c.Closed {
		parts = append(parts, setOpen)
	}
	return tx.All(parts...)
}

func showConf(c guard.NotebookConf) catalogue.NotebookConf {
	return catalogue.NotebookConf{
		Name: c.Name, Icon: c.Icon, Closed: c.Closed, Sort: c.Sort, SortMode: c.SortMode,
		RefCreateSaveBox: c.RefCreateSaveBox, RefCreateSavePath: c.RefCreateSavePath,
		DocCreateSaveBox: c.DocCreateSaveBox, DocCreateSavePath: c.DocCreateSavePath,
		DailyNoteSavePath: c.DailyNoteSavePath, DailyNoteTemplatePath: c.DailyNoteTemplatePath,
	}
}
