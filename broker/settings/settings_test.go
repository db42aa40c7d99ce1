package settings

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// desk is the page of a tenant with one workspace of two notebooks, and its people.
type desk struct {
	*Page
	db                      *postgres.Store
	tenant, owner, somebody tenants.ID
	instance                tenants.ID
	who                     tenants.Viewer
}

const (
	garden = "20240131120000-abc1234"
	diary  = "20240131120001-abc1234"
)

func newDesk(t *testing.T) *desk {
	t.Helper()
	ctx, pg := t.Context(), pgtest.New(t)
	db, err := postgres.Open(ctx, postgres.Options{ServiceDSN: pg.ServiceDSN, RecorderDSN: pg.RecorderDSN, ListenDSN: pg.ListenDSN, MasterKey: make([]byte, 32), MaxConns: 4})
	must(t, err)
	t.Cleanup(db.Close)
	owner, err := db.CreateUser(ctx, tenants.User{Email: "p@example.org", Name: "P"})
	must(t, err)
	somebody, err := db.CreateUser(ctx, tenants.User{Email: "q@example.org", Name: "Q"})
	must(t, err)
	tenant, err := db.CreateTenant(ctx, "Notes", owner.ID)
	must(t, err)
	d := &desk{db: db, tenant: tenant.ID, owner: owner.ID, somebody: somebody.ID}
	d.in(t, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, somebody.ID, tenants.Member))
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "Home <b>", DefaultLevel: contract.Read, Enabled: true})
		must(t, err)
		d.instance = in.ID
		return tx.ReplaceNotebooks(ctx, in.ID, []tenants.Notebook{{ID: garden, Name: "Garden 花园"}, {ID: diary, Name: "Diary", Closed: true}})
	})
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	must(t, err)
	d.Page, err = New(Options{Pages: pages, Store: db, Catalogue: tools.New(), Log: slog.New(slog.DiscardHandler),
		Viewer: func(*http.Request) (tenants.Viewer, bool) { return d.who, d.who.ID != tenants.ID{} }})
	must(t, err)
	d.as(owner.ID, tenants.Owner)
	return d
}

func (d *desk) in(t *testing.T, fn func(tenants.Tx) error) {
	t.Helper()
	must(t, d.db.In(t.Context(), d.tenant, fn))
}

func (d *desk) as(member tenants.ID, role tenants.Role) {
	d.who = tenants.Viewer{ID: member, Belongs: true, Membership: tenants.Membership{TenantID: d.tenant, TenantName: "Notes", Role: role}}
}

func (d *desk) show(t *testing.T, lang string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "https://notes.example"+PagePath, nil)
	r.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	d.Show(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// post sends a form of the workspace. The flash tells whether it was taken.
func (d *desk) post(handle http.HandlerFunc, fields ...string) (status int) {
	form := url.Values{"instance": {d.instance.String()}}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest("POST", "https://notes.example/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handle(w, r)
	if w.Code == http.StatusSeeOther && !strings.Contains(strings.Join(w.Header()["Set-Cookie"], " "), "settings.saved") {
		return http.StatusUnprocessableEntity // the page says that nothing was saved
	}
	return w.Code
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// verbs are the last audit entries, the newest first.
func (d *desk) verbs(t *testing.T) (list []string) {
	t.Helper()
	d.in(t, func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 20)
		for _, e := range log {
			if e.ActorKind != "member" || e.ActorID != d.owner {
				t.Errorf("audit %+v: not by the owner", e)
			}
			list = append(list, e.Verb+" "+e.Object)
		}
		return err
	})
	return list
}

func TestOwnersSetLevelsOfNotebooks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	code := d.post(d.SaveLevels, "was.default", "r", "default", "none", "was.level."+garden, "", "level."+garden, "rw", "was.level."+diary, "", "level."+diary, "")
	if code != http.StatusSeeOther {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		levels, err := tx.Levels(t.Context(), d.instance)
		must(t, err)
		in, err := tx.Instance(t.Context(), d.instance)
		if len(levels) != 1 || levels[garden] != contract.ReadWrite || in.DefaultLevel != contract.None {
			t.Errorf("levels %v, default %v", levels, in.DefaultLevel)
		}
		return err
	})
	if got := d.verbs(t); len(got) != 2 || !slices.Contains(got, "level.set notebook:"+garden+" rw") || !slices.Contains(got, "level.set notebook: none") {
		t.Errorf("audit %q", got)
	}
	if code := d.post(d.SaveLevels, "was.level."+garden, "rw", "level."+garden, ""); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		levels, err := tx.Levels(t.Context(), d.instance)
		if len(levels) != 0 {
			t.Errorf("the default again: %v", levels)
		}
		return err
	})
}

