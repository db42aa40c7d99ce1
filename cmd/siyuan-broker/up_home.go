package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

const (
	upEmail     = "owner@localhost"
	upAgentDays = 365
	upRenewDays = 30 // a token this close to its end is replaced
	upPolicyTop = "# Written by `siyuan-broker up` (--allow). Remove this line to keep your own version of the file.\n"
)

// upHome is the SiYuan that `up` works with, and what `up` keeps about it.
type upHome struct {
	sample     bool
	url, token string
	level      contract.Level
	data       string // the connector's data folder
	shared     string // the folder with the tenant's ids

	tenantID, instanceID, ownerID tenants.ID // set by enrol
}

func homeOf(f upFlags, level contract.Level, data string, errOut io.Writer) (*upHome, error) {
	h := &upHome{sample: f.url == "", url: f.url, token: f.token, level: level, shared: data}
	if h.sample {
		h.level, h.data = contract.ReadWriteDelete, filepath.Join(data, "sample")
		return h, nil
	}
	h.data = filepath.Join(data, "siyuan")
	if h.token != "" {
		fmt.Fprintln(errOut, "Warning: other programs of this machine can read --token; set SIYUAN_TOKEN instead.")
		return h, nil
	}
	h.token = os.Getenv("SIYUAN_TOKEN")
	if file := os.Getenv("SIYUAN_TOKEN_FILE"); h.token == "" && file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, cli.Fail(cli.ExitConfig, fmt.Errorf("SIYUAN_TOKEN_FILE: %w", err))
		}
		h.token = strings.TrimSpace(string(b))
	}
	if h.token == "" {
		return nil, cli.Fail(cli.ExitConfig, errors.New("--url needs SiYuan's API token: set SIYUAN_TOKEN to the one under Settings, About, API token"))
	}
	return h, nil
}

// name is how the JSON line calls this SiYuan.
func (h *upHome) name() string {
	if h.sample {
		return "sample"
	}
	return h.url
}

// config is the connector's configuration.
func (h *upHome) config(brokerURL string) connector.Config {
	c := connector.Config{Broker: brokerURL, URL: h.url, Token: h.token, Data: h.data}
	c.Complete()
	return c
}

// upState is the file in which `up` finds its tenant again.
type upState struct {
	Tenant tenants.ID `json:"tenant"`
	Owner  tenants.ID `json:"owner"`
	Sample tenants.ID `json:"sample_instance"`
	SiYuan tenants.ID `json:"siyuan_instance"`
}

// agentFile keeps the agent's token, so that the clients a person configured
// work after a restart.
type agentFile struct {
	Agent   tenants.ID `json:"agent"`
	Token   string     `json:"token"`
	URL     string     `json:"url"` // the token is good for this resource only
	Expires time.Time  `json:"expires"`
}

// enrol makes sure that the database knows this home as the flags say: tenant,
// instance, levels, connector. It returns the agent's token.
func (h *upHome) enrol(ctx context.Context, c broker.Config, db *broker.Database) (string, error) {
	if err := h.writePolicy(); err != nil {
		return "", err
	}
	key, err := connector.LoadKey(h.data)
	if err != nil {
		return "", err
	}
	state, err := h.tenant(ctx, db)
	if err != nil {
		return "", fmt.Errorf("prepare tenant: %w", err)
	}
	instance := state.SiYuan
	if h.sample {
		instance = state.Sample
	}
	h.tenantID, h.instanceID, h.ownerID = state.Tenant, instance, state.Owner
	err = db.In(ctx, state.Tenant, func(tx tenants.Tx) error {
		if _, err := tx.UpdateInstance(ctx, instance, tenants.InstanceUpdate{DefaultLevel: &h.level}); err != nil {
			return err
		}
		if err := tx.SetSwitch(ctx, instance, contract.SwitchWorkspace, h.level.Allows(contract.ReadWrite)); err != nil {
			return err
		}
		return h.register(ctx, tx, instance, key.Public().(ed25519.PublicKey))
	})
	if err != nil {
		return "", fmt.Errorf("prepare tenant: %w", err)
	}
	return h.agent(ctx, c, db, state, instance)
}

func (h *upHome) tenant(ctx context.Context, db *broker.Database) (upState, error) {
	file := filepath.Join(h.shared, "up.json")
	var s upState
	b, err := os.ReadFile(file)
	if err == nil {
		if err = json.Unmarshal(b, &s); err != nil {
			return s, fmt.Errorf("%s is damaged: %w", file, err)
		}
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	made, err := createTenant(ctx, db, "Home", upEmail, "Sample workspace")
	if err != nil {
		return s, err
	}
	s = upState{Tenant: made.Tenant, Owner: made.Owner, Sample: made.Instance}
	err = db.In(ctx, s.Tenant, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "SiYuan", DefaultLevel: contract.Read, Enabled: true})
		s.SiYuan = in.ID
		return err
	})
	if err != nil {
		return s, err
	}
	b, err = json.MarshalIndent(s, "", "  ")
	return s, errors.Join(err, os.WriteFile(file, b, 0o600))
}

