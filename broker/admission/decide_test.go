package admission

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Actions of the kinds that decisions tell apart. They are not the catalogue's,
// which may change.
var (
	plainRead  = &tools.Action{Tool: "notebook", Name: "peruse", Kind: tools.Read, Scope: tools.ScopeTargets, Level: contract.Read}
	plainWrite = &tools.Action{Tool: "notebook", Name: "scribble", Kind: tools.Write, Scope: tools.ScopeTargets, Level: contract.ReadWrite}
	workspace  = &tools.Action{Tool: "notebook", Name: "found", Kind: tools.Write, Scope: tools.ScopeWorkspace, Level: contract.ReadWrite, Switch: contract.SwitchWorkspace}
	dangerous  = &tools.Action{Tool: "notebook", Name: "burn", Kind: tools.Delete, Scope: tools.ScopeTargets, Level: contract.ReadWriteDelete, Dangerous: true}
	offAtFirst = &tools.Action{Tool: "notebook", Name: "whisper", Kind: tools.Read, Scope: tools.ScopeNone, Off: true}
)

func toggle(a *tools.Action, on bool) tenants.Toggle {
	return tenants.Toggle{Tool: a.Tool, Action: a.Name, Enabled: on}
}

func TestDecideNamesTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action *tools.Action
		change func(*tenants.Snapshot, *tools.Action)
		want   Reason
		code   contract.Code
	}{
		"read":                   {plainRead, nil, Permitted, ""},
		"write":                  {plainWrite, nil, Permitted, ""},
		"switched off":           {plainRead, func(f *tenants.Snapshot, a *tools.Action) { f.Toggles = []tenants.Toggle{toggle(a, false)} }, SwitchedOff, contract.ActionDisabled},
		"another tool given":     {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Agent.Tools = []string{"other"} }, ToolNotGiven, contract.ActionDisabled},
		"no tool given":          {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Agent.Tools = []string{} }, ToolNotGiven, contract.ActionDisabled},
		"this tool given":        {plainRead, func(f *tenants.Snapshot, a *tools.Action) { f.Agent.Tools = []string{a.Tool} }, Permitted, ""},
		"action vetoed at home":  {plainRead, func(f *tenants.Snapshot, a *tools.Action) { f.Connector.Effect.Vetoed = []string{a.ID()} }, HomeVeto, contract.ActionDisabled},
		"tool vetoed at home":    {plainRead, func(f *tenants.Snapshot, a *tools.Action) { f.Connector.Effect.Vetoed = []string{a.Tool} }, HomeVeto, contract.ActionDisabled},
		"write under a reader":   {plainWrite, func(f *tenants.Snapshot, _ *tools.Action) { f.Agent.Ceiling = contract.Read }, LevelTooLow, contract.PermissionDenied},
		"write where home reads": {plainWrite, func(f *tenants.Snapshot, _ *tools.Action) { f.Connector.Effect.MaxLevel = contract.Read }, LevelTooLow, contract.PermissionDenied},
		"write, home allows one": {plainWrite, func(f *tenants.Snapshot, _ *tools.Action) {
			f.Connector.Effect = &contract.PolicyEffect{MaxLevel: contract.Read, Notebooks: map[string]contract.Level{work: contract.ReadWrite}}
		}, Permitted, ""},
		"write, home not reported": {plainWrite, func(f *tenants.Snapshot, _ *tools.Action) { f.Connector.Effect = nil }, LevelTooLow, contract.PermissionDenied},
		"write, no home":           {plainWrite, func(f *tenants.Snapshot, _ *tools.Action) { f.Connector = nil }, LevelTooLow, contract.PermissionDenied},
		"read, no home":            {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Connector = nil }, Permitted, ""},
		"write, matrix reads":      {plainWrite, func(f *tenants.Snapshot, _ *tools.Action) { f.Levels = nil }, LevelTooLow, contract.PermissionDenied},
		"member without share":     {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Role = tenants.Member }, LevelTooLow, contract.PermissionDenied},
		"member with share": {plainRead, func(f *tenants.Snapshot, _ *tools.Action) {
			f.Role, f.Shares = tenants.Member, map[string]contract.Level{private: contract.Read}
		}, Permitted, ""},
		"suspended tenant":       {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.TenantStatus = tenants.Suspended }, TenantSuspended, contract.PermissionDenied},
		"closed tenant":          {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.TenantStatus = tenants.Closed }, TenantSuspended, contract.PermissionDenied},
		"disabled instance":      {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Instance.Enabled = false }, InstanceDisabled, contract.PermissionDenied},
		"revoked agent":          {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Agent.RevokedAt = noon }, AgentRevoked, contract.PermissionDenied},
		"former member":          {plainRead, func(f *tenants.Snapshot, _ *tools.Action) { f.Role = "" }, NotAMember, contract.PermissionDenied},
		"off by default":         {offAtFirst, nil, SwitchedOff, contract.ActionDisabled},
		"off by default, but on": {offAtFirst, func(f *tenants.Snapshot, a *tools.Action) { f.Toggles = []tenants.Toggle{toggle(a, true)} }, Permitted, ""},
		"no notebook is touched": {offAtFirst, func(f *tenants.Snapshot, a *tools.Action) {
			f.Role, f.Toggles = tenants.Member, []tenants.Toggle{toggle(a, true)}
		}, Permitted, ""},
		"workspace under a reader": {workspace, func(f *tenants.Snapshot, _ *tools.Action) {
			f.Agent.Ceiling, f.Switches = contract.Read, contract.Switches()
		}, LevelTooLow, contract.PermissionDenied},
		"workspace, home reads": {workspace, func(f *tenants.Snapshot, _ *tools.Action) {
			f.Switches, f.Connector.Effect.MaxLevel = contract.Switches(), contract.Read
		}, LevelTooLow, contract.PermissionDenied},
		"workspace, home writes one notebook": {workspace, func(f *tenants.Snapshot, _ *tools.Action) {
			f.Switches = contract.Switches()
			f.Connector.Effect = &contract.PolicyEffect{MaxLevel: contract.Read, Notebooks: map[string]contract.Level{work: contract.ReadWriteDelete}}
		}, LevelTooLow, contract.PermissionDenied},
		"workspace, matrix reads": {workspace, func(f *tenants.Snapshot, _ *tools.Action) { f.Switches, f.Levels = contract.Switches(), nil }, Permitted, ""},
		"workspace, no switch":    {workspace, func(f *tenants.Snapshot, a *tools.Action) { f.Toggles = []tenants.Toggle{toggle(a, true)} }, NoSwitch, contract.ActionDisabled},
		"workspace, switched": {workspace, func(f *tenants.Snapshot, a *tools.Action) {
			f.Toggles, f.Switches = []tenants.Toggle{toggle(a, true)}, []contract.Switch{a.Switch}
		}, Permitted, ""},
		"workspace, another switch": {workspace, func(f *tenants.Snapshot, a *tools.Action) {
			f.Toggles = []tenants.Toggle{toggle(a, true)}
			f.Switches = slices.DeleteFunc(contract.Switches(), func(s contract.Switch) bool { return s == a.Switch })
		}, NoSwitch, contract.ActionDisabled},
		"workspace, plain member": {workspace, func(f *tenants.Snapshot, a *tools.Action) {
			f.Role, f.Toggles, f.Switches, f.Shares = tenants.Member, []tenants.Toggle{toggle(a, true)}, contract.Switches(), map[string]contract.Level{work: contract.ReadWriteDelete}
		}, NotManager, contract.PermissionDenied},
		"dangerous, undecided": {dangerous, func(f *tenants.Snapshot, a *tools.Action) { f.Toggles = []tenants.Toggle{toggle(a, true)} }, Permitted, ""},
		"dangerous, ask":       {dangerous, consent(tenants.ConsentAsk), Permitted, ""},
		"dangerous, console":   {dangerous, consent(tenants.ConsentConsole), Permitted, ""},
		"dangerous, preview":   {dangerous, consent(tenants.ConsentPreview), Permitted, ""},
		"dangerous, deny":      {dangerous, consent(tenants.ConsentDeny), ConsentDenied, contract.ActionDisabled},
		"dangerous, allow":     {dangerous, consent(tenants.ConsentAllow), Permitted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := c.action
			s := compiled(func(f *tenants.Snapshot) {
				if c.change != nil {
					c.change(f, a)
				}
			})
			d := s.decide(a)
			if d.Reason != c.want {
				t.Fatalf("%s: %s, want %s", a.ID(), d.Reason, c.want)
			}
			err := d.Error()
			if (err == nil) != d.Allowed() {
				t.Fatalf("allowed %v with error %v", d.Allowed(), err)
			}
			if err != nil && (contract.CodeOf(err) != c.code || err.Message == "" || err.Hint == "") {
				t.Errorf("error %+v, want code %s with message and hint", err, c.code)
			}
		})
	}
}

