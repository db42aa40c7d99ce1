package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/here"
	"siyuan-broker/broker/recorder"
	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// answerUnlisted answers calls of tools that exist but are not listed to the
// caller: the SDK would call them unknown, and the caller could not learn why
// they went away.
func (s *Server) answerUnlisted(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		who := requestOf(call.Extra)
		if who == nil {
			return next(ctx, method, req)
		}
		tool, known := who.Snapshot.Catalogue().Tool(call.Params.Name)
		if !known || offered(tool, who.Snapshot) {
			return next(ctx, method, req)
		}
		return s.handleCall(ctx, call)
	}
}

// bound ends a call, with the questions it asks a person, after QuestionTimeout
// or when the caller's access or session ends: neither a client that is gone
// nor one that never answers would end it otherwise.
func (s *Server) bound(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		who := requestOf(call.Extra)
		if who == nil {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithTimeout(ctx, s.cfg.QuestionTimeout)
		defer cancel()
		ctx, running := s.live.track(ctx, who.Claims)
		defer running.end()
		running.on(who.Snapshot.Principal.Instance)
		running.in(who.session)
		return next(ctx, method, req)
	}
}

func offered(tool *tools.Tool, snap *admission.Snapshot) bool {
	for _, a := range tool.Actions {
		if !a.ByName && snap.Enabled(a) {
			return true
		}
	}
	return false
}

// handleCall is the SDK's way into Invoke.
func (s *Server) handleCall(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	who := requestOf(req.Extra)
	if who == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call has no principal"}
	}
	var progress func(contract.Progress)
	if token := req.Params.GetProgressToken(); token != nil {
		progress = func(p contract.Progress) {
			// A progress that cannot be delivered is lost; the call goes on.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: p.Done, Total: p.Total, Message: p.Message})
		}
	}
	c := &invocation{who: who, tool: req.Params.Name, talk: dialogueOf(req)}
	body, failed := s.invoke(ctx, c, req.Params.Arguments, progress)
	switch {
	case c.fault != nil:
		return nil, c.fault
	case c.question != nil:
		return c.question.result(), nil
	}
	content := []mcp.Content{&mcp.TextContent{Text: string(body)}}
	if c.image != nil && !failed {
		content = append(content, c.image)
	}
	return &mcp.CallToolResult{IsError: failed, Content: content}, nil
}

// Invoke runs one tool call of an authenticated request from its raw arguments
// to the compact JSON of its answer; failed says that this is an error body. It
// ends when ctx does or when the principal is revoked; the home has CallTimeout to
// answer. What happened is recorded.
func (s *Server) Invoke(ctx context.Context, who *Request, tool string, arguments json.RawMessage, progress func(contract.Progress)) (body json.RawMessage, failed bool) {
	return s.invoke(ctx, &invocation{who: who, tool: tool}, arguments, progress)
}

func (s *Server) invoke(ctx context.Context, c *invocation, arguments json.RawMessage, progress func(contract.Progress)) (body json.RawMessage, failed bool) {
	c.bytesIn = len(arguments)
	who := c.who
	ctx, running := s.live.track(ctx, who.Claims)
	defer running.end()
	running.on(who.Snapshot.Principal.Instance)

	body, err := s.run(ctx, c, arguments, progress)
	if err != nil {
		if c.requestID != "" {
			err.RequestID = c.requestID // whatever a home says: a retry must name this one
		}
		body = err.Body()
	}
	if c.question == nil { // else it has not ended
		s.record(ctx, c, len(body), err)
	}
	return body, err != nil
}

// invocation collects what is to be recorded of one call.
type invocation struct {
	who       *Request
	tool      string
	action    string // settled, where it exists
	requestID string
	first     bool // requestID was made for this call
	bytesIn   int
	admitted  time.Time     // zero: refused before
	relayed   time.Duration // from the relay's start to its answer
	stats     contract.Stats

	args     json.RawMessage // settled
	safety   contract.Safety
	talk     dialogue
	question *asked            // the client has to ask its person first
	fault    *jsonrpc.Error    // the answer is an error of the protocol
	agreed   *consent.Question // a person agreed to this, and that is used up now
	replay   bool              // what came of the call before is asked for
	waited   time.Duration     // for a person
	image    *mcp.ImageContent // stands beside the answer
}

