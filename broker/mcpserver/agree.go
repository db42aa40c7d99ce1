package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/consent"
	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// confirmKey names the one question of a call.
const confirmKey = "confirm"

// ApprovalsPath is the console's page of calls that wait.
const ApprovalsPath = "/console/approvals"

// Waiting for a person in the console, where the client follows the progress.
const (
	tellWaiting = 10 * time.Second // between signs of life
	waitMost    = 90 * time.Second // then the agent is told to come back
)

var confirmSchema = json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean","title":"Do this"}},"required":["confirm"]}`)

// dialogue is what a client can be asked, and what it answered.
type dialogue struct {
	forms  bool // it shows forms to a person
	state  string
	answer *mcp.ElicitResult // to the question of the state; nil: none
}

func dialogueOf(req *mcp.CallToolRequest) dialogue {
	d := dialogue{state: req.Params.RequestState}
	d.answer, _ = req.Params.InputResponses[confirmKey].(*mcp.ElicitResult)
	if caps := req.ClientCapabilities(); caps != nil && caps.Elicitation != nil {
		e := caps.Elicitation
		d.forms = e.Form != nil || e.URL == nil
	}
	return d
}

// asked is a question to the person in front of the client.
type asked struct{ message, state string }

func (a *asked) result() *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{confirmKey: &mcp.ElicitParams{Mode: "form", Message: a.message, RequestedSchema: confirmSchema}},
		RequestState:  a.state,
	}
}

// agree lets a call through once a person has agreed to it, or nobody has to. A
// nil error with a question set means that the client is asked first.
func (s *Server) agree(ctx context.Context, c *invocation, a *tools.Action, e envelope, args json.RawMessage, progress func(contract.Progress)) *contract.Error {
	mode := tenants.ConsentAllow
	if a.By().Asks(args) {
		mode = c.who.Snapshot.Consent(a)
	}
	above := a.Kind.Mutates() && s.aboveBudget(ctx, c)
	if mode == tenants.ConsentAllow && !above && c.talk.answer == nil {
		return nil
	}
	q, err := question(c, a, args)
	if err != nil {
		return err
	}
	if owned(a) {
		if s.cfg.Own == nil {
			return nil // refused where it would be answered
		}
		q.Carry = s.cfg.Own.Carry(c.who.Snapshot, args)
		c.talk.answer = nil // only the console counts: there it is carried out
	}
	if s.cfg.Consent == nil {
		return contract.Fail(contract.ConfirmationRequired, "A person has to agree to %s, and there is nobody who could be asked.", a.ID())
	}
	if c.talk.answer != nil {
		return s.answered(ctx, c, q)
	}
	if e.confirmation != "" {
		if mode != tenants.ConsentPreview {
			return contract.Fail(contract.ConfirmationInvalid, "A confirmationToken is not enough for %s here: a person has to agree.", a.ID())
		}
		return s.spend(ctx, c, consent.Preview, e.confirmation, q)
	}
	if mode == tenants.ConsentAllow { // asked only because there were so many
		mode = tenants.ConsentAsk
	}
	return s.ask(ctx, c, a, q, mode, progress)
}

func question(c *invocation, a *tools.Action, args json.RawMessage) (consent.Question, *contract.Error) {
	p := c.who.Snapshot.Principal
	q := consent.Question{
		Tenant: p.Tenant, Member: p.Member, Agent: p.Agent, Instance: p.Instance, Tool: a.Tool, Action: a.Name, RulesVersion: c.who.Snapshot.RulesVersion,
	}
	var err error
	if q.Arguments, err = consent.Digest(args); err == nil {
		q.RequestID, err = uuid.Parse(c.requestID)
	}
	if err != nil {
		return q, contract.Internalf(err, "ask about %s", a.ID())
	}
	return q, nil
}

// aboveBudget counts a write and reports whether the agent has done so many that
// somebody should look. A call that was counted on its way is not counted again.
func (s *Server) aboveBudget(ctx context.Context, c *invocation) bool {
	if s.cfg.Budget == nil {
		return false
	}
	if c.talk.answer != nil {
		return true // it was asked about; the answer decides
	}
	switch c.who.budget {
	case budgetLeft:
		return false
	case budgetSpent:
		return true
	}
	p := c.who.Snapshot.Principal
	return !s.cfg.Budget(ctx, p.Tenant.String(), p.Agent.String(), c.who.Snapshot.Limits)
}

