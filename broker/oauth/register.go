package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"siyuan-broker/tenants"
)

// maxRedirects is how many redirect URIs a client may have.
const maxRedirects = 20

// registration is what a client asks for (RFC 7591) and what it is told it got.
type registration struct {
	Name            string   `json:"client_name,omitempty"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	Scope           string   `json:"scope,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
}

// badRedirect is a redirect URI that was not registered, and why.
type badRedirect struct {
	URI    string `json:"uri"`
	Reason string `json:"reason"`
}

// sortRedirects parts the redirect URIs that can be used from the others, of
// which one does not sink the rest.
func sortRedirects(uris []string) (good []string, bad []badRedirect) {
	for _, raw := range uris {
		t, err := parseRedirect(raw)
		switch {
		case err != nil:
			bad = append(bad, badRedirect{cut(raw, maxRedirect), err.Error()})
		case slices.Contains(good, t.uri):
		case len(good) == maxRedirects:
			bad = append(bad, badRedirect{raw, "is one too many"})
		default:
			good = append(good, t.uri)
		}
	}
	return good, bad
}

// ServeRegister registers a client: always a public one. It gives no right to
// anything, so anybody may, within limits.
func (s *Server) ServeRegister(w http.ResponseWriter, r *http.Request) {
	if !s.open(w, r, http.MethodPost) {
		return
	}
	body, err := s.register(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, http.StatusCreated, body)
}

type registered struct {
	ID       string        `json:"client_id"`
	IssuedAt int64         `json:"client_id_issued_at"`
	Refused  []badRedirect `json:"redirect_uris_refused,omitempty"`
	registration
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) (registered, error) {
	if err := s.limit(r, "register", s.address(r), s.cfg.Limits.RegisterPerAddress, time.Hour); err != nil {
		return registered{}, err
	}
	if err := s.limit(r, "register", "all", s.cfg.Limits.RegisterInAll, time.Hour); err != nil {
		return registered{}, err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return registered{}, refuse("invalid_client_metadata", "The registration could not be read, or is longer than %d bytes.", maxBody)
	}
	var asked registration
	if err := json.Unmarshal(raw, &asked); err != nil {
		return registered{}, refuse("invalid_client_metadata", "The registration is not a JSON object of the form of RFC 7591.")
	}
	good, bad := sortRedirects(asked.RedirectURIs)
	if len(good) == 0 && (len(bad) > 0 || !slices.Contains(asked.GrantTypes, grantDevice)) {
		if len(bad) == 0 {
			return registered{}, refuse("invalid_redirect_uri", "redirect_uris is missing.")
		}
		return registered{}, refuse("invalid_redirect_uri", "%s %s.", cut(bad[0].URI, 200), bad[0].Reason)
	}
	if len(asked.ResponseTypes) > 0 && !slices.Contains(asked.ResponseTypes, "code") {
		return registered{}, refuse("invalid_client_metadata", "The only response type is code.")
	}
	id, err := s.secret("c_", tenants.ID{})
	if err != nil {
		return registered{}, err
	}
	made, err := s.cfg.Store.CreateOAuthClient(r.Context(), tenants.OAuthClient{
		ID: id, Name: plainName(asked.Name, longName), RedirectURIs: good, ExpiresAt: s.now().Add(unusedLife),
	})
	if errors.Is(err, tenants.ErrInvalid) {
		return registered{}, refuse("invalid_client_metadata", "The registration has characters that are no text.")
	}
	if err != nil {
		return registered{}, err
	}
	got := registered{ID: made.ID, IssuedAt: made.CreatedAt.Unix(), Refused: bad}
	got.registration = registration{
		Name: made.Name, RedirectURIs: made.RedirectURIs, GrantTypes: grantsOf(asked.GrantTypes), ResponseTypes: []string{"code"},
		AuthMethod: authNone, Scope: strings.Join(Scopes(), " "), ApplicationType: asked.ApplicationType,
	}
	return got, nil
}

// grantsOf are the grant types a client will use: the usual two, and device codes
// where it asks for them.
func grantsOf(asked []string) []string {
	grants := []string{grantCode, grantRefresh}
	if slices.Contains(asked, grantDevice) {
		grants = append(grants, grantDevice)
	}
	return grants
}

// ownID is what an operator may call a client.
var ownID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Preregister makes the registration of a client that an operator knows, which
// never expires. It is held to the same rules as all others; the error says what
// is wrong.
func Preregister(id, name string, redirects []string) (tenants.OAuthClient, error) {
	if !ownID.MatchString(id) {
		return tenants.OAuthClient{}, fmt.Errorf("client id %q: want up to 100 letters, digits, dots, dashes and underscores", id)
	}
	good, bad := sortRedirects(redirects)
	if len(bad) > 0 {
		return tenants.OAuthClient{}, fmt.Errorf("redirect URI %q %s", bad[0].URI, bad[0].Reason)
	}
	if len(good) == 0 {
		return tenants.OAuthClient{}, errors.New("a client needs a redirect URI")
	}
	return tenants.OAuthClient{ID: id, Name: plainName(name, longName), RedirectURIs: good}, nil
}
