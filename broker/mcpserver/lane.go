package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The hot lane answers plain tools/call requests without the SDK, which decodes
// a message about ten times. It only parses and assembles: who calls is known
// before (authenticate), what happens is decided and done by Invoke, as in the
// SDK's lane. Whoever deletes this file and its line in dispatch loses speed and
// nothing else; lane_test.go holds both lanes to the same answers.
//
// A request takes the lane if all of this is so. Anything else goes to the SDK,
// however sensible it is: that includes every malformed request, so that there
// is one place that refuses them.
//
//   - The body is one JSON object with jsonrpc "2.0", method "tools/call", an id
//     and params, each once, and nothing else. So no batch and no notification.
//   - The id is a whole number of at most 15 digits or a short string of
//     printable ASCII without escapes: it is answered as it was written.
//   - params is an object with the name of a tool that the caller is offered,
//     arguments or not, _meta or not, each once, and nothing else. So no answer to a question
//     (inputResponses, requestState).
//   - In the era without sessions, Mcp-Protocol-Version is 2026-07-28, Mcp-Method
//     and Mcp-Name say what the body says, in plain text, and _meta has the
//     version, capabilities and perhaps the client's name, all well formed, and
//     nothing else. So no progress token.
//   - In those with sessions, the Mcp-Session-Id is in force and the caller's, and
//     there is no _meta.
//   - Accept names both types, and there is no Last-Event-ID.
//   - No action is called that a person may have to agree to: a dangerous one, or
//     a write above the agent's budget.
//   - Nothing is nested deeper than scanDepth, and no number has an exponent or
//     more than longNumber bytes: the SDK refuses what no float64 can hold.
//
// The lanes may be told apart by this alone: an answer of the hot lane has a
// Content-Length where one of the SDK's is chunked; and an id that is still in
// flight in the hot lane is refused there, but not to a call of the SDK's lane.

// Bounds of what the lane takes.
const (
	hotDigits = 15 // exact in a float64, which is how the SDK reads ids
	hotID     = 128
	hotMeta   = 2048
)

// hotCall is a tools/call, as slices of the request's body.
type hotCall struct {
	id, name, arguments, meta []byte
	text                      bool // the id is a string
}

// serveHot answers a request that may take the lane. Otherwise it reports false
// and has written nothing.
func (s *Server) serveHot(w http.ResponseWriter, r *http.Request, who *Request) bool {
	version := r.Header.Get("Mcp-Protocol-Version")
	if len(r.Header["Last-Event-Id"]) > 0 || !acceptsBoth(r.Header) {
		return false
	}
	c, ok := readHot(who.body)
	if !ok || !s.answersItself(r.Context(), &c, who) {
		return false
	}
	switch {
	case version == modernEra:
		return s.serveHotModern(w, r, who, &c)
	case c.meta == nil && r.Header.Get("Mcp-Session-Id") != "" && (version == "" || slices.Contains(legacyEras, version)):
		return s.serveHotLegacy(w, r, who, &c)
	}
	return false
}

func acceptsBoth(h http.Header) bool {
	if all := h["Accept"]; len(all) == 1 && all[0] == "application/json, text/event-stream" { // as most clients write it
		return true
	}
	json, events := accepts(h)
	return json && events
}

// readHot reads a body, once and without copying.
func readHot(body []byte) (c hotCall, ok bool) {
	s := scanner{text: body}
	var version, method []byte
	params := false
	for key, more := s.enter(); more; key, more = s.next() {
		switch string(key) {
		case "jsonrpc":
			ok = once(&s, &version) && string(version) == `"2.0"`
		case "method":
			ok = once(&s, &method) && string(method) == `"tools/call"`
		case "id":
			ok = once(&s, &c.id) && c.readID()
		case "params":
			ok = !params && c.readParams(&s)
			params = true
		default:
			ok = false
		}
		if !ok {
			return c, false
		}
	}
	return c, s.end() && !s.large && params && version != nil && method != nil && c.id != nil
}

// once reads a value that was not read before.
func once(s *scanner, into *[]byte) bool {
	if *into != nil {
		return false
	}
	*into = s.value()
	return !s.bad
}