// answered is the second half of a question: what the person entered into the
// form. A state that is not good for this call is a protocol error.
func (s *Server) answered(ctx context.Context, c *invocation, q consent.Question) *contract.Error {
	switch er := c.talk.answer; {
	case er.Action == "accept" && er.Content[confirmKey] == true:
		return s.spend(ctx, c, consent.Form, c.talk.state, q)
	case er.Action == "cancel":
		if err := s.open(c, q); err != nil {
			return err
		}
		return contract.Fail(contract.ConfirmationDeclined, "The question about %s.%s was closed without an answer; nothing was done.", q.Tool, q.Action)
	}
	if err := s.open(c, q); err != nil {
		return err
	}
	return contract.Fail(contract.ConfirmationDeclined, "The person declined %s.%s; nothing was done.", q.Tool, q.Action)
}

// open checks a form's state without using it up.
func (s *Server) open(c *invocation, q consent.Question) *contract.Error {
	_, err := s.cfg.Consent.Open(consent.Form, c.talk.state, q)
	return c.unfit(consent.Form, err)
}

// spend uses a confirmation up, before the call is forwarded. The call goes on
// under the request id that was asked about.
func (s *Server) spend(ctx context.Context, c *invocation, kind consent.Kind, sealed string, q consent.Question) *contract.Error {
	confirmed, err := s.cfg.Consent.Open(kind, sealed, q)
	if err == nil {
		err = s.cfg.Consent.Spend(ctx, q, confirmed)
	}
	if err != nil {
		return c.unfit(kind, err)
	}
	c.requestID, c.first = confirmed.RequestID.String(), false
	q.RequestID = confirmed.RequestID
	c.agreed = &q
	return nil
}

// unfit says what is wrong with a confirmation.
func (c *invocation) unfit(kind consent.Kind, err error) *contract.Error {
	if err == nil {
		return nil
	}
	if told, ok := errors.AsType[*contract.Error](err); ok {
		return told
	}
	for _, known := range []error{consent.ErrForged, consent.ErrCaller, consent.ErrAction, consent.ErrArguments, consent.ErrRules, consent.ErrExpired, consent.ErrUsed, consent.ErrEnded} {
		if !errors.Is(err, known) {
			continue
		}
		if kind == consent.Form {
			c.fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState: " + known.Error()}
		}
		return contract.Fail(contract.ConfirmationInvalid, "The confirmation is not good for this call: %s. Nothing was done.", known.Error())
	}
	return contract.Fail(contract.Offline, "Whether a person agreed cannot be looked up right now; nothing was done.").WithCause(err).After(2)
}

// ask finds out how the call stands, and puts the question where the policy says.
func (s *Server) ask(ctx context.Context, c *invocation, a *tools.Action, q consent.Question, mode tenants.ConsentMode, progress func(contract.Progress)) *contract.Error {
	standing, given, err := s.cfg.Consent.Claim(ctx, q)
	if err != nil {
		return c.unfit("", err)
	}
	before := ""
	switch standing {
	case consent.Granted:
		c.agreed = &q
		return nil
	case consent.Used:
		c.replay = true // the home tells what came of it, and does nothing
		return nil
	case consent.Declined:
		return contract.Fail(contract.ConfirmationDeclined, "A person declined %s; nothing was done.", a.ID())
	case consent.Other:
		return contract.Fail(contract.ConfirmationInvalid, "A person was asked about this request id with other arguments; nothing was done.")
	case consent.Ended:
		return c.unfit("", consent.ErrEnded)
	case consent.Waiting:
		return s.wait(ctx, c, a, q, given, progress, "")
	case consent.Lapsed:
		before = "The earlier question has expired. "
	case consent.Stale:
		before = "The rules of the tenant have changed since the earlier question. "
	}
	shown, failed := s.preview(ctx, c, a, q)
	if failed != nil {
		return failed
	}
	switch {
	case mode == tenants.ConsentPreview:
		return s.twoSteps(c, a, q, shown)
	case mode == tenants.ConsentAsk && c.talk.forms:
		sealed, err := s.cfg.Consent.Seal(consent.Form, q)
		if err != nil {
			return contract.Internalf(err, "ask about %s", a.ID())
		}
		c.question = &asked{message: questionText(c, a, shown), state: sealed}
		return nil
	}
	given, err = s.cfg.Consent.Ask(ctx, q, shown, consent.Life(c.who.Snapshot.Limits))
	switch {
	case errors.Is(err, tenants.ErrTooMany):
		return contract.Fail(contract.RateLimited, "Too many calls wait for a person already; nothing was done.").
			WithHint("Ask the person to answer those at %s first.", s.approvalsURL()).After(60)
	case err != nil:
		return c.unfit("", err)
	}
	return s.wait(ctx, c, a, q, given, progress, before)
}

