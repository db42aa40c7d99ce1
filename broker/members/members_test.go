package members

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
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

// desk is the page of a tenant with an owner, an admin, a member and a workspace
// of two notebooks.
type desk struct {
	*Page
	db                           *postgres.Store
	tenant, instance             tenants.ID
	owner, admin, plain, outside tenants.ID
	who                          tenants.Viewer
	invites                      int // left in this hour
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
	person := func(name string) tenants.ID {
		u, err := db.CreateUser(ctx, tenants.User{Email: strings.ToLower(name) + "@example.org", Name: name})
		must(t, err)
		return u.ID
	}
	d := &desk{db: db, owner: person("Olga"), admin: person("Ada"), plain: person("Paul"), outside: person("Xaver"), invites: 10}
	tenant, err := db.CreateTenant(ctx, "Notes", d.owner)
	must(t, err)
	d.tenant = tenant.ID
	d.in(t, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, d.admin, tenants.Admin))
		must(t, tx.AddMember(ctx, d.plain, tenants.Member))
		in, err := tx.CreateInstance(ctx, tenants.Instance{Name: "Home <b>", DefaultLevel: contract.ReadWrite, Enabled: true})
		must(t, err)
		d.instance = in.ID
		c, err := tx.RegisterConnector(ctx, tenants.Connector{InstanceID: in.ID, Name: "nas", PublicKey: make([]byte, 32)})
		must(t, err)
		must(t, tx.SetPolicyEffect(ctx, c.ID, contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete, Digest: "x"}))
		return tx.ReplaceNotebooks(ctx, in.ID, []tenants.Notebook{{ID: garden, Name: "Garden 花园"}, {ID: diary, Name: "Diary"}})
	})
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	must(t, err)
	d.Page, err = New(Options{
		Pages: pages, Store: db, Catalogue: tools.New(), Home: page.Path("/console"), Log: slog.New(slog.DiscardHandler),
		Viewer: func(*http.Request) (tenants.Viewer, bool) { return d.who, d.who.ID != tenants.ID{} },
		Invite: func(base string, tenant tenants.ID, email string, role tenants.Role, by tenants.ID, now time.Time) (tenants.Invitation, string) {
			return tenants.Invitation{Hash: tenants.HashSecret(email), Email: email, Role: role, InvitedBy: by, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, base + "/the-link"
		},
		Limit: func(_ context.Context, counter string, _ int, _ time.Duration) (bool, time.Duration) {
			if counter != "invite "+d.tenant.String() {
				t.Errorf("counted as %q", counter)
			}
			d.invites--
			return d.invites >= 0, time.Minute
		},
	})
	must(t, err)
	d.as(d.owner, tenants.Owner)
	return d
}

func (d *desk) in(t *testing.T, fn func(tenants.Tx) error) {
	t.Helper()
	must(t, d.db.In(t.Context(), d.tenant, fn))
}

