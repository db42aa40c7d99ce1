// Package system has the handlers of the system tool.
package system

import (
	"context"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.SystemBootstrap, bootstrap),
		tools.Bind(catalogue.SystemGetVersion, getVersion),
		tools.Bind(catalogue.SystemGetCurrentTime, getCurrentTime),
		tools.Bind(catalogue.SystemChangelog, changelog),
		tools.Bind(catalogue.SystemConf, conf),
		tools.Bind(catalogue.SystemNetwork, network),
		tools.Bind(catalogue.SystemWorkspaceInfo, workspaceInfo),
		tools.Bind(catalogue.SystemNotify, notify),
		tools.BindDangerous(catalogue.SystemPerformSync, previewSync, performSync),
	}
}

// bootstrapSchema is the form that readiness probes of the interface look for.
const bootstrapSchema = 2

func bootstrap(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (out catalogue.SystemBootstrapOut, err error) {
	if out.Version, err = r.Session.Version(ctx); err != nil {
		return out, err
	}
	out.SchemaVersion, out.Limits.ListChars = bootstrapSchema, r.Budget
	out.Notebooks = []catalogue.Notebook{}
	for _, n := range r.Session.Notebooks() {
		out.Notebooks = append(out.Notebooks, catalogue.Notebook{ID: n.ID(), Name: n.Name(), Icon: n.Icon(), Closed: n.Closed(), Level: n.Level()})
		out.Connection.Readable++
		if n.Level().Allows(contract.ReadWrite) {
			out.Connection.Writable++
		}
		if n.Level().Allows(contract.ReadWriteDelete) {
			out.Connection.Deletable++
		}
	}
	switch {
	case out.Connection.Readable == 0:
		out.Hints = append(out.Hints, "You may read no notebook; the person can share one with you in the console.")
	case out.Connection.Writable == 0:
		out.Hints = append(out.Hints, "You may read but not write; the person can raise your level in the console, and the home owner's policy must allow it.")
	}
	return out, nil
}

func getVersion(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (out catalogue.SystemGetVersionOut, err error) {
	out.Version, err = r.Session.Version(ctx)
	return out, err
}

func getCurrentTime(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (catalogue.SystemGetCurrentTimeOut, error) {
	now, err := r.Session.Clock(ctx)
	return catalogue.SystemGetCurrentTimeOut{CurrentTime: now.UnixMilli(), ISO: now.UTC().Format("2006-01-02T15:04:05.000Z07:00")}, err
}

func network(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (catalogue.SystemNetworkOut, error) {
	p, err := r.Session.Proxy(ctx)
	return catalogue.SystemNetworkOut{Proxy: catalogue.SystemProxy(p)}, err
}

func workspaceInfo(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (out catalogue.SystemWorkspaceInfoOut, err error) {
	out.WorkspaceDir, out.SiYuanVer, err = r.Session.WorkspaceDir(ctx)
	return out, err
}

const notifyMillis = 7000

func notify(ctx context.Context, r *tools.Request, in catalogue.SystemNotifyIn) (out catalogue.SystemNotifyOut, err error) {
	shown := notifyMillis
	if in.Timeout != nil {
		shown = *in.Timeout
	}
	err = r.Session.WriteWorkspace(ctx, r.Intent(), contract.SwitchSystem, func(ctx context.Context, tx *guard.Tx) error {
		id, err := tx.Notify(ctx, in.Msg, in.Level == "error", time.Duration(shown)*time.Millisecond)
		out = catalogue.SystemNotifyOut{Level: in.Level, ID: id}
		return err
	})
	return out, err
}

// previewSync can name nothing: what a sync brings is known when it is done.
func previewSync(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (contract.Preview, error) {
	return contract.Preview{Uncounted: true}, r.Session.CheckSync(ctx)
}

func performSync(ctx context.Context, r *tools.Request, _ catalogue.SystemIn) (out catalogue.SystemPerformSyncOut, err error) {
	if err := r.Session.CheckSync(ctx); err != nil {
		return out, err
	}
	err = r.Session.WriteWorkspace(ctx, r.Intent(), contract.SwitchSync, func(ctx context.Context, tx *guard.Tx) error {
		state, err := tx.Sync(ctx)
		out = catalogue.SystemPerformSyncOut{OK: true, Result: state.Said, Synced: max(0, state.Synced.UnixMilli())}
		return err
	})
	return out, err
}
