package tenants_test

import (
	"errors"
	"testing"

	"siyuan-broker/tenants"
)

// The key and thumbprint are those of RFC 8037, appendix A.3.
func TestTheFingerprintIsTheRFC7638Thumbprint(t *testing.T) {
	t.Parallel()
	key := []byte{0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
		0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a}
	if got := tenants.Fingerprint(key); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Error(got)
	}
}

func TestAddressesAreComparedTrimmedAndInLowerCase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a@example.org":      "a@example.org",
		" A@Example.ORG\n":   "a@example.org",
		"a+b@xn--bcher.test": "a+b@xn--bcher.test",
		"":                   "",
		"a":                  "",
		"@example.org":       "",
		"a@":                 "",
		"a@b@c":              "",
		"a b@example.org":    "",
		"<a@example.org>":    "",
	} {
		got, err := tenants.NormalizeEmail(in)
		if got != want || (want == "") != errors.Is(err, tenants.ErrInvalid) {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestNobodyGrantsAboveTheirOwnRole(t *testing.T) {
	t.Parallel()
	const o, a, m = tenants.Owner, tenants.Admin, tenants.Member
	allowed := map[[2]tenants.Role]bool{{o, o}: true, {o, a}: true, {o, m}: true, {a, a}: true, {a, m}: true}
	for _, by := range []tenants.Role{o, a, m, "ghost", ""} {
		for _, to := range []tenants.Role{o, a, m, "ghost", ""} {
			if got := by.MayGrant(to); got != allowed[[2]tenants.Role{by, to}] {
				t.Errorf("%q grants %q: got %v", by, to, got)
			}
		}
	}
}