func (d *desk) as(id tenants.ID, role tenants.Role) {
	d.who = tenants.Viewer{ID: id, Belongs: true, Membership: tenants.Membership{TenantID: d.tenant, TenantName: "Notes", Role: role}}
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

var flash = regexp.MustCompile(`flash=(\w+\.[\w.]+)`)

// post sends a form and gives what is said after it, or else the status.
func (d *desk) post(handle http.HandlerFunc, fields ...string) string {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest("POST", "https://notes.example/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handle(w, r)
	if said := flash.FindStringSubmatch(strings.Join(w.Header()["Set-Cookie"], " ")); said != nil && w.Code == http.StatusSeeOther {
		return said[1]
	}
	if strings.Contains(w.Body.String(), "https://notes.example/the-link") {
		return "link"
	}
	return fmt.Sprint(w.Code)
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// roles are those of the three people; empty for who is no member.
func (d *desk) roles(t *testing.T) (list [3]tenants.Role) {
	t.Helper()
	d.in(t, func(tx tenants.Tx) error {
		for i, id := range []tenants.ID{d.owner, d.admin, d.plain} {
			if m, err := tx.Member(t.Context(), id); err == nil {
				list[i] = m.Role
			}
		}
		return nil
	})
	return list
}

// verbs are the audit entries of somebody, the newest first.
func (d *desk) verbs(t *testing.T, actor tenants.ID) (list []string) {
	t.Helper()
	d.in(t, func(tx tenants.Tx) error {
		log, err := tx.AuditLog(t.Context(), time.Now().Add(time.Hour), 50)
		for _, e := range log {
			if e.ActorKind != "member" || e.ActorID != actor {
				t.Errorf("audit %+v", e)
			}
			list = append(list, e.Verb+" "+e.Object)
		}
		return err
	})
	return list
}

const good, bad = "good.people.", "bad.people."

func TestOwnersGiveRolesAndRemoveMembers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var agent tenants.ID
	d.in(t, func(tx tenants.Tx) error {
		a, err := tx.CreateAgent(t.Context(), tenants.Agent{MemberID: d.plain, InstanceID: d.instance, Name: "x", Origin: tenants.FromToken})
		agent = a.ID
		return err
	})
	want(t, "promote", d.post(d.SaveRole, "member", d.plain.String(), "role", "admin"), good+"saved")
	want(t, "the same again", d.post(d.SaveRole, "member", d.plain.String(), "role", "admin"), good+"saved")
	want(t, "no role", d.post(d.SaveRole, "member", d.plain.String(), "role", "king"), bad+"wrong")
	want(t, "nobody", d.post(d.SaveRole, "member", "x", "role", "admin"), bad+"wrong")
	want(t, "a stranger", d.post(d.SaveRole, "member", d.outside.String(), "role", "admin"), "404")
	want(t, "the last owner's demotion", d.post(d.SaveRole, "member", d.owner.String(), "role", "admin"), bad+"lastowner")
	want(t, "the last owner's removal", d.post(d.Remove, "member", d.owner.String()), bad+"lastowner")
	want(t, "the last owner's leave", d.post(d.Leave), bad+"lastowner")
	want(t, "remove", d.post(d.Remove, "member", d.plain.String()), good+"removed")
	if got := d.roles(t); got != [3]tenants.Role{tenants.Owner, tenants.Admin, ""} {
		t.Errorf("roles %v", got)
	}
	d.in(t, func(tx tenants.Tx) error {
		a, err := tx.Agent(t.Context(), agent)
		if a.RevokedAt.IsZero() {
			t.Error("the removed member's agent goes on")
		}
		return err
	})
	if got, want := d.verbs(t, d.owner), []string{"member.remove user:" + d.plain.String(), "member.role user:" + d.plain.String() + " admin"}; !slices.Equal(got, want) {
		t.Errorf("audit %q, want %q", got, want)
	}
	want(t, "make an owner", d.post(d.SaveRole, "member", d.admin.String(), "role", "owner"), good+"saved")
	want(t, "leave", d.post(d.Leave), good+"left")
	if got := d.roles(t); got != [3]tenants.Role{"", tenants.Owner, ""} {
		t.Errorf("roles %v", got)
	}
}

func TestAdminsDoNotTouchOwners(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.in(t, func(tx tenants.Tx) error { return tx.AddMember(t.Context(), d.outside, tenants.Owner) }) // not the last
	d.as(d.admin, tenants.Owner)                                                                      // as the session may still have it; the store knows better
	want(t, "demote an owner", d.post(d.SaveRole, "member", d.owner.String(), "role", "member"), bad+"above")
	want(t, "remove an owner", d.post(d.Remove, "member", d.owner.String()), bad+"above")
	want(t, "make an owner", d.post(d.SaveRole, "member", d.plain.String(), "role", "owner"), bad+"above")
	want(t, "make oneself owner", d.post(d.SaveRole, "member", d.admin.String(), "role", "owner"), bad+"above")
	want(t, "invite an owner", d.post(d.Invite, "email", "n@example.org", "role", "owner"), bad+"above")
	if got := d.verbs(t, d.admin); got != nil {
		t.Errorf("audit %q", got)
	}
	html := d.show(t, "en")
	if n := strings.Count(html, `name="member" value="`+d.owner.String()); n != 0 || strings.Contains(html, `<option value="owner"`) {
		t.Error("the page offers an admin what only owners may do")
	}
	want(t, "make an admin", d.post(d.SaveRole, "member", d.plain.String(), "role", "admin"), good+"saved")
	want(t, "remove an admin", d.post(d.Remove, "member", d.plain.String()), good+"removed")
	if got := d.roles(t); got != [3]tenants.Role{tenants.Owner, tenants.Admin, ""} {
		t.Errorf("roles %v", got)
	}
}

func TestAnInvitationsLinkIsShownOnceAndCanBeTakenBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want(t, "invite", d.post(d.Invite, "email", "New@example.org", "role", "member"), "link")
	want(t, "no address", d.post(d.Invite, "email", "nobody", "role", "member"), bad+"email")
	want(t, "a member", d.post(d.Invite, "email", "PAUL@example.org", "role", "member"), bad+"already")
	html := d.show(t, "en")
	if !strings.Contains(html, "new@example.org") || !strings.Contains(html, "by Olga") || strings.Contains(html, "the-link") {
		t.Error("the open invitation is not listed, or its link is shown again")
	}
	var open tenants.Invitation
	d.in(t, func(tx tenants.Tx) error {
		list, err := tx.Invitations(t.Context(), time.Now())
		if len(list) != 1 || list[0].InvitedBy != d.owner || list[0].Role != tenants.Member {
			t.Fatalf("open %+v", list)
		}
		open = list[0]
		return err
	})
	want(t, "take back", d.post(d.Withdraw, "invitation", open.ID.String()), good+"withdrawn")
	want(t, "again", d.post(d.Withdraw, "invitation", open.ID.String()), "404")
	if strings.Contains(d.show(t, "en"), "new@example.org") {
		t.Error("listed although taken back")
	}
	if got, want := d.verbs(t, d.owner), []string{"invitation.withdraw invitation:" + open.ID.String(), "invitation.create invitation:" + open.ID.String() + " member"}; !slices.Equal(got, want) {
		t.Errorf("audit %q, want %q", got, want)
	}
	d.invites = 0
	want(t, "too many in an hour", d.post(d.Invite, "email", "n@example.org", "role", "member"), bad+"toomany")
}

func (d *desk) team(t *testing.T) (team tenants.Team) {
	t.Helper()
	d.in(t, func(tx tenants.Tx) error {
		all, err := tx.Teams(t.Context())
		if len(all) != 1 {
			t.Fatalf("teams %v", all)
		}
		team = all[0]
		return err
	})
	return team
}

func TestTeamsAreMadeFilledRenamedAndDeleted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want(t, "make", d.post(d.MakeTeam, "name", " 编辑 "), good+"saved")
	want(t, "the same name", d.post(d.MakeTeam, "name", "编辑"), bad+"taken")
	for _, name := range []string{"", "  ", "a\nb", strings.Repeat("字", maxName+1)} {
		want(t, "no name", d.post(d.MakeTeam, "name", name), bad+"wrong")
	}
	team := d.team(t)
	id := team.ID.String()
	d.in(t, func(tx tenants.Tx) error { return tx.AddTeamMember(t.Context(), team.ID, d.admin) }) // somebody else, while the form was open
	want(t, "fill and rename", d.post(d.SaveTeam, "team", id, "was.name", "编辑", "name", "Editors", "on", d.plain.String(), "on", d.outside.String()), good+"saved")
	if team = d.team(t); team.Name != "Editors" || len(team.Members) != 2 || !slices.Contains(team.Members, d.plain) {
		t.Errorf("%+v: want the plain member and the one that the form did not know", team)
	}
	want(t, "empty", d.post(d.SaveTeam, "team", id, "was.name", "Editors", "name", "Editors", "was.on", d.plain.String()), good+"saved")
	want(t, "empty again", d.post(d.SaveTeam, "team", id, "was.name", "Editors", "name", "Editors", "was.on", d.plain.String()), good+"saved")
	if team = d.team(t); !slices.Equal(team.Members, []tenants.ID{d.admin}) {
		t.Errorf("%+v", team)
	}
	want(t, "no team", d.post(d.SaveTeam, "team", tenants.NewID().String(), "was.name", "a", "name", "b"), "404")
	want(t, "delete", d.post(d.DeleteTeam, "team", id), good+"removed")
	want(t, "delete again", d.post(d.DeleteTeam, "team", id), "404")
	for _, verb := range []string{"team.create", "team.rename", "team.add", "team.remove", "team.delete"} {
		if !slices.ContainsFunc(d.verbs(t, d.owner), func(v string) bool { return strings.HasPrefix(v, verb+" team:"+id) }) {
			t.Errorf("no audit entry %s", verb)
		}
	}
}

