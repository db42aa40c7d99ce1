package pairing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
)

func golden(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../contract/wire/testdata/pairing.golden")
	must(t, err)
	_, after, ok := strings.Cut(string(b), "# "+name+"\n")
	if !ok {
		t.Fatalf("no golden %q", name)
	}
	line, _, _ := strings.Cut(after, "\n")
	return line
}

func TestTheGoldenRequestsAreAnsweredWithTheGoldenBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	random := make([]byte, 32, 40) // the device code, then the letters of BCDF-GHJK by their numbers
	for i := range 32 {
		random[i] = byte(i)
	}
	f.Rand = bytes.NewReader(append(random, 0, 1, 2, 3, 4, 5, 6, 7))
	check := func(path, request, want string) {
		t.Helper()
		if status, _, _, raw := f.send(path, "application/json; charset=utf-8", golden(t, request)); raw != want {
			t.Errorf("%s: %d %s\nwant %s", request, status, raw, want)
		}
	}
	check(wire.PairPath, "PairRequest", golden(t, "PairAnswer"))
	check(wire.PairTokenPath, "ProofRequest token", golden(t, "PairError pending"))
	h := f.household("Home")
	c, err := f.Approve(t.Context(), h.owner, f.claim(h.owner, "bcdf ghjk").ID, Place{Tenant: h.id, Instance: h.instance}, false)
	must(t, err)
	paired := strings.NewReplacer("01890a5d-ac96-774b-bcce-b302099a8057", c.ID.String(), "01890a5d-ac96-774b-bcce-b302099a8058", h.id.String(),
		"01890a5d-ac96-774b-bcce-b302099a8059", h.instance.String(), `"SiYuan"`, `"Notes of Home"`, `"tls":"notes.example:7443",`, "").Replace(golden(t, "Paired"))
	check(wire.PairTokenPath, "ProofRequest token", paired)
	if c.Fingerprint != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" { // RFC 8037, A.3
		t.Errorf("fingerprint %s", c.Fingerprint)
	}
	check(wire.UnpairPath, "ProofRequest unpair", "{}")
	check(wire.UnpairPath, "ProofRequest unpair", "{}") // again changes nothing
	f.later(61 * time.Second)
	check(wire.PairPath, "PairRequest", strings.Replace(golden(t, "PairError clock"), "1800000000", "1800000061", 1))
}

func TestAProofIsGoodForItsKeyItsActThisBrokerAndAMinute(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m, other := f.machine(), f.machine()
	m.open()
	now := start.Unix()
	for name, c := range map[string]struct {
		header, claims object
		want           wire.PairCode
	}{
		"as an AUTH token":   {object{"typ": "siyuan-tunnel+jwt"}, nil, wire.PairBadProof},
		"without typ":        {object{"typ": nil}, nil, wire.PairBadProof},
		"of another key":     {object{"kid": other.fingerprint()}, object{"sub": other.fingerprint()}, wire.PairBadProof},
		"of two keys":        {nil, object{"sub": other.fingerprint()}, wire.PairBadProof},
		"unsigned":           {object{"alg": "none"}, nil, wire.PairBadProof},
		"by HMAC":            {object{"alg": "HS256"}, nil, wire.PairBadProof},
		"for another act":    {nil, object{"act": "unpair"}, wire.PairBadProof},
		"without an act":     {nil, object{"act": nil}, wire.PairBadProof},
		"without an id":      {nil, object{"jti": nil}, wire.PairBadProof},
		"with a long id":     {nil, object{"jti": strings.Repeat("x", 129)}, wire.PairBadProof},
		"for another broker": {nil, object{"aud": "siyuan-tunnel:evil.example"}, wire.PairAudience},
		"for agents":         {nil, object{"aud": "https://notes.example/mcp"}, wire.PairAudience},
		"a minute old":       {nil, object{"iat": now - 61}, wire.PairClock},
		"a minute early":     {nil, object{"iat": now + 61}, wire.PairClock},
		"of no time":         {nil, object{"iat": nil}, wire.PairClock},
	} {
		for path, send := range map[string]func(proof string) (int, object){
			"pair": func(p string) (int, object) { return m.begin(object{"proof": p}) },
			"token": func(p string) (int, object) {
				return f.post(wire.PairTokenPath, object{"proof": p})
			},
		} {
			status, a := send(m.proof(path, c.header, c.claims))
			if status != 401 || a["error"] != string(c.want) {
				t.Errorf("%s, %s: %d %v, want 401 %s", path, name, status, a, c.want)
			}
		}
	}
	for _, junk := range []string{"", "a.b.c", "..", strings.Repeat("e", 6000), m.proof("token", nil, nil) + "AA"} {
		if status, a := f.post(wire.PairTokenPath, object{"proof": junk}); status != 401 || a["error"] != "invalid_proof" {
			t.Errorf("%.20q: %d %v", junk, status, a)
		}
	}
	for _, iat := range []int64{now - 60, now + 60} {
		if status, a := m.begin(object{"proof": m.proof("pair", nil, object{"iat": iat})}); status != 200 {
			t.Errorf("within a minute: %d %v", status, a)
		}
	}
}

