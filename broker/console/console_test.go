package console

import (
	"testing"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/broker/people"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestEveryPageRendersInEveryLanguage(t *testing.T) {
	t.Parallel()
	p, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}, Paths: Paths()})
	if err != nil {
		t.Fatal(err)
	}
	set, err := load(p)
	if err != nil {
		t.Fatal(err)
	}
	empty := form{Values: map[string]string{}, Wrong: map[string]string{}}
	wrong := form{Values: map[string]string{"email": `"><b>`, "name": "n"}, Wrong: map[string]string{"": "wrong.pair", "email": "wrong.taken", "password": "wrong.short", "old": "wrong.old"}}
	samples := map[string][]any{
		"welcome": {struct {
			MCP    string
			SignUp bool
		}{"https://notes.example/mcp", true}},
		"signin":   {signInPage{form: empty}, signInPage{form: wrong, Next: "/console/agents?a=b", SignUp: true, Provider: "Login"}},
		"signup":   {signUpPage{form: empty}, signUpPage{form: wrong, Link: "x", Invited: people.Invitation{Email: "ann@example.org"}, Provider: "Login"}, signUpPage{form: wrong, Link: "x", Invited: people.Invitation{Operator: true}}, signUpPage{form: empty, Link: "x", Invited: people.Invitation{Email: "ann@example.org", Joins: true}}},
		"closed":   {nil},
		"badlink":  {nil},
		"forgot":   {nil},
		"provider": {"unreachable", "refused", "unknown"},
		"reset":    {resetPage{form: empty, Link: "x", Email: "ann@example.org"}, resetPage{form: wrong, Link: "x", Email: "ann@example.org"}},
		"enter":    {struct{ Link string }{"x"}},
		"account":  {accountPage{form: empty}, accountPage{form: wrong, Session: people.Session{HasPassword: true}, Locale: "zh-CN"}},
	}
	invited := joinPage{Link: "x", Email: "ann@example.org", SignIn: "/console/signin"}
	for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Member} {
		samples["join"] = append(samples["join"], joinPage{Link: "x", Email: "ann@example.org", SignedIn: "ann@example.org", Fits: true, Tenant: "<b>", Role: role, Until: time.Now()})
	}
	withSignUp, other := invited, invited
	withSignUp.SignUp, other.SignedIn = true, "eve@example.org"
	samples["join"] = append(samples["join"], invited, withSignUp, other)
	var homes []home
	for _, state := range []contract.HomeState{contract.HomeReady, contract.HomeOffline, contract.HomeUnauthorized, contract.HomeWrongWorkspace, contract.HomeIndexing, ""} {
		homes = append(homes, home{Name: "x", Enabled: true, Paired: true, Live: Live{Connected: true, Since: time.Now(), State: state, SiYuanVersion: "3.7.3", RTT: 1500 * time.Microsecond}})
	}
	homes = append(homes, home{Name: "off", Enabled: true, Paired: true, LastSeen: time.Now().Add(-25 * time.Hour)}, home{Name: "new", Enabled: true}, home{Name: "disabled"})
	for i := range homes {
		homes[i].describe()
	}
	if homes[0].RTT != "2" || homes[0].Kind != "on" || homes[6].Key != "home.offline" || homes[7].Key != "home.unpaired" || homes[8].Key != "home.disabled" {
		t.Errorf("homes are described as %+v", homes)
	}
	samples["home"] = []any{homePage{}, homePage{Belongs: true}, homePage{Belongs: true, Manages: true, Pair: "/pair"}, homePage{Belongs: true, Tenant: tenants.Membership{TenantName: "Home"}, Homes: homes, Connect: "/connect"}}
	for _, problem := range set.Check(samples) {
		t.Error(problem)
	}
}