func TestNotebooksAreSharedWithMembersAndTeams(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post(d.MakeTeam, "name", "Team")
	team := d.team(t).ID.String()
	form := func(more ...string) []string {
		return append([]string{"instance", d.instance.String()}, more...)
	}
	want(t, "with a member", d.post(d.Share, form("notebook", garden, "with", "member:"+d.plain.String(), "level", "r")...), good+"saved")
	want(t, "more of it", d.post(d.Share, form("notebook", garden, "with", "member:"+d.plain.String(), "level", "rw")...), good+"saved")
	want(t, "with a team", d.post(d.Share, form("notebook", diary, "with", "team:"+team, "level", "rwd")...), good+"saved")
	for name, fields := range map[string][]string{
		"nothing":               form("notebook", garden, "with", "member:"+d.plain.String(), "level", "none"),
		"no level":              form("notebook", garden, "with", "member:"+d.plain.String(), "level", "all"),
		"nobody":                form("notebook", garden, "with", "member:", "level", "r"),
		"neither":               form("notebook", garden, "with", "agent:"+d.plain.String(), "level", "r"),
		"no notebook":           form("notebook", "20240131120009-abc1234", "with", "member:"+d.plain.String(), "level", "r"),
		"no notebook id at all": form("notebook", "x", "with", "team:"+team, "level", "r"),
	} {
		want(t, name, d.post(d.Share, fields...), bad+"wrong")
	}
	want(t, "with a stranger", d.post(d.Share, form("notebook", garden, "with", "member:"+d.outside.String(), "level", "r")...), "404")
	want(t, "of another's workspace", d.post(d.Share, "instance", tenants.NewID().String(), "notebook", garden, "with", "team:"+team, "level", "r"), "404")
	var shares []tenants.Share
	d.in(t, func(tx tenants.Tx) (err error) {
		shares, err = tx.Shares(t.Context(), tenants.ShareFilter{})
		return err
	})
	if len(shares) != 2 || shares[0].Level != contract.ReadWrite || shares[0].CreatedBy != d.owner || shares[1].Level != contract.ReadWriteDelete {
		t.Fatalf("shares %+v", shares)
	}
	if html := d.show(t, "en"); !strings.Contains(html, "End sharing Garden 花园 with Paul") || !strings.Contains(html, "End sharing Diary with Team") {
		t.Error("the page does not list what is shared")
	}
	want(t, "end", d.post(d.Unshare, form("share", shares[0].ID.String())...), good+"saved")
	want(t, "end again", d.post(d.Unshare, form("share", shares[0].ID.String())...), "404")
	if got := d.verbs(t, d.owner); got[0] != "share.remove share:"+shares[0].ID.String() || got[1] != "share.set notebook:"+diary+" team:"+team+" rwd" {
		t.Errorf("audit %q", got)
	}
}

