package oauth

import (
	"errors"
	"net/http"
	"time"

	"siyuan-broker/tenants"
)

// devicePage is where a person types the code that a device shows.
type devicePage struct {
	Typed   string
	Problem string // key of a message
}

// ServeVerify takes the code that a device shows, asks as for any client, and
// keeps the answer for the device. The code is never filled in for the person:
// a link that somebody sent must not let their device in. It must stand behind
// the guards for pages and for people who are signed in.
func (s *Server) ServeVerify(w http.ResponseWriter, r *http.Request) {
	who, ok := s.cfg.People(r)
	if !ok {
		s.cfg.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost {
		s.pages.Show(w, r, http.StatusOK, "device", devicePage{})
		return
	}
	typed := cut(r.PostForm.Get("code"), 40)
	if s.limit(r, "user code", who.ID.String(), s.cfg.Limits.CodesPerPerson, 10*time.Minute) != nil {
		s.cfg.Pages.Error(w, r, http.StatusTooManyRequests)
		return
	}
	wrong := func() {
		s.pages.Show(w, r, http.StatusUnprocessableEntity, "device", devicePage{typed, "device.wrong"})
	}
	code, ok := typedCode(typed)
	if !ok {
		wrong()
		return
	}
	d, err := s.cfg.Store.DeviceRequest(r.Context(), code)
	if errors.Is(err, tenants.ErrNotFound) {
		wrong()
		return
	}
	var c client
	if err == nil {
		c, err = s.client(r.Context(), d.ClientID)
	}
	var re *refusal
	switch {
	case errors.As(err, &re):
		s.pages.Show(w, r, re.status, "refused", refusedPage{re.code, re.description})
	case err != nil:
		s.unavailable(w, r, err)
	default:
		s.answerDevice(w, r, who, d, c)
	}
}

// answerDevice shows the question, or takes the answer to it.
func (s *Server) answerDevice(w http.ResponseWriter, r *http.Request, who Person, d tenants.DeviceRequest, c client) {
	question := consentPage{Device: d.UserCode[:4] + "-" + d.UserCode[4:], Described: c.described}
	most := askedFor(d.Scope)
	switch r.PostForm.Get("answer") {
	case "allow":
	case "deny":
		s.finishDevice(w, r, d, tenants.ID{}, "device.denied")
		return
	default:
		s.showQuestion(w, r, http.StatusOK, who, question, c.name, consentForm{}, most)
		return
	}
	f := readConsent(r.PostForm)
	tenant, agent, problem, err := s.choose(r.Context(), who, f, most)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	if problem != "" {
		question.Problem = problem
		s.showQuestion(w, r, http.StatusUnprocessableEntity, who, question, c.name, f, most)
		return
	}
	agent.Origin, agent.ClientID = tenants.FromOAuth, d.ClientID
	consent := tenants.OAuthCode{Hash: d.Hash, ClientID: d.ClientID, Resource: d.Resource, Scope: scopeOf(agent.Ceiling), Agent: agent, ExpiresAt: d.ExpiresAt}
	err = s.cfg.Store.In(r.Context(), tenant, func(tx tenants.Tx) error { return tx.PutOAuthCode(r.Context(), consent) })
	if err != nil && !errors.Is(err, tenants.ErrConflict) { // from another window; the answer tells
		s.unavailable(w, r, err)
		return
	}
	s.finishDevice(w, r, d, tenant, "device.allowed")
}

// finishDevice keeps the answer and says so. A second answer, from another
// window, changes nothing.
func (s *Server) finishDevice(w http.ResponseWriter, r *http.Request, d tenants.DeviceRequest, tenant tenants.ID, key string) {
	err := s.cfg.Store.AnswerDevice(r.Context(), d.Hash, tenant)
	if errors.Is(err, tenants.ErrNotFound) {
		s.pages.Show(w, r, http.StatusUnprocessableEntity, "device", devicePage{Problem: "device.late"})
		return
	}
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.pages.Show(w, r, http.StatusOK, "done", donePage{key})
}

// donePage says that the person may go back to their device.
type donePage struct{ Key string }
