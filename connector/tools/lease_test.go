package tools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
)

func hashOf(beginning string) string { return beginning + strings.Repeat("0", 64-len(beginning)) }

func TestTheShortestHashTellsTheLeasesOfACallApart(t *testing.T) {
	t.Parallel()
	ls, now := &leases{}, time.Unix(1000, 0)
	for _, c := range []struct{ scope, hash, want string }{
		{"a", "abcd11", "abcd"}, {"a", "abcd12", "abcd12"}, {"b", "abcd11", "abcd"}, {"a", "ff0000", "ff00"},
	} {
		if got, _ := ls.give(c.scope, "sha256:v1:"+hashOf(c.hash), now); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.scope, c.hash, got, c.want)
		}
	}
	if _, err := ls.find("a", "abcd", now); contract.CodeOf(err) != contract.AmbiguousHash ||
		!strings.Contains(string(contract.AsError(err).Detail), `"minimum_required_length":6`) {
		t.Errorf("error %v", err)
	}
	for _, given := range []string{"abcd12", "ABCD12", "sha256:v1:abcd120", hashOf("abcd12")} {
		if l, err := ls.find("a", given, now); err != nil || l.hash != hashOf("abcd12") {
			t.Errorf("%s: %+v, %v", given, l, err)
		}
	}
	for _, given := range []string{"abc", "abcd13", "abcd1g", hashOf("abcd12") + "0", ""} {
		if _, err := ls.find("a", given, now); contract.CodeOf(err) != contract.LeaseInvalid {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func TestLeasesEndAndAreFew(t *testing.T) {
	t.Parallel()
	ls, now := &leases{}, time.Unix(1000, 0)
	for i := range leasesOfScope + 1 {
		ls.give("a", hashOf(fmt.Sprintf("%04d", i)), now)
	}
	if _, err := ls.find("a", "0000", now); contract.CodeOf(err) != contract.LeaseInvalid {
		t.Errorf("the oldest of too many: %v", err)
	}
	l, err := ls.find("a", "0004", now.Add(leaseLife-1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ls.find("a", "0004", now.Add(leaseLife)); contract.CodeOf(err) != contract.LeaseInvalid {
		t.Errorf("an old one: %v", err)
	}
	ls.give("a", l.hash, now)
	ls.drop(l)
	if _, err := ls.find("a", "0004", now); contract.CodeOf(err) != contract.LeaseInvalid {
		t.Errorf("a used one: %v", err)
	}
	for i := range leasesInAll + 10 {
		ls.give(fmt.Sprint(i), hashOf("abcd"), now)
	}
	if len(ls.all) != leasesInAll {
		t.Errorf("%d leases", len(ls.all))
	}
}