func TestNobodyPairsAKeyThatIsNotTheirs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	victim, eve := f.machine(), f.machine()
	// Eve knows the public key; it is no secret.
	status, a := eve.begin(object{"public_key": wire.NewJWK(victim.public())})
	if status != 401 || a["error"] != "invalid_proof" {
		t.Errorf("with a proof by her own key: %d %v", status, a)
	}
	// Eve got hold of the device code, and signs with her own key.
	victim.open()
	eve.device = victim.device
	h := f.household("Home")
	if status, a = eve.poll(); status != 401 || a["error"] != "invalid_proof" {
		t.Errorf("with the victim's device code: %d %v", status, a)
	}
	f.pair(h)
	if status, a = eve.poll(); status != 401 {
		t.Errorf("with the victim's device code: %d %v", status, a)
	}
}

func TestAPairingEndsAsAPersonDecidesOrByItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.household("Home")
	ctx := t.Context()
	want := func(m *machine, code wire.PairCode) {
		t.Helper()
		f.later(5 * time.Second)
		if status, a := m.poll(); status != 400 || a["error"] != string(code) {
			t.Errorf("%d %v, want %s", status, a, code)
		}
	}
	m := f.machine()
	p := f.claim(h.owner, m.open())
	want(m, wire.PairPending)
	must(t, f.Deny(ctx, h.owner, p.ID))
	want(m, wire.PairDenied)

	m = f.machine()
	m.open()
	f.later(10 * time.Minute)
	want(m, wire.PairExpired)
	m.device = "never given out"
	want(m, wire.PairExpired)

	m, c := f.pair(h)
	for range 3 { // an answer that got lost is asked for again
		if status, a := m.poll(); status != 200 || a["tenant_name"] != "Home" || a["connector_id"] != c.ID.String() {
			t.Errorf("approved: %d %v", status, a)
		}
	}
	must(t, f.Revoke(ctx, h.owner, h.id, c.ID))
	want(m, wire.PairDenied)

	m, _ = f.pair(h)
	f.later(10 * time.Minute)
	want(m, wire.PairExpired)
}

func TestTheOneWhoPollsTooOftenIsSlowedDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m := f.machine()
	m.open()
	for i, c := range []struct {
		after time.Duration
		want  string
	}{{0, "authorization_pending"}, {time.Second, "slow_down"}, {5 * time.Second, "slow_down"}, {15 * time.Second, "authorization_pending"}} {
		f.later(c.after)
		if _, a := m.poll(); a["error"] != c.want {
			t.Errorf("poll %d: %v, want %s", i, a, c.want)
		}
	}
}

func TestAKeyInForceIsToldWhereItBelongsAndANewPairingEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.household("Home")
	m, c := f.pair(h)
	status, a := m.begin(nil)
	if paired, _ := a["paired"].(object); status != 409 || a["error"] != "already_paired" || paired["connector_id"] != c.ID.String() {
		t.Errorf("%d %v", status, a)
	}
	must(t, f.Revoke(t.Context(), h.owner, h.id, c.ID))
	code, before := m.open(), m.device // revoked: it may ask anew
	m.open()
	if _, err := f.Claim(t.Context(), h.owner, code); err != ErrNoCode {
		t.Errorf("the first code is still good: %v", err)
	}
	m.device = before
	if _, a := m.poll(); a["error"] != "expired_token" {
		t.Errorf("the first pairing: %v", a)
	}
}

func TestAConnectorTakesItsOwnAccessBackAndNobodyElses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := f.household("Home")
	m, c := f.pair(h)
	eve := f.machine()
	if status, a := eve.unpair(); status != 404 || a["error"] != "unknown_connector" {
		t.Errorf("an unknown key: %d %v", status, a)
	}
	forged := eve.proof("unpair", object{"kid": m.fingerprint()}, object{"sub": m.fingerprint()})
	if status, a := f.post(wire.UnpairPath, object{"proof": forged}); status != 401 {
		t.Errorf("signed by another key: %d %v", status, a)
	}
	if status, a := f.post(wire.UnpairPath, object{"proof": m.proof("pair", nil, nil)}); status != 401 {
		t.Errorf("with a proof to pair: %d %v", status, a)
	}
	for range 2 {
		if status, a := m.unpair(); status != 200 {
			t.Errorf("%d %v", status, a)
		}
	}
	f.in(h, func(tx tenants.Tx) error {
		got, err := tx.Connector(t.Context(), c.ID)
		if got.RevokedAt.IsZero() {
			t.Error("it is not revoked")
		}
		return err
	})
	verbs, last := f.audits(h)
	if n := len(verbs); n != 2 || last.ActorKind != "connector" || last.ActorID != c.ID || !slices.Contains(verbs, "connector.unpair") {
		t.Errorf("audit: %v, %+v", verbs, last)
	}
	all, err := f.store.Revocations(t.Context(), 0, 10)
	if err != nil || len(all) != 1 || all[0].Subject != c.ID.String() {
		t.Errorf("revocations: %+v, %v", all, err)
	}
}

func TestBadBodiesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct {
		contentType, body string
		want              int
	}{
		{"text/plain", "{}", 415},
		{"application/x-www-form-urlencoded", "a=b", 415},
		{"", "{}", 415},
		{"application/json", "", 400},
		{"application/json", "[]", 400},
		{"application/json", "{}{}", 400},
		{"application/json", `{"name":"` + strings.Repeat("x", 8192) + `"}`, 400},
		{"application/json", `{"public_key":{"kty":"OKP","crv":"Ed25519","x":"AA"}}`, 400},
		{"application/json", `{"public_key":"x"}`, 400},
	} {
		status, header, a, _ := f.send(wire.PairPath, c.contentType, c.body)
		if status != c.want || a["error"] != "invalid_request" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %.30q: %d %v", c.contentType, c.body, status, a)
		}
	}
}

func TestAFloodIsBoundedByAddressAndInAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Limits.Pair, f.Limits.PairAll, f.Limits.Open = 3, 8, tenants.PairingBounds{PerOrigin: 2, InAll: 4}
	try := func(address string) string {
		f.from(address)
		m := f.machine()
		b := fmt.Sprintf(`{"public_key":{"kty":"OKP","crv":"Ed25519","x":%q},"proof":%q}`, base64.RawURLEncoding.EncodeToString(m.public()), m.proof("pair", nil, nil))
		status, header, a, _ := f.send(wire.PairPath, "application/json", b)
		if status == 429 && header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if status == 200 {
			return "ok"
		}
		return fmt.Sprint(status, " ", strings.Fields(a["error_description"].(string))[2])
	}
	for i, c := range []struct{ address, want string }{
		{"2001:db8::1", "ok"},
		{"2001:db8::ffff:2", "ok"},            // the same /64
		{"2001:db8:0:0:3::3", "429 machines"}, // which has two waiting
		{"2001:db8::4", "429 requests;"},      // and made three requests
		{"2001:db8:0:1::1", "ok"},             // its neighbour
		{"::ffff:203.0.113.9", "ok"},
		{"203.0.113.10", "429 machines"}, // four wait in all
		{"203.0.113.11", "429 machines"},
		{"203.0.113.12", "429 machines"}, // the eighth request that counts for all
		{"203.0.113.13", "429 requests;"},
	} {
		if got := try(c.address); got != c.want {
			t.Errorf("%d, %s: %s, want %s", i, c.address, got, c.want)
		}
	}
}

func TestWhatAMachineSaysIsMadeFitToBeShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"desk":                                "desk",
		"  desk\n\ttop  ":                     "desktop",
		"a\u202eb\u2066c\u200bd\u0000e\ufeff": "abcde",
		"a\xffb":                              "ab",
		strings.Repeat("长", 70):               strings.Repeat("长", 64) + "…",
		"<b>x</b>":                            "<b>x</b>", // the templates' business
		"\u0007\u001b[31m":                    "[31m",
	} {
		if got := shown(in, 64); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	f := newFixture(t)
	h := f.household("Home")
	m := f.machine()
	_, a := m.begin(object{"name": strings.Repeat("\u202e", 1000), "os": strings.Repeat("x", 2000), "version": ""})
	p := f.claim(h.owner, a["user_code"].(string))
	if p.Name != "?" || p.OS != strings.Repeat("x", 64)+"…" || p.Version != "" || p.Address != "203.0.113.7" {
		t.Errorf("%+v", p)
	}
}

func TestCodesAreDrawnEvenlyAndReadAsPeopleTypeThem(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256) // each byte once: every letter must come 12 times
	for i := range all {
		all[i] = byte(i)
	}
	r := bytes.NewReader(all)
	n := map[rune]int{}
	for range 240 / 8 {
		code, err := newUserCode(r)
		must(t, err)
		for _, c := range code {
			n[c]++
		}
	}
	for _, c := range "BCDFGHJKLMNPQRSTVWXZ" {
		if n[c] != 12 {
			t.Errorf("%c came %d times", c, n[c])
		}
	}
	for in, want := range map[string]string{"BCDF-GHJK": "BCDFGHJK", " bcdfghjk\n": "BCDFGHJK", "b c d f — g h j k": "BCDFGHJK", "ＢＣＤＦ－ｇｈｊｋ": "BCDFGHJK"} {
		if got, ok := typedCode(in); !ok || got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "BCDF", "BCDF-GHJKL", "ACDF-GHJK", "BCDF-GHJ1", "BCDF_GHJK", strings.Repeat("-", 93) + "BCDFGHJK", "BCDFGHJ\u212a"} { // the last is a Kelvin sign
		if got, ok := typedCode(in); ok {
			t.Errorf("%q is read as %q", in, got)
		}
	}
}

func FuzzProof(f *testing.F) {
	f.Add(golden(f, "ProofRequest token"))
	s := &Service{Config{Audiences: []string{"siyuan-tunnel:notes.example"}, Now: func() time.Time { return start }}}
	key, _, _ := ed25519.GenerateKey(nil)
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := s.prove(token, wire.ActToken, func(wire.Proof) (ed25519.PublicKey, error) { return key, nil }); err == nil {
			t.Error("a proof by nobody passes")
		}
	})
}
