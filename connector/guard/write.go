package guard

import (
	"context"
	"errors"
	"maps"
	"slices"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Tx is one write in progress: the only holder of the kernel's writing methods.
// It may write to the targets of its intent and to nothing else.
type Tx struct {
	s     *Session
	entry Entry
	docs  map[siyuan.ID]bool
	boxes map[siyuan.ID]bool
	avs   map[siyuan.ID]Database
	held  map[string]held // by key
	notes map[string]bool // notebooks of the targets
	more  bool            // the handler has further writes to make after this one
	sent  bool            // a kernel write was answered
	doubt error           // of a kernel write whose answer never came

	action  string   // of the intent
	kept    bool     // the restore points were made
	points  []*Point // of this write
	lasting bool     // it changes something that no undo takes back
}

// Write runs a write: it locks the targets, proves again that they are where
// they were, logs the intent, and runs fn. fn is not cancelled with ctx once it
// runs: a write under way is finished and read back.
//
// Errors: permission_denied, state_changed and sync_in_progress before anything
// is written; write_not_persisted when the kernel claimed an effect it did not
// have; outcome_unknown when the connection broke.
func (s *Session) Write(ctx context.Context, in Intent, fn func(ctx context.Context, tx *Tx) error) error {
	tx := &Tx{s: s, docs: map[siyuan.ID]bool{}, boxes: map[siyuan.ID]bool{}, avs: map[siyuan.ID]Database{}, held: map[string]held{}, notes: map[string]bool{}}
	var names []string
	for _, t := range in.Targets {
		if h, ok := t.(held); ok {
			more, err := tx.takes(h)
			if err != nil {
				return err
			}
			names = append(names, more...)
			continue
		}
		if d, ok := t.(Database); ok {
			if err := s.own(d, contract.ReadWrite); err != nil {
				return err
			}
			tx.avs[d.id] = d
			for _, box := range s.boxesOf(append(boundBlocks(d.file), d.blocks...)) {
				tx.notes[string(box)] = true
			}
			names = append(names, d.lockName())
			continue
		}
		nb, b := t.target()
		if err := s.use(nb, contract.ReadWrite); err != nil {
			return err
		}
		tx.notes[nb.ID()] = true
		if b.id == "" {
			tx.boxes[nb.id] = true
			names = append(names, "notebook "+nb.ID())
			continue
		}
		tx.docs[b.doc.id] = true
		names = append(names, "document "+b.doc.ID())
	}
	release, err := s.g.opt.Locks.acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	if err := firstErr(s.reprove(ctx, in.Targets), s.settledBySync(ctx, tx.docs), tx.reproveDatabases(ctx), tx.reproveHeld(ctx)); err != nil {
		return err
	}
	if in.Watch == nil {
		return s.run(context.WithoutCancel(ctx), in, tx, fn)
	}
	return s.watched(ctx, in, func() error { return s.run(context.WithoutCancel(ctx), in, tx, fn) })
}

// watched shows the state of the targets to the intent's watch before a write,
// and after it.
func (s *Session) watched(ctx context.Context, in Intent, write func() error) error {
	before, err := s.state(ctx, in.Targets, in.Watch.Structure())
	if err != nil {
		return err
	}
	if err := in.Watch.Before(before); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	if after, err := s.state(context.WithoutCancel(ctx), in.Targets, in.Watch.Structure()); err == nil {
		in.Watch.After(after) // what cannot be read now is told without its hash
	}
	return nil
}

// WriteWorkspace is Write for what belongs to no notebook, such as making one.
// It needs the switch, which only owners' and admins' agents hold.
func (s *Session) WriteWorkspace(ctx context.Context, in Intent, need contract.Switch, fn func(ctx context.Context, tx *Tx) error) error {
	if !s.grant.Has(need) {
		return contract.Fail(contract.PermissionDenied, "This needs the workspace permission %q.", string(need)).
			WithHint("Only the agent of a tenant owner or admin can hold it, and only where it is switched on in the console.")
	}
	release, err := s.g.opt.Locks.acquire(ctx, []string{"workspace"})
	if err != nil {
		return err
	}
	defer release()
	return s.run(context.WithoutCancel(ctx), in, &Tx{s: s}, fn)
}

func (s *Session) run(ctx context.Context, in Intent, tx *Tx, fn func(context.Context, *Tx) error) error {
	if _, err := s.started.list.get(); err != nil {
		return err
	}
	if tx.entry = in.Entry; tx.entry == nil {
		tx.entry = noEntry{}
	}
	tx.action = in.Action
	defer s.forget()
	err := tx.conclude(fn(ctx, tx))
	tx.settlePoints(ctx)
	return err
}

// conclude is how a write ended. An error that came after the kernel took a
// write must not read as one before it: offline and timeout say that nothing was
// changed and invite to try again, which would write twice.
func (tx *Tx) conclude(err error) error {
	told, isTold := errors.AsType[*contract.Error](err)
	switch {
	case err == nil || !tx.sent,
		isTold && told.Type != contract.TypeOffline && told.Type != contract.TypeTimeout,
		!isTold && siyuan.KindOf(err) == siyuan.Internal && !errors.Is(err, siyuan.Missing):
		return err
	}
	unknown := contract.Fail(contract.OutcomeUnknown, "SiYuan took the write but could not be asked about it afterwards; it may or may not have happened.").WithCause(err)
	if isTold {
		unknown.Detail = told.Detail
	}
	return unknown
}

// reprove looks the targets up again, now that they are locked.
func (s *Session) reprove(ctx context.Context, targets []Target) error {
	for _, t := range targets {
		_, b := t.target()
		if b.id == "" {
			continue
		}
		s.forget(b.id)
		p, err := s.find(ctx, b.id, "block")
		if err != nil {
			return err
		}
		if err := s.prove(p.box, contract.ReadWrite); err != nil {
			return err
		}
		if p.root != b.doc.id || p.box != b.doc.nb.id {
			return contract.Fail(contract.StateChanged, "Block %s was moved while the call waited.", b.ID())
		}
	}
	return nil
}

// settledBySync refuses to write into documents that SiYuan's sync is about to
// replace: what is written there now would be overwritten or end in a conflict
// copy. SiYuan tells that for each document, and nothing about a sync as a whole.
func (s *Session) settledBySync(ctx context.Context, docs map[siyuan.ID]bool) error {
	for id := range docs {
		page, err := s.g.r.Doc(ctx, id, 1, 0)
		if err != nil {
			return s.vanished(err, "document", id)
		}
		if page.Syncing {
			return contract.Fail(contract.SyncInProgress, "SiYuan is syncing document %s; nothing was written.", string(id))
		}
	}
	return nil
}

// covers checks that a block is of a locked document.
func (tx *Tx) covers(b Block) error {
	if err := tx.s.use(b.doc.nb, contract.ReadWrite); err != nil {
		return err
	}
	if !tx.docs[b.doc.id] {
		return contract.Internalf(errors.New("guard: write outside of the intent"), "document %s", b.doc.id)
	}
	return nil
}

// coversTree checks that the document tree of a notebook is locked.
func (tx *Tx) coversTree(n Notebook) error {
	if err := tx.s.use(n, contract.ReadWrite); err != nil {
		return err
	}
	if !tx.boxes[n.id] {
		return contract.Internalf(errors.New("guard: write outside of the intent"), "notebook %s", n.id)
	}
	return nil
}

// errNoMarks is a programming error: nothing could tell whether the step happened.
var errNoMarks = errors.New("guard: a step needs marks, or a reason why it has none")

// step remembers one kernel write and sends it. Behind one whose answer never
// came there is no other: what became of the last step is what a retry looks at.
func (tx *Tx) step(ctx context.Context, st Step, send func(w *siyuan.Writer) error) error {
	if (len(st.Marks) == 0) == (st.Repeatable == "") {
		return contract.Internalf(errNoMarks, "step %s", st.Op)
	}
	if tx.doubt != nil {
		return tx.doubt
	}
	if err := tx.keep(ctx); err != nil {
		return err
	}
	if err := tx.keepCells(ctx, st); err != nil {
		return err
	}
	st.More = st.More || tx.more
	st.Notebooks, st.At = slices.Sorted(maps.Keys(tx.notes)), tx.s.g.opt.Now().UnixMilli()
	if err := tx.entry.Step(ctx, st); err != nil {
		return err
	}
	err := send(tx.s.g.w)
	switch {
	case err == nil || answered(err):
		tx.sent = true
	case siyuan.KindOf(err) != siyuan.OutcomeUnknown:
		return errors.Join(err, tx.entry.Drop(ctx))
	default:
		tx.doubt = err
	}
	return err
}

// All runs the parts of a write that has several, one after the other, so that a
// call that was interrupted between them is not taken for done.
func (tx *Tx) All(parts ...func() error) error {
	for i, part := range parts {
		tx.more = i < len(parts)-1
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// newID chooses the id of something to be created, so that the ledger knows it
// before the kernel does.
func (tx *Tx) newID() (siyuan.ID, error) {
	return siyuan.NewID(tx.s.g.opt.Now(), tx.s.g.opt.Random)
}

func notPersisted(format string, args ...any) error {
	return contract.Fail(contract.WriteNotPersisted, format, args...)
}
