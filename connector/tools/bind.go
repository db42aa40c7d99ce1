package tools

import (
	"context"
	"io"

	catalogue "siyuan-broker/contract/tools"

	"siyuan-broker/connector/folders"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/restore"
	"siyuan-broker/contract"
)

// Request is what a handler has besides its arguments.
type Request struct {
	Session   *guard.Session
	RequestID string                    // the at-most-once key of a write
	Progress  func(p contract.Progress) // never nil
	Budget    int                       // characters an answer may have; one entry or block alone is whole
	Books     Books                     // nil where no restore points are kept
	// Body is what a transfer brings, Size bytes if that is known; nil in a plain
	// call. Out is where a transfer's answer of any length goes; the handler's own
	// answer is not sent then.
	Body io.Reader
	Size int64
	Out  contract.BodyWriter

	disk   *folders.Folders
	action string
	entry  guard.Entry
	strict *strict
}

// Books are the restore points as an undo reads them, and where it marks what it
// took back.
type Books interface {
	Points(c restore.Choice) ([]guard.Point, error)
	Sittings(scope string) ([]restore.Sitting, error)
	Undone(ids ...int64) error
}

var _ Books = (*restore.Store)(nil)

// Disk are the folders of this machine that the home owner opens to agents. They
// are of the home, and not of a notebook that is shared with others, so the caller
// needs the assets switch.
func (r *Request) Disk() (*folders.Folders, error) {
	if !r.Session.Holds(contract.SwitchAssets) {
		return nil, contract.Fail(contract.PermissionDenied, "Folders of the machine of the notes need the workspace permission %q.", string(contract.SwitchAssets)).
			WithHint("Only the agent of a tenant owner or admin can hold it, and only where it is switched on in the console. One-time URLs need no such permission.")
	}
	return r.disk, nil
}

// Intent is the write the request is about to do to the given targets.
func (r *Request) Intent(targets ...guard.Target) guard.Intent {
	return guard.Intent{RequestID: r.RequestID, Action: r.action, Targets: targets, Entry: r.entry, Watch: r.watch()}
}

// Binding is an action with its handler.
type Binding struct {
	action *catalogue.Action
	run    func(ctx context.Context, r *Request, in any) (any, error)
	look   func(ctx context.Context, r *Request, in any) (contract.Preview, error) // nil: only what is named is told
}

// Bind ties a handler to an action of the catalogue; the types must agree.
// Errors a handler returns are contract errors, or the guard's, which the
// executor translates.
func Bind[In, Out any](d catalogue.Def[In, Out], handle func(ctx context.Context, r *Request, in In) (Out, error)) Binding {
	return Binding{action: d.Action, run: func(ctx context.Context, r *Request, in any) (any, error) {
		return handle(ctx, r, in.(In)) // the action's own Decode made it
	}}
}

// BindDangerous is Bind for an action that a person has to agree to. preview says
// what it would do; it proves the same levels as handle and only reads. An
// executor takes a dangerous action in no other way.
func BindDangerous[In, Out any](d catalogue.Def[In, Out], preview func(ctx context.Context, r *Request, in In) (contract.Preview, error), handle func(ctx context.Context, r *Request, in In) (Out, error)) Binding {
	b := Bind(d, handle)
	b.look = func(ctx context.Context, r *Request, in any) (contract.Preview, error) {
		return preview(ctx, r, in.(In)) // the action's own Decode made it
	}
	return b
}
