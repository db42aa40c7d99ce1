package guard

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// secretField names the fields of the configuration that hold credentials.
var secretField = regexp.MustCompile(`(?i)(token|apiKey|accessKey|secretKey|password|authCode|repo\.key)$`)

// TestASecretOfAnyFieldIsMaskedInAPluginsWords plants one in every field for
// credentials of a recorded configuration, and has a plugin say it in the usual
// spellings.
func TestASecretOfAnyFieldIsMaskedInAPluginsWords(t *testing.T) {
	t.Parallel()
	const secret = `p"w<9 ä/x+y`
	spelled := []string{ // worked out by hand
		`plain: p"w<9 ä/x+y.`, `{"k":"p\"w<9 ä/x+y"}`, `{"k":"p\"w\u003c9 ä/x+y"}`,
		`?k=p%22w%3C9+%C3%A4%2Fx%2By&l=1`, `/p%22w%3C9%20%C3%A4%2Fx+y/`, `Basic cCJ3PDkgw6QveCt5`,
	}
	conf := recordedConf(t)
	planted := 0
	everyField(conf, "conf", func(path string, set func(any) func()) {
		if !secretField.MatchString(path) {
			return
		}
		planted++
		defer set(secret)()
		raw, err := json.Marshal(conf)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newSecretMask(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range spelled {
			if got := m.text(text); !strings.Contains(got, masked) || len(got) > len(text)+len(masked) || strings.Contains(got, "w<9") || strings.Contains(got, "%3C9") || strings.Contains(got, "cCJ3") || strings.Contains(got, `u003c9`) {
				t.Errorf("%s: %s is shown as %s", path, text, got)
			}
		}
	})
	if planted < 8 {
		t.Errorf("planted in %d fields: the test does not find them", planted)
	}
}

func TestOnlySecretsAreMaskedInAPluginsWords(t *testing.T) {
	t.Parallel()
	m, err := newSecretMask(json.RawMessage(`{"accessAuthCode":"2468","api":{"token":"abcdef0123456789"},"sync":{"s3":{"secretKey":"ab"},"webdav":{"password":"abcdef"}},"appearance":{"themeLight":"daylight"},"editor":{"fontSize":2468}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"daylight sha256:9f86d081884c7d659a2feaa0c55ad015 20240101090000-work001": "daylight sha256:9f86d081884c7d659a2feaa0c55ad015 20240101090000-work001",
		"code 2468, not 12468, 24680 or a2468b; (2468)":                           "code [REDACTED], not 12468, 24680 or a2468b; ([REDACTED])",
		"2468":                         "[REDACTED]",
		"2468 2468":                    "[REDACTED] [REDACTED]",
		"abcdef0123456789 and abcdef!": "[REDACTED] and [REDACTED]!", // the longer one first
		"a cab":                        "a cab",                      // two characters are no secret
		"":                             "",
	} {
		if got := m.text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	e := m.extension(Extension{Title: "Token abcdef0123456789", Description: "abcdef", Schema: json.RawMessage(`{"type":"object","default":"abcdef"}`)})
	if e.Title != "Token [REDACTED]" || e.Description != "[REDACTED]" || string(e.Schema) != `{"type":"object","default":"[REDACTED]"}` {
		t.Errorf("%+v %s", e, e.Schema)
	}
	if e := m.extension(Extension{Schema: json.RawMessage(`{"maximum":2468}`)}); e.Schema != nil {
		t.Errorf("a schema that is none any more is shown: %s", e.Schema)
	}
}