func TestAMemberSeesWhatIsSharedWithThemAndNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.as(d.plain, tenants.Member)
	if html := d.show(t, "en"); strings.Contains(html, "Garden") || strings.Contains(html, "Home &lt;b&gt;") || !strings.Contains(html, "Nothing is shared with you yet") {
		t.Error("somebody without a share sees names")
	}
	d.in(t, func(tx tenants.Tx) error {
		team, err := tx.CreateTeam(ctx, "Team")
		must(t, err)
		must(t, tx.AddTeamMember(ctx, team.ID, d.plain))
		_, err = tx.Share(ctx, tenants.Share{InstanceID: d.instance, NotebookID: garden, MemberID: d.plain, Level: contract.Read})
		must(t, err)
		_, err = tx.Share(ctx, tenants.Share{InstanceID: d.instance, NotebookID: garden, TeamID: team.ID, Level: contract.ReadWriteDelete})
		return err
	})
	html := d.show(t, "en")
	if !strings.Contains(html, "Garden 花园") || !strings.Contains(html, "Home &lt;b&gt;") || !strings.Contains(html, "Read and write") || strings.Contains(html, "Everything") {
		t.Error("want the garden, with no more than the notebook's level") // the default is rw, the team's share rwd
	}
	for _, other := range []string{"Diary", "olga@example.org", "ada@example.org", "<select", "Team"} {
		if strings.Contains(html, other) {
			t.Errorf("a plain member sees %s", other)
		}
	}
	d.in(t, func(tx tenants.Tx) error { return tx.SetLevel(ctx, d.instance, garden, contract.None) })
	if html := d.show(t, "en"); strings.Contains(html, "Garden") || strings.Contains(html, "Home &lt;b&gt;") {
		t.Error("a hidden notebook is named to whom it is shared with")
	}
	want(t, "leave", d.post(d.Leave), good+"left")
	if got := d.verbs(t, d.plain); !slices.Equal(got, []string{"member.leave user:" + d.plain.String()}) {
		t.Errorf("audit %q", got)
	}
	want(t, "leave again", d.post(d.Leave), "404")
	w := httptest.NewRecorder()
	d.Show(w, httptest.NewRequest("GET", "https://notes.example"+PagePath, nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("somebody who left: %d", w.Code)
	}
}

