package tools

import (
	"context"

	catalogue "siyuan-broker/contract/tools"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
)

// Request is what a handler has besides its arguments.
type Request struct {
	Session   *guard.Session
	RequestID string                    // the at-most-once key of a write
	Progress  func(p contract.Progress) // never nil
	Budget    int                       // characters a list may have; single texts are whole

	action string
}

// Intent is the write the request is about to do to the given targets.
func (r *Request) Intent(targets ...guard.Target) guard.Intent {
	return guard.Intent{RequestID: r.RequestID, Action: r.action, Targets: targets}
}

// Binding is an action with its handler.
type Binding struct {
	action *catalogue.Action
	run    func(ctx context.Context, r *Request, in any) (any, error)
}

// Bind ties a handler to an action of the catalogue; the types must agree.
// Errors a handler returns are contract errors, or the guard's, which the
// executor translates.
func Bind[In, Out any](d catalogue.Def[In, Out], handle func(ctx context.Context, r *Request, in In) (Out, error)) Binding {
	return Binding{action: d.Action, run: func(ctx context.Context, r *Request, in any) (any, error) {
		return handle(ctx, r, in.(In)) // the action's own Decode made it
	}}
}