func (h *upHome) register(ctx context.Context, tx tenants.Tx, instance tenants.ID, key ed25519.PublicKey) error {
	known, err := tx.Connectors(ctx, instance)
	if err != nil {
		return err
	}
	for _, c := range known {
		if c.PublicKey.Equal(key) {
			return nil
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	_, err = addConnector(ctx, tx, instance, host, key)
	return err
}

// agent returns the token made before while it is good, else a new one.
func (h *upHome) agent(ctx context.Context, c broker.Config, db *broker.Database, s upState, instance tenants.ID) (string, error) {
	file := filepath.Join(h.data, "agent.json")
	var kept agentFile
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &kept) == nil &&
		kept.URL == c.Resource() && time.Until(kept.Expires) > upRenewDays*24*time.Hour && h.renewed(ctx, db, s, kept) {
		return kept.Token, nil
	}
	agent := tenants.Agent{MemberID: s.Owner, InstanceID: instance, Name: "siyuan-broker up", Origin: tenants.FromToken,
		Ceiling: h.level, ExpiresAt: time.Now().AddDate(0, 0, upAgentDays)}
	agent, token, err := issueToken(ctx, c, db, s.Tenant, "", agent)
	if err != nil {
		return "", fmt.Errorf("make agent token: %w", err)
	}
	b, err := json.Marshal(agentFile{Agent: agent.ID, Token: token, URL: c.Resource(), Expires: agent.ExpiresAt})
	return token, errors.Join(err, os.WriteFile(file, b, 0o600))
}

// renewed gives the kept agent the level of this start. It reports false when
// the agent is no longer in force.
func (h *upHome) renewed(ctx context.Context, db *broker.Database, s upState, kept agentFile) bool {
	err := db.In(ctx, s.Tenant, func(tx tenants.Tx) error {
		a, err := tx.Agent(ctx, kept.Agent)
		if err == nil && !a.RevokedAt.IsZero() {
			err = tenants.ErrRevoked
		}
		if err == nil && a.Ceiling != h.level {
			_, err = tx.UpdateAgent(ctx, kept.Agent, tenants.AgentUpdate{Ceiling: &h.level})
		}
		return err
	})
	return err == nil
}

// writePolicy puts what --allow says into the home policy, unless the owner made
// the file theirs.
func (h *upHome) writePolicy() error {
	file := h.config("").Policy
	b, err := os.ReadFile(file)
	if err == nil && !strings.HasPrefix(string(b), upPolicyTop) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(upPolicyTop+"max_level: "+h.level.String()+"\n"), 0o600)
}

var upText = template.Must(template.New("up").Parse(`
{{- if .Sample}}Agents work in the built-in sample workspace. Your own SiYuan: SIYUAN_TOKEN=… siyuan-broker up --url http://127.0.0.1:6806 --allow rw
{{- else}}Agents work in {{.SiYuan}} with level {{.Level}}.
{{- with .Trouble}}
{{.}}{{end}}
{{- end}}

  MCP URL      {{.MCPURL}}
  Agent token  {{.AgentToken}}
  Data         {{.Data}}
  Console      {{.ConsoleURL}}
               signs you in; works once, within an hour

Try it:

TOKEN={{.AgentToken}}
curl -s {{.MCPURL}} \
  -H "Authorization: Bearer $TOKEN" \
  -H "Content-Type: application/json" -H "Accept: application/json, text/event-stream" \
  -H "MCP-Protocol-Version: 2026-07-28" -H "Mcp-Method: tools/call" -H "Mcp-Name: notebook" \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notebook","arguments":{"action":"list"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}'

Claude Code:

claude mcp add --transport http siyuan {{.MCPURL}} --header "Authorization: Bearer $TOKEN"

Cursor (~/.cursor/mcp.json) and others:

{"mcpServers":{"siyuan":{"url":"{{.MCPURL}}","headers":{"Authorization":"Bearer {{.AgentToken}}"}}}}

Stop with Ctrl-C. The next start finds everything again.
`))

// trouble says why SiYuan cannot be worked with, and what to do; "" when it can.
func (h *upHome) trouble(state contract.HomeState) string {
	switch state {
	case contract.HomeReady:
		return ""
	case contract.HomeUnauthorized:
		return "SiYuan refuses the token: set SIYUAN_TOKEN to the one under Settings, About, API token, and start again."
	case contract.HomeWrongWorkspace:
		return "Another workspace answers at " + h.url + " than the first time. If it is the right one, stop this, delete " + string(connector.PinFile(h.data)) + " and start again."
	case contract.HomeIndexing:
		return "SiYuan is still starting; agents can work as soon as it is ready."
	}
	return "SiYuan does not answer at " + h.url + ": start it, or correct --url. The connector keeps trying."
}

func announceText(out io.Writer, line upLine, h *upHome, state contract.HomeState) error {
	return upText.Execute(out, struct {
		upLine
		Sample  bool
		Level   string
		Trouble string
	}{line, h.sample, h.level.String(), h.trouble(state)})
}
