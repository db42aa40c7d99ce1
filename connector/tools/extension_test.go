package tools_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const (
	weather = `{"tool":"plugin__desk_tools__read_weather","arguments":{"city":"Ulm"}}`
	ring    = `{"tool":"plugin__desk_tools__ring","arguments":{"times":2}}`
)

func TestPluginsToolsAreCalledByThoseWhoMaySeeEverything(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	answers(t, d, owner(), "extension.plugin_read", weather, `{"tool":"plugin__desk_tools__read_weather","untrustedText":"\"It rains in Ulm\"","truncated":false}`)
	answers(t, d, owner(), "extension.plugin_call", ring, `{"tool":"plugin__desk_tools__ring","untrustedText":"{\"rings\":1}","truncated":false}`)
	answers(t, d, owner(), "extension.plugin_call", `{"tool":"plugin__desk_tools__fails"}`,
		`{"tool":"plugin__desk_tools__fails","failed":true,"untrustedText":"error invoking MCP tool handler: Error: no bell at desk-tools/kernel.js:4:117(3)","truncated":false}`)

	hidden := owner()
	hidden.Levels = map[string]contract.Level{guardtest.Private: contract.None}
	reader := owner()
	reader.Levels = map[string]contract.Level{guardtest.Diary: contract.ReadWrite}
	off := owner()
	off.Switches = []contract.Switch{contract.SwitchNative}
	for name, c := range map[string]struct {
		grant    *contract.Grant
		id, args string
		want     contract.Code
	}{
		"read while something is hidden":      {hidden, "extension.plugin_read", weather, contract.Unsupported},
		"call while something is hidden":      {hidden, "extension.plugin_call", ring, contract.Unsupported},
		"native while something is hidden":    {hidden, "extension.native_read", `{"tool":"search","arguments":{"action":"fulltext"}}`, contract.Unsupported},
		"call without rwd everywhere":         {reader, "extension.plugin_call", ring, contract.PermissionDenied},
		"without the switch":                  {off, "extension.plugin_read", weather, contract.PermissionDenied},
		"list without the switch":             {off, "extension.list", `{}`, contract.PermissionDenied},
		"a tool that writes, as one that not": {owner(), "extension.plugin_read", ring, contract.StateChanged},
		"a tool there is not":                 {owner(), "extension.plugin_call", `{"tool":"plugin__no__such"}`, contract.NotFound},
		"SiYuan's own, as a plugin's":         {owner(), "extension.plugin_call", `{"tool":"block"}`, contract.NotFound},
	} {
		if r := d.call(c.grant, c.id, c.args); contract.CodeOf(r.Err) != c.want {
			t.Errorf("%s: %s %v, want %s", name, r.Body, r.Err, c.want)
		}
	}
	answers(t, d, reader, "extension.plugin_read", weather, `{"tool":"plugin__desk_tools__read_weather","untrustedText":"\"It rains in Ulm\"","truncated":false}`)
	if d.Kernel.Rings() != 1 {
		t.Errorf("the bell rang %d times", d.Kernel.Rings())
	}
}

func TestSiYuansOwnToolsAreFewAndOnlyRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	answers(t, d, owner(), "extension.native_read", `{"tool":"outline","arguments":{"action":"get","id":"x"}}`,
		`{"tool":"outline","untrustedText":"outline {\"action\":\"get\",\"id\":\"x\"}","truncated":false}`)
	plugins := owner()
	plugins.Switches = []contract.Switch{contract.SwitchExtension}
	for args, want := range map[string]contract.Code{
		`{"tool":"outline","arguments":{"action":"set"}}`:                contract.InvalidArguments,
		`{"tool":"outline"}`:                                             contract.InvalidArguments,
		`{"tool":"outline","arguments":{"action":"get","Action":"set"}}`: contract.InvalidArguments,
		`{"tool":"block","arguments":{"action":"get"}}`:                  contract.Unsupported,
		`{"tool":"sql","arguments":{"stmt":"select 1"}}`:                 contract.Unsupported,
		`{"tool":"web_fetch","arguments":{"url":"http://192.0.2.1"}}`:    contract.Unsupported,
		`{"tool":"http_request","arguments":{}}`:                         contract.Unsupported,
	} {
		fails(t, d.call(owner(), "extension.native_read", args), want)
	}
	fails(t, d.call(owner(), "extension.native_call", `{"tool":"http_request","arguments":{}}`), contract.Unsupported)
	fails(t, d.call(plugins, "extension.native_read", `{"tool":"outline","arguments":{"action":"get"}}`), contract.PermissionDenied)
	if out := ok[catalogue.ExtensionListOut](t, d, plugins, "extension.list", `{}`); out.Native || len(out.Tools) != 3 {
		t.Errorf("without the switch of SiYuan's own: %+v", out)
	}

	// The home owner names what may reach into the internet.
	d.Guard = guard.New(d.Client.Reader(), d.Client.Writer(), guard.Options{Outside: func(tool string) bool { return tool == "http_request" || tool == "web_fetch" }})
	d = deskOf(t, d.Home, policy.Fixed(contract.ReadWriteDelete))
	answers(t, d, owner(), "extension.native_call", `{"tool":"http_request","arguments":{"url":"https://example.org"}}`,
		`{"tool":"http_request","untrustedText":"http_request {\"url\":\"https://example.org\"}","truncated":false}`)
	answers(t, d, owner(), "extension.native_read", `{"tool":"web_fetch","arguments":{}}`, `{"tool":"web_fetch","untrustedText":"web_fetch {}","truncated":false}`)
	fails(t, d.call(owner(), "extension.native_read", `{"tool":"web_search","arguments":{}}`), contract.Unsupported)
	fails(t, d.call(owner(), "extension.native_read", `{"tool":"http_request","arguments":{}}`), contract.StateChanged)
}

