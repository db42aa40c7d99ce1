package admission

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// The level is the minimum of the four, written out here once more by the words
// of the design: the broker must not invent another.
func TestLevelIsTheMinimumOfTenantMemberAgentAndHome(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		f := random(r)
		s := Compile(f, catalogue)
		for _, notebook := range []string{work, private, fresh} {
			tenant := f.Instance.DefaultLevel
			if l, ok := f.Levels[notebook]; ok {
				tenant = l
			}
			member := contract.None
			if f.Role == tenants.Owner || f.Role == tenants.Admin {
				member = contract.ReadWriteDelete
			} else if l, ok := f.Shares[notebook]; ok {
				member = l
			}
			home := contract.Read
			if f.Connector != nil {
				home = f.Connector.Effect.MaxLevel
				if l, ok := f.Connector.Effect.Notebooks[notebook]; ok {
					home = l
				}
			}
			granted := min(tenant, member, f.Agent.Ceiling)
			if got := s.Granted(notebook); got != granted {
				t.Fatalf("%s: granted %s, want %s", notebook, got, granted)
			}
			if got, want := s.Level(notebook), min(granted, home); got != want {
				t.Fatalf("%s: level %s, want %s", notebook, got, want)
			}
			if got := s.Grant(noon).Level(notebook); got != granted {
				t.Fatalf("%s: the grant says %s, want %s", notebook, got, granted)
			}
		}
	}
}

func TestGrantSaysWhoAndForHowLong(t *testing.T) {
	t.Parallel()
	s := compiled(func(f *tenants.Snapshot) { f.Switches = []contract.Switch{contract.SwitchTags} })
	g := s.Grant(noon.Add(42 * time.Second))
	if g.V != contract.GrantVersion || g.Tenant != tenantA.String() || g.Instance != instance.String() || g.Member != member.String() ||
		g.Agent != (contract.AgentRef{ID: agent.String(), Name: "agent"}) || g.PolicyVersion != 7 || !slices.Equal(g.Switches, []contract.Switch{contract.SwitchTags}) {
		t.Errorf("grant %+v", g)
	}
	if got, want := time.Unix(g.Exp, 0), noon.Add(2*time.Minute); !got.Equal(want) {
		t.Errorf("expires %v, want %v", got, want)
	}
}

func TestGrantsOfOneMinuteAreOneValue(t *testing.T) {
	t.Parallel()
	s := compiled(nil)
	if s.Grant(noon) != s.Grant(noon.Add(59*time.Second)) {
		t.Error("the grant changed within its minute")
	}
	if s.Grant(noon) == s.Grant(noon.Add(time.Minute)) {
		t.Error("the grant was handed out for longer than its minute")
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		now := noon.Add(time.Duration(r.Int64N(int64(time.Hour))))
		if left := time.Unix(s.Grant(now).Exp, 0).Sub(now); left <= time.Minute || left > 2*time.Minute {
			t.Fatalf("a grant of %v left", left)
		}
	}
}

func TestPlainMembersHoldNoSwitches(t *testing.T) {
	t.Parallel()
	for role, want := range map[tenants.Role]int{tenants.Owner: 8, tenants.Admin: 8, tenants.Member: 0} {
		s := compiled(func(f *tenants.Snapshot) { f.Role, f.Switches = role, contract.Switches() })
		if got := len(s.Grant(noon).Switches); got != want {
			t.Errorf("%s: %d switches, want %d", role, got, want)
		}
	}
}

func TestSnapshotDoesNotFollowLaterChangesOfItsFacts(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Connector.Effect.Notebooks = map[string]contract.Level{work: contract.ReadWriteDelete}
	s := Compile(f, catalogue)
	f.Levels[work], f.Connector.Effect.Notebooks[work] = contract.None, contract.None
	if s.Level(work) != contract.ReadWriteDelete {
		t.Error("the snapshot changed")
	}
}

func TestProfileTellsToolListsApart(t *testing.T) {
	t.Parallel()
	a, _ := catalogue.Action("notebook", "list")
	all := compiled(nil).Profile()
	if got := compiled(func(f *tenants.Snapshot) { f.Agent.Name, f.PolicyVersion = "other", 9 }).Profile(); got != all {
		t.Error("equal tools, other profile")
	}
	if got := compiled(func(f *tenants.Snapshot) { f.Toggles = []tenants.Toggle{toggle(a, false)} }).Profile(); got == all {
		t.Error("other tools, equal profile")
	}
}

func BenchmarkDecide(b *testing.B) {
	s := compiled(nil)
	for b.Loop() {
		if !Decide(s, "notebook", "list").Allowed() {
			b.Fatal("refused")
		}
	}
}

// A person in the place of an agent whose access has ended has what they have
// themselves, whatever the agent had: held against a snapshot of an agent of their
// own that is not bounded further.
func TestAPersonInAnEndedAgentsPlaceHasTheirOwnRights(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		f := random(r)
		f.Agent.RevokedAt, f.Agent.ExpiresAt = noon.Add(-time.Hour), noon.Add(-time.Minute)
		for _, c := range []struct {
			person tenants.ID
			role   tenants.Role
		}{{f.Member, f.Role}, {f.Member, tenants.Member}, {tenants.NewID(), tenants.Owner}, {tenants.NewID(), tenants.Admin}} {
			s := CompileInPlace(f, c.person, c.role, catalogue)
			own := *f
			own.Member, own.Role, own.Switches = c.person, c.role, nil
			own.Agent.RevokedAt, own.Agent.ExpiresAt, own.Agent.Tools, own.Agent.Ceiling = time.Time{}, time.Time{}, nil, contract.ReadWriteDelete
			want := Compile(&own, catalogue)
			for _, notebook := range []string{work, private, fresh} {
				if got := s.Level(notebook); got != want.Level(notebook) {
					t.Fatalf("%s of %v: level %s, want %s", notebook, c, got, want.Level(notebook))
				}
			}
			if got := s.InForce(noon); got != want.InForce(noon) || got.EndsAccess() && c.role.Valid() {
				t.Fatalf("%v: %s, want %s", c, got, want.InForce(noon))
			}
			if g := s.Grant(noon); len(g.Switches) != 0 || g.Agent.ID != f.Agent.ID.String() {
				t.Fatalf("grant %+v", g)
			}
		}
		for _, role := range []tenants.Role{tenants.Member, ""} {
			if s := CompileInPlace(f, tenants.NewID(), role, catalogue); s.InForce(noon) == Permitted || s.Level(work) != contract.None {
				t.Fatalf("a stranger with role %q: %s, %s", role, s.InForce(noon), s.Level(work))
			}
		}
	}
	f := facts()
	f.Agent.RevokedAt = noon
	if CompileInPlace(f, f.Member, f.Role, catalogue); f.Agent.RevokedAt.IsZero() {
		t.Error("the facts were changed")
	}
}
