package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// JSON-RPC codes of refusals that happen before a message is read: from the
// range left to implementations, clear of those that MCP and its SDKs gave a
// meaning.
const (
	codeRefused      = -32010
	codeUnauthorized = -32011
	codeUnavailable  = -32012
	codeNoSession    = -32001 // as other servers say it
	codeInternal     = -32603
)

// trustedLength is how much memory a Content-Length gets before anything came.
const trustedLength = 64 << 10

// ServeHTTP checks what can be checked of a request without knowing who sent
// it, in this order: host, preflight, origin, content type, size. Then follow
// the token and the dispatch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Accel-Buffering", "no") // proxies must not hold back events
	if !s.knownHost(r.Host) {
		refuse(w, http.StatusForbidden, codeRefused, "This host is not one of the service's addresses. Check public_urls.")
		return
	}
	origin := r.Header.Get("Origin")
	if origin != "" && !s.origins[origin] {
		refuse(w, http.StatusForbidden, codeRefused, "Pages of this origin may not call here. Whoever runs the service can add it.")
		return
	}
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	}
	if r.Method == http.MethodOptions { // carries no token
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID")
		h.Set("Access-Control-Max-Age", "3600")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")) {
		refuse(w, http.StatusUnsupportedMediaType, codeRefused, "Content-Type must be application/json.")
		return
	}
	if r.ContentLength > s.cfg.MaxBody {
		refuse(w, http.StatusRequestEntityTooLarge, codeRefused, "The request is larger than allowed.")
		return
	}
	if r.Body != nil && r.Body != http.NoBody {
		// Also for what the HTTP server reads of a body that nobody wants. The
		// deadline ends with the body.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout)) // not every writer has deadlines
		r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	}
	s.chain.ServeHTTP(w, r)
}

// readBody reads the body of a request and gives it back, or refuses.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, who *Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		if r.Method == http.MethodPost {
			refuse(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The request has no body.")
		}
		return r.Method != http.MethodPost
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), trustedLength)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, codeRefused, "The request is larger than allowed.")
		return false
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, http.StatusRequestTimeout, codeRefused, "The request did not arrive in time.")
		return false
	case err != nil:
		refuse(w, http.StatusBadRequest, codeRefused, "The request could not be read.")
		return false
	}
	setBody(r, body.Bytes())
	if r.Method != http.MethodPost {
		return true
	}
	who.body = body.Bytes()
	if !utf8.Valid(who.body) {
		refuse(w, http.StatusBadRequest, jsonrpc.CodeParseError, "The request is not UTF-8.")
		return false
	}
	return true
}

// readMessages decodes the body of a POST, or refuses.
func (s *Server) readMessages(w http.ResponseWriter, who *Request) bool {
	if who.body == nil {
		return true
	}
	var err error
	if who.messages, err = parseMessages(who.body); err != nil { // the cause could quote the body
		refuse(w, http.StatusBadRequest, jsonrpc.CodeParseError, "The request is not a JSON-RPC 2.0 message.")
		return false
	}
	return true
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// knownHost admits the public addresses and, for tests and first steps, every
// loopback name: a page that rebinds DNS cannot make a browser send one.
func (s *Server) knownHost(host string) bool {
	for _, a := range s.addresses {
		if strings.EqualFold(host, a.host) || strings.EqualFold(withoutDefaultPort(host, "https"), a.host) {
			return true
		}
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// decodeName turns a base64 Mcp-Name into what it stands for: the SDK compares
// the header with the body undecoded. What is not base64 is left for it to
// refuse.
func decodeName(h http.Header) {
	const prefix, suffix = "=?base64?", "?="
	v := h.Get("Mcp-Name")
	if len(v) < len(prefix)+len(suffix) || !strings.HasPrefix(v, prefix) || !strings.HasSuffix(v, suffix) {
		return
	}
	name, err := base64.StdEncoding.DecodeString(v[len(prefix) : len(v)-len(suffix)])
	if err == nil && utf8.Valid(name) {
		h.Set("Mcp-Name", string(name))
	}
}

// refuse answers with a JSON-RPC error that belongs to no message.
func refuse(w http.ResponseWriter, status, code int, message string) {
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(struct {
		Version string   `json:"jsonrpc"`
		ID      *string  `json:"id"` // null
		Error   rpcError `json:"error"`
	}{"2.0", nil, rpcError{code, message}})
	if err != nil { // strings and numbers always marshal
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is no concern of ours
}
