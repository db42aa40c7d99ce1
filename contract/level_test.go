package contract_test

import (
	"encoding/json"
	"testing"

	"siyuan-broker/contract"
)

var levels = []contract.Level{contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete}

func TestMinIsTheMeetOfAChain(t *testing.T) {
	t.Parallel()
	for _, a := range levels {
		if got := contract.Min(a); got != a {
			t.Errorf("Min(%s) = %s", a, got)
		}
		if got := contract.Min(a, a); got != a {
			t.Errorf("Min(%s, %s) = %s", a, a, got)
		}
		if got := contract.Min(contract.None, a); got != contract.None {
			t.Errorf("none is not the bottom: %s", got)
		}
		if got := contract.Min(contract.ReadWriteDelete, a); got != a {
			t.Errorf("rwd is not the top: %s", got)
		}
		for _, b := range levels {
			m := contract.Min(a, b)
			if m != contract.Min(b, a) {
				t.Errorf("Min(%s, %s) depends on the order", a, b)
			}
			if m != a && m != b {
				t.Errorf("Min(%s, %s) = %s is neither", a, b, m)
			}
			for _, need := range levels {
				if got, want := m.Allows(need), a.Allows(need) && b.Allows(need); got != want {
					t.Errorf("Min(%s, %s).Allows(%s) = %v", a, b, need, got)
				}
				if contract.Min(m, need) != contract.Min(a, contract.Min(b, need)) {
					t.Errorf("Min is not associative at %s, %s, %s", a, b, need)
				}
				if contract.Min(a, b, need) != contract.Min(m, need) {
					t.Errorf("Min of three differs from Min of Min at %s, %s, %s", a, b, need)
				}
			}
		}
	}
}

func TestAnAbsentRestrictionGrantsNothing(t *testing.T) {
	t.Parallel()
	if got := contract.Min(); got != contract.None {
		t.Errorf("Min() = %s", got)
	}
	var zero contract.Level
	if zero != contract.None || zero.Allows(contract.Read) {
		t.Errorf("the zero level is %s", zero)
	}
}

func TestALevelAllowsItselfAndWhatIsBelow(t *testing.T) {
	t.Parallel()
	for i, have := range levels {
		for j, need := range levels {
			if got := have.Allows(need); got != (i >= j) {
				t.Errorf("%s.Allows(%s) = %v", have, need, got)
			}
		}
	}
}

func TestLevelsAreSpelledOneWay(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"none", "r", "rw", "rwd"} {
		text, err := json.Marshal(levels[i])
		if err != nil || string(text) != `"`+name+`"` {
			t.Errorf("%s is written %s, %v", name, text, err)
		}
		var back contract.Level
		if err := json.Unmarshal(text, &back); err != nil || back != levels[i] {
			t.Errorf("%s is read as %s, %v", text, back, err)
		}
	}
	for _, odd := range []string{"", "R", "rx", "write", "readonly", "none "} {
		if l, err := contract.ParseLevel(odd); err == nil {
			t.Errorf("%q is read as %s", odd, l)
		}
	}
}
