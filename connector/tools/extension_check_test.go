package tools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestAPackageIsLookedAtAsItIsSent(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const manifest = `"name":"desk-tools","author":"A","url":"https://example.org/desk","version":"1.2.0","minAppVersion":"3.7.0","backends":["linux"],"frontends":["desktop"],"displayName":{"default":"Desk"},"readme":{"default":"README.md"}`
	const files = `"index.js":"module.exports = class {}","README.md":"x","icon.png":"","preview.png":"","i18n/en.json":"{}"`
	for name, c := range map[string]struct {
		kind, manifest, files, runtime string
		want                           []string // severity and path
	}{
		"all is well":           {"plugin", manifest, files, `{"appVersion":"3.7.3","backend":"linux","frontend":"desktop"}`, nil},
		"nothing":               {"plugin", ``, ``, `{}`, []string{"error author", "error index.js", "error name", "error url", "error version", "warning README.md", "warning icon.png", "warning minAppVersion", "warning preview.png"}},
		"an older SiYuan":       {"plugin", manifest, files, `{"appVersion":"3.6.9"}`, []string{"error minAppVersion"}},
		"a newer SiYuan":        {"plugin", manifest, files, `{"appVersion":"3.10.0"}`, nil},
		"another place":         {"plugin", manifest, files, `{"backend":"ios","frontend":"mobile"}`, []string{"error backends", "error frontends"}},
		"a name for a path":     {"plugin", strings.Replace(manifest, "desk-tools", "../desk", 1), files, `{}`, []string{"error name"}},
		"a version of one part": {"plugin", strings.Replace(manifest, "1.2.0", "1", 1), files, `{}`, []string{"error version"}},
		"a number for a text":   {"plugin", strings.Replace(manifest, `"author":"A"`, `"author":7`, 1), files, `{}`, []string{"error author"}},
		"no such readme":        {"plugin", strings.Replace(manifest, "README.md", "LIESMICH.md", 1), files, `{}`, []string{"error readme.default"}},
		"an unknown system":     {"plugin", strings.Replace(manifest, `["linux"]`, `["linux","beos"]`, 1), files, `{}`, []string{"warning backends"}},
		"paths that leave":      {"plugin", manifest, files + `,"../x.js":"","/y":"","a\\b":"","a/../c":""`, `{}`, []string{"error ../x.js", "error /y", "error a/../c", `error a\b`}},
		"one name twice":        {"plugin", manifest, files + `,"Readme.md":""`, `{}`, []string{"error Readme.md"}},
		"broken JSON":           {"plugin", manifest, strings.Replace(files, `"{}"`, `"{"`, 1), `{}`, []string{"error i18n/en.json"}},
		"another manifest":      {"plugin", manifest, files + `,"plugin.json":"{\"name\":\"desk-tools\",\"version\":\"1.0.0\"}"`, `{}`, []string{"error plugin.json"}},
		"code out of text":      {"plugin", manifest, files + `,"more.js":"eval(x)"`, `{}`, []string{"warning more.js"}},
		"a theme of no mode":    {"theme", manifest + `,"modes":["dim"]`, files + `,"theme.css":""`, `{}`, []string{"warning modes"}},
		"a widget's script":     {"widget", manifest, files + `,"index.html":"<script src=\"https://example.org/x.js\">"`, `{}`, []string{"warning index.html"}},
	} {
		out := ok[catalogue.ExtensionValidateOut](t, d, owner(), "extension.validate_package",
			fmt.Sprintf(`{"package":{"type":%q,"manifest":{%s},"files":{%s}},"runtime":%s}`, c.kind, c.manifest, c.files, c.runtime))
		var got []string
		errors := 0
		for _, f := range out.Findings {
			got = append(got, f.Severity+" "+f.Path)
			if f.Severity == "error" {
				errors++
			}
		}
		if !slices.Equal(got, c.want) || out.Success != (errors == 0) || out.Errors != errors || out.Warnings != len(got)-errors {
			t.Errorf("%s: %q, want %q (%+v)", name, got, c.want, out)
		}
	}
}

func TestFindingsStayWithinTheAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	var files []string
	for i := range 2000 {
		files = append(files, fmt.Sprintf(`"../%d":""`, i))
	}
	r := d.call(owner(), "extension.validate_package", `{"package":{"type":"widget","manifest":{},"files":{`+strings.Join(files, ",")+`}}}`)
	var out catalogue.ExtensionValidateOut
	if r.Err != nil || json.Unmarshal(r.Body, &out) != nil || !out.Truncated || out.Errors < 2000 || len(r.Body) > catalogue.DefaultResultChars+1000 {
		t.Errorf("%v: %d characters, %d errors, truncated %v", r.Err, len(r.Body), out.Errors, out.Truncated)
	}
}

// TestAPluginsToolsAreComparedWithWhatIsExpected asks SiYuan each time.
func TestAPluginsToolsAreComparedWithWhatIsExpected(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	say := func(args string) string {
		out := ok[catalogue.ExtensionDiagnoseOut](t, d, owner(), "extension.diagnose_plugin_mcp", args)
		var names []string
		for _, tool := range out.Tools {
			names = append(names, tool.Local)
		}
		return fmt.Sprintf("%v %s %v %v %v", out.Success, out.Prefix, names, out.Missing, out.Present)
	}
	for _, c := range [][2]string{
		{`{"pluginName":"desk-tools"}`, "true plugin__desk_tools__ [fails read_weather ring] [] []"},
		{`{"pluginName":"desk-tools","expectedToolNames":["ring","sing"]}`, "false plugin__desk_tools__ [fails read_weather ring] [sing] []"},
		{`{"pluginName":"desk-tools","expectedToolNames":["ring","sing"],"expectedState":"absent"}`, "false plugin__desk_tools__ [fails read_weather ring] [] [ring]"},
		{`{"pluginName":"desk-tools","expectedState":"absent"}`, "false plugin__desk_tools__ [fails read_weather ring] [] [fails read_weather ring]"},
		{`{"pluginName":"desk"}`, "false plugin__desk__ [] [] []"},
		{`{"pluginName":"desk","expectedState":"absent"}`, "true plugin__desk__ [] [] []"},
	} {
		if got := say(c[0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
	d.Kernel.WithdrawTool("plugin__desk_tools__ring")
	if got := say(`{"pluginName":"desk-tools","expectedToolNames":["ring"],"expectedState":"absent"}`); got != "true plugin__desk_tools__ [fails read_weather] [] []" {
		t.Errorf("after it was withdrawn: %s", got)
	}

	hidden, off := owner(), owner()
	hidden.Levels = map[string]contract.Level{guardtest.Private: contract.None}
	off.Switches = []contract.Switch{contract.SwitchNative}
	fails(t, d.call(hidden, "extension.diagnose_plugin_mcp", `{"pluginName":"desk-tools"}`), contract.Unsupported)
	fails(t, d.call(off, "extension.diagnose_plugin_mcp", `{"pluginName":"desk-tools"}`), contract.PermissionDenied)
}

func TestThePrefixOfAPluginHasLettersAndDigitsOnly(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"desk-tools": "plugin__desk_tools__", "a.B 9/x": "plugin__a_B_9_x__", "笔记x": "plugin____x__"} {
		if got := guard.PluginPrefix(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
