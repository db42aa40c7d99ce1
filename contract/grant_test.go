package contract_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"siyuan-broker/contract"
)

const (
	work = "20240101090000-work001"
	priv = "20240101090001-priv001"
)

func sampleGrant() *contract.Grant {
	return &contract.Grant{
		V: contract.GrantVersion, Tenant: "t_1", Instance: "i_1", Member: "m_1", Agent: contract.AgentRef{ID: "a_1", Name: "Claude"},
		Levels: map[string]contract.Level{priv: contract.None, work: contract.ReadWrite}, Default: contract.Read,
		Switches: []contract.Switch{contract.SwitchTags, contract.SwitchSync, contract.SwitchTags}, PolicyVersion: 7, Exp: 1900000000,
	}
}

// The bytes were written by hand, the digests computed with sha256sum.
func TestTheCanonicalFormOfAGrant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grant         *contract.Grant
		bytes, digest string
	}{
		"full": {
			sampleGrant(),
			`{"v":1,"tenant":"t_1","instance":"i_1","member":"m_1","agent":{"id":"a_1","name":"Claude"},"levels":{"20240101090000-work001":"rw","20240101090001-priv001":"none"},"default":"r","switches":["sync","tags"],"policy_version":7,"exp":1900000000}`,
			"a066558394d96c4349bfa8e91e10ca05ff55ab8c59292fdfb5da57e1f6f34b22",
		},
		"empty": {
			&contract.Grant{},
			`{"v":0,"tenant":"","instance":"","member":"","agent":{"id":"","name":""},"levels":{},"default":"none","switches":[],"policy_version":0,"exp":0}`,
			"ddba580b1ef8083fff83d69d5ef00bddb75b155565cd5bd21b1f52f13e739524",
		},
	} {
		got, err := c.grant.Canonical()
		if err != nil || string(got) != c.bytes {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if digest, err := c.grant.Digest(); err != nil || digest != c.digest {
			t.Errorf("%s: digest %s, %v", name, digest, err)
		}
	}
}

func TestEqualGrantsHaveEqualBytes(t *testing.T) {
	t.Parallel()
	a, b := sampleGrant(), sampleGrant()
	slices.Reverse(b.Switches)
	b.Switches = b.Switches[1:]
	first, _ := a.Canonical()
	second, _ := b.Canonical()
	if string(first) != string(second) {
		t.Errorf("%s\n%s", first, second)
	}
	if !slices.Equal(a.Switches, sampleGrant().Switches) {
		t.Errorf("writing a grant changed it: %v", a.Switches)
	}
	var back contract.Grant
	if err := json.Unmarshal(first, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := back.Canonical(); string(again) != string(first) {
		t.Errorf("read and written again it is %s", again)
	}
}

func TestEveryPartOfAGrantChangesItsDigest(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, change := range map[string]func(*contract.Grant){
		"nothing":        func(*contract.Grant) {},
		"version":        func(g *contract.Grant) { g.V = 2 },
		"tenant":         func(g *contract.Grant) { g.Tenant = "t_2" },
		"instance":       func(g *contract.Grant) { g.Instance = "i_2" },
		"member":         func(g *contract.Grant) { g.Member = "m_2" },
		"agent":          func(g *contract.Grant) { g.Agent.ID = "a_2" },
		"agent's name":   func(g *contract.Grant) { g.Agent.Name = "Other" },
		"a level":        func(g *contract.Grant) { g.Levels[work] = contract.Read },
		"a notebook":     func(g *contract.Grant) { delete(g.Levels, priv) },
		"the default":    func(g *contract.Grant) { g.Default = contract.None },
		"a switch":       func(g *contract.Grant) { g.Switches = g.Switches[:1] },
		"policy version": func(g *contract.Grant) { g.PolicyVersion++ },
		"expiry":         func(g *contract.Grant) { g.Exp++ },
	} {
		g := sampleGrant()
		change(g)
		digest, err := g.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[digest]; taken {
			t.Errorf("changing %s and %s gives one digest", name, other)
		}
		seen[digest] = name
	}
}

func TestAGrantGivesTheListedLevelOrItsDefault(t *testing.T) {
	t.Parallel()
	g := sampleGrant()
	for notebook, want := range map[string]contract.Level{work: contract.ReadWrite, priv: contract.None, "20240101090002-other01": contract.Read} {
		if got := g.Level(notebook); got != want {
			t.Errorf("%s: %s, want %s", notebook, got, want)
		}
	}
	if !g.Has(contract.SwitchSync) || g.Has(contract.SwitchSystem) {
		t.Errorf("switches %v", g.Switches)
	}
	if (&contract.Grant{}).Level(work) != contract.None {
		t.Error("an empty grant gives a level")
	}
}

func TestAGrantEndsAtItsExpiry(t *testing.T) {
	t.Parallel()
	g := &contract.Grant{Exp: 1000}
	for at, want := range map[int64]bool{999: false, 1000: true, 1001: true} {
		if got := g.Expired(time.Unix(at, 0)); got != want {
			t.Errorf("at %d expired is %v", at, got)
		}
	}
}

func TestAHomePolicyCapsAndVetoes(t *testing.T) {
	t.Parallel()
	p := &contract.PolicyEffect{MaxLevel: contract.Read, Notebooks: map[string]contract.Level{work: contract.ReadWriteDelete, priv: contract.None}, Vetoed: []string{"block.delete", "system"}}
	for notebook, want := range map[string]contract.Level{work: contract.ReadWriteDelete, priv: contract.None, "20240101090002-other01": contract.Read} {
		if got := p.Cap(notebook); got != want {
			t.Errorf("%s: %s, want %s", notebook, got, want)
		}
	}
	for action, want := range map[[2]string]bool{{"block", "delete"}: true, {"block", "get"}: false, {"system", "conf"}: true, {"doc", "delete"}: false} {
		if got := p.Vetoes(action[0], action[1]); got != want {
			t.Errorf("%v vetoed is %v", action, got)
		}
	}
	if (&contract.PolicyEffect{}).Cap(work) != contract.None {
		t.Error("no policy allows something")
	}
}

func TestEverySwitchIsListedOnce(t *testing.T) {
	t.Parallel()
	want := []contract.Switch{"workspace", "tags", "assets", "sync", "system", "extension", "extension_native", "timeline_global"}
	if got := contract.Switches(); !slices.Equal(got, want) {
		t.Errorf("switches %v, want %v", got, want)
	}
}
