package guard

import (
	"context"
	"errors"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Looks at what SiYuan does in the background, such as opening a notebook: soon,
// because most of it is done at once, then at an even pace, for three seconds.
const (
	firstLook = 50 * time.Millisecond
	lookEvery = 400 * time.Millisecond
	lastLook  = 3 * time.Second
)

// notebookNow is a notebook as the kernel lists it, nil when it does not.
func (tx *Tx) notebookNow(ctx context.Context, id siyuan.ID) (*siyuan.Notebook, error) {
	all, _, err := tx.s.g.r.Notebooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n.ID == id {
			return &n, nil
		}
	}
	return nil, nil
}

// settled looks at a notebook until it is as wanted, or the waits are over.
func (tx *Tx) settled(ctx context.Context, id siyuan.ID, as func(n *siyuan.Notebook) bool) (bool, error) {
	return tx.until(ctx, func() (bool, error) {
		n, err := tx.notebookNow(ctx, id)
		return err == nil && as(n), err
	})
}

func (tx *Tx) until(ctx context.Context, reached func() (bool, error)) (bool, error) {
	var waited time.Duration
	for wait := firstLook; ; wait = min(2*wait, lookEvery) {
		ok, err := reached()
		if ok || err != nil || waited >= lastLook {
			return ok, err
		}
		if err := tx.s.g.opt.Sleep(ctx, wait); err != nil {
			return false, err
		}
		waited += wait
	}
}

// sleep is the default of Options.Sleep.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SetNotebookOpen opens or closes a notebook and waits until it is so. After
// opening it also waits, within bounds, until its documents can be reached. It
// returns the notebook as it is then.
func (tx *Tx) SetNotebookOpen(ctx context.Context, n Notebook, open bool) (Notebook, error) {
	if err := tx.coversTree(n); err != nil {
		return n, err
	}
	info := n.info()
	if open && info.Encrypted && !info.Unlocked {
		return n, contract.Fail(contract.NotebookLocked, "Notebook %s is encrypted and locked.", n.ID())
	}
	if info.Closed != open {
		return n, nil
	}
	op, word := "notebook.close", "closed"
	if open {
		op, word = "notebook.open", "opened"
	}
	err := tx.step(ctx, Step{Op: op, ID: n.ID(), Marks: []Mark{{LookOpen, n.ID(), yesNo(!open), yesNo(open)}}}, func(w *siyuan.Writer) error {
		if open {
			return w.OpenNotebook(ctx, n.id)
		}
		return w.CloseNotebook(ctx, n.id)
	})
	if err != nil && !answered(err) {
		return n, err
	}
	ok, err := tx.settled(ctx, n.id, func(now *siyuan.Notebook) bool { return now != nil && now.Closed != open })
	if err != nil {
		return n, err
	}
	if !ok {
		return n, notPersisted("SiYuan reported notebook %s as %s, but it is not.", n.ID(), word)
	}
	info.Closed = !open
	n.seen = &info
	if !open {
		return n, nil
	}
	return n, tx.awaitDocs(ctx, n.id)
}

// awaitDocs waits until the block tree knows the last of the documents at the
// top. A notebook that takes longer is open all the same.
func (tx *Tx) awaitDocs(ctx context.Context, box siyuan.ID) error {
	_, err := tx.until(ctx, func() (bool, error) {
		files, err := tx.s.g.r.Docs(ctx, box, "/")
		if err == nil && len(files) > 0 {
			_, err = tx.s.lookup(ctx, files[len(files)-1].ID)
		}
		if absent(err) || errors.Is(err, siyuan.Rejected) {
			return false, nil
		}
		return err == nil, err
	})
	return err
}

// RemoveNotebook moves a notebook with everything in it to SiYuan's history.
func (tx *Tx) RemoveNotebook(ctx context.Context, n Notebook) error {
	if err := firstErr(tx.coversTree(n), tx.s.use(n, contract.ReadWriteDelete)); err != nil {
		return err
	}
	for range removals {
		err := tx.step(ctx, Step{Op: "notebook.remove", ID: n.ID(), Marks: []Mark{{LookListed, n.ID(), yes, no}}}, func(w *siyuan.Writer) error {
			return w.RemoveNotebook(ctx, n.id)
		})
		if err != nil && !answered(err) {
			return err
		}
		gone, err := tx.settled(ctx, n.id, func(now *siyuan.Notebook) bool { return now == nil })
		if err != nil {
			return err
		}
		if !gone {
			break
		}
		if err := tx.s.g.opt.Sleep(ctx, returnsWithin); err != nil {
			return err
		}
		if now, err := tx.notebookNow(ctx, n.id); err != nil || now == nil {
			return err
		}
	}
	return notPersisted("SiYuan reported notebook %s as removed, but it is still there.", n.ID())
}

// SiYuan's background indexing can write a notebook's settings after the
// notebook was removed, which brings it back empty, closed and without a name.
const (
	removals      = 2
	returnsWithin = time.Second
)

// RenameNotebook changes the name of an open notebook.
func (tx *Tx) RenameNotebook(ctx context.Context, n Notebook, name string) error {
	if err := firstErr(tx.coversTree(n), n.Reachable(), CheckTitle("name", name)); err != nil {
		return err
	}
	err := tx.step(ctx, Step{Op: "notebook.rename", ID: n.ID(), Marks: []Mark{{LookName, n.ID(), digest(n.Name()), digest(name)}}}, func(w *siyuan.Writer) error {
		return w.RenameNotebook(ctx, n.id, name)
	})
	if err != nil && !answered(err) {
		return err
	}
	now, err := tx.notebookNow(ctx, n.id)
	if err == nil && (now == nil || now.Name != name) {
		err = notPersisted("SiYuan reported notebook %s as renamed, but it has another name.", n.ID())
	}
	return err
}

// SetNotebookIcon sets a notebook's icon; "" takes it away.
func (tx *Tx) SetNotebookIcon(ctx context.Context, n Notebook, icon string) error {
	if err := firstErr(tx.coversTree(n), checkIcon(icon)); err != nil {
		return err
	}
	err := tx.step(ctx, Step{Op: "notebook.icon", ID: n.ID(), Marks: []Mark{{LookIcon, n.ID(), digest(n.Icon()), digest(icon)}}}, func(w *siyuan.Writer) error {
		return w.SetNotebookIcon(ctx, n.id, icon)
	})
	if err != nil && !answered(err) {
		return err
	}
	now, err := tx.notebookNow(ctx, n.id)
	if err == nil && (now == nil || now.Icon != icon) {
		err = notPersisted("SiYuan did not keep the icon of notebook %s.", n.ID())
	}
	return err
}
