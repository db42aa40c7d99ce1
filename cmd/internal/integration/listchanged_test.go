package integration

import (
	"bufio"
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// TestWhateverChangesTheToolsIsToldInBothErasOnEveryNode: a toggle, a level, the
// home's policy, its plugins' tools. The change is made on one node, and both nodes
// tell the streams that are open on them.
func TestWhateverChangesTheToolsIsToldInBothErasOnEveryNode(t *testing.T) {
	t.Parallel()
	one, two := neighbours(t, pgtest.New(t), "", "")
	everything := contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete, Digest: "1"}
	for name, change := range map[string]func(x *tenant, connector tenants.ID, tx tenants.Tx) error{
		"toggle": func(x *tenant, _ tenants.ID, tx tenants.Tx) error {
			return tx.SetToggle(t.Context(), x.instance, tenants.Toggle{Tool: "notebook", Action: "list"})
		},
		"level": func(x *tenant, _ tenants.ID, tx tenants.Tx) error {
			read := contract.Read
			_, err := tx.UpdateInstance(t.Context(), x.instance, tenants.InstanceUpdate{DefaultLevel: &read})
			return err
		},
		"home policy": func(_ *tenant, connector tenants.ID, tx tenants.Tx) error {
			return tx.SetPolicyEffect(t.Context(), connector, contract.PolicyEffect{MaxLevel: contract.Read, Digest: "2"})
		},
		"plugins": func(_ *tenant, connector tenants.ID, tx tenants.Tx) error {
			more := everything
			more.Tools = []contract.HomeTool{{Name: "plugin__desk_tools__ring", Summary: "Ring the bell."}}
			return tx.SetPolicyEffect(t.Context(), connector, more)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := one.tenant(strings.ReplaceAll(name, " ", ""), tenants.NewID())
			connector := x.pairedAndReported(everything)
			x.change(func(tx tenants.Tx) error {
				return tx.SetSwitch(t.Context(), x.instance, contract.SwitchExtension, true)
			})
			_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
			told := map[string]<-chan struct{}{}
			for id, n := range map[string]*node{"first": one, "second": two} {
				told["with a session on the "+id+" node"] = toldOn(n.open(t, http.MethodGet, token, inSession(n.session(token)), ""))
				told["without a session on the "+id+" node"] = toldOn(n.open(t, http.MethodPost, token, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"},
					`{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
			}
			x.change(func(tx tenants.Tx) error { return change(x, connector, tx) })
			late := time.After(30 * time.Second)
			for who, told := range told {
				select {
				case <-told:
				case <-late:
					t.Fatalf("not told: %s", who)
				}
			}
		})
	}
}

// pairedAndReported gives a tenant a connector that was active and said what its
// policy is.
func (x *tenant) pairedAndReported(effect contract.PolicyEffect) (connector tenants.ID) {
	t := x.w.t
	t.Helper()
	key, _, err := ed25519.GenerateKey(nil)
	must(t, err)
	x.change(func(tx tenants.Tx) error {
		made, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: x.instance, Name: "test", PublicKey: key})
		connector = made.ID
		return err
	})
	_, err = x.w.db.NextEpoch(t.Context(), x.id, connector)
	must(t, err)
	x.change(func(tx tenants.Tx) error { return tx.SetPolicyEffect(t.Context(), connector, effect) })
	return connector
}

// open opens a stream and returns its lines once it says its first word: from then
// on everything is told.
func (w *world) open(t *testing.T, method, token string, header map[string]string, body string) *bufio.Scanner {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+"/mcp", strings.NewReader(body))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	must(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", method, resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan()
	return lines
}

// toldOn is closed when a stream tells that the tools changed. It ends with the
// stream.
func toldOn(lines *bufio.Scanner) <-chan struct{} {
	told := make(chan struct{})
	go func() {
		for lines.Scan() {
			if strings.Contains(lines.Text(), "notifications/tools/list_changed") {
				close(told)
				return
			}
		}
	}()
	return told
}
