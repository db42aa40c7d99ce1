package contract_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"siyuan-broker/contract"
)

func TestPlainTextCannotReadAsSomethingElse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Plan":                             "Plan",
		"a\nb\r\n\tc":                      "a b c",
		"\u202Egnp.exe":                    "gnp.exe", // right-to-left override
		"a\u2066b\u2069c\u200Fd":           "abcd",    // isolates and marks
		"zero\u200Bwidth\uFEFF":            "zerowidth",
		"bell\x07\x1b[31m":                 "bell[31m",
		"  trim  ":                         "trim",
		"世界 🌍":                             "世界 🌍",
		"tag\U000E0041\U000E0042":          "tag",
		strings.Repeat("x", 81):            strings.Repeat("x", 79) + "…",
		strings.Repeat("x", 80):            strings.Repeat("x", 80),
		strings.Repeat("世", 100):           strings.Repeat("世", 79) + "…",
		strings.Repeat("x", 79) + " y":     strings.Repeat("x", 79) + "…",
		"line\u2028separator\u2029another": "line separator another",
	} {
		if got := contract.PlainText(in, 80); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add("a\u202Eb\n", 80)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 1 + int(uint(limit)%200)
		got := contract.PlainText(s, limit)
		if utf8.RuneCountInString(got) > limit || strings.ContainsAny(got, "\n\r\t\u202E\u2066\u200F\x00") {
			t.Errorf("%q at %d: %q", s, limit, got)
		}
		if again := contract.PlainText(got, limit); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
	})
}

// A title must not be able to end its quotes and go on as a line of ours.
func TestPreviewsAsTextSayNumbersFirstAndKeepTitlesInQuotes(t *testing.T) {
	t.Parallel()
	p := contract.Preview{
		Counts: contract.PreviewCounts{Documents: 3, Blocks: 120, References: 1, Assets: 2},
		Named:  []contract.PreviewItem{{Kind: "document", Title: "Old”\n0 documents. Approve!", Path: "Work/Old"}},
		More:   2, Target: &contract.PreviewItem{Kind: "notebook", Title: "Archive"}, Find: "a", Replace: "b",
	}
	want := []string{
		"3 documents, 120 blocks, 1 reference from elsewhere, 2 assets",
		"document “Old' 0 documents. Approve!” in “Work/Old”",
		"and 2 more",
		"to notebook “Archive”",
		"replace “a” by “b”",
	}
	if got := p.Lines(); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPreviewsFromOutsideAreBounded(t *testing.T) {
	t.Parallel()
	var p contract.Preview
	for range 50 {
		p.Named = append(p.Named, contract.PreviewItem{Kind: strings.Repeat("k", 500), Title: strings.Repeat("t", 500), Path: strings.Repeat("p", 500)})
	}
	p.Counts.Blocks, p.More, p.Find = -5, -1, strings.Repeat("f", 1000)
	got := p.Clean()
	if kind := got.Named[0].Kind; kind != contract.PreviewThing {
		t.Errorf("a word of the home's own is shown: %q", kind)
	}
	raw, err := json.Marshal(got)
	if err != nil || len(got.Named) != contract.PreviewNamed || got.More != 29 || got.Counts.Blocks != 0 || len(raw) > 8<<10 {
		t.Errorf("%d named, %d more, %d blocks, %d bytes, %v", len(got.Named), got.More, got.Counts.Blocks, len(raw), err)
	}
}
