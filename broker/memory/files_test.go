package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/here"
	"siyuan-broker/broker/memory"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// agents are the files with a tenant's two members and their agents.
type agents struct {
	*memory.Files
	db       *postgres.Store
	tenant   tenants.ID
	instance tenants.ID
	one, two *admission.Snapshot // agents of different members
}

func newAgents(t *testing.T) *agents {
	t.Helper()
	ctx, pg := t.Context(), pgtest.New(t)
	db, err := postgres.Open(ctx, postgres.Options{ServiceDSN: pg.ServiceDSN, RecorderDSN: pg.RecorderDSN, ListenDSN: pg.ListenDSN, MasterKey: make([]byte, 32), MaxConns: 8})
	must(t, err)
	t.Cleanup(db.Close)
	a := &agents{Files: &memory.Files{Store: db, Now: time.Now}, db: db}
	var people [2]tenants.ID
	for i := range people {
		u, err := db.CreateUser(ctx, tenants.User{Email: fmt.Sprintf("p%d@example.org", i), Name: "P"})
		must(t, err)
		people[i] = u.ID
	}
	tenant, err := db.CreateTenant(ctx, "Notes", people[0])
	must(t, err)
	a.tenant = tenant.ID
	var snaps [2]*admission.Snapshot
	must(t, db.In(ctx, a.tenant, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, people[1], tenants.Owner))
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "Home", DefaultLevel: contract.Read, Enabled: true})
		must(t, err)
		a.instance = in.ID
		for i, person := range people {
			made, err := tx.CreateAgent(ctx, tenants.Agent{MemberID: person, InstanceID: in.ID, Name: "agent", Origin: tenants.FromToken, Ceiling: contract.ReadWriteDelete})
			must(t, err)
			snaps[i] = snapshot(a.tenant, in, made, contract.ReadWriteDelete)
		}
		return nil
	}))
	a.one, a.two = snaps[0], snaps[1]
	return a
}