func TestAFormWritesOnlyWhatThePersonChanged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.in(t, func(tx tenants.Tx) error { // somebody else, while the form was open
		must(t, tx.SetLevel(t.Context(), d.instance, garden, contract.None))
		return tx.SetToggle(t.Context(), d.instance, tenants.Toggle{Tool: "fs", Action: "write", Enabled: false})
	})
	if code := d.post(d.SaveLevels, "was.default", "r", "default", "r", "was.level."+garden, "", "level."+garden, "", "was.level."+diary, "", "level."+diary, "rw"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	if code := d.post(d.SaveTool, "tool", "fs", "was.on", "write", "on", "write", "was.on", "read"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		levels, err := tx.Levels(t.Context(), d.instance)
		must(t, err)
		if levels[garden] != contract.None || levels[diary] != contract.ReadWrite {
			t.Errorf("levels %v", levels)
		}
		toggles, err := tx.Toggles(t.Context(), d.instance)
		if len(toggles) != 2 || toggles[0].Enabled || toggles[1].Enabled {
			t.Errorf("toggles %+v: want write and read off", toggles)
		}
		return err
	})
}

func TestOwnersSwitchActionsAndSayHowPeopleAgree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	remove, ok := tools.New().Action("document", "remove")
	if !ok || !remove.Off || !remove.Dangerous {
		t.Fatalf("document.remove is no longer a dangerous action that is off: %+v", remove)
	}
	if code := d.post(d.SaveTool, "tool", "document", "on", "remove", "was.consent.remove", "ask", "consent.remove", "console"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		toggles, err := tx.Toggles(t.Context(), d.instance)
		must(t, err)
		consents, err := tx.Consents(t.Context(), d.instance)
		if len(toggles) != 1 || toggles[0] != (tenants.Toggle{Tool: "document", Action: "remove", Enabled: true}) ||
			len(consents) != 1 || consents[0] != (tenants.Consent{Tool: "document", Action: "remove", Mode: tenants.ConsentConsole}) {
			t.Errorf("%+v, %+v", toggles, consents)
		}
		return err
	})
	if code := d.post(d.SaveTool, "tool", "document", "was.on", "remove"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		toggles, err := tx.Toggles(t.Context(), d.instance)
		if len(toggles) != 0 {
			t.Errorf("%+v: what the catalogue says anyway needs no entry", toggles)
		}
		return err
	})
	for name, fields := range map[string][]string{
		"a policy the action does not follow": {"tool", "notebook", "was.consent.remove", "ask", "consent.remove", "preview"},
		"a policy for what asks nobody":       {"tool", "document", "was.consent.get_doc", "ask", "consent.get_doc", "deny"},
		"no policy":                           {"tool", "document", "was.consent.remove", "ask", "consent.remove", "never"},
		"no tool":                             {"tool", "nothing"},
	} {
		if code := d.post(d.SaveTool, fields...); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, code)
		}
	}
}

