package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// texts are JSON and near misses of it.
var texts = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1.5e+3`, `""`, ` { "a" : [ 1 , { } ] } `, `{"a":{"b":[{}]},"c":"d"}`, `"\u00e9\n\"\\\/"`, `"\ud800"`,
	`{`, `}`, `[`, `]`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `[1 2]`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{1:1}`,
	`nul`, `nulll`, `True`, `01`, `-`, `+1`, `1.`, `.5`, `1e`, `1e+`, `0x1`, `NaN`, `1 2`, `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u00@0"`, "\"\\u\x10000\"", "\"\x01\"", "\"\n\"", "\"\x7f\"",
	``, ` `, "\ufeff{}", "\v{}", "{}\x00", `{}{}`, `// x`, `{"a":"` + strings.Repeat("x", 100) + "\x1f\"}", strings.Repeat("[", 100) + strings.Repeat("]", 100),
}

func TestTheScannerAcceptsJSONAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		s := scanner{text: []byte(text)}
		raw := s.value()
		if got, want := s.end(), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		} else if got && string(raw) != strings.Trim(text, " ") {
			t.Errorf("%q: value %q", text, raw)
		}
	}
}

func TestTheScannerHasABottom(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{scanDepth: true, scanDepth + 1: false} {
		for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
			s := scanner{text: []byte(strings.Repeat(pair[0], depth-1) + strings.Trim(pair[0], `"a:`) + strings.Repeat(pair[1], depth))}
			if s.value(); s.end() != want {
				t.Errorf("%d times %s: %v", depth, pair[0], !want)
			}
		}
	}
}

func TestMembersAreSlicesOfTheText(t *testing.T) {
	t.Parallel()
	s := scanner{text: []byte(` {"a": [1, 2] ,"b\n":{} , "" : "x"} `)}
	var got []string
	for key, more := s.enter(); more; key, more = s.next() {
		got = append(got, string(key), string(s.value()))
	}
	if want := []string{"a", "[1, 2]", `b\n`, "{}", "", `"x"`}; !s.end() || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, s.bad)
	}
}

// awkward are strings that encoding/json does not write as they are.
var awkward = []string{
	"", "plain", `"quoted" and \ and / `, "\x00\x01\b\f\n\r\t\x1f\x7f", "<b>&amp;</b>", "é 笔记 🙂", "\u2027\u2028\u2029\u202a", "\xe2\x80", "\xe2", "a\xffb", "\xed\xa0\x80", strings.Repeat("x", 100) + "\n",
}

func TestStringsAreWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	for _, text := range awkward {
		want, err := json.Marshal(text)
		if got := appendString([]byte("x"), []byte(text)); err != nil || string(got) != "x"+string(want) {
			t.Errorf("%q: %s, want x%s", text, got, want)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range append(slices.Clone(texts), awkward...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanner{text: text}
		s.value()
		if ok := s.end(); ok && !json.Valid(text) {
			t.Errorf("%q is not JSON", text)
		} else if !ok && json.Valid(text) && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= scanDepth {
			t.Errorf("%q is JSON", text)
		}
		want, _ := json.Marshal(string(text))
		if got := appendString(nil, text); !bytes.Equal(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	})
}

func BenchmarkScanMegabyte(b *testing.B) {
	text, _ := json.Marshal(strings.Repeat("一 line of a note, as long as such lines are, with a \"quote\".\n", 1<<20/64))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := scanner{text: text}
		if s.value(); !s.end() {
			b.Fatal("not JSON")
		}
	}
}
