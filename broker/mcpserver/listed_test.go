package mcpserver

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/tenants"
)

// What tools/list shows is what tools/call admits, for any principal, tool and
// action, with the snapshot changing under one server.
func TestListedIsCallable(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, claims := r.token(t, tenantA, agent)
	draw := rand.New(rand.NewPCG(1, 2))
	admitted, refused := 0, 0
	for range 60 {
		f := randomFacts(draw)
		r.store.put(f)
		r.cache.Drop(tenantA)
		w := r.send(t, "POST", "/mcp", listTools, modernHeader(raw, "tools/list", ""))
		shown := actionsOf(t, w)
		snap, err := r.cache.Get(t.Context(), tenantA, agent)
		if err != nil {
			t.Fatal(err)
		}
		who := &Request{Claims: claims, Snapshot: snap, Arrived: time.Now()}
		for _, tool := range snap.Catalogue().Tools() {
			for _, a := range tool.Actions {
				if a.ByName {
					if shown[a.ID()] {
						t.Errorf("%s is listed by its own name", a.ID())
					}
					continue
				}
				body, failed := r.server.Invoke(t.Context(), who, tool.Name, json.RawMessage(`{"action":"`+a.Name+`"}`), nil)
				var answer struct {
					Error contract.Error `json:"error"`
				}
				if err := json.Unmarshal(body, &answer); err != nil {
					t.Fatal(err)
				}
				// Without arguments an admitted call succeeds or lacks some, unless a
				// person has to agree first.
				callable := !failed || answer.Error.Type == contract.TypeValidation || answer.Error.Type == contract.TypeConfirmation
				if callable != shown[a.ID()] {
					t.Fatalf("%s: listed %v, callable %v (%s)", a.ID(), shown[a.ID()], callable, body)
				}
				if callable {
					admitted++
				} else {
					refused++
				}
			}
		}
	}
	if admitted < 100 || refused < 100 {
		t.Errorf("the draw is lopsided: %d admitted, %d refused", admitted, refused)
	}
}

// actionsOf are the actions that a tools/list answer names, as tool.action.
func actionsOf(t *testing.T, w *httptest.ResponseRecorder) map[string]bool {
	t.Helper()
	var listTools struct {
		Result struct {
			Tools []struct {
				Name        string `json:"name"`
				InputSchema struct {
					Properties map[string]struct {
						Enum []string `json:"enum"`
					} `json:"properties"`
				} `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &listTools); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	names := map[string]bool{}
	for _, tool := range listTools.Result.Tools {
		for _, action := range tool.InputSchema.Properties["action"].Enum {
			if action != disclosure.HelpAction {
				names[tool.Name+"."+action] = true
			}
		}
	}
	return names
}

func randomFacts(r *rand.Rand) *tenants.Snapshot {
	oneIn := func(n int) bool { return r.IntN(n) == 0 }
	level := func() contract.Level { return contract.Level(r.IntN(4)) }
	f := facts(tenantA, agent)
	if oneIn(3) {
		f.Role = tenants.Member
		f.Shares = map[string]contract.Level{notebook: level()}
	}
	if oneIn(3) {
		f.Agent.Ceiling = level()
	}
	if oneIn(3) {
		f.Connector.Effect.MaxLevel = level()
	}
	for _, tool := range catalogue.Tools() {
		if oneIn(6) {
			f.Agent.Tools = append(f.Agent.Tools, tool.Name)
		}
		for _, a := range tool.Actions {
			if oneIn(3) {
				f.Toggles = append(f.Toggles, tenants.Toggle{Tool: tool.Name, Action: a.Name, Enabled: oneIn(2)})
			}
			if oneIn(2) {
				f.Consents = append(f.Consents, tenants.Consent{Tool: tool.Name, Action: a.Name, Mode: tenants.ConsentAllow})
			}
			if oneIn(10) {
				f.Connector.Effect.Vetoed = append(f.Connector.Effect.Vetoed, a.ID())
			}
		}
	}
	if oneIn(2) {
		f.Connector.Effect.Tools = []contract.HomeTool{{Name: "plugin__a__Ring", Summary: "Ring."}, {Name: "plugin__a__read", ReadOnly: true}, {Name: "outline", Native: true, ReadOnly: true}, {Name: "http_request", Native: true}}
		for _, t := range f.Connector.Effect.Tools {
			if oneIn(3) {
				f.Toggles = append(f.Toggles, tenants.Toggle{Tool: "extension", Action: t.Name, Enabled: oneIn(2)})
			}
		}
	}
	for _, s := range contract.Switches() {
		if oneIn(2) {
			f.Switches = append(f.Switches, s)
		}
	}
	return f
}