func TestOnlyWhoManagesChanges(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post(d.MakeTeam, "name", "Team")
	before := d.verbs(t, d.owner)
	team, plain, instance := d.team(t).ID.String(), d.plain.String(), d.instance.String()
	tries := map[string]func() string{
		"role":        func() string { return d.post(d.SaveRole, "member", plain, "role", "admin") },
		"remove":      func() string { return d.post(d.Remove, "member", d.admin.String()) },
		"invite":      func() string { return d.post(d.Invite, "email", "n@example.org", "role", "member") },
		"withdraw":    func() string { return d.post(d.Withdraw, "invitation", plain) },
		"make team":   func() string { return d.post(d.MakeTeam, "name", "Mine") },
		"save team":   func() string { return d.post(d.SaveTeam, "team", team, "name", "x", "on", plain) },
		"delete team": func() string { return d.post(d.DeleteTeam, "team", team) },
		"share": func() string {
			return d.post(d.Share, "instance", instance, "notebook", garden, "with", "member:"+plain, "level", "rwd")
		},
		"unshare": func() string { return d.post(d.Unshare, "instance", instance, "share", plain) },
	}
	for name, who := range map[string]tenants.Viewer{
		"a member":                 {ID: d.plain, Belongs: true, Membership: tenants.Membership{TenantID: d.tenant, Role: tenants.Member}},
		"no owner any more":        {ID: d.plain, Belongs: true, Membership: tenants.Membership{TenantID: d.tenant, Role: tenants.Owner}},
		"a stranger":               {ID: d.outside, Belongs: true, Membership: tenants.Membership{TenantID: d.tenant, Role: tenants.Owner}},
		"somebody without tenant":  {ID: d.outside},
		"nobody who was signed in": {},
	} {
		d.who = who
		for form, try := range tries {
			want(t, name+", "+form, try(), "404")
		}
	}
	if got := d.verbs(t, d.owner); !slices.Equal(got, before) {
		t.Errorf("audit %q", got)
	}
}

func TestThePageIsWellFormedInBothLanguages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post(d.MakeTeam, "name", "<Team>")
	d.post(d.SaveTeam, "team", d.team(t).ID.String(), "was.name", "<Team>", "name", "<Team>", "on", d.plain.String())
	d.post(d.Invite, "email", "new@example.org", "role", "owner")
	d.post(d.Share, "instance", d.instance.String(), "notebook", garden, "with", "member:"+d.plain.String(), "level", "r")
	sample := func(id tenants.ID) view {
		v := view{Belongs: true, Tenant: "Notes"}
		d.in(t, func(tx tenants.Tx) error {
			return d.fill(httptest.NewRequest("GET", "https://notes.example"+PagePath, nil), tx, &v, id)
		})
		return v
	}
	full, member := sample(d.owner), sample(d.plain)
	if len(full.Members) != 3 || len(full.Invitations) != 1 || len(full.Teams) != 1 || len(full.Home.Shares) != 1 || len(member.Mine) != 1 {
		t.Fatalf("samples %+v, %+v", full, member)
	}
	second := full
	second.Closed, second.Homes = true, append(second.Homes, choice{tenants.NewID(), "Second", false})
	second.Invitations = []invitation{{ID: tenants.NewID(), Email: "a@example.org", Role: tenants.Member, Until: time.Now()}}
	second.Home = &home{ID: d.instance, Name: "Home", Notebooks: full.Home.Notebooks}
	third := second
	third.Home = &home{ID: d.instance, Name: "Home", Shares: []share{{ID: tenants.NewID(), Notebook: garden, With: "Ada", Level: contract.Read, Manages: true}}}
	bare := view{Belongs: true, Manages: true, Tenant: "Notes", Role: tenants.Owner}
	for _, p := range d.set.Check(map[string][]any{
		"people":  {full, second, third, bare, member, view{Belongs: true, Tenant: "Notes"}, view{}},
		"invited": {invited{"https://notes.example/x", "a@example.org", tenants.Member, time.Now(), false}, invited{"https://notes.example/x", "a@example.org", tenants.Owner, time.Now(), true}},
	}) {
		t.Error(p)
	}
	for lang, words := range map[string][]string{
		"en": {"Who works in Notes", "A share never gives more", "No mail is sent"},
		"zh": {"谁在 Notes 里工作", "共享给出的权限不会超过", "系统不发邮件"},
	} {
		html := d.show(t, lang)
		for _, w := range words {
			if !strings.Contains(html, w) {
				t.Errorf("%s: no %q in the page", lang, w)
			}
		}
	}
}
