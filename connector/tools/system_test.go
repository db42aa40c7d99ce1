package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// owner may do everything everywhere.
func owner() *contract.Grant {
	g := guardtest.Grant(nil)
	g.Default, g.Switches = contract.ReadWriteDelete, contract.Switches()
	return g
}

// answers calls an action and compares the whole answer.
func answers(t *testing.T, d *desk, g *contract.Grant, id, args, want string) {
	t.Helper()
	if r := d.call(g, id, args); r.Err != nil || string(r.Body) != want {
		t.Errorf("%s %s\n got %s %v\nwant %s", id, args, r.Body, r.Err, want)
	}
}

func TestSystemAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Answer("/api/system/currentTime", `1796043073493`)
	d.Answer("/api/system/getWorkspaceInfo", `{"siyuanVer":"3.7.3","workspaceDir":"/home/ann/SiYuan"}`)
	d.Answer("/api/system/getNetwork", `{"proxy":{"scheme":"http","host":"ann:s3cret@proxy.example","port":"3128"}}`)
	d.Answer("/api/notification/pushErrMsg", `{"id":"q8l0i0f"}`)
	d.Answer("/api/notification/pushMsg", `{"id":"a1b2c3d"}`)
	answers(t, d, writer(), "system.get_version", `{}`, `{"version":"3.7.3"}`)
	answers(t, d, writer(), "system.get_current_time", `{}`, `{"currentTime":1796043073493,"iso":"2026-11-30T12:51:13.493Z"}`)
	answers(t, d, owner(), "system.workspace_info", `{}`, `{"workspaceDir":"/home/ann/SiYuan","siyuanVer":"3.7.3"}`)
	answers(t, d, owner(), "system.network", `{}`, `{"proxy":{"scheme":"http","host":"[REDACTED]@proxy.example","port":"3128"}}`)
	answers(t, d, owner(), "system.notify", `{"msg":"Done.","level":"info"}`, `{"level":"info","id":"a1b2c3d"}`)
	answers(t, d, owner(), "system.notify", `{"msg":"Failed.","level":"error","timeout":100}`, `{"level":"error","id":"q8l0i0f"}`)
	answers(t, d, writer(), "system.bootstrap", `{}`, `{"schemaVersion":2,"version":"3.7.3","notebooks":[`+
		`{"id":"20240101090000-work001","name":"Work","closed":false,"level":"rw"},{"id":"20240101090100-diary01","name":"日记","closed":false,"level":"r"},`+
		`{"id":"20240101090300-archive","name":"Archive","closed":true,"level":"r"}],"connection":{"readable":3,"writable":1,"deletable":0},"limits":{"listChars":24000}}`)
}

func TestBootstrapSaysWhatToDoWhereLittleIsAllowed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	none := ok[catalogue.SystemBootstrapOut](t, d, guardtest.Grant(nil), "system.bootstrap", `{}`)
	if len(none.Notebooks) != 0 || len(none.Hints) != 1 || !strings.Contains(none.Hints[0], "no notebook") {
		t.Errorf("without rights: %+v", none)
	}
	read := ok[catalogue.SystemBootstrapOut](t, d, grantOn(contract.Read, contract.Read), "system.bootstrap", `{}`)
	if len(read.Hints) != 1 || !strings.Contains(read.Hints[0], "not write") {
		t.Errorf("with read only: %+v", read)
	}
}

func TestWorkspaceWideSystemActionsNeedTheirSwitch(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for id, args := range map[string]string{
		"system.conf": `{}`, "system.network": `{}`, "system.workspace_info": `{}`, "system.perform_sync": `{}`, "system.notify": `{"msg":"x","level":"info"}`,
	} {
		g := owner()
		g.Switches = []contract.Switch{contract.SwitchTags, contract.SwitchWorkspace}
		fails(t, d.call(g, id, args), contract.PermissionDenied)
	}
}

func TestConfNeedsThatNothingIsHidden(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	g := owner()
	g.Levels = map[string]contract.Level{guardtest.Private: contract.None}
	fails(t, d.call(g, "system.conf", `{}`), contract.Unsupported)
}

func TestConfIsReadByPathAndOpenedByDepth(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Answer("/api/system/getConf", `{"conf":{"editor":{"fontSize":16,"emoji":["a","b","c"],"markdown":{"inlineMath":true}},"api":{"token":"sesame"},"lang":"en"}}`)
	answers(t, d, owner(), "system.conf", `{"mode":"get","keyPath":"editor.fontSize"}`, `{"mode":"get","keyPath":"editor.fontSize","value":{"type":"number","value":16}}`)
	answers(t, d, owner(), "system.conf", `{"mode":"get","keyPath":"editor.emoji[1]"}`, `{"mode":"get","keyPath":"editor.emoji[1]","value":{"type":"string","value":"b"}}`)
	answers(t, d, owner(), "system.conf", `{"mode":"get","keyPath":"api.token"}`, `{"mode":"get","keyPath":"api.token","value":{"type":"string","value":"[REDACTED]"}}`)
	answers(t, d, owner(), "system.conf", `{"mode":"get","keyPath":"editor.emoji","maxItems":2}`,
		`{"mode":"get","keyPath":"editor.emoji","value":{"type":"array","count":3,"entries":[{"type":"string","value":"a"},{"type":"string","value":"b"}],"truncated":true}}`)
	answers(t, d, owner(), "system.conf", `{}`, `{"mode":"summary","topLevelKeys":["api","editor","lang"],"totalTopLevelKeys":3,"summary":{"type":"object","count":3,"entries":[`+
		`{"key":"api","type":"object","count":1,"truncated":true},{"key":"editor","type":"object","count":3,"truncated":true},{"key":"lang","type":"string","value":"en"}]}}`)
	r := d.call(owner(), "system.conf", `{"mode":"get","keyPath":"editor.nothing"}`)
	fails(t, r, contract.NotFound)
	if r.Err != nil && !strings.Contains(r.Err.Hint, "emoji, fontSize, markdown") {
		t.Errorf("the hint names no settings: %q", r.Err.Hint)
	}
	fails(t, d.call(owner(), "system.conf", `{"mode":"get"}`), contract.InvalidArguments)
}

