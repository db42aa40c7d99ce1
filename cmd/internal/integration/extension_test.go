package integration

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// TestAToolOfAPluginIsFoundListedAndCalled goes the whole way: the connector finds
// what SiYuan's plugins offer, the agent is told, sees the tool under its own name
// and calls it by that; without the switch there is none.
func TestAToolOfAPluginIsFoundListedAndCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	h := x.home(nil)
	x.change(func(tx tenants.Tx) error {
		if err := tx.SetConsent(t.Context(), x.instance, tenants.Consent{Tool: "extension", Action: "plugin_call", Mode: tenants.ConsentAllow}); err != nil {
			return err
		}
		return tx.SetSwitch(t.Context(), x.instance, contract.SwitchExtension, true)
	})
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	id := w.session(token)
	list := func() string {
		_, body := w.post(token, inSession(id), `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		return body
	}
	call := func(arguments string) string {
		_, body := w.post(token, inSession(id), `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"extension","arguments":`+arguments+`}}`)
		return body
	}
	within(t, 30*time.Second, "the tools of the plugin are listed", func() bool { return strings.Contains(list(), "plugin__desk_tools__ring") })
	if body := list(); strings.Contains(body, `"outline"`) || strings.Contains(body, "plugin_call") {
		t.Error("SiYuan's own tools are listed without their switch, or what stands behind plugins' is")
	}
	if body := call(`{"action":"plugin__desk_tools__read_weather","arguments":{"city":"Ulm"}}`); !strings.Contains(body, "It rains in Ulm") || strings.Contains(body, `"isError":true`) {
		t.Errorf("read: %s", body)
	}
	if body := call(`{"action":"plugin__desk_tools__ring","arguments":{"times":1}}`); !strings.Contains(body, `rings`) || !strings.Contains(body, "requestId") || h.kernel.Rings() != 1 {
		t.Errorf("call: %s, %d rings", body, h.kernel.Rings())
	}
	if body := call(`{"action":"help","topic":"plugin__desk_tools__ring"}`); !strings.Contains(body, "Ring the bell.") {
		t.Errorf("help: %s", body)
	}
	for _, action := range []string{"plugin_call", "outline", "plugin__desk_tools__none"} {
		if body := call(`{"action":"` + action + `","tool":"plugin__desk_tools__ring","arguments":{}}`); !strings.Contains(body, `"isError":true`) || h.kernel.Rings() != 1 {
			t.Errorf("%s: %s", action, body)
		}
	}
	// A plugin that comes later is told of on the open stream.
	told := toldOn(w.open(t, http.MethodGet, token, inSession(id), ""))
	h.kernel.OfferTool(samplekernel.Tool{Name: "plugin__late__one", Description: "Late.", Source: "plugin", Schema: json.RawMessage(`{"type":"object"}`)})
	call(`{"action":"list","refresh":true}`) // the connector would look by itself some seconds later
	select {
	case <-told:
	case <-time.After(60 * time.Second):
		t.Fatal("nobody was told of a new plugin")
	}
	if body := list(); !strings.Contains(body, "plugin__late__one") {
		t.Errorf("it is not listed: %.300s", body)
	}
	x.change(func(tx tenants.Tx) error {
		return tx.SetSwitch(t.Context(), x.instance, contract.SwitchExtension, false)
	})
	within(t, 30*time.Second, "the tool is gone with its switch", func() bool { return !strings.Contains(list(), `"extension"`) })
}
