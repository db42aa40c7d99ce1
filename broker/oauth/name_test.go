package oauth

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNamesOfStrangersAreMadePlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Claude":                            "Claude",
		"  My \t\n app  ":                   "My app",
		"思源助手":                              "思源助手",
		"Ünïcode":                           "Ünïcode",
		"\u202eedualC":                      "edualC", // right-to-left override
		"Cla\u200bude\u2060\ufeff":          "Claude", // nothing between the letters
		"\u2067Claude\u2069 \u200fverified": "Claude verified",
		"𝐂𝐥𝐚𝐮𝐝𝐞":                            "Claude",      // mathematical letters
		"Ｃｌａｕｄｅ":                            "Claude",      // full width
		"Z\u0351\u0352\u0353\u0354algo":     "Z\u0353algo", // one mark stays, the first in Unicode's order
		"\u0301x":                           "x",
		"\u3164\u2800":                      "",
		"a\x00b\x1b[31mc":                   "ab[31mc",
		"\xff\xfe":                          "",
		"line\u2028break":                   "line break",
		"<b>Claude</b>":                     "<b>Claude</b>", // the template escapes it
	} {
		if got := plainName(in, 60); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestNamesAreCut(t *testing.T) {
	t.Parallel()
	if got := plainName(strings.Repeat("a", 5000), 60); got != strings.Repeat("a", 59)+"…" {
		t.Errorf("got %q", got)
	}
	if got := plainName(strings.Repeat("a ", 5000), 200); utf8.RuneCountInString(got) > 200 {
		t.Errorf("%d runes", utf8.RuneCountInString(got))
	}
	if got := plainName(strings.Repeat("字", 60), 60); utf8.RuneCountInString(got) != 60 || strings.Contains(got, "…") {
		t.Errorf("a name of just the length: %q", got)
	}
}

func TestNamesThatImitateAreNoticed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Claude": false, "思源": false, "クロード": false, "클로드": false, "Café": false, "": false,
		"Сlaude": true /* Cyrillic С */, "Clαude": true, "ϲlaude": true, "Ϲlaude": true, "ɑpp": true, "Ꭰrop": true,
	} {
		if got := imitates(name); got != want {
			t.Errorf("%q: imitates is %v", name, got)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("Claude\u202e", 60)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 1 || most > 1000 {
			return
		}
		got := plainName(s, most)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > most || strings.TrimSpace(got) != got {
			t.Fatalf("%q became %q", s, got)
		}
		for _, r := range got {
			if unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
				t.Fatalf("%q kept %U", s, r)
			}
		}
	})
}

func TestAHostShowsWhoseItIs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]host{
		"claude.ai": {"", "claude.ai"}, "www.cursor.com": {"www.", "cursor.com"}, "claude.ai.evil.example:8443": {"claude.ai.", "evil.example:8443"},
		"a.b.co.uk": {"a.", "b.co.uk"}, "localhost:1": {"", "localhost:1"}, "127.0.0.1:33418": {"", "127.0.0.1:33418"}, "[::1]:9": {"", "[::1]:9"}, "cursor:": {"", "cursor:"}, "8.8.8.8": {"", "8.8.8.8"},
	} {
		if got := splitHost(in); got != want {
			t.Errorf("%s: %+v, want %+v", in, got, want)
		}
	}
}