// preview asks the home what the call would do. Everything in it is the home's
// word, and cleaned.
func (s *Server) preview(ctx context.Context, c *invocation, a *tools.Action, q consent.Question) (p contract.Preview, failed *contract.Error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if owned(a) {
		p, failed = s.cfg.Own.Preview(ctx, c.who.Snapshot, c.args)
		return p.Clean(), failed
	}
	r := s.cfg.Relay.Call(ctx, q.Tenant.String(), q.Instance.String(), contract.Call{
		Server: contract.DefaultServer, Method: contract.MethodPreview, Tool: a.Tool, Action: a.Name,
		RequestID: c.requestID, Grant: c.who.Snapshot.Grant(s.cfg.Now()), Args: c.args,
	}, true, nil)
	if r.Err != nil {
		return p, r.Err
	}
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return p, contract.Internalf(err, "read the preview of %s", a.ID())
	}
	return p.Clean(), nil
}

// twoSteps answers with a token that the agent itself may send back.
func (s *Server) twoSteps(c *invocation, a *tools.Action, q consent.Question, p contract.Preview) *contract.Error {
	sealed, err := s.cfg.Consent.Seal(consent.Preview, q)
	if err != nil {
		return contract.Internalf(err, "ask about %s", a.ID())
	}
	return contract.Fail(contract.ConfirmationRequired, "Nothing was done yet. Look at what %s would do.", a.ID()).
		WithHint("If this is what the person you work for wants, send the same call again with %s from detail, within %d minutes.", disclosure.ConfirmParam, int(consent.StateLife.Minutes())).
		WithDetail(map[string]any{"preview": p.Lines(), disclosure.ConfirmParam: sealed})
}

// wait is the answer while a person in the console has not answered. Where the
// client follows the progress the call waits for a while.
func (s *Server) wait(ctx context.Context, c *invocation, a *tools.Action, q consent.Question, given tenants.Approval, progress func(contract.Progress), before string) *contract.Error {
	link := s.approvalsURL() + "/" + q.Tenant.String() + "/" + given.ID.String()
	began := s.cfg.Now()
	defer func() { c.waited = s.cfg.Now().Sub(began) }()
	watch, ok := s.cfg.Consent.Watch(q.Tenant, given.ID)
	if ok {
		defer watch.End()
	}
	for ok && progress != nil { // looking first: it may have been decided before the watch
		standing, _, err := s.cfg.Consent.Claim(ctx, q)
		switch {
		case err != nil:
			return c.unfit("", err)
		case standing == consent.Granted:
			c.agreed = &q
			return nil
		case standing == consent.Declined:
			return contract.Fail(contract.ConfirmationDeclined, "A person declined %s; nothing was done.", a.ID())
		case standing == consent.Ended:
			return c.unfit("", consent.ErrEnded)
		}
		left := min(waitMost-s.cfg.Now().Sub(began), given.ExpiresAt.Sub(s.cfg.Now()))
		if standing != consent.Waiting || left <= 0 || ctx.Err() != nil {
			break
		}
		progress(contract.Progress{Done: s.cfg.Now().Sub(began).Seconds(), Message: "Waiting for a person to approve this at " + link})
		watch.Wait(ctx, min(left, tellWaiting))
	}
	detail := map[string]any{"link": link, "expires_at": given.ExpiresAt.UTC().Format(time.RFC3339)}
	return contract.Fail(contract.ConfirmationRequired, "%sA person has to approve %s first; nothing was done.", before, a.ID()).
		WithHint("Show the person this link: %s. Once they have approved it, send the same call again with requestId %s.", link, c.requestID).
		WithDetail(detail)
}

func (s *Server) approvalsURL() string {
	return strings.TrimRight(s.cfg.PublicURLs[0], "/") + ApprovalsPath
}

// questionText is what stands above the form.
func questionText(c *invocation, a *tools.Action, p contract.Preview) string {
	name := contract.PlainText(c.who.Snapshot.Principal.AgentName, contract.PreviewRunes)
	lines := append([]string{fmt.Sprintf("The agent “%s” wants to run %s: %s", strings.NewReplacer("“", "'", "”", "'").Replace(name), a.ID(), a.Summary)}, p.Lines()...)
	return strings.Join(lines, "\n")
}

// keepAgreement keeps what a person agreed to when the home did nothing because it
// asks its owner too.
func (s *Server) keepAgreement(ctx context.Context, c *invocation, err *contract.Error) {
	if c.agreed == nil || contract.CodeOf(err) != contract.ConfirmationRequired {
		return
	}
	if err := s.cfg.Consent.Keep(context.WithoutCancel(ctx), *c.agreed, consent.Life(c.who.Snapshot.Limits)); err != nil {
		s.cfg.Log.WarnContext(ctx, "a person will be asked again", "error", err)
	}
}
