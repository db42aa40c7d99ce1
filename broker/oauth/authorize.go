package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// authorization is what a client asks a person for.
type authorization struct {
	client    client
	to        target
	state     string
	challenge string
	resource  string
	most      contract.Level // the highest ceiling that the scope covers
}

// readAuthorization checks a request. A *refusal goes back to the client where
// the target is known to be the client's, which the result then has; otherwise
// the person has to read it, because nobody else may get it.
func (s *Server) readAuthorization(ctx context.Context, q url.Values) (authorization, error) {
	a := authorization{state: q.Get("state")}
	for _, name := range []string{"client_id", "redirect_uri"} {
		if len(q[name]) > 1 {
			return a, refuse("invalid_request", "The parameter %s is there more than once.", name)
		}
	}
	var err error
	if a.client, err = s.client(ctx, q.Get("client_id")); err != nil {
		return a, err
	}
	to, err := a.client.redirect(q.Get("redirect_uri"))
	if err != nil {
		return a, refuse("invalid_redirect", "%v.", err)
	}
	a.to = to
	if err := single(q); err != nil {
		return a, err
	}
	var ok bool
	a.resource, ok = s.resource(q["resource"])
	a.challenge = q.Get("code_challenge")
	a.most = askedFor(q.Get("scope"))
	switch {
	case q.Get("response_type") != "code":
		return a, refuse("unsupported_response_type", "response_type must be code.")
	case q.Has("response_mode") && q.Get("response_mode") != "query":
		return a, refuse("invalid_request", "response_mode must be query.")
	case q.Has("request") || q.Has("request_uri"):
		return a, refuse("request_not_supported", "Send the parameters as they are.")
	case a.challenge == "":
		return a, refuse("invalid_request", "code_challenge is missing. PKCE with S256 is required.")
	case q.Get("code_challenge_method") != "S256":
		return a, refuse("invalid_request", "code_challenge_method must be S256.")
	case !isChallenge(a.challenge):
		return a, refuse("invalid_request", "code_challenge is not the base64url of a SHA-256.")
	case q.Get("prompt") == "none":
		return a, refuse("consent_required", "A person has to agree each time.")
	case !ok:
		return a, refuse("invalid_target", "resource is not served here. Use %s.", s.cfg.Resources[0])
	}
	return a, nil
}

// answerClient sends the browser back to the client. Every answer names us, so
// that a client of several servers cannot take it for another's (RFC 9207).
func (s *Server) answerClient(w http.ResponseWriter, a authorization, params url.Values) {
	params.Set("iss", s.cfg.Issuer)
	if a.state != "" {
		params.Set("state", a.state)
	}
	w.Header().Set("Location", a.to.with(params))
	w.WriteHeader(http.StatusSeeOther)
}

func (s *Server) refuseClient(w http.ResponseWriter, a authorization, r *refusal) {
	s.answerClient(w, a, url.Values{"error": {r.code}, "error_description": {r.description}})
}

// ServeAuthorize shows a person what a client asks for, and takes the answer.
// It must stand behind the guards for pages and for people who are signed in.
// Nothing is kept between the two: the form goes to the address that the client
// made, which is checked again.
func (s *Server) ServeAuthorize(w http.ResponseWriter, r *http.Request) {
	who, ok := s.cfg.People(r)
	if !ok {
		s.cfg.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	if s.limit(r, "authorize", s.address(r), s.cfg.Limits.AuthorizePerAddress, time.Minute) != nil {
		s.cfg.Pages.Error(w, r, http.StatusTooManyRequests)
		return
	}
	a, err := s.readAuthorization(r.Context(), r.URL.Query())
	var re *refusal
	switch {
	case errors.As(err, &re) && a.to.uri != "":
		s.refuseClient(w, a, re)
		return
	case errors.As(err, &re):
		s.pages.Show(w, r, re.status, "refused", refusedPage{re.code, re.description})
		return
	case err != nil:
		s.unavailable(w, r, err)
		return
	}
	page.AllowFormTo(w, a.to.form, "https:") // from the client's address it may go on to its own pages
	if r.Method != http.MethodPost {
		s.showConsent(w, r, http.StatusOK, who, a, consentForm{}, "")
		return
	}
	if r.PostForm.Get("answer") != "allow" {
		s.refuseClient(w, a, refuse("access_denied", "The person said no."))
		return
	}
	s.agree(w, r, who, a)
}

// agree makes a code of the person's choices, or shows what is wrong with them.
func (s *Server) agree(w http.ResponseWriter, r *http.Request, who Person, a authorization) {
	f := readConsent(r.PostForm)
	tenant, agent, problem, err := s.choose(r.Context(), who, f, a.most)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	if problem != "" {
		s.showConsent(w, r, http.StatusUnprocessableEntity, who, a, f, problem)
		return
	}
	agent.Origin, agent.ClientID = tenants.FromOAuth, a.client.id
	code, err := s.newCode(r.Context(), tenant, tenants.OAuthCode{
		ClientID: a.client.id, RedirectURI: a.to.uri, Challenge: a.challenge, Resource: a.resource, Scope: scopeOf(agent.Ceiling), Agent: agent,
	})
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.answerClient(w, a, url.Values{"code": {code}})
}

// refusedPage is for a request that goes back to nobody.
type refusedPage struct{ Code, Detail string }

func (s *Server) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		s.log.ErrorContext(r.Context(), "page not served", "path", r.URL.Path, "error", err)
	}
	s.cfg.Pages.Error(w, r, http.StatusServiceUnavailable)
}
