package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"siyuan-broker/connector/approvals"
	"siyuan-broker/connector/folders"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Config is what an Executor is made of.
type Config struct {
	Guard     *guard.Guard
	Policy    *policy.Policy
	Catalogue *catalogue.Catalogue
	// Tenant and Instance are what this connector was paired as; a grant for
	// another one is refused. "" accepts any: local fronts make their own grants.
	Tenant, Instance string
	ResultChars      int // characters an answer may have where the call does not say; default 24,000
	// Ledger remembers writes. Without one, which is for tests and for commands that
	// end with their only call, a repeated request is executed again.
	Ledger *ledger.Ledger
	// Approvals asks the home owner, where the policy says so. Without it what the
	// owner wants to confirm is refused.
	Approvals *approvals.Folder
	// Folders are the folders of this machine that the home owner opens to agents;
	// nil: none.
	Folders *folders.Folders
	// Books are the restore points; nil where the guard keeps none.
	Books  Books
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default nothing is logged; never receives note text
}

// Executor runs calls. It is safe for concurrent use, keeps no state between
// calls but the hashes it gave out and the ledger, and its Handle is what the
// tunnel and the local fronts call.
type Executor struct {
	cfg      Config
	leases   leases
	handlers map[string]Binding // by action id
}

// New makes an executor of the given handlers. Two handlers for one action are
// an error; actions without one answer unsupported.
func New(cfg Config, bindings ...Binding) (*Executor, error) {
	if cfg.ResultChars == 0 {
		cfg.ResultChars = catalogue.DefaultResultChars
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Executor{cfg: cfg, handlers: map[string]Binding{}}
	for _, b := range bindings {
		if _, twice := e.handlers[b.action.ID()]; twice {
			return nil, fmt.Errorf("two handlers for %s", b.action.ID())
		}
		if b.action.Dangerous && b.look == nil {
			return nil, fmt.Errorf("%s is dangerous and has no preview: nobody could agree to it", b.action.ID())
		}
		e.handlers[b.action.ID()] = b
	}
	return e, nil
}

// Unbound lists the actions of the catalogue that have no handler and should.
func (e *Executor) Unbound() []string {
	var ids []string
	for _, t := range e.cfg.Catalogue.Tools() {
		for _, a := range t.Actions {
			if _, ok := e.handlers[a.ID()]; !ok {
				ids = append(ids, a.ID())
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Handle runs one call to its end. It never panics, and every failure is an
// error of the contract. progress may be nil.
func (e *Executor) Handle(ctx context.Context, call contract.Call, progress func(contract.Progress)) contract.Result {
	if progress == nil {
		progress = func(contract.Progress) {}
	}
	return e.handle(ctx, &running{e: e, call: call, progress: progress})
}

func (e *Executor) handle(ctx context.Context, run *running) contract.Result {
	start, call := e.cfg.Now(), run.call
	ctx, meter := guard.Measure(ctx)
	body, err := run.guarded(ctx)
	result := contract.Result{Body: body}
	if err != nil {
		result = contract.Result{Err: run.public(err)}
	}
	result.Stats = contract.Stats{
		Notebook: run.touched(), KernelCalls: meter.Calls(),
		KernelUS: meter.Elapsed().Microseconds(), TotalUS: e.cfg.Now().Sub(start).Microseconds(),
	}
	e.log(ctx, call, result)
	return result
}

func (e *Executor) log(ctx context.Context, call contract.Call, r contract.Result) {
	attrs := []slog.Attr{
		slog.String("action", call.Tool+"."+call.Action), slog.String("request_id", call.RequestID), slog.String("trace", call.Trace),
		slog.String("notebook", r.Stats.Notebook), slog.Int("kernel_calls", r.Stats.KernelCalls), slog.Int64("us", r.Stats.TotalUS),
	}
	level := slog.LevelInfo
	if r.Err != nil {
		attrs = append(attrs, slog.String("code", string(contract.CodeOf(r.Err))), slog.String("error", r.Err.Error()))
		if r.Err.Type == contract.TypeInternal {
			level = slog.LevelError
		}
	}
	e.cfg.Logger.LogAttrs(ctx, level, "call", attrs...)
}

// running is one call being executed.
type running struct {
	e         *Executor
	call      contract.Call
	progress  func(contract.Progress)
	carried   *carried // of a transfer
	workspace guard.Workspace
	session   *guard.Session
	// effective is the grant under the home policy.
	effective *contract.Grant
	writes    bool
}

func (r *running) touched() string {
	if r.session == nil {
		return ""
	}
	return r.session.Touched()
}

// public is the error as it leaves the home: translated, with the id that leads
// back to the log or to the outcome of a write.
func (r *running) public(err error) *contract.Error {
	e := *guard.Public(err)
	if r.writes || e.Type == contract.TypeInternal {
		e.RequestID = r.call.RequestID
	}
	if e.Type == contract.TypeInternal && e.RequestID == "" {
		e.RequestID = contract.RandomID("err")
	}
	return &e
}

// guarded turns a panic of a handler into an error. The value of the panic may
// be note text, so only its type and the stack are kept.
func (r *running) guarded(ctx context.Context) (body json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.e.cfg.Logger.ErrorContext(ctx, "handler panicked", "action", r.call.Tool+"."+r.call.Action,
				"request_id", r.call.RequestID, "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			body, err = nil, contract.Internalf(fmt.Errorf("panic of type %T", v), "run %s.%s", r.call.Tool, r.call.Action)
		}
	}()
	return r.run(ctx)
}

func (r *running) run(ctx context.Context) (json.RawMessage, error) {
	action, err := r.lookup()
	if err != nil {
		return nil, err
	}
	previews := r.call.Method == contract.MethodPreview
	r.writes = action.Kind.Mutates() && !previews
	if err := r.admit(action); err != nil {
		return nil, err
	}
	binding, ok := r.e.handlers[action.ID()]
	if !ok {
		return nil, contract.Fail(contract.Unsupported, "This connector cannot run %s.", action.ID()).
			WithHint("Ask the owner to update siyuan-connector.")
	}
	settled, invalid := action.Validate(r.call.Args)
	if invalid != nil {
		return nil, invalid
	}
	if r.carried != nil && action.PassageOf(settled) == catalogue.NoPassage {
		return nil, contract.Fail(contract.Unsupported, "%s is no transfer.", action.ID())
	}
	in, err := action.Decode(settled)
	if err != nil {
		return nil, contract.InvalidFields(contract.Field{Message: "the arguments do not have the types of " + action.ID()}).WithCause(err)
	}
	if err := r.open(ctx, action); err != nil {
		return nil, err
	}
	if previews {
		p, err := r.preview(ctx, binding, settled, in)
		if err != nil {
			return nil, err
		}
		return encode(p)
	}
	_, verbose := catalogue.Verbose(settled)
	run := func(entry guard.Entry, s *strict) (json.RawMessage, error) {
		if err := r.ownerAgrees(ctx, binding, settled, in, s); err != nil {
			return nil, err
		}
		req := &Request{Session: r.session, RequestID: r.call.RequestID, Progress: r.progress, Budget: r.budget(), Books: r.e.cfg.Books, disk: r.e.cfg.Folders, action: action.ID(), entry: entry, strict: s}
		r.carried.onto(req, action)
		out, err := binding.run(ctx, req, in)
		if failed := r.workspace.Failed(); failed != nil {
			return nil, failed
		}
		if err != nil || r.carried != nil && action.Passage == catalogue.Downwards {
			return nil, err // what was asked for is sent already
		}
		if action.Kind == catalogue.Read && !verbose {
			out = catalogue.Slim(out)
		}
		return encode(out)
	}
	switch {
	case r.writes:
		return r.write(ctx, action, settled, run)
	case r.call.Replay: // nobody remembers what came of it, and it was agreed to once
		return nil, usedBefore(action)
	}
	return run(nil, nil)
}

// budget is how many characters the answer may have.
func (r *running) budget() int {
	if r.call.ResultChars > 0 {
		return r.call.ResultChars
	}
	return r.e.cfg.ResultChars
}

func (r *running) lookup() (*catalogue.Action, error) {
	method := r.call.Method
	if r.call.Server != "" && r.call.Server != contract.DefaultServer || method != "" && method != contract.MethodCall && method != contract.MethodPreview {
		return nil, contract.Fail(contract.Unsupported, "This connector serves no other tools than SiYuan's.")
	}
	tool, ok := r.e.cfg.Catalogue.Tool(r.call.Tool)
	if !ok {
		return nil, contract.Fail(contract.UnknownTool, "There is no tool %q.", printable(r.call.Tool))
	}
	action, ok := tool.Action(r.call.Action)
	if !ok {
		var valid []string
		for _, a := range tool.Actions {
			valid = append(valid, a.Name)
		}
		return nil, contract.Fail(contract.UnknownAction, "Tool %s has no action %q.", tool.Name, printable(r.call.Action)).
			WithDetail(map[string]any{"valid_actions": valid})
	}
	return action, nil
}

// printable bounds a name from outside that goes into a message.
func printable(name string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return string(bytes.ToValidUTF8([]byte(name), []byte("?")))
}

// admit checks the grant and the home policy, as far as they do not depend on a
// notebook.
func (r *running) admit(a *catalogue.Action) error {
	g := r.call.Grant
	switch {
	case g == nil || g.V != contract.GrantVersion:
		return contract.Fail(contract.PermissionDenied, "The call came without a grant this connector understands.").
			WithHint("Ask the owner to update siyuan-connector.")
	case r.e.cfg.Tenant != "" && g.Tenant != r.e.cfg.Tenant, r.e.cfg.Instance != "" && g.Instance != r.e.cfg.Instance:
		return contract.Fail(contract.PermissionDenied, "The grant is for another home.").WithHint("Connect again.")
	case g.Expired(r.e.cfg.Now()):
		return contract.Fail(contract.PermissionDenied, "The grant has expired.").WithHint("Send the call again.")
	}
	if _, err := r.e.cfg.Policy.Refresh(); err != nil {
		r.e.cfg.Logger.Error("home policy not taken over", "error", err.Error())
	}
	if r.e.cfg.Policy.Vetoes(a.Tool, a.Name) {
		return contract.Fail(contract.ActionDisabled, "The home owner's policy does not allow %s.", a.ID()).
			WithHint("Only the home owner can change that, in the connector's policy file.")
	}
	if a.Scope != catalogue.ScopeWorkspace {
		return nil
	}
	if !g.Has(a.Switch) {
		return contract.Fail(contract.PermissionDenied, "%s needs the workspace permission %q.", a.ID(), string(a.Switch)).
			WithHint("Only the agent of a tenant owner or admin can hold it, and only where it is switched on in the console.")
	}
	if max := r.e.cfg.Policy.MaxLevel(); !max.Allows(a.Level) {
		return contract.Fail(contract.PermissionDenied, "%s needs level %s in the home policy, which allows %s.", a.ID(), a.Level, max).
			WithHint("Only the home owner can change that: max_level in the connector's policy file.")
	}
	return nil
}

// open makes the session of the call: the grant, capped by the home policy. A
// read may begin without a list of notebooks, because it can still fail with all
// it found when there turns out to be none.
func (r *running) open(ctx context.Context, action *catalogue.Action) error {
	var err error
	if r.workspace = r.e.cfg.Guard.WorkspaceOnDemand(ctx); action.Kind.Mutates() {
		r.workspace, err = r.e.cfg.Guard.Workspace(ctx)
	}
	if err != nil {
		return err
	}
	if r.effective, err = r.e.cfg.Policy.Restrict(r.call.Grant, r.workspace.Infos); err != nil {
		return err
	}
	r.session = r.e.cfg.Guard.Session(r.workspace, r.effective).InConversation(r.call.Conversation)
	return nil
}

func encode(out any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, contract.Internalf(err, "encode result")
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
