package mcpserver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/tenants"
)

// newSessionID makes the id of a legacy session: <UUIDv7>.<130 random bits>. The
// first part gives the request ids that are derived from it their time.
func newSessionID() string { return tenants.NewID().String() + "." + rand.Text() }

// sessionStart is the time-ordered part of a session id of ours.
func sessionStart(session string) (uuid.UUID, bool) {
	start, _, _ := strings.Cut(session, ".")
	id, err := uuid.Parse(start)
	return id, err == nil && id.Version() == 7
}

// serveLegacy serves the eras with sessions. A session is looked for among the
// agent's own, so somebody else's is answered like one that never was.
func (s *Server) serveLegacy(w http.ResponseWriter, r *http.Request, who *Request) {
	who.Session = r.Header.Get("Mcp-Session-Id")
	if who.Session != "" && !who.agent.has(who.Session) {
		s.cfg.Log.InfoContext(r.Context(), "no such session", "tenant", who.Claims.Tenant, "agent", who.Claims.Agent, "remote", r.RemoteAddr)
		refuse(w, http.StatusNotFound, codeNoSession, "There is no such session: initialize again.")
		return
	}
	if r.Method == http.MethodPost {
		if who.Session == "" {
			s.makeRoom(who.agent)
		} else if !s.peek(w, r, who) {
			return
		}
	}
	s.legacy.ServeHTTP(w, r)
}

func (a *agentServer) has(session string) bool {
	for ss := range a.mcp.Sessions() {
		if ss.ID() == session {
			return true
		}
	}
	return false
}

// peek reads the id of a single message, which the SDK does not hand on, and
// puts the body back.
func (s *Server) peek(w http.ResponseWriter, r *http.Request, who *Request) bool {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, codeRefused, "The request is larger than allowed.")
		return false
	case err != nil:
		refuse(w, http.StatusBadRequest, codeRefused, "The request could not be read.")
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &message) == nil { // a batch is no object and has no single id
		who.RPCID = string(message.ID)
	}
	return true
}

// makeRoom ends an agent's oldest sessions where a client keeps beginning new
// ones.
func (s *Server) makeRoom(a *agentServer) {
	var open []*mcp.ServerSession
	for ss := range a.mcp.Sessions() {
		if ss.ID() != "" { // modern requests have a session of their own, without id
			open = append(open, ss)
		}
	}
	for i := 0; i <= len(open)-s.cfg.MaxSessions; i++ {
		oldest := open[i]
		s.work.Go(func() {
			if err := oldest.Close(); err != nil {
				s.cfg.Log.Debug("closing the oldest session", "error", err)
			}
		})
	}
}