// TestAListSurvivesWhatPluginsPutIntoIt: broken schemas, names of ours, names that
// are none, and too many tools.
func TestAListSurvivesWhatPluginsPutIntoIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	offer := func(name, schema string) {
		d.Kernel.OfferTool(samplekernel.Tool{Name: name, Source: "plugin", Description: "One\n\u202etwo.", Schema: json.RawMessage(schema), Call: func(json.RawMessage) (string, error) { return "x", nil }})
	}
	offer("plugin__a__text", `"object"`)
	offer("plugin__a__list", `{"type":"array"}`)
	offer("plugin__a__long", `{"type":"object","description":"`+strings.Repeat("x", 20_000)+`"}`)
	for _, name := range []string{"list", "Help", "plugin_call", "plugin a", strings.Repeat("p", 101), "plugin__siyuan_plugins_mcp_sisyphus__fs"} {
		offer(name, `{"type":"object"}`)
	}
	d.Kernel.OfferTool(samplekernel.Tool{Name: "plugin__a__mcp", Source: "mcp", Schema: json.RawMessage(`{"type":"object"}`)})
	plugins := owner()
	plugins.Switches = []contract.Switch{contract.SwitchExtension}
	out := ok[catalogue.ExtensionListOut](t, d, plugins, "extension.list", `{}`)
	var names []string
	for _, p := range out.Tools {
		names = append(names, p.Name)
		if broken := strings.HasPrefix(p.Name, "plugin__a__"); p.Degraded != broken || broken != (p.InputSchema == nil) || broken && p.Description != "One two." {
			t.Errorf("%+v", p)
		}
	}
	if got, want := strings.Join(names, " "), "plugin__a__list plugin__a__long plugin__a__text plugin__desk_tools__fails plugin__desk_tools__read_weather plugin__desk_tools__ring"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	answers(t, d, owner(), "extension.plugin_call", `{"tool":"plugin__a__text","arguments":{"any":[1]}}`, `{"tool":"plugin__a__text","untrustedText":"x","truncated":false}`)

	for i := range 60 {
		offer("plugin__b__"+strings.Repeat("b", i+1), `{"type":"object"}`)
	}
	if out := ok[catalogue.ExtensionListOut](t, d, owner(), "extension.list", `{"refresh":true}`); len(out.Tools) != contract.MaxHomeTools-1 { // http_request, which no policy names, has a place too
		t.Errorf("%d tools are shown", len(out.Tools))
	}
	d.Kernel.WithdrawTool("plugin__a__text")
	if r := d.call(plugins, "extension.list", `{"refresh":true,"name":"plugin__a__text"}`); contract.CodeOf(r.Err) != contract.NotFound {
		t.Errorf("after it was withdrawn: %s %v", r.Body, r.Err)
	}
}

func TestWhatAToolSaysIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Kernel.OfferTool(samplekernel.Tool{Name: "plugin__a__long", Source: "plugin", ReadOnly: true, Schema: json.RawMessage(`{"type":"object"}`),
		Call: func(json.RawMessage) (string, error) { return strings.Repeat("字\n", 20_000), nil }})
	out := ok[catalogue.PluginOut](t, d, owner(), "extension.plugin_read", `{"tool":"plugin__a__long"}`)
	// A line end takes two characters in JSON.
	if want := strings.Repeat("字\n", catalogue.DefaultResultChars/3); out.Text != want || !out.Truncated || out.TextChars != 40_000 || out.Hint == "" {
		t.Errorf("%d bytes of text, truncated %v, of %d characters", len(out.Text), out.Truncated, out.TextChars)
	}
}

