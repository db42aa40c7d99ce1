package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"siyuan-broker/tenants"
)

// Directed is a message that concerns one request in flight: the answer to a
// question, or the cancelling of a call. Only the node that runs the request can
// take it.
type Directed struct {
	Tenant  tenants.ID
	Session string          // the id, which the taking node checks again
	Message json.RawMessage // one JSON-RPC message
}

// Peers are the other nodes.
type Peers interface {
	// Deliver offers a message to the other nodes and reports whether one of
	// them took it. Taking is calling Server.Take there.
	Deliver(ctx context.Context, d Directed) (taken bool, err error)
}

// alone are the Peers of a single node.
type alone struct{}

func (alone) Deliver(context.Context, Directed) (bool, error) { return false, nil }

// Take accepts a message that another node was sent, if it concerns a request
// that runs here. It never opens a session.
func (s *Server) Take(ctx context.Context, d Directed) bool {
	m, err := parseMessages(d.Message)
	if err != nil || m.batch {
		return false
	}
	t, err := s.ticketOf(ctx, sessionKey{d.Tenant, d.Session})
	if err != nil || t.tenant != d.Tenant {
		return false
	}
	sess := s.sessions.held(sessionKey{d.Tenant, d.Session})
	return sess != nil && sess.takes(m.all[0]) && sess.feed(ctx, d.Message)
}

// direct hands a message to the node that runs the request it concerns. A
// cancelling that comes too late is accepted by a node that holds the session.
func (s *Server) direct(ctx context.Context, key sessionKey, m jsonrpc.Message, raw json.RawMessage) (bool, error) {
	sess := s.sessions.held(key)
	if sess != nil && sess.takes(m) {
		return sess.feed(ctx, raw), nil
	}
	taken, err := s.cfg.Peers.Deliver(ctx, Directed{key.tenant, key.id, raw})
	if taken || err != nil {
		return taken, err
	}
	_, cancels := m.(*jsonrpc.Request)
	return cancels && sess != nil && sess.feed(ctx, raw), nil
}

// takes reports whether a message concerns a request that runs here. An answer
// is taken at most once; a cancelling is carried out here or by the SDK, which
// must be fed it.
func (s *session) takes(m jsonrpc.Message) bool {
	switch m := m.(type) {
	case *jsonrpc.Response:
		return s.conn.claim(m.ID)
	case *jsonrpc.Request:
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if m.Method != methodCancelled || json.Unmarshal(m.Params, &params) != nil {
			return false
		}
		id, ok := idOf(params.RequestID)
		return ok && s.conn.cancels(id)
	}
	return false
}

// feed gives the SDK a message that has no answer.
func (s *session) feed(ctx context.Context, raw json.RawMessage) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp", bytes.NewReader(raw))
	if err != nil {
		return false
	}
	w := statusOnly{header: http.Header{}}
	s.transport.ServeHTTP(&w, r)
	return w.status == http.StatusAccepted
}

// statusOnly is a http.ResponseWriter that keeps the status.
type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header         { return w.header }
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *statusOnly) WriteHeader(status int)      { w.status = status }
