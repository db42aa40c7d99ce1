package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	const max = 4
	for in, ok := range map[string]bool{
		`{}`: true, ` [ ] `: true, `null`: true, `true`: true, `false`: true, `-0.5e+10`: true, `0`: true, `"ü\u00e9\n\\"`: true,
		`{"a":[1,{"b":[]}],"c":""}`: true, "[1\t,\r\n2]": true,
		``: false, ` `: false, `{`: false, `[1,]`: false, `{"a"}`: false, `{"a":}`: false, `{a:1}`: false, `{"a":1,}`: false, `[1 2]`: false,
		`01`: false, `1.`: false, `.5`: false, `-`: false, `1e`: false, `+1`: false, `tru`: false, `nul`: false, `True`: false,
		`"`: false, `"\x"`: false, `"\u12g4"`: false, `"\u12`: false, "\"\n\"": false, "\"\x00\"": false, `]`: false, `[}`: false, `{"a":1]`: false, `1 1`: false,
		"\"\xc3\"": false, "\"\xed\xa0\x80\"": false,
		strings.Repeat("[", max) + strings.Repeat("]", max):       true,
		strings.Repeat("[", max+1) + strings.Repeat("]", max+1):   false,
		strings.Repeat("[", 1<<20):                                false,
		`[{"a":[{"b":1}]},[[[]]],{"x":{"y":{"z":"[[[[[[[[[["}}}]`: true,
	} {
		if err := CheckJSON([]byte(in), max); (err == nil) != ok {
			t.Errorf("%.60q: %v, want ok %v", in, err, ok)
		}
	}
}

func FuzzCheckJSONAgreesWithTheStandardLibrary(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}],"c":"\u00e4\n"}`, `[]`, `[1,]`, `"\ud800"`, `-0.1e-2`, "\"\x7f\"", `{"":{"":[[]]}}`, `1 `, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want := json.Valid(b) && utf8.Valid(b)
		if got := CheckJSON(b, 10_000) == nil; got != want {
			t.Errorf("%q: %v, encoding/json says %v", b, got, want)
		}
	})
}

func BenchmarkCheckJSON(b *testing.B) {
	in := []byte(`{"markdown":"` + strings.Repeat("words and words, ", 65_536) + `"}`)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if err := CheckJSON(in, 10); err != nil {
			b.Fatal(err)
		}
	}
}
