package levels

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Store is the part of tenants.Store that levels are kept in.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Changes carries out notebook.set_permission. It is safe for concurrent use and
// keeps nothing between calls.
type Changes struct{ Store Store }

// storeTimeout bounds one look at what a change would do.
const storeTimeout = 5 * time.Second

// change is one call.
type change struct {
	snap     *admission.Snapshot
	notebook string
	to       contract.Level
}

func read(snap *admission.Snapshot, args json.RawMessage) (c change, err error) {
	var in tools.NotebookSetPermissionIn
	if err := json.Unmarshal(args, &in); err != nil {
		return c, contract.Internalf(err, "decode arguments")
	}
	c = change{snap: snap, notebook: in.Notebook}
	if c.to, err = contract.ParseLevel(in.Permission); err != nil {
		return c, contract.InvalidFields(contract.Field{Path: "permission", Message: "must be none, r, rw or rwd"})
	}
	return c, nil
}

// Preview says what would change, to the person who is asked. not_found for a
// notebook that does not exist for the caller.
func (s Changes) Preview(ctx context.Context, snap *admission.Snapshot, args json.RawMessage) (p contract.Preview, failed *contract.Error) {
	c, err := read(snap, args)
	if err != nil {
		return p, contract.AsError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = s.Store.In(ctx, snap.Principal.Tenant, func(tx tenants.Tx) error {
		now, err := c.look(ctx, tx)
		if err != nil {
			return err
		}
		p = contract.Preview{
			Named: []contract.PreviewItem{{Kind: "notebook", Title: now.name}},
			Level: now.level.String() + " → " + c.to.String(),
		}
		return nil
	})
	if err != nil {
		return p, contract.AsError(err)
	}
	return p, nil
}

// Carry is what is done in the transaction that uses an agreement up. Its error
// undoes that too.
func (s Changes) Carry(snap *admission.Snapshot, args json.RawMessage) func(ctx context.Context, tx tenants.Tx, agreed tenants.Approval) error {
	return func(ctx context.Context, tx tenants.Tx, agreed tenants.Approval) error {
		c, err := read(snap, args)
		if err != nil {
			return err
		}
		now, err := c.look(ctx, tx)
		if err != nil {
			return err
		}
		if err := tx.SetLevel(ctx, snap.Principal.Instance, c.notebook, c.to); err != nil {
			return err
		}
		detail, err := json.Marshal(map[string]string{
			"from": now.level.String(), "to": c.to.String(), "instance": snap.Principal.Instance.String(),
			"approval": agreed.ID.String(), "approved_by": agreed.DecidedBy.String(),
		})
		if err != nil {
			return fmt.Errorf("note a change of level: %w", err)
		}
		return tx.Audit(ctx, tenants.AuditEntry{
			ActorKind: "agent", ActorID: snap.Principal.Agent, Verb: "level.set", Object: "notebook:" + c.notebook, Detail: detail,
		})
	}
}

// Answer is what the agent reads once it is done.
func (s Changes) Answer(snap *admission.Snapshot, args json.RawMessage) (json.RawMessage, *contract.Error) {
	c, err := read(snap, args)
	if err != nil {
		return nil, contract.AsError(err)
	}
	body, err := json.Marshal(tools.NotebookSetPermissionOut{Success: true, Notebook: c.notebook, Permission: c.to})
	if err != nil {
		return nil, contract.Internalf(err, "encode the answer")
	}
	return body, nil
}

// notebook is one as the tenant has it.
type notebook struct {
	name  string
	level contract.Level
}

// look finds the notebook and its level now. A home without it, and a caller who
// may not read it, get the same answer.
func (c change) look(ctx context.Context, tx tenants.Tx) (now notebook, err error) {
	instance := c.snap.Principal.Instance
	all, err := tx.Notebooks(ctx, instance)
	if err != nil {
		return now, err
	}
	names := map[string]int{}
	found := false
	for _, n := range all {
		names[n.Name]++
		if n.ID == c.notebook {
			now.name, found = n.Name, true
		}
	}
	if names[now.name] > 1 { // the person has to know which
		now.name += " (" + c.notebook + ")"
	}
	if !found || c.snap.Level(c.notebook) == contract.None {
		return now, contract.Fail(contract.NotFound, "No notebook of that id exists.").WithHint("notebook.list shows those that you can see.")
	}
	set, err := tx.Levels(ctx, instance)
	if err != nil {
		return now, err
	}
	level, ok := set[c.notebook]
	if !ok {
		in, err := tx.Instance(ctx, instance)
		if err != nil {
			return now, err
		}
		level = in.DefaultLevel
	}
	now.level = level
	return now, nil
}
