package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/token"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// Paths of the pages for people.
const (
	AgentsPath      = "/console/agents"
	AgentRevokePath = "/console/agents/revoke"
	TokenPagePath   = "/console/agents/token"
	ConnectPath     = "/console/connect"
)

// agentsPage lists the agents of the tenant that is shown.
type agentsPage struct {
	Tenant string // empty: the person belongs to none
	All    bool   // of all members, not only one's own
	Agents []agentRow
	Ended  []agentRow // taken back lately: what they wrote can still be undone
}

// Of agents whose access was taken back, those are shown whose writes a home may
// still undo (undo_days at its default), the last ones.
const (
	endedShown = 30 * 24 * time.Hour
	endedMost  = 50
)

type agentRow struct {
	ID       tenants.ID
	Name     string
	Client   string // host of its description, else the id it registered under; empty for tokens
	Token    bool   // personal token
	Instance string
	Member   string // e-mail of whom it acts for; empty: of the person who looks
	Level    contract.Level
	Tools    string // names with commas; empty: all
	Made     time.Time
	Used     time.Time // zero: never
	Expires  time.Time // zero: never
	Expired  bool
	Revoked  time.Time // zero: not
}

// ServeAgents lists agents: their own to members, everybody's to owners and
// admins.
func (s *Server) ServeAgents(w http.ResponseWriter, r *http.Request) {
	who, ok := s.cfg.People(r)
	if !ok {
		s.cfg.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	m, ok := who.member(who.Shown)
	if !ok {
		s.pages.Show(w, r, http.StatusOK, "agents", agentsPage{})
		return
	}
	p := agentsPage{Tenant: m.TenantName, All: m.Role.Manages()}
	err := s.cfg.Store.In(r.Context(), m.TenantID, func(tx tenants.Tx) (err error) {
		all, err := s.agentRows(r.Context(), tx, who.ID)
		p.split(all, s.now())
		return err
	})
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.pages.Show(w, r, http.StatusOK, "agents", p)
}

// split puts the agents whose access was taken back apart, the last one first.
func (p *agentsPage) split(all []agentRow, now time.Time) {
	for _, row := range all {
		switch {
		case row.Revoked.IsZero():
			p.Agents = append(p.Agents, row)
		case now.Sub(row.Revoked) < endedShown:
			p.Ended = append(p.Ended, row)
		}
	}
	slices.SortStableFunc(p.Ended, func(a, b agentRow) int { return b.Revoked.Compare(a.Revoked) })
	p.Ended = p.Ended[:min(len(p.Ended), endedMost)]
}

// agentRows are the agents that a member may see, also those without access. The role is read here, where
// it decides.
func (s *Server) agentRows(ctx context.Context, tx tenants.Tx, member tenants.ID) ([]agentRow, error) {
	m, err := tx.Member(ctx, member)
	if err != nil {
		return nil, err
	}
	filter := tenants.AgentFilter{MemberID: member, IncludeRevoked: true}
	emails := map[tenants.ID]string{}
	if m.Role.Manages() {
		filter.MemberID = tenants.ID{}
		members, err := tx.Members(ctx)
		if err != nil {
			return nil, err
		}
		for _, x := range members {
			emails[x.User.ID] = x.User.Email
		}
	}
	instances, err := tx.Instances(ctx)
	if err != nil {
		return nil, err
	}
	names := map[tenants.ID]string{}
	for _, in := range instances {
		names[in.ID] = in.Name
	}
	agents, err := tx.Agents(ctx, filter)
	if err != nil {
		return nil, err
	}
	rows := make([]agentRow, len(agents))
	for i, a := range agents {
		rows[i] = agentRow{
			ID: a.ID, Name: plainName(a.Name, shownName), Token: a.Origin == tenants.FromToken, Instance: names[a.InstanceID],
			Level: a.Ceiling, Tools: strings.Join(a.Tools, ", "), Made: a.CreatedAt, Used: a.LastUsedAt, Expires: a.ExpiresAt,
			Expired: !a.ExpiresAt.IsZero() && !s.now().Before(a.ExpiresAt), Revoked: a.RevokedAt,
		}
		if a.MemberID != member {
			rows[i].Member = cmp.Or(emails[a.MemberID], "?")
		}
		rows[i].Client = clientLabel(a.ClientID)
	}
	return rows, nil
}

// clientLabel is how a client's id is shown.
func clientLabel(id string) string {
	if u, err := url.Parse(id); err == nil && byDocument(id) {
		return u.Host
	}
	return id
}

// ServeAgentRevoke takes an agent back: one's own, or anybody's for owners and
// admins.
func (s *Server) ServeAgentRevoke(w http.ResponseWriter, r *http.Request) {
	who, ok := s.cfg.People(r)
	if !ok {
		s.cfg.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	id, err := uuid.Parse(r.PostForm.Get("agent"))
	if err != nil {
		s.cfg.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	err = s.cfg.Store.In(r.Context(), who.Shown, func(tx tenants.Tx) error {
		m, err := tx.Member(r.Context(), who.ID)
		if err != nil {
			return err
		}
		a, err := tx.Agent(r.Context(), id)
		if err != nil {
			return err
		}
		if a.MemberID != who.ID && !m.Role.Manages() {
			return tenants.ErrNotFound // others' agents do not exist for a member
		}
		if !a.RevokedAt.IsZero() {
			return nil
		}
		if err := tx.RevokeAgent(r.Context(), id); err != nil {
			return err
		}
		return audit(r.Context(), tx, who.ID, "agent.revoke", id)
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		s.cfg.Pages.Error(w, r, http.StatusNotFound)
		return
	case err != nil:
		s.unavailable(w, r, err)
		return
	}
	if err := s.cfg.FanOut(); err != nil {
		s.log.ErrorContext(r.Context(), "an agent was revoked, but other nodes may not hear of it", "agent", id, "error", err)
		s.cfg.Pages.Say(w, r, page.Bad, "agents.revoked_unsure")
	} else {
		s.cfg.Pages.Say(w, r, page.Good, "agents.revoked")
	}
	page.Redirect(w, r, page.Path(AgentsPath))
}

// tokenDays are the lives of a personal token: it always ends.
var tokenDays = []int{7, 30, 90, 365}

// tokenPage is the form for a personal token or, once, the token.
type tokenPage struct {
	Problem string
	Form    choices
	Token   string // shown once
	Name    string
	Expires time.Time
	MCP     string
}

// ServePersonalToken makes a token for scripts and for clients without OAuth. It
// is shown in the answer to the form and never again.
func (s *Server) ServePersonalToken(w http.ResponseWriter, r *http.Request) {
	who, ok := s.cfg.People(r)
	if !ok {
		s.cfg.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost {
		s.showTokenForm(w, r, http.StatusOK, who, consentForm{}, "")
		return
	}
	f := readConsent(r.PostForm)
	tenant, agent, problem, err := s.choose(r.Context(), who, f, contract.ReadWriteDelete)
	if err == nil && problem == "" && (agent.ExpiresAt.IsZero() || !slices.ContainsFunc(tokenDays, func(n int) bool { return dayText(n) == f.Days })) {
		problem = "problem.days"
	}
	switch {
	case err != nil:
		s.unavailable(w, r, err)
		return
	case problem != "":
		s.showTokenForm(w, r, http.StatusUnprocessableEntity, who, f, problem)
		return
	}
	agent.Origin = tenants.FromToken
	raw, agent, err := s.personalToken(r.Context(), tenant, agent)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.pages.Show(w, r, http.StatusOK, "token", tokenPage{Token: raw, Name: agent.Name, Expires: agent.ExpiresAt, MCP: s.mcp(r)})
}

// personalToken makes an agent with one token that lives as long as it.
func (s *Server) personalToken(ctx context.Context, tenant tenants.ID, agent tenants.Agent) (raw string, made tenants.Agent, err error) {
	err = s.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error {
		if made, err = tx.CreateAgent(ctx, agent); err != nil {
			return err
		}
		if err := audit(ctx, tx, agent.MemberID, "agent.create", made.ID); err != nil {
			return err
		}
		raw, _, err = s.cfg.Tokens.Issue(token.Request{
			Tenant: tenant, Member: made.MemberID, Agent: made.ID, Resource: s.cfg.Resources[0],
			Scope: scopeOf(made.Ceiling), Life: made.ExpiresAt.Sub(s.now()).Truncate(time.Second),
		})
		return err
	})
	return raw, made, err
}

func (s *Server) showTokenForm(w http.ResponseWriter, r *http.Request, status int, who Person, f consentForm, problem string) {
	all, err := s.places(r.Context(), who)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.pages.Show(w, r, status, "token", tokenPage{Problem: problem, Form: s.offer(all, f, contract.ReadWriteDelete, tokenDays)})
}

// mcp is the address of /mcp by which the person came, which agents are given.
func (s *Server) mcp(r *http.Request) string { return s.cfg.Pages.Base(r) + "/mcp" }

// connectPage has ready text for the usual clients.
type connectPage struct {
	MCP   string
	Name  string // of the server in clients' lists
	Local bool   // the address is of this machine only: hosted clients cannot reach it
}

// ServeConnect shows how to connect the usual clients.
func (s *Server) ServeConnect(w http.ResponseWriter, r *http.Request) {
	p := connectPage{MCP: s.mcp(r), Name: "siyuan"}
	if u, err := url.Parse(p.MCP); err == nil {
		p.Local = loopbackHost(u.Hostname())
	}
	s.pages.Show(w, r, http.StatusOK, "connect", p)
}
