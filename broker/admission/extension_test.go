package admission

import (
	"encoding/json"
	"strings"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// bridged are the facts of an owner whose home offers tools.
func bridged(switches ...contract.Switch) *tenants.Snapshot {
	f := &tenants.Snapshot{
		TenantID: tenants.NewID(), TenantStatus: tenants.Active, Role: tenants.Owner, Agent: tenants.Agent{ID: tenants.NewID(), Ceiling: contract.ReadWriteDelete},
		Instance: tenants.Instance{ID: tenants.NewID(), Enabled: true, DefaultLevel: contract.ReadWriteDelete}, Switches: switches,
	}
	f.Connector = &tenants.SnapshotConnector{Effect: &contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete, Tools: []contract.HomeTool{
		{Name: "plugin__desk__Ring", Summary: "Ring the ”bell\n“."}, {Name: "plugin__desk__read", ReadOnly: true}, {Name: "outline", Native: true, ReadOnly: true}, {Name: "http_request", Native: true},
		{Name: "list", Summary: "Ours."}, {Name: "bad name"},
	}}}
	return f
}

func usableActions(s *Snapshot) string {
	tool, _ := s.Catalogue().Tool("extension")
	var names []string
	for _, a := range tool.Actions {
		if !a.ByName && s.Enabled(a) {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestTheToolsOfAHomeAreActionsUnderTheirOwnNames(t *testing.T) {
	t.Parallel()
	const own = "list validate_package diagnose_plugin_mcp " // actions of the tool itself
	for want, f := range map[string]*tenants.Snapshot{
		"": bridged(),
		own + "plugin__desk__Ring plugin__desk__read":                      bridged(contract.SwitchExtension),
		"outline http_request":                                             bridged(contract.SwitchNative),
		own + "plugin__desk__Ring plugin__desk__read outline http_request": bridged(contract.SwitchExtension, contract.SwitchNative),
	} {
		if got := usableActions(Compile(f, tools.New())); got != want {
			t.Errorf("with %v: %q, want %q", f.Switches, got, want)
		}
	}
	f := bridged(contract.SwitchExtension)
	f.Toggles = []tenants.Toggle{{Tool: "extension", Action: "plugin__desk__Ring"}}
	if got := usableActions(Compile(f, tools.New())); got != own+"plugin__desk__read" {
		t.Errorf("with one switched off: %q", got)
	}
	f.Toggles = []tenants.Toggle{{Tool: "extension", Action: "plugin_call"}, {Tool: "extension", Action: "plugin__desk__Ring", Enabled: true}}
	if got := usableActions(Compile(f, tools.New())); got != own+"plugin__desk__read" {
		t.Errorf("with what stands behind it switched off: %q", got)
	}
	f.Toggles, f.Connector.Effect.Vetoed = nil, []string{"extension.plugin_read"}
	if got := usableActions(Compile(f, tools.New())); got != own+"plugin__desk__Ring" {
		t.Errorf("with a veto of the home: %q", got)
	}
	if f = bridged(contract.SwitchExtension); len(tools.New().Tools()) != len(Compile(f, tools.New()).Catalogue().Tools()) {
		t.Error("a tool was added or lost")
	}
	if extension, _ := tools.New().Tool("extension"); len(extension.Actions) != 7 {
		t.Error("the catalogue of everybody was changed")
	}
}

func TestACallOfAHomesToolGoesToWhatStandsBehindIt(t *testing.T) {
	t.Parallel()
	s := Compile(bridged(contract.SwitchExtension), tools.New())
	tool, _ := s.Catalogue().Tool("extension")
	for _, name := range []string{"plugin__desk__Ring", "plugin__desk__ring", "PLUGIN--desk--ring"} {
		a, ok := tool.Resolve(name)
		if !ok {
			t.Fatalf("%s is not known", name)
		}
		args, err := a.Validate(json.RawMessage(`{"arguments":{"times":2,"Deep":{"a":[1,"x"]}}}`))
		if err != nil {
			t.Fatal(err)
		}
		by, settled := a.Stand(args)
		if by != tools.PluginCall.Action || string(settled) != `{"arguments":{"Deep":{"a":[1,"x"]},"times":2},"tool":"plugin__desk__Ring"}` || s.Consent(a) != tenants.ConsentAsk {
			t.Errorf("%s: %s %s", name, by.ID(), settled)
		}
	}
	for _, name := range []string{"plugin_call", "plugin_read", "native_read", "native_call"} {
		if a, ok := tool.Resolve(name); ok {
			t.Errorf("%s leads to %s", name, a.ID())
		}
	}
	d, ok := disclosure.Describe(tool, s.Enabled, false)
	if want := "plugin__desk__Ring(arguments?)* “Ring the 'bell '.”\n"; !ok || !strings.Contains(d.Description, want) || strings.Contains(d.Description, "plugin_call") {
		t.Errorf("%s\nwant %s", d.Description, want)
	}
	other := bridged(contract.SwitchExtension)
	other.Connector.Effect.Tools[0].Summary = "Something else."
	if Compile(other, tools.New()).Profile() == s.Profile() {
		t.Error("agents of homes with other tools share a list")
	}
}