// TestASyncThatIsNotSetUpIsNoSuccess: SiYuan answers success to it.
func TestASyncThatIsNotSetUpIsNoSuccess(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	conf := func(enabled bool, mode int) {
		d.Answer("/api/system/getConf", fmt.Sprintf(`{"conf":{"sync":{"enabled":%v,"mode":%d}}}`, enabled, mode))
	}
	conf(false, 1)
	fails(t, d.call(owner(), "system.perform_sync", `{}`), contract.Unsupported)
	conf(true, 3)
	fails(t, d.call(owner(), "system.perform_sync", `{}`), contract.Unsupported)
	conf(true, 1)
	d.Answer("/api/sync/getSyncInfo", `{"kernel":"tg28qd8","kernels":[],"stat":"Synced at 12:51","synced":1796043073493}`)
	answers(t, d, owner(), "system.perform_sync", `{}`, `{"ok":true,"result":"Synced at 12:51","synced":1796043073493}`)
	d.Answer("/api/sync/getSyncInfo", `{"kernel":"tg28qd8","kernels":[],"stat":"Put \"https://ann:pw@dav.example/x\": refused","synced":1796043073493}`)
	answers(t, d, owner(), "system.perform_sync", `{}`, `{"ok":true,"result":"Put \"https://[REDACTED]@dav.example/x\": refused","synced":1796043073493}`)
	fails(t, deskOf(t, d.Home, policy.Fixed(contract.Read)).call(owner(), "system.perform_sync", `{}`), contract.PermissionDenied)
	d.Kernel.Faults().Set("/api/sync/performSync", samplekernel.Fault{Kind: samplekernel.FaultDropAfter})
	fails(t, d.call(owner(), "system.perform_sync", `{}`), contract.OutcomeUnknown)
}

func TestTheChangelogIsThisProgramsOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	out := ok[catalogue.SystemChangelogOut](t, d, writer(), "system.changelog", `{"limit":1}`)
	if out.TotalEntries < 1 || out.ReturnedEntries != 1 || len(out.Entries[0].Items) == 0 || out.Entries[0].RawMarkdown != "" {
		t.Errorf("%+v", out)
	}
	if raw := ok[catalogue.SystemChangelogOut](t, d, writer(), "system.changelog", `{"limit":1,"includeRaw":true}`); !strings.Contains(raw.Entries[0].RawMarkdown, "### Added") {
		t.Errorf("raw: %+v", raw.Entries[0])
	}
	fails(t, d.call(writer(), "system.changelog", `{"version":"99.0.0"}`), contract.NotFound)
}

func TestLiveSystem(t *testing.T) {
	d, g := liveDesk(t)
	if v := ok[catalogue.SystemGetVersionOut](t, d, g, "system.get_version", `{}`).Version; !strings.HasPrefix(v, "3.") {
		t.Errorf("version %q", v)
	}
	if out := ok[catalogue.SystemGetCurrentTimeOut](t, d, g, "system.get_current_time", `{}`); out.CurrentTime < 1.7e12 {
		t.Errorf("time %+v", out)
	}
	if out := ok[catalogue.SystemBootstrapOut](t, d, g, "system.bootstrap", `{}`); out.Version == "" || out.Connection.Readable != len(out.Notebooks) {
		t.Errorf("bootstrap %+v", out)
	}
	if out := ok[catalogue.SystemWorkspaceInfoOut](t, d, g, "system.workspace_info", `{}`); !strings.HasPrefix(out.WorkspaceDir, "/") {
		t.Errorf("workspace %+v", out)
	}
	ok[catalogue.SystemNetworkOut](t, d, g, "system.network", `{}`)
	if out := ok[catalogue.SystemNotifyOut](t, d, g, "system.notify", `{"msg":"A test.","level":"info","timeout":1}`); len(out.ID) != 7 {
		t.Errorf("notify %+v", out)
	}
	fails(t, d.call(g, "system.perform_sync", `{}`), contract.Unsupported)
	r := d.call(g, "system.conf", `{"maxDepth":5,"maxItems":100}`)
	if r.Err != nil || !strings.Contains(string(r.Body), `"key":"fontSize"`) || strings.Count(string(r.Body), "[REDACTED]") < 3 {
		t.Errorf("conf %v %s", r.Err, r.Body)
	}
}
