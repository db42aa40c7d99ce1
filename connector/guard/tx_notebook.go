package guard

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// CreateNotebook makes and opens an empty notebook; icon may be "". The caller's
// level in it is what the grant gives on notebooks it does not name.
func (tx *Tx) CreateNotebook(ctx context.Context, name, icon string) (Notebook, error) {
	if !tx.s.grant.Has(contract.SwitchWorkspace) {
		return Notebook{}, contract.Fail(contract.PermissionDenied, "This needs the workspace permission %q.", string(contract.SwitchWorkspace))
	}
	if err := firstErr(CheckTitle("name", name), checkIcon(icon)); err != nil {
		return Notebook{}, err
	}
	var made siyuan.Notebook
	was := tx.s.started.all()
	named := strconv.Itoa(namedCount(was, digest(name)) + 1)
	st := Step{Op: "notebook.create", More: icon != "", Marks: []Mark{{LookNamed, digest(name), namedMark(was, digest(name)), named}}}
	err := tx.step(ctx, st, func(w *siyuan.Writer) (err error) {
		made, err = w.CreateNotebook(ctx, name)
		return err
	})
	if answered(err) {
		made.ID, err = tx.appeared(ctx, name)
	}
	if err != nil {
		return Notebook{}, err
	}
	if icon != "" {
		mark := Mark{LookIcon, string(made.ID), digest(made.Icon), digest(icon)}
		err := tx.step(ctx, Step{Op: "notebook.icon", ID: string(made.ID), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
			return w.SetNotebookIcon(ctx, made.ID, icon)
		})
		if err != nil && !answered(err) && !errors.Is(err, siyuan.Missing) {
			return Notebook{}, err
		}
	}
	all, _, err := tx.s.g.r.Notebooks(ctx)
	if err != nil {
		return Notebook{}, err
	}
	for _, n := range all {
		if n.ID == made.ID && n.Name == name && (icon == "" || n.Icon == icon) {
			return Notebook{s: tx.s, id: n.ID, seen: &n, level: tx.s.level(n.ID)}, nil
		}
	}
	return Notebook{}, notPersisted("SiYuan reported notebook %s as created, but it is not as it was asked for.", string(made.ID))
}

// appeared finds a notebook that SiYuan made without telling its id: one of that
// name which was not there when the call began.
func (tx *Tx) appeared(ctx context.Context, name string) (siyuan.ID, error) {
	all, _, err := tx.s.g.r.Notebooks(ctx)
	if err != nil {
		return "", err
	}
	for _, n := range all {
		if n.Name == name && !slices.ContainsFunc(tx.s.started.all(), func(old siyuan.Notebook) bool { return old.ID == n.ID }) {
			return n.ID, nil
		}
	}
	return "", notPersisted("SiYuan reported a notebook as created, but there is no new one of that name.")
}