// run decides, checks and relays one call.
func (s *Server) run(ctx context.Context, c *invocation, arguments json.RawMessage, progress func(contract.Progress)) (json.RawMessage, *contract.Error) {
	e, err := open(arguments)
	if err != nil {
		return nil, err
	}
	if c.requestID, c.first, err = requestID(e.requestID, c.who); err != nil {
		return nil, err
	}
	snap := c.who.Snapshot
	tool, ok := snap.Catalogue().Tool(c.tool)
	if !ok {
		return nil, admission.Decide(snap, c.tool, e.action).Error()
	}
	if tools.ActionName(e.action) == disclosure.HelpAction {
		c.action = disclosure.HelpAction
		return help(tool, e.topic, snap)
	}
	action, err := admit(tool, e.action, snap)
	if err != nil {
		return nil, err
	}
	c.action = action.Name
	if err := s.count(ctx, snap, tool.Name); err != nil {
		return nil, err
	}
	var rest json.RawMessage
	if c.safety, rest, err = safetyOf(action, snap.Settings.StrictWrites, e.rest); err != nil {
		return nil, err
	}
	args, err := action.Validate(rest)
	if err != nil {
		return nil, err
	}
	action, args = action.Stand(args)
	if body, err, mine := s.answerHere(ctx, c, action, args); mine {
		return body, err
	}
	// From here on a person may take their time.
	c.args = args
	if !c.safety.ValidateOnly { // else nothing is done
		if e.requestID != "" && action.Kind.Mutates() {
			if err := s.notAhead(ctx, c.requestID); err != nil {
				return nil, err
			}
		}
		if action.PassageOf(args) == tools.Upwards {
			return s.sendOff(ctx, c, action, e, progress)
		}
		if err := s.agree(ctx, c, action, e, args, progress); err != nil || c.question != nil {
			return nil, err
		}
	}
	if owned(action) {
		return s.own(c, action)
	}
	return s.relay(ctx, c, action, progress)
}

// owned reports whether the broker carries an action out itself once a person has
// agreed. What else is answered here was answered before anybody is asked.
func owned(a *tools.Action) bool { return a.AtBroker && a.Dangerous }

// own answers a call of an action that the broker carries out itself. It was
// carried out when the agreement was used up, now or before, and not otherwise.
func (s *Server) own(c *invocation, action *tools.Action) (json.RawMessage, *contract.Error) {
	switch {
	case s.cfg.Own == nil:
		return nil, contract.Fail(contract.Unsupported, "This service does not carry out %s.", action.ID())
	case c.safety.Asked():
		return nil, contract.Fail(contract.Unsupported, "%s cannot be validated: a person sees what it would do, and agrees to that.", action.ID()).
			WithHint("Send the call without validateOnly and without a hash.")
	case c.agreed == nil && !c.replay:
		return nil, contract.Internalf(errNotCarried, "carry out %s", action.ID())
	}
	body, err := s.cfg.Own.Answer(c.who.Snapshot, c.args)
	if err != nil {
		return nil, err
	}
	return withRequestID(body, c.requestID), nil
}

var errNotCarried = errors.New("nobody agreed")

// relay carries an admitted call home.
func (s *Server) relay(ctx context.Context, c *invocation, action *tools.Action, progress func(contract.Progress)) (json.RawMessage, *contract.Error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	snap := c.who.Snapshot
	c.admitted = s.cfg.Now()
	p := snap.Principal
	result := s.cfg.Relay.Call(ctx, p.Tenant.String(), p.Instance.String(), contract.Call{
		Server: contract.DefaultServer, Method: contract.MethodCall, Tool: action.Tool, Action: action.Name,
		RequestID: c.requestID, First: c.first, Replay: c.replay, Grant: snap.Grant(c.admitted), Safety: c.safety, Conversation: conversation(c.who, action.Kind), ResultChars: snap.Limits.ResultChars, Args: c.args,
	}, !action.Kind.Mutates() && !action.Asks(c.args) || c.safety.ValidateOnly, progress)
	c.relayed, c.stats = s.cfg.Now().Sub(c.admitted), result.Stats
	switch {
	case result.Err != nil:
		s.keepAgreement(ctx, c, result.Err)
		return nil, result.Err
	case action.Kind.Mutates():
		return withRequestID(result.Body, c.requestID), nil
	case snap.Limits.ResultBytes > 0 && int64(len(result.Body)) > snap.Limits.ResultBytes:
		return nil, contract.Fail(contract.TooLarge, "The result has %d bytes; this tenant allows %d.", len(result.Body), snap.Limits.ResultBytes)
	}
	if action.PassageOf(c.args) == tools.Downwards {
		return s.fetch(ctx, c, action, result.Body)
	}
	if action.Image {
		var err *contract.Error
		if result.Body, c.image, err = apart(action, result.Body); err != nil {
			return nil, err
		}
	}
	return s.complete(action, c.args, result.Body)
}

// apart takes an image out of an answer, which then tells of it.
func apart(a *tools.Action, body json.RawMessage) (json.RawMessage, *mcp.ImageContent, *contract.Error) {
	var all map[string]json.RawMessage
	var image struct {
		Data     []byte `json:"data"`
		MimeType string `json:"mimeType"`
	}
	err := errors.Join(json.Unmarshal(body, &all), json.Unmarshal(body, &image))
	if err == nil && !slices.Contains(shownImages, image.MimeType) {
		err = errNoImage
	}
	if err == nil {
		delete(all, "data")
		body, err = json.Marshal(all)
	}
	if err != nil {
		return nil, nil, contract.Internalf(err, "read the image of %s", a.ID())
	}
	return body, &mcp.ImageContent{Data: image.Data, MIMEType: image.MimeType}, nil
}

