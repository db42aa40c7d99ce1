package contract_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"siyuan-broker/contract"
)

func TestAFileNameIsABaseNameThatNothingCanBeDoneWith(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"report.pdf":                           "report.pdf",
		"Jahres\u00adbericht 2026 (final).pdf": "Jahres-bericht-2026-final.pdf",
		"../../conf/conf.json":                 "conf.json",
		`C:\Users\me\x.png`:                    "x.png",
		"a\r\nSet-Cookie: b.txt":               "a-Set-Cookie-b.txt",
		"rtl\u202etxt.exe":                     "rtl-txt.exe",
		"图片 一.png":                             "图片-一.png",
		".hidden":                              "hidden",
		"..":                                   "file",
		"":                                     "file",
		"/":                                    "file",
		"'; rm -rf ~ #.txt":                    "rm-rf.txt",
		"`$(x)`.sh":                            "x.sh",
		"noext":                                "noext",
		"a.tar.gz":                             "a.tar.gz",
		strings.Repeat("x", 5000) + ".txt":     strings.Repeat("x", 80) + ".txt",
		strings.Repeat("图", 100) + ".png":      strings.Repeat("图", 53) + ".png",
		"x." + strings.Repeat("y", 300):        "x-" + strings.Repeat("y", 78),
		"\xff\xfe.txt":                         "txt",
	} {
		if got := contract.FileName(given); got != want {
			t.Errorf("%.60q becomes %q, want %q", given, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "a\r\nb", "\u202e", "ä..b", "-.-", "a/.b/..c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := contract.FileName(s)
		if n == "" || len(n) > 200 || !utf8.ValidString(n) || n[0] == '.' || strings.Contains(n, "..") && !strings.Contains(s, "..") {
			t.Errorf("%q becomes %q", s, n)
		}
		for _, r := range n {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._-", r) {
				t.Errorf("%q becomes %q", s, n)
			}
		}
		if again := contract.FileName(n); again != n {
			t.Errorf("%q becomes %q, and that %q", s, n, again)
		}
	})
}