func TestAPreviewShowsTheToolAndItsArguments(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	r := d.exec.Handle(t.Context(), contract.Call{Method: contract.MethodPreview, Tool: "extension", Action: "plugin_call", RequestID: "r", Grant: owner(),
		Args: json.RawMessage(`{"tool":"plugin__desk_tools__ring","arguments":{"times":2,"note":"line one\n\u202eline two"}}`)}, nil)
	var p contract.Preview
	if r.Err != nil || json.Unmarshal(r.Body, &p) != nil {
		t.Fatalf("%s %v", r.Body, r.Err)
	}
	want := "tool “plugin__desk_tools__ring”\n" + `with “{"note":"line one\n\u202eline two","times":2}”`
	if got := strings.Join(p.Lines(), "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if d.Kernel.Rings() != 0 {
		t.Error("looking rang the bell")
	}
}

// TestAFailureOfTheBridgeTouchesNothingElse, and a SiYuan that is too old says so.
func TestAFailureOfTheBridgeTouchesNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Between(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<html>"))
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	fails(t, d.call(owner(), "extension.list", `{}`), contract.APIError)
	if r := d.call(owner(), "notebook.list", `{}`); r.Err != nil {
		t.Errorf("notebook.list: %v", r.Err)
	}
	if all := d.Guard.HomeTools(); len(all) != 0 {
		t.Errorf("it tells of %v", all)
	}
	d.Between(nil)
	d.Answer("/api/system/getWorkspaceInfo", `{"siyuanVer":"3.6.9","workspaceDir":"/notes"}`)
	if out := ok[catalogue.ExtensionListOut](t, d, owner(), "extension.list", `{"refresh":true}`); out.Supported || len(out.Tools) != 0 {
		t.Errorf("%+v", out)
	}
	fails(t, d.call(owner(), "extension.plugin_call", ring), contract.UnsupportedByKernel)
	for version, supported := range map[string]bool{"v3.7.0-dev1": true, "3.10.1": true, "3.7": true, "2.9.9": false} {
		d.Answer("/api/system/getWorkspaceInfo", `{"siyuanVer":"`+version+`","workspaceDir":"/notes"}`)
		if out := ok[catalogue.ExtensionListOut](t, d, owner(), "extension.list", `{"refresh":true}`); out.Supported != supported {
			t.Errorf("%s: supported %v", version, out.Supported)
		}
	}
}

// TestACallOfAPluginsToolIsNeverRepeated: its answer is lost, and neither the
// connector nor the same request sent again rings a second time.
func TestACallOfAPluginsToolIsNeverRepeated(t *testing.T) {
	t.Parallel()
	d := newOnceDesk(t)
	lose := &atomic.Bool{}
	d.Between(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before := d.Kernel.Rings()
			if r.URL.Path != "/mcp" || !lose.Load() {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(&discarded{header: http.Header{}}, r)
			if d.Kernel.Rings() > before {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusBadGateway)
		})
	})
	if r := d.call(owner(), newKey(t), "extension.plugin_call", ring); r.Err != nil || d.Kernel.Rings() != 1 {
		t.Fatalf("undisturbed: %s %v", r.Body, r.Err)
	}
	// A session that SiYuan has forgotten is refused before anything is done.
	d.Kernel.EndToolSessions()
	key := newKey(t)
	for range 2 {
		if r := d.call(owner(), key, "extension.plugin_call", ring); r.Err != nil || d.Kernel.Rings() != 2 {
			t.Errorf("in a new session: %s %v, %d rings", r.Body, r.Err, d.Kernel.Rings())
		}
	}
	lose.Store(true)
	key = newKey(t)
	for range 2 {
		if r := d.call(owner(), key, "extension.plugin_call", ring); contract.CodeOf(r.Err) != contract.OutcomeUnknown || d.Kernel.Rings() != 3 {
			t.Errorf("with a lost answer: %s %v, %d rings", r.Body, r.Err, d.Kernel.Rings())
		}
		d.restart()
	}
	if r := d.call(owner(), newKey(t), "extension.plugin_read", weather); contract.CodeOf(r.Err) == "" {
		t.Errorf("a read whose answer is lost: %s", r.Body)
	}
}