func consent(mode tenants.ConsentMode) func(*tenants.Snapshot, *tools.Action) {
	return func(f *tenants.Snapshot, a *tools.Action) {
		f.Toggles = []tenants.Toggle{toggle(a, true)}
		f.Consents = []tenants.Consent{{Tool: a.Tool, Action: a.Name, Mode: mode}}
	}
}

// What an action needs at least, no tenant lowers.
func TestATenantsPolicyStaysAboveWhatAnActionNeeds(t *testing.T) {
	t.Parallel()
	const ask, inConsole, preview, allow, deny = tenants.ConsentAsk, tenants.ConsentConsole, tenants.ConsentPreview, tenants.ConsentAllow, tenants.ConsentDeny
	for agreement, want := range map[tools.Agreement]map[tenants.ConsentMode]tenants.ConsentMode{
		tools.AnyAgreement: {"": ask, ask: ask, inConsole: inConsole, preview: preview, allow: allow, deny: deny},
		tools.ByPerson:     {"": ask, ask: ask, inConsole: inConsole, preview: ask, allow: allow, deny: deny},
		tools.InConsole:    {"": inConsole, ask: inConsole, inConsole: inConsole, preview: inConsole, allow: inConsole, deny: deny},
	} {
		for chosen, want := range want {
			a := *dangerous
			a.Agreement = agreement
			s := compiled(func(f *tenants.Snapshot) {
				if chosen != "" {
					f.Consents = []tenants.Consent{{Tool: a.Tool, Action: a.Name, Mode: chosen}}
				}
			})
			if got := s.Consent(&a); got != want {
				t.Errorf("agreement %q, policy %q: %s, want %s", agreement, chosen, got, want)
			}
		}
	}
	if s := compiled(nil); s.Consent(plainRead) != allow {
		t.Error("a read is asked about")
	}
}

func TestDecideOnWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	s := compiled(nil)
	if d := Decide(s, "nothing", "list"); d.Reason != NoSuchTool || contract.CodeOf(d.Error()) != contract.UnknownTool {
		t.Errorf("%+v", d)
	}
	if d := Decide(s, "notebook", "nothing"); d.Reason != NoSuchAction || contract.CodeOf(d.Error()) != contract.UnknownAction {
		t.Errorf("%+v", d)
	}
}

func TestAnAgentExpiresByTheClock(t *testing.T) {
	t.Parallel()
	s := compiled(func(f *tenants.Snapshot) { f.Agent.ExpiresAt = noon })
	if r := s.InForce(noon.Add(-time.Nanosecond)); r != Permitted {
		t.Errorf("before: %s", r)
	}
	if r := s.InForce(noon); r != AgentExpired || !r.EndsAccess() || r.Error() == nil {
		t.Errorf("at the moment: %s", r)
	}
}

// What a description lists and what help explains is what Decide admits, for
// any principal.
func TestListedIsCallable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	listed, hidden := 0, 0
	for range 2000 {
		s := Compile(random(r), catalogue)
		list := disclosure.List(s.Catalogue(), s.Enabled, s.Strict())
		for _, tool := range s.Catalogue().Tools() {
			shown := slices.ContainsFunc(list, func(d disclosure.Descriptor) bool { return d.Name == tool.Name })
			any := false
			for _, a := range tool.Actions {
				if a.ByName {
					continue // what stands for it is
				}
				allowed := Decide(s, tool.Name, a.Name).Allowed()
				any = any || allowed
				_, err := disclosure.Help(tool, a.Name, s.Enabled, true)
				if allowed != (err == nil) {
					t.Fatalf("%s: allowed %v, help %v", a.ID(), allowed, err)
				}
				if allowed {
					listed++
				} else {
					hidden++
				}
			}
			if shown != any {
				t.Fatalf("%s: listed %v, callable %v", tool.Name, shown, any)
			}
		}
	}
	if listed < 1000 || hidden < 1000 {
		t.Fatalf("the draw is lopsided: %d listed, %d hidden", listed, hidden)
	}
}

// Taking any right away never adds an action or raises a level.
func TestLessIsNeverMore(t *testing.T) {
	t.Parallel()
	lower := func(l contract.Level) contract.Level {
		if l == contract.None {
			return l
		}
		return l - 1
	}
	for name, take := range map[string]func(*tenants.Snapshot){
		"ceiling":         func(f *tenants.Snapshot) { f.Agent.Ceiling = lower(f.Agent.Ceiling) },
		"default":         func(f *tenants.Snapshot) { f.Instance.DefaultLevel = lower(f.Instance.DefaultLevel) },
		"matrix":          func(f *tenants.Snapshot) { f.Levels[work] = contract.None },
		"share":           func(f *tenants.Snapshot) { delete(f.Shares, work) },
		"switches":        func(f *tenants.Snapshot) { f.Switches = nil },
		"home":            func(f *tenants.Snapshot) { f.Connector = &tenants.SnapshotConnector{Effect: &contract.PolicyEffect{}} },
		"tools":           func(f *tenants.Snapshot) { f.Agent.Tools = []string{} },
		"instance":        func(f *tenants.Snapshot) { f.Instance.Enabled = false },
		"owner to member": func(f *tenants.Snapshot) { f.Role = tenants.Member },
		"consent": func(f *tenants.Snapshot) {
			f.Consents = nil
			for _, tool := range catalogue.Tools() {
				for _, a := range tool.Actions {
					f.Consents = append(f.Consents, tenants.Consent{Tool: tool.Name, Action: a.Name, Mode: tenants.ConsentDeny})
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 4))
			for range 500 {
				f := random(r)
				if name == "owner to member" && f.Role == "" {
					continue // that would be more
				}
				before := Compile(f, catalogue)
				take(f)
				after := Compile(f, catalogue)
				for _, tool := range catalogue.Tools() {
					for _, a := range tool.Actions {
						if !before.Enabled(a) && after.Enabled(a) {
							t.Fatalf("%s appeared", a.ID())
						}
					}
				}
				for _, notebook := range []string{work, private, fresh} {
					if after.Level(notebook) > before.Level(notebook) || after.Granted(notebook) > before.Granted(notebook) {
						t.Fatalf("level of %s rose from %s to %s", notebook, before.Level(notebook), after.Level(notebook))
					}
				}
			}
		})
	}
}