func TestOwnersSetTheWorkspaceAndTheSpace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if code := d.post(d.SaveSwitches, "on", "tags", "on", "sync", "on", "made_up"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	if code := d.post(d.SaveWorkspace, "was.name", "Home <b>", "name", " 书房 ", "was.on", "enabled"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	if code := d.post(d.SaveSpace, "was.chars", "", "chars", "12000", "was.strict", "offered", "strict", "required", "on", "skills"); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		on, err := tx.Switches(t.Context(), d.instance)
		must(t, err)
		if slices.Sort(on); !slices.Equal(on, []contract.Switch{contract.SwitchSync, contract.SwitchTags}) {
			t.Errorf("switches %v", on)
		}
		in, err := tx.Instance(t.Context(), d.instance)
		must(t, err)
		if in.Name != "书房" || in.Enabled {
			t.Errorf("workspace %+v", in)
		}
		s, err := tx.Tenant(t.Context())
		if s.Limits.ResultChars != 12000 || s.Settings.StrictWrites != tenants.StrictRequired || !s.Settings.SkillsExtension {
			t.Errorf("space %+v %+v", s.Limits, s.Settings)
		}
		return err
	})
	for name, try := range map[string]func() int{
		"a name of nothing": func() int { return d.post(d.SaveWorkspace, "was.name", "书房", "name", "  ") },
		"a name without end": func() int {
			return d.post(d.SaveWorkspace, "was.name", "书房", "name", strings.Repeat("字", maxName+1))
		},
		"a name of two lines":  func() int { return d.post(d.SaveWorkspace, "was.name", "书房", "name", "a\nb") },
		"a level there is not": func() int { return d.post(d.SaveLevels, "was.default", "r", "default", "all") },
		"too short an answer":  func() int { return d.post(d.SaveSpace, "was.chars", "", "chars", "1") },
		"an endless answer":    func() int { return d.post(d.SaveSpace, "was.chars", "", "chars", "99999999") },
		"no number":            func() int { return d.post(d.SaveSpace, "was.chars", "", "chars", "many") },
		"a strictness of none": func() int { return d.post(d.SaveSpace, "was.strict", "offered", "strict", "very") },
	} {
		if code := try(); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, code)
		}
	}
}

func TestOwnersSetTheBudgetOfWrites(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		name   string
		fields []string
		code   int
		want   int
	}{
		{"a number", []string{"was.writes", "", "writes", "50", "was.on", "budget", "on", "budget"}, http.StatusSeeOther, 50},
		{"nothing new", []string{"was.writes", "50", "writes", "50", "was.on", "budget", "on", "budget"}, http.StatusSeeOther, 50},
		{"too many", []string{"was.writes", "50", "writes", "100001", "was.on", "budget", "on", "budget"}, http.StatusUnprocessableEntity, 50},
		{"less than one", []string{"was.writes", "50", "writes", "0", "was.on", "budget", "on", "budget"}, http.StatusUnprocessableEntity, 50},
		{"off", []string{"was.writes", "50", "writes", "50", "was.on", "budget"}, http.StatusSeeOther, tenants.NoWriteBudget},
		{"a number while it is off", []string{"was.writes", "", "writes", "7"}, http.StatusSeeOther, tenants.NoWriteBudget},
		{"on with a number", []string{"was.writes", "", "writes", "9", "on", "budget"}, http.StatusSeeOther, 9},
		{"the default", []string{"was.writes", "9", "writes", "", "was.on", "budget", "on", "budget"}, http.StatusSeeOther, 0},
	} {
		if code := d.post(d.SaveSpace, c.fields...); code != c.code {
			t.Errorf("%s: %d", c.name, code)
		}
		d.in(t, func(tx tenants.Tx) error {
			s, err := tx.Tenant(t.Context())
			if s.Limits.WriteBudget != c.want {
				t.Errorf("%s: %d, want %d", c.name, s.Limits.WriteBudget, c.want)
			}
			return err
		})
	}
}

func TestWhatIsWrongInAFormSavesNothingOfIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if code := d.post(d.SaveLevels, "was.default", "r", "default", "rwd", "was.level."+garden, "", "level."+garden, "everything"); code != http.StatusUnprocessableEntity {
		t.Fatal(code)
	}
	d.in(t, func(tx tenants.Tx) error {
		in, err := tx.Instance(t.Context(), d.instance)
		if in.DefaultLevel != contract.Read {
			t.Errorf("the default became %v", in.DefaultLevel)
		}
		return err
	})
	if got := d.verbs(t); len(got) != 0 {
		t.Errorf("audit %q", got)
	}
}