// discarded is where an answer is written that nobody gets.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(int)             {}

// TestLivePlugins calls the tools of the SiYuan of the environment: its own, and
// those of the plugin desk-tools where it is there.
func TestLivePlugins(t *testing.T) {
	d, g := liveDesk(t)
	out := ok[catalogue.ExtensionListOut](t, d, g, "extension.list", `{}`)
	if !out.Supported || !out.Connected || out.Version == "" || len(out.Tools) < 7 {
		t.Fatalf("%+v", out)
	}
	there := false
	for _, p := range out.Tools {
		there = there || p.Name == "plugin__desk_tools__read_weather"
		if p.Degraded || p.Source == "native" && !p.ReadOnly {
			t.Errorf("%+v", p)
		}
	}
	if r := d.call(g, "extension.native_read", `{"tool":"search","arguments":{"action":"fulltext","query":"nothing has this"}}`); r.Err != nil {
		t.Errorf("search: %v", r.Err)
	}
	if out := ok[catalogue.ExtensionDiagnoseOut](t, d, g, "extension.diagnose_plugin_mcp", `{"pluginName":"no-such-plugin","expectedState":"absent"}`); !out.Success || !out.Supported {
		t.Errorf("%+v", out)
	}
	if !there {
		t.Skip("the plugin desk-tools is not there")
	}
	answers(t, d, g, "extension.plugin_read", weather, `{"tool":"plugin__desk_tools__read_weather","untrustedText":"\"It rains in Ulm\"","truncated":false}`)
	answers(t, d, g, "extension.plugin_call", `{"tool":"plugin__desk_tools__fails"}`,
		`{"tool":"plugin__desk_tools__fails","failed":true,"untrustedText":"error invoking MCP tool handler: Error: no bell at desk-tools/kernel.js:4:117(3)","truncated":false}`)
}

// TestSecretsOfTheHomeAreMaskedInWhatPluginsSay: in results of both kinds of tools,
// and in what a plugin says of itself, to agents and to the broker. While the
// settings cannot be read, nothing a tool said is shown, and it is not called again.
func TestSecretsOfTheHomeAreMaskedInWhatPluginsSay(t *testing.T) {
	t.Parallel()
	secrets := []string{"tok-6f2a9c", "sk-proj-Qx81", "dav p4ss"}
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Answer("/api/system/getConf", `{"conf":{"api":{"token":"tok-6f2a9c"},"ai":{"openAI":{"apiKey":"sk-proj-Qx81"}},"sync":{"webdav":{"password":"dav p4ss"}}}}`)
	var calls atomic.Int64
	say := func(json.RawMessage) (string, error) {
		calls.Add(1)
		return "I read: " + strings.Join(secrets, ", ") + ".", nil
	}
	schema := json.RawMessage(`{"type":"object","description":"tok-6f2a9c"}`)
	d.Kernel.OfferTool(samplekernel.Tool{Name: "plugin__spy__read", Title: "sk-proj-Qx81", Description: "dav p4ss", Source: "plugin", ReadOnly: true, Schema: schema, Call: say})
	d.Kernel.OfferTool(samplekernel.Tool{Name: "plugin__spy__write", Source: "plugin", Schema: schema, Call: say})

	for tool, id := range map[string]string{"plugin__spy__read": "extension.plugin_read", "plugin__spy__write": "extension.plugin_call"} {
		answers(t, d, owner(), id, `{"tool":"`+tool+`"}`, `{"tool":"`+tool+`","untrustedText":"I read: [REDACTED], [REDACTED], [REDACTED].","truncated":false}`)
	}
	told, err := json.Marshal(d.Guard.HomeTools())
	if err != nil {
		t.Fatal(err)
	}
	listed := d.call(owner(), "extension.list", `{"name":"plugin__spy__read"}`)
	for _, s := range secrets {
		if strings.Contains(string(listed.Body)+string(told), s) || !strings.Contains(string(listed.Body), "[REDACTED]") {
			t.Errorf("%s is told in %s or %s", s, listed.Body, told)
		}
	}

	d.Answer("/api/system/getConf", `null`)
	before := calls.Load()
	out := ok[catalogue.PluginOut](t, d, owner(), "extension.plugin_call", `{"tool":"plugin__spy__write"}`)
	if out.Text != "" || !strings.Contains(out.Hint, "withheld") || calls.Load() != before+1 {
		t.Errorf("%+v after %d calls", out, calls.Load()-before)
	}
}