var (
	shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"} // what clients show, and runs nothing
	errNoImage  = errors.New("no image of a known kind")
)

// answerHere answers a call that is not for the home.
func (s *Server) answerHere(ctx context.Context, c *invocation, action *tools.Action, args json.RawMessage) (json.RawMessage, *contract.Error, bool) {
	if s.cfg.Here == nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	body, err, mine := s.cfg.Here.Answer(ctx, here.Call{Snapshot: c.who.Snapshot, Action: action, Args: args, RequestID: c.requestID, Safety: c.safety})
	if mine && err == nil && action.Kind.Mutates() {
		body = withRequestID(body, c.requestID)
	}
	return body, err, mine
}

// complete adds to the home's answer what is kept here.
func (s *Server) complete(action *tools.Action, args, body json.RawMessage) (json.RawMessage, *contract.Error) {
	if s.cfg.Here == nil {
		return body, nil
	}
	return s.cfg.Here.Complete(action, args, body)
}

// count takes the call from the limits of its agent, tool and tenant.
func (s *Server) count(ctx context.Context, snap *admission.Snapshot, tool string) *contract.Error {
	if s.cfg.Limit == nil {
		return nil
	}
	p := snap.Principal
	what, after := s.cfg.Limit(ctx, p.Tenant.String(), p.Agent.String(), tool, snap.Limits.CallsPerMinute)
	if what == "" {
		return nil
	}
	return contract.Fail(contract.RateLimited, "The calls of %s for this minute are used up.", what).After(int(math.Ceil(after.Seconds())))
}

// admit finds the action that is meant and decides about it.
func admit(tool *tools.Tool, name string, snap *admission.Snapshot) (*tools.Action, *contract.Error) {
	action, ok := tool.Resolve(name)
	if !ok {
		err := admission.Decide(snap, tool.Name, name).Error()
		if name == "" {
			err = contract.InvalidFields(contract.Field{Path: disclosure.ActionParam, Message: "is required"})
		}
		return nil, err.WithDetail(map[string]any{"valid_actions": validActions(tool, snap)})
	}
	if d := admission.Decide(snap, tool.Name, action.Name); !d.Allowed() {
		return nil, d.Error()
	}
	return action, nil
}

func validActions(tool *tools.Tool, snap *admission.Snapshot) []string {
	names := []string{}
	for _, a := range tool.Actions {
		if !a.ByName && snap.Enabled(a) {
			names = append(names, a.Name)
		}
	}
	if len(names) > 0 {
		names = append(names, disclosure.HelpAction)
	}
	return names
}

// help never leaves the broker. A tool that is not listed has none.
func help(tool *tools.Tool, topic string, snap *admission.Snapshot) (json.RawMessage, *contract.Error) {
	if !offered(tool, snap) {
		return nil, contract.Fail(contract.ActionDisabled, "No action of %s may be used by this agent.", tool.Name)
	}
	answer, err := disclosure.Help(tool, topic, snap.Enabled, snap.Strict())
	if err != nil {
		return nil, err
	}
	body, cause := json.Marshal(answer)
	if cause != nil {
		return nil, contract.Internalf(cause, "encode help on %s", tool.Name)
	}
	return body, nil
}

// record hands the call to the recorder and the log: ids, durations and sizes,
// never contents.
func (s *Server) record(ctx context.Context, c *invocation, bytesOut int, err *contract.Error) {
	p := c.who.Snapshot.Principal
	rec := tenants.Call{
		TenantID: p.Tenant, ID: tenants.NewID(), InstanceID: p.Instance, MemberID: p.Member, AgentID: p.Agent,
		Tool: c.tool, Action: c.action, RequestID: c.requestID, BytesIn: int64(c.bytesIn), BytesOut: int64(bytesOut),
	}
	if _, known := s.cfg.Catalogue.Tool(c.tool); !known {
		rec.Tool = "" // the caller's own words
	}
	course := recorder.Course{Arrived: c.who.Arrived, Admitted: c.admitted, Waited: c.waited, Relayed: c.relayed, Stats: c.stats, Err: err}
	code := course.Enter(&rec, c.who.Snapshot.Connector, s.cfg.Now())
	s.cfg.Recorder.Record(rec)
	if err == nil && !s.cfg.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("tenant", p.Tenant.String()), slog.String("agent", p.Agent.String()), slog.String("tool", rec.Tool),
		slog.String("action", rec.Action), slog.String("request_id", c.requestID), slog.Duration("took", rec.Legs.Total),
	}
	switch {
	case err == nil:
		s.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "call", attrs...)
	case err.Type == contract.TypeInternal:
		s.cfg.Log.LogAttrs(ctx, slog.LevelError, "call failed", append(attrs, slog.Any("error", err))...)
	default:
		s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "call refused or failed", append(attrs, slog.String("code", string(code)))...)
	}
}
