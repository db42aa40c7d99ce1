package oauth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The grant types and the only way clients identify themselves: by name.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
	authNone     = "none"
)

// maxBody bounds the bodies of the endpoints, in bytes.
const maxBody = 64 << 10

// refusal is an answer in OAuth's vocabulary (RFC 6749, 5.2). Nothing happened.
type refusal struct {
	status      int
	code        string
	description string // ASCII without quotes, as the RFC wants it
	retryAfter  time.Duration
}

func (r *refusal) Error() string { return r.code + ": " + r.description }

func refuse(code, format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, code: code, description: plainASCII(fmt.Sprintf(format, args...))}
}

// unknownClient makes clients register again: 401, by which they know that
// their registration is gone.
func unknownClient() *refusal {
	return &refusal{status: http.StatusUnauthorized, code: "invalid_client",
		description: "This client is not registered here, or its registration has expired. Register again."}
}

func tooOften(after time.Duration) *refusal {
	return &refusal{status: http.StatusTooManyRequests, code: "slow_down", retryAfter: after,
		description: "Too many requests. Try again after the time in Retry-After."}
}

func tryLater() *refusal {
	return &refusal{status: http.StatusServiceUnavailable, code: "temporarily_unavailable", retryAfter: 5 * time.Second,
		description: "This cannot be decided at the moment. Nothing was used up. Try again in a few seconds."}
}

// plainASCII keeps to the characters that RFC 6749 allows in a description.
func plainASCII(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < 0x20 || r > 0x7e || r == '\\':
			return '?'
		}
		return r
	}, s)
}

// answer sends a JSON body that nobody may keep.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil { // strings, numbers and lists of them always marshal
		status, b = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that went away is no concern of ours
}

// fail answers with an error. What is no refusal is the store's or ours: it is
// logged and the client told to come back.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var re *refusal
	if !errors.As(err, &re) {
		if r.Context().Err() == nil {
			s.log.ErrorContext(r.Context(), "sign-in request failed", "path", r.URL.Path, "error", err)
		}
		re = tryLater()
	}
	if re.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(re.retryAfter.Round(time.Second)/time.Second))))
	}
	if re.status == http.StatusUnauthorized && r.Header.Get("Authorization") != "" {
		w.Header().Set("WWW-Authenticate", `Basic realm="oauth"`)
	}
	answer(w, re.status, struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}{re.code, re.description})
}

// open admits pages of any origin, which may read what needs no cookie, and
// answers their preflights. It reports whether the request is one to answer.
func (s *Server) open(w http.ResponseWriter, r *http.Request, method string) bool {
	h := w.Header()
	if !s.cfg.Pages.Known(r) {
		re := refuse("invalid_request", "This host is not one of the service's addresses. Use %s.", s.cfg.Issuer)
		answer(w, http.StatusMisdirectedRequest, map[string]string{"error": re.code, "error_description": re.description})
		return false
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	allowed := method + ", OPTIONS"
	switch {
	case r.Method == http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", allowed)
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Mcp-Protocol-Version")
		h.Set("Access-Control-Max-Age", "3600")
		w.WriteHeader(http.StatusNoContent)
		return false
	case r.Method == method, method == http.MethodGet && r.Method == http.MethodHead:
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
		return true
	}
	h.Set("Allow", allowed)
	re := refuse("invalid_request", "%s is not answered here. Use %s.", r.Method, method)
	answer(w, http.StatusMethodNotAllowed, map[string]string{"error": re.code, "error_description": re.description})
	return false
}

// form reads the parameters of a POST. None may be there twice, except resource.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, refuse("invalid_request", "Send the parameters as application/x-www-form-urlencoded.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return nil, refuse("invalid_request", "The parameters could not be read, or are longer than %d bytes.", maxBody)
	}
	return r.PostForm, single(r.PostForm)
}

// single refuses repeated parameters (RFC 6749, 3.1): two parties could read
// different ones.
func single(v url.Values) error {
	for name, values := range v {
		if len(values) > 1 && name != "resource" {
			return refuse("invalid_request", "The parameter %q is there more than once.", name)
		}
	}
	return nil
}

// clientID is the name a client gives itself: in the body, or as the user of
// Basic without a password, which some libraries try first.
func clientID(r *http.Request, v url.Values) (string, error) {
	id := v.Get("client_id")
	secret := v.Get("client_secret")
	if header := r.Header.Get("Authorization"); header != "" {
		user, password, err := basic(header)
		if err != nil || id != "" && id != user {
			return "", &refusal{status: http.StatusUnauthorized, code: "invalid_client", description: "The Authorization header does not name this client."}
		}
		id = user
		if secret == "" {
			secret = password
		}
	}
	switch {
	case id == "":
		return "", refuse("invalid_request", "client_id is missing.")
	case secret != "":
		return "", &refusal{status: http.StatusUnauthorized, code: "invalid_client",
			description: "Clients have no secret here. Leave the client secret empty."}
	}
	return id, nil
}

// basic reads a Basic header, whose parts are form encoded (RFC 6749, 2.3.1).
func basic(header string) (user, password string, err error) {
	scheme, value, _ := strings.Cut(header, " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	name, pass, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok || !strings.EqualFold(scheme, "Basic") {
		return "", "", errors.New("not a Basic header")
	}
	user, err = url.QueryUnescape(name)
	if err != nil {
		return "", "", err
	}
	password, err = url.QueryUnescape(pass)
	return user, password, err
}
