package main

import (
	"testing"

	"siyuan-broker/tenants"
)

func TestAPolicyThatAnActionWouldNotFollowIsRefused(t *testing.T) {
	t.Parallel()
	for args, ok := range map[[2]string]bool{
		{"document.remove", "ask"}: true, {"document.remove", "console"}: true, {"document.remove", "preview"}: true,
		{"document.remove", "allow"}: true, {"document.remove", "deny"}: true, {"document.remove", "never"}: false,
		{"document.erase", "ask"}: false, {"document", "ask"}: false, {"document.get_doc", "ask"}: false,
		{"notebook.remove", "preview"}: false, {"notebook.remove", "allow"}: true, {"search.find_replace", "preview"}: false,
	} {
		if _, _, err := readConsent(args[0], args[1]); (err == nil) != ok {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestABudgetThatCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		writes, minutes int
		off             bool
		want            tenants.Limits
		ok              bool
	}{
		{"the default again", 0, 0, false, tenants.Limits{}, true},
		{"both", 50, 5, false, tenants.Limits{WriteBudget: 50, WriteWindow: 300}, true},
		{"writes alone", 50, 0, false, tenants.Limits{WriteBudget: 50}, true},
		{"off", 0, 0, true, tenants.Limits{WriteBudget: tenants.NoWriteBudget}, true},
		{"off and on", 50, 0, true, tenants.Limits{}, false},
		{"less than none", -1, 0, false, tenants.Limits{}, false},
		{"time that runs back", 50, -5, false, tenants.Limits{}, false},
		{"more than a day", 50, 1441, false, tenants.Limits{}, false},
		{"without end", 100_001, 10, false, tenants.Limits{}, false},
	} {
		l, told, err := readBudget(c.writes, c.minutes, c.off)
		if (err == nil) != c.ok || l != c.want || (told != "") != c.ok {
			t.Errorf("%s: %+v %q %v", c.name, l, told, err)
		}
	}
}
