package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// recordedConf is the configuration of a real SiYuan.
func recordedConf(t *testing.T) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("../siyuan/samplekernel/testdata/recordings/system.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name     string
		Response struct {
			Body json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Name != "getConf" {
			continue
		}
		var body struct {
			Data struct{ Conf map[string]any }
		}
		if err := json.Unmarshal(e.Response.Body, &body); err != nil {
			t.Fatal(err)
		}
		return body.Data.Conf
	}
	t.Fatal("no getConf among the recordings")
	return nil
}

// everyField calls f with a way to set each field of a tree, whatever its type.
func everyField(v any, path string, f func(path string, set func(any) (undo func()))) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			f(path+"."+key, func(to any) func() { v[key] = to; return func() { v[key] = member } })
			everyField(member, path+"."+key, f)
		}
	case []any:
		for i, member := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			f(at, func(to any) func() { v[i] = to; return func() { v[i] = member } })
			everyField(member, at, f)
		}
	}
}

func maskedText(t *testing.T, conf map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(conf)
	if err != nil {
		t.Fatal(err)
	}
	out, err := maskConf(raw)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(shown)
}

// TestASecretInAnyFieldOfTheConfigurationIsMasked plants secrets of the usual
// forms in every field that the real configuration has, one after the other.
func TestASecretInAnyFieldOfTheConfigurationIsMasked(t *testing.T) {
	t.Parallel()
	conf := recordedConf(t)
	planted := 0
	for _, secret := range []string{
		"sk-proj-4f9a8b7c6d5e4f3a2b1c", "7ryft74ugx0f3ire", "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMQ", "https://ann:s3cret@example.com/dav", "AKIAIOSFODNN7EXAMPLE",
	} {
		for name, v := range conf {
			section := map[string]any{name: v}
			everyField(section, "", func(path string, set func(any) func()) {
				for _, value := range []any{secret, map[string]any{"value": []any{"see " + secret + " there"}}} {
					undo := set(value)
					if shown := maskedText(t, section); strings.Contains(shown, secret) {
						t.Errorf("%s shows %v", path, value)
					}
					undo()
					planted++
				}
			})
		}
	}
	if planted < 1000 {
		t.Errorf("planted only %d times", planted)
	}
}

// TestAPlainWordIsMaskedWhereSecretsBelong: a password may be an ordinary word,
// so there the place decides and not the look.
func TestAPlainWordIsMaskedWhereSecretsBelong(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		`{"sync":{"webdav":{"username":"sesame","password":"sesame"}}}`, `{"sync":{"s3":{"accessKey":"sesame","endpoint":"sesame"}}}`,
		`{"ai":{"providers":[{"name":"sesame","apiKey":"sesame","headers":{"X":"sesame"}}],"mcp":{"servers":[{"env":{"A":"sesame"}}]}}}`,
		`{"publish":{"auth":{"accounts":[{"username":"sesame","password":"sesame"}]}}}`, `{"secrets":{"items":[{"name":"n","value":"sesame"}]}}`,
		`{"variables":{"items":[{"value":"sesame"}]}}`, `{"accessAuthCode":"sesame","cookieKey":"sesame","mcpOAuth":"sesame","userData":"sesame"}`,
		`{"repo":{"key":"sesame"},"api":{"token":"sesame"},"account":{"user":"sesame"}}`, `{"system":{"id":"sesame","name":"sesame","homeDir":"sesame"}}`,
		`{"notebookCrypto":{"masterSalt":"sesame","kekVerifier":"sesame"}}`, `{"editor":{"apiToken":"sesame"}}`, `{"a section of a later version":"sesame"}`,
		`{"api":{"token":"sesame"},"editor":{"fontFamily":"has sesame in it"}}`, `{"uiLayout":{"tabs":["sesame"]}}`,
	} {
		var conf map[string]any
		if err := json.Unmarshal([]byte(c), &conf); err != nil {
			t.Fatal(err)
		}
		if shown := maskedText(t, conf); strings.Contains(shown, "sesame") {
			t.Errorf("%s shows %s", c, shown)
		}
	}
	if shown := maskedText(t, map[string]any{"api": map[string]any{"pin_token": 1234}}); strings.Contains(shown, "1234") {
		t.Errorf("a number under a secret name shows: %s", shown)
	}
}

func TestOrdinarySettingsAreShown(t *testing.T) {
	t.Parallel()
	shown := maskedText(t, recordedConf(t))
	for _, want := range []string{
		`"themeDark":"midnight"`, `"fontSize":16`, `"kernelVersion":"3.7.3"`, `"weights":"0.40255, 1.18385`, `"lang":"en"`, `"enabled":false`,
		`"plantUMLServePath":"https://www.plantuml.com/plantuml/svg/~1"`, `"newCardLimit":20`, `"logLevel":"debug"`,
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is missing from %s", want, shown)
		}
	}
}

// TestASecretInATextOfSiYuanIsMasked: what SiYuan says about a failed sync
// quotes addresses, and whatever a service answered.
func TestASecretInATextOfSiYuanIsMasked(t *testing.T) {
	t.Parallel()
	conf := json.RawMessage(`{"sync":{"s3":{"accessKey":"sesame","secretKey":"open-sesame"},"webdav":{"username":"ann","password":"hunter2 with a space"}},"api":{"token":"abc"},"repo":{"key":"Zm9v"}}`)
	for text, want := range map[string]string{
		"Synced at 2026-11-30 12:51:03":                              "Synced at 2026-11-30 12:51:03",
		"同步失败：Put \"https://ann:s3cret@dav.example.com/x\": timeout": "同步失败：Put \"https://[REDACTED]@dav.example.com/x\": timeout",
		"403 for key sesame and open-sesame":                         "403 for key [REDACTED] and [REDACTED]",
		"Authorization: Bearer sk-proj-4f9a8b7c6d5e4f3a2b1c":         "Authorization: Bearer [REDACTED]",
		"wrong password hunter2 with a space.":                       "wrong password [REDACTED].",
		"document 20240102100100-alphadc is locked, abc":             "document 20240102100100-alphadc is locked, abc", // an id, and no secret is that short
	} {
		if got, err := maskText(text, conf); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := maskText("x", json.RawMessage(`[]`)); err == nil {
		t.Error("a configuration of another form was taken")
	}
}
