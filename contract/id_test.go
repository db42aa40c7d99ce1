package contract_test

import (
	"regexp"
	"strings"
	"testing"

	"siyuan-broker/contract"
)

func TestIDsHaveOneForm(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"20240131120000-abc1234":  true,
		"00000000000000-0000000":  true, // the digits need not be a date
		"20240131120000-zzzzzzz":  true,
		"":                        false,
		"20240131120000":          false,
		"20240131120000_abc1234":  false,
		"20240131120000-ABC1234":  false,
		"20240131120000-abc123":   false,
		"20240131120000-abc12345": false,
		"2024013112000a-abc1234":  false,
		"20240131120000-abc123é":  false,
		"20240131120000-abc123'":  false,
		" 0240131120000-abc1234":  false,
	} {
		if got := contract.IsID(id); got != want {
			t.Errorf("IsID(%q) = %v", id, got)
		}
	}
}

func FuzzIsID(f *testing.F) {
	form := regexp.MustCompile(`\A[0-9]{14}-[0-9a-z]{7}\z`)
	f.Add("20240131120000-abc1234")
	f.Add("20240131120000-abc123\n")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := contract.IsID(s), form.MatchString(s); got != want {
			t.Errorf("IsID(%q) = %v, want %v", s, got, want)
		}
	})
}

func TestRandomIDsNameTheirKindAndDiffer(t *testing.T) {
	t.Parallel()
	a, b := contract.RandomID("agent"), contract.RandomID("agent")
	if a == b || !strings.HasPrefix(a, "agent_") || len(a) != len("agent_")+26 {
		t.Errorf("%s, %s", a, b)
	}
}