func snapshot(tenant tenants.ID, in tenants.Instance, agent tenants.Agent, ceiling contract.Level) *admission.Snapshot {
	agent.Ceiling = ceiling
	return admission.Compile(&tenants.Snapshot{TenantID: tenant, TenantStatus: tenants.Active, Agent: agent, Member: agent.MemberID, Role: tenants.Owner, Instance: in}, tools.New())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call runs an action with a new request id.
func (a *agents) call(snap *admission.Snapshot, name, args string) (json.RawMessage, *contract.Error, bool) {
	return a.again(snap, name, args, tenants.NewID().String())
}

func (a *agents) again(snap *admission.Snapshot, name, args, request string) (json.RawMessage, *contract.Error, bool) {
	action, _ := tools.New().Action("fs", name)
	settled, err := action.Validate(json.RawMessage(args))
	if err != nil {
		return nil, err, true
	}
	return a.Answer(context.Background(), here.Call{Snapshot: snap, Action: action, Args: settled, RequestID: request})
}

func (a *agents) ok(t *testing.T, snap *admission.Snapshot, name, args string) json.RawMessage {
	t.Helper()
	body, err, mine := a.call(snap, name, args)
	if err != nil || !mine {
		t.Fatalf("%s %s: mine %v, %v", name, args, mine, err)
	}
	return body
}

func (a *agents) fails(t *testing.T, want contract.Code, snap *admission.Snapshot, name, args string) *contract.Error {
	t.Helper()
	body, err, mine := a.call(snap, name, args)
	if !mine || err == nil || contract.CodeOf(err) != want {
		t.Errorf("%s %s: mine %v, %v %s, want %s", name, args, mine, err, body, want)
	}
	return err
}

func (a *agents) text(t *testing.T, snap *admission.Snapshot, path string) string {
	t.Helper()
	var out tools.FSReadOut
	must(t, json.Unmarshal(a.ok(t, snap, "read", `{"path":"`+path+`"}`), &out))
	if out.Path != path || out.TotalBlocks != 1 || out.HasNextWindow {
		t.Errorf("%+v", out)
	}
	return out.Content
}

func TestAgentsOfAMemberShareTheirMemoryAndOthersHaveTheirOwn(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	if got := a.text(t, a.one, "/AGENTS.md"); got != "" {
		t.Errorf("before anything was written: %q", got)
	}
	a.ok(t, a.one, "write", `{"path":"AGENTS.md/","markdown":"Likes 茶.\n\nWorks in /Work."}`)
	if got := a.text(t, a.one, "/AGENTS.md"); got != "Likes 茶.\n\nWorks in /Work." {
		t.Errorf("%q", got)
	}
	if got := a.text(t, a.two, "/AGENTS.md"); got != "" {
		t.Errorf("another member's agent reads %q", got)
	}
	other := copyOf(a.one)
	other.Principal.Instance = tenants.NewID()
	if got := a.text(t, other, "/AGENTS.md"); got != "" {
		t.Errorf("for another workspace it reads %q", got)
	}
	stranger := copyOf(a.one)
	stranger.Principal.Tenant = tenants.NewID()
	if got := a.text(t, stranger, "/AGENTS.md"); got != "" {
		t.Errorf("another tenant with the same ids reads %q", got)
	}
}

func TestMemoryIsEditedAndEmptied(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.ok(t, a.one, "write", `{"path":"/AGENTS.md","markdown":"one two two","overwrite":true}`)
	var out tools.FSReplaceOut
	must(t, json.Unmarshal(a.ok(t, a.one, "replace", `{"path":"/AGENTS.md","edit":[{"old":"two","new":"2"},{"old":"one","new":"1","replace_all":true}]}`), &out))
	if got := a.text(t, a.one, "/AGENTS.md"); got != "1 2 two" || !out.Changed || out.EditsApplied != 2 || out.Replacements[0].Replaced != 1 {
		t.Errorf("%q %+v", got, out)
	}
	a.ok(t, a.one, "replace", `{"path":"/AGENTS.md","old":"two","new":""}`)
	a.fails(t, contract.InvalidValue, a.one, "replace", `{"path":"/AGENTS.md","edit":[{"old":"1","new":"x"},{"old":"absent","new":"y"}]}`)
	if got := a.text(t, a.one, "/AGENTS.md"); got != "1 2 " {
		t.Errorf("after an edit that failed: %q", got)
	}
	a.ok(t, a.one, "rm", `{"path":"/AGENTS.md"}`)
	if got := a.text(t, a.one, "/AGENTS.md"); got != "" {
		t.Errorf("after rm: %q", got)
	}
	must(t, a.db.In(t.Context(), a.tenant, func(tx tenants.Tx) error {
		all, err := tx.Memories(t.Context(), a.instance, a.one.Principal.Member)
		if len(all) != 4 || all[1].Text != "1 2 " || all[1].AgentID != a.one.Principal.Agent {
			t.Errorf("versions %+v", all)
		}
		return err
	}))
}

func TestAWriteSentTwiceIsDoneOnce(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.ok(t, a.one, "write", `{"path":"/AGENTS.md","markdown":"a"}`)
	request := tenants.NewID().String()
	for range 3 {
		if _, err, _ := a.again(a.one, "replace", `{"path":"/AGENTS.md","old":"a","new":"aa"}`, request); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.text(t, a.one, "/AGENTS.md"); got != "aa" {
		t.Errorf("%q", got)
	}
}

func TestAWriteIsValidatedWithoutBeingDone(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.ok(t, a.one, "write", `{"path":"/AGENTS.md","markdown":"one"}`)
	strict := func(safety contract.Safety) (json.RawMessage, *contract.Error) {
		settled, _ := tools.FSWrite.Validate(json.RawMessage(`{"path":"/AGENTS.md","markdown":"two"}`))
		body, err, _ := a.Answer(t.Context(), here.Call{Snapshot: a.one, Action: tools.FSWrite.Action, Args: settled, RequestID: tenants.NewID().String(), Safety: safety})
		return body, err
	}
	body, err := strict(contract.Safety{ValidateOnly: true})
	var p here.Preflight
	must(t, json.Unmarshal(body, &p))
	if err != nil || p.StateHash == "" || a.text(t, a.one, "/AGENTS.md") != "one" {
		t.Fatalf("%s %v", body, err)
	}
	a.ok(t, a.one, "write", `{"path":"/AGENTS.md","markdown":"meanwhile"}`)
	if _, err := strict(contract.Safety{Expect: p.StateHash}); contract.CodeOf(err) != contract.StateChanged {
		t.Errorf("after a change: %v", err)
	}
	body, _ = strict(contract.Safety{ValidateOnly: true})
	must(t, json.Unmarshal(body, &p))
	if _, err := strict(contract.Safety{Expect: p.StateHash}); err != nil || a.text(t, a.one, "/AGENTS.md") != "two" {
		t.Errorf("%v", err)
	}
}

func TestMemoryNeedsACeilingAndHasABound(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	reader := copyOf(a.one)
	reader.Principal.Ceiling = contract.Read
	for name, args := range map[string]string{"write": `{"path":"/AGENTS.md","markdown":"x"}`, "replace": `{"path":"/AGENTS.md","old":"a","new":"b"}`, "rm": `{"path":"/AGENTS.md"}`} {
		a.fails(t, contract.PermissionDenied, reader, name, args)
	}
	if got := a.text(t, reader, "/AGENTS.md"); got != "" {
		t.Errorf("%q", got)
	}
	a.ok(t, a.one, "write", `{"path":"/AGENTS.md","markdown":"`+strings.Repeat("字", tenants.MaxMemory)+`"}`)
	a.fails(t, contract.TooLarge, a.one, "write", `{"path":"/AGENTS.md","markdown":"`+strings.Repeat("字", tenants.MaxMemory+1)+`"}`)
	a.fails(t, contract.InvalidValue, a.one, "write", `{"path":"/AGENTS.md","markdown":"nul \u0000"}`)
}

func TestRulesAreReadAndNeverWritten(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	must(t, a.db.In(t.Context(), a.tenant, func(tx tenants.Tx) error {
		must(t, tx.SetRules(t.Context(), a.instance, tenants.ID{}, "For all."))
		return tx.SetRules(t.Context(), a.instance, a.one.Principal.Member, "只用中文。")
	}))
	if got := a.text(t, a.one, "/USER_RULES.md"); got != "For all.\n\n只用中文。" {
		t.Errorf("%q", got)
	}
	if got := a.text(t, a.two, "/USER_RULES.md"); got != "For all." {
		t.Errorf("another member's agent reads %q", got)
	}
	for name, args := range map[string]string{"write": `{"path":"/USER_RULES.md","markdown":"x","overwrite":true}`, "replace": `{"path":"/USER_RULES.md","old":"For","new":"b"}`, "rm": `{"path":"/USER_RULES.md"}`} {
		a.fails(t, contract.PermissionDenied, a.one, name, args)
	}
}

// TestACallThatNamesAVirtualFileNeverGoesHome, wherever in the arguments it does;
// and no other call is kept.
func TestACallThatNamesAVirtualFileNeverGoesHome(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	for _, path := range []string{"/AGENTS.md", "AGENTS.md", " //AGENTS.md/ ", "/USER_RULES.md"} {
		quoted, err := json.Marshal(path)
		must(t, err)
		for name, args := range map[string]string{
			"ls": `{"path":%s}`, "tree": `{"path":%s}`, "search": `{"path":%s,"query":"x"}`, "mv": `{"from":%s,"to":"/Work/A"}`, "reorder": `{"path":"/Work","orderedPaths":["/Work/A",%s]}`,
		} {
			a.fails(t, contract.Unsupported, a.one, name, fmt.Sprintf(args, quoted))
		}
		a.fails(t, contract.Unsupported, a.one, "mv", fmt.Sprintf(`{"from":"/Work/A","to":%s}`, quoted))
	}
	for name, args := range map[string]string{
		"read": `{"path":"/Work/AGENTS.md"}`, "ls": `{"path":"/"}`, "search": `{"path":"/","query":"/AGENTS.md"}`, "write": `{"path":"/Work/x","markdown":"/AGENTS.md"}`,
	} {
		if _, _, mine := a.call(a.one, name, args); mine {
			t.Errorf("%s %s is kept", name, args)
		}
	}
	action, _ := tools.New().Action("document", "search_docs")
	if _, _, mine := a.Answer(t.Context(), here.Call{Snapshot: a.one, Action: action, Args: json.RawMessage(`{"path":"/AGENTS.md"}`)}); mine {
		t.Error("a call of another tool is kept")
	}
}

func TestTheRootListsTheVirtualFilesOnItsFirstPage(t *testing.T) {
	t.Parallel()
	f := &memory.Files{}
	home := func(page int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"path":"/","items":[{"name":"A<b>","path":"/A<b>","children":2}],"total":3,"page":%d,"pageSize":1,"pageCount":3,"hasNextPage":true}`, page))
	}
	const virtual = `,{"name":"AGENTS.md","path":"/AGENTS.md","children":0,"virtual":true},{"name":"USER_RULES.md","path":"/USER_RULES.md","children":0,"virtual":true}`
	for _, c := range []struct {
		args string
		page int
		want string
	}{
		{`{"path":" // "}`, 1, `{"path":"/","items":[{"name":"A<b>","path":"/A<b>","children":2}` + virtual + `],"total":5,"page":1,"pageSize":1,"pageCount":3,"hasNextPage":true}`},
		{`{"path":"/","page":2}`, 2, `{"path":"/","items":[{"name":"A<b>","path":"/A<b>","children":2}],"total":5,"page":2,"pageSize":1,"pageCount":3,"hasNextPage":true}`},
		{`{"path":"/A"}`, 1, string(home(1))},
	} {
		got, err := f.Complete(tools.FSLs.Action, json.RawMessage(c.args), home(c.page))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s (%v)\nwant %s", c.args, got, err, c.want)
		}
	}
	if got, err := f.Complete(tools.FSTree.Action, json.RawMessage(`{"path":"/"}`), home(1)); err != nil || string(got) != string(home(1)) {
		t.Errorf("tree: %s %v", got, err)
	}
}

// copyOf is a snapshot of the same principal, to be changed.
func copyOf(s *admission.Snapshot) *admission.Snapshot {
	return &admission.Snapshot{Principal: s.Principal}
}