func (c *hotCall) readParams(s *scanner) (ok bool) {
	for key, more := s.enter(); more; key, more = s.next() {
		switch string(key) {
		case "name":
			if ok = once(s, &c.name) && c.name[0] == '"' && bytes.IndexByte(c.name, '\\') < 0; ok {
				c.name = c.name[1 : len(c.name)-1]
			}
		case "arguments":
			ok = once(s, &c.arguments)
		case "_meta":
			ok = once(s, &c.meta)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return !s.bad && c.name != nil
}

func (c *hotCall) readID() bool {
	if c.text = c.id[0] == '"'; !c.text {
		return len(c.id) <= hotDigits && (c.id[0] != '0' || len(c.id) == 1) && digitsOnly(c.id)
	}
	for _, b := range c.id {
		if b < ' ' || b > '~' || b == '\\' {
			return false
		}
	}
	return len(c.id) <= hotID
}

func digitsOnly(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// answersItself reports whether a call is of a tool that the caller is offered,
// nobody has to be asked first, and the answer is a text.
func (s *Server) answersItself(ctx context.Context, c *hotCall, who *Request) bool {
	tool, ok := who.Snapshot.Catalogue().Tool(string(c.name))
	if !ok || !offered(tool, who.Snapshot) {
		return false
	}
	e, err := open(c.arguments)
	if err != nil {
		return true // it is refused before anybody is asked
	}
	action, ok := tool.Resolve(e.action)
	switch {
	case !ok:
		return true
	case action.Dangerous, action.Image: // whether it changes anything here or not; an image is no text alone
		return false
	case !action.Kind.Mutates():
		return true
	}
	return e.confirmation == "" && s.withinBudget(ctx, who)
}

// withinBudget counts the write of a request that is one message, once.
func (s *Server) withinBudget(ctx context.Context, who *Request) bool {
	if s.cfg.Budget == nil {
		return true
	}
	p := who.Snapshot.Principal
	if who.budget = budgetSpent; s.cfg.Budget(ctx, p.Tenant.String(), p.Agent.String(), who.Snapshot.Limits) {
		who.budget = budgetLeft
	}
	return who.budget == budgetLeft
}

// serveHotModern answers in the era without sessions.
func (s *Server) serveHotModern(w http.ResponseWriter, r *http.Request, who *Request, c *hotCall) bool {
	if r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("Mcp-Name") != string(c.name) || !who.agent.knowsMeta(c.meta) {
		return false
	}
	s.serveStream(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, failed := s.Invoke(r.Context(), who, string(c.name), c.arguments, nil)
		if r.Context().Err() == nil { // else nobody may or wants to have it
			writeHot(w, c.id, s.modernHead, body, failed, `,"resultType":"complete"`)
		}
	}))
	return true
}

// knowsMeta reports whether the SDK would accept a _meta. A client sends the
// same with every call, so the last one that was good is remembered.
func (a *agentServer) knowsMeta(raw []byte) bool {
	if last := a.meta.Load(); last != nil && bytes.Equal(*last, raw) {
		return true
	}
	if len(raw) > hotMeta || !goodMeta(raw) {
		return false
	}
	kept := bytes.Clone(raw)
	a.meta.Store(&kept)
	return true
}

// goodMeta accepts less than the SDK does: nothing unknown, nothing twice, no
// escapes.
func goodMeta(raw []byte) bool {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return false
	}
	s := scanner{text: raw}
	var version, client, capabilities []byte
	for key, more := s.enter(); more; key, more = s.next() {
		ok := false
		switch string(key) {
		case mcp.MetaKeyProtocolVersion:
			ok = once(&s, &version)
		case mcp.MetaKeyClientInfo:
			ok = once(&s, &client)
		case mcp.MetaKeyClientCapabilities:
			ok = once(&s, &capabilities)
		}
		if !ok {
			return false
		}
	}
	info, can := &mcp.Implementation{}, (*mcp.ClientCapabilities)(nil)
	return s.end() && string(version) == strconv.Quote(modernEra) &&
		(client == nil || json.Unmarshal(client, &info) == nil && info != nil) &&
		capabilities != nil && json.Unmarshal(capabilities, &can) == nil && can != nil
}

// serveHotLegacy answers in a session. Its calls outlive the request that
// brought them, as the SDK's do: a client that lost its connection has not
// cancelled anything.
func (s *Server) serveHotLegacy(w http.ResponseWriter, r *http.Request, who *Request, c *hotCall) bool {
	key, t, ok := s.sessionOf(w, r, who)
	if !ok {
		return true
	}
	who.Session, who.born, who.RPCID = key.id, t.id, string(c.id)
	sess, ok := s.use(w, r, key, who, false, func() (*session, error) { return connect(key, t, who.agent, restored(t)) })
	if !ok {
		return true
	}
	defer func() { s.sessions.done(sess, false, s.cfg.Now()) }()
	ctx, running := s.live.track(context.WithoutCancel(r.Context()), who.Claims)
	defer running.end()
	running.on(who.Snapshot.Principal.Instance)
	running.in(sess)
	id := c.rpcID()
	if !sess.conn.begin(id, running.stop) {
		refuseInFlight(w, c.id, id)
		return true
	}
	s.serveStream(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, failed := s.Invoke(ctx, who, string(c.name), c.arguments, nil)
		sess.conn.finish(id)
		if r.Context().Err() == nil {
			writeHot(w, c.id, "", body, failed, "")
		}
	}))
	return true
}

// rpcID is the id as the SDK reads it.
func (c *hotCall) rpcID() jsonrpc.ID {
	var v any
	if c.text {
		v = string(c.id[1 : len(c.id)-1])
	} else {
		v, _ = strconv.ParseFloat(string(c.id), 64) // digits only
	}
	id, _ := jsonrpc.MakeID(v) // a string or a number
	return id
}

// refuseInFlight says what the SDK says.
func refuseInFlight(w http.ResponseWriter, raw []byte, id jsonrpc.ID) {
	message, _ := json.Marshal(fmt.Sprintf("duplicate in-flight request ID %v", id.Raw())) // a string always marshals
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.Header().Set("Connection", "keep-alive")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, raw, jsonrpc.CodeInvalidRequest, message)
}

// writeHot writes a result as one event. The texts are what stands in the result
// before and after the content.
func writeHot(w http.ResponseWriter, id []byte, before string, body []byte, failed bool, after string) {
	event := make([]byte, 0, 256+len(id)+len(before)+len(body)+len(body)/4) // quotes become two bytes
	event = append(event, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":"...)
	event = append(event, id...)
	event = append(event, `,"result":{`...)
	event = append(event, before...)
	event = append(event, `"content":[{"type":"text","text":`...)
	event = appendString(event, body)
	event = append(event, "}]"...)
	if failed {
		event = append(event, `,"isError":true`...)
	}
	event = append(event, after...)
	event = append(event, "}}\n\n"...)
	h, values := w.Header(), [...]string{"no-cache, no-transform", "text/event-stream", "keep-alive", strconv.Itoa(len(event))}
	for i, name := range [...]string{"Cache-Control", "Content-Type", "Connection", "Content-Length"} {
		h[name] = values[i : i+1 : i+1]
	}
	_, _ = w.Write(event) // a client that went away is no concern of ours
}