func TestOnlyWhoManagesSeesAndSaves(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	tries := map[string]func() int{
		"levels":    func() int { return d.post(d.SaveLevels, "was.default", "r", "default", "rwd") },
		"tool":      func() int { return d.post(d.SaveTool, "tool", "document", "on", "remove") },
		"switches":  func() int { return d.post(d.SaveSwitches, "on", "tags") },
		"workspace": func() int { return d.post(d.SaveWorkspace, "was.on", "enabled") },
		"space":     func() int { return d.post(d.SaveSpace, "on", "skills") },
	}
	refused := func(who string) {
		for name, try := range tries {
			if code := try(); code != http.StatusNotFound {
				t.Errorf("%s, %s: %d", who, name, code)
			}
		}
	}
	d.as(d.somebody, tenants.Member)
	if html := d.show(t, "en"); strings.Contains(html, "Garden") || strings.Contains(html, "Home &lt;b&gt;") || strings.Contains(html, "<select") {
		t.Error("a plain member sees what is set")
	}
	refused("a member")
	d.as(d.somebody, tenants.Owner) // as the session still has it; the store knows better
	refused("somebody who is no owner any more")
	d.who.Belongs = false
	refused("somebody without a tenant")
	d.as(d.owner, tenants.Owner)
	other := d.instance
	d.instance = tenants.NewID()
	if code := tries["levels"](); code != http.StatusNotFound {
		t.Errorf("another's workspace: %d", code)
	}
	d.instance = other
	d.who = tenants.Viewer{}
	w := httptest.NewRecorder()
	d.Show(w, httptest.NewRequest("GET", "https://notes.example"+PagePath, nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("without a session: %d", w.Code)
	}
	if got := d.verbs(t); len(got) != 0 {
		t.Errorf("audit %q", got)
	}
}

func TestThePageShowsWhatIsSetAndWhatTheHomeAllows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.in(t, func(tx tenants.Tx) error {
		c, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: d.instance, Name: "nas", PublicKey: make([]byte, 32), PairedBy: d.owner})
		must(t, err)
		must(t, tx.SetLevel(t.Context(), d.instance, garden, contract.ReadWriteDelete))
		return tx.SetPolicyEffect(t.Context(), c.ID, contract.PolicyEffect{MaxLevel: contract.ReadWrite, Notebooks: map[string]contract.Level{garden: contract.Read}, Vetoed: []string{"fs.rm"}, Digest: "x"})
	})
	for lang, words := range map[string][]string{
		"en": {"Garden 花园", "At home at most: Read only", "allows at most: Read and write", "not allowed at home", "Home &lt;b&gt;", "Remove a document with all below it", `<option value="rwd" selected>Everything`},
		"zh": {"Garden 花园", "家中最多：只读", "家中策略最多允许：读写", "家中不允许", "删除文档及其子文档", `<option value="rwd" selected>全部`},
	} {
		html := d.show(t, lang)
		for _, w := range words {
			if !strings.Contains(html, w) {
				t.Errorf("%s: no %q in the page", lang, w)
			}
		}
	}
}

func TestThePageIsWellFormedInBothLanguages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	full := newView(d.who)
	d.in(t, func(tx tenants.Tx) error { return d.fill(t.Context(), tx, &full, d.instance, page.English) })
	full.Homes = append(full.Homes, choice{tenants.NewID(), "Second", false})
	empty := newView(d.who)
	empty.Space = spaceOf(tenants.Tenant{Limits: tenants.Limits{ResultChars: 9000}})
	set, err := load(d.opt.Pages)
	must(t, err)
	for _, p := range set.Check(map[string][]any{"settings": {full, empty, newView(tenants.Viewer{}), newView(tenants.Viewer{Belongs: true, Membership: tenants.Membership{TenantName: "T", Role: tenants.Member}})}}) {
		t.Error(p)
	}
}
