package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// pairingGoldens are the messages of testdata/pairing.golden by their names. The
// key is that of RFC 8037, appendix A; the signatures were made with OpenSSL.
func pairingGoldens(t testing.TB) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/pairing.golden")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(b), "# "), "\n# ") {
		name, message, _ := strings.Cut(part, "\n")
		all[name] = strings.TrimSpace(message)
	}
	return all
}

func TestPairingMessagesAreWrittenAndReadAsTheGoldenSays(t *testing.T) {
	t.Parallel()
	kinds := map[string]any{"PairRequest": PairRequest{}, "PairAnswer": PairAnswer{}, "ProofRequest": ProofRequest{}, "Paired": Paired{}, "PairError": PairError{}}
	seen := map[string]bool{}
	for name, message := range pairingGoldens(t) {
		kind, _, _ := strings.Cut(name, " ")
		seen[kind] = true
		v := reflect.New(reflect.TypeOf(kinds[kind])).Interface()
		d := json.NewDecoder(strings.NewReader(message))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := json.Marshal(v)
		if err != nil || string(b) != message {
			t.Errorf("%s: written\n%s\nwant\n%s", name, b, message)
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("goldens of %v only", seen)
	}
}

func TestTheProtocolDocumentShowsPairingAsItIs(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, message := range pairingGoldens(t) {
		if !bytes.Contains(doc, []byte(message)) {
			t.Errorf("docs/PROTOCOL.md lacks %s: %s", name, message)
		}
	}
	for _, code := range []PairCode{PairPending, PairSlow, PairExpired, PairDenied, PairInvalid, PairBadProof, PairClock, PairAudience, PairAlready, PairUnknown, PairUnavailable, PairInternalError} {
		if !bytes.Contains(doc, []byte("`"+code+"`")) {
			t.Errorf("docs/PROTOCOL.md does not explain %s", code)
		}
	}
}

func TestOnlyAnEd25519KeyIsAKey(t *testing.T) {
	t.Parallel()
	const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" // RFC 8037, A.2
	key, err := JWK{"OKP", "Ed25519", x}.Key()
	if err != nil {
		t.Fatal(err)
	}
	if got := NewJWK(key); got != (JWK{"OKP", "Ed25519", x}) {
		t.Errorf("back again: %+v", got)
	}
	for _, k := range []JWK{{}, {"OKP", "X25519", x}, {"EC", "Ed25519", x}, {"OKP", "Ed25519", x + "="}, {"OKP", "Ed25519", x[:42]}, {"OKP", "Ed25519", x + "AA"},
		{"OKP", "Ed25519", x[:42] + "p"}} { // the last has bits that no byte has
		if _, err := k.Key(); err == nil {
			t.Errorf("%+v is taken for a key", k)
		}
	}
}
