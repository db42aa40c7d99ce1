package cases_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// outside are paths that leave a notebook, or would after cleaning, decoding or
// following a link.
var outside = []string{
	"/data/../conf/conf.json", "../../conf/conf.json", "/../conf/conf.json", "/conf/conf.json", "conf/conf.json", "/temp/siyuan.db", "/.git/config",
	"/%2e%2e/%2e%2e/conf/conf.json", "%252e%252e/%252e%252e/conf/conf.json", "..%2f..%2fconf%2fconf.json", `..\..\conf\conf.json`, "....//....//conf/conf.json",
	"/data/storage/petal/x/policy.json", "/data/storage/av/20240102100710-avtasks.json", "../" + guardtest.Private + "/" + guardtest.Secret + ".sy",
	"/" + guardtest.Private + "/" + guardtest.Secret + ".sy", "/../" + guardtest.Diary + "/" + guardtest.Entry + ".sy", "/.siyuan/conf.json", "/" + link,
	"/" + guardtest.Projects + "/../../../conf/conf.json.sy", "/\x00/conf.json", "file:///etc/passwd", "/etc/passwd", "~/policy.yaml", "/dev/null", "C:\\conf\\conf.json",
}

// link is a document file in Work that is a symbolic link to the settings.
const link = "20240110000000-symlink.sy"

// TestK41NoPathLeavesTheNotebook holds K43 too: every argument that is a path, in
// every action and at any depth, is given every one of those paths.
func TestK41NoPathLeavesTheNotebook(t *testing.T) {
	t.Parallel()
	paths := 0
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			for _, p := range a.Params {
				if p.Legacy {
					continue // nothing looks at it
				}
				for _, at := range pathsIn(p, nil) {
					paths++
					t.Run(a.ID()+" "+strings.Join(at, "."), func(t *testing.T) {
						t.Parallel()
						tryPaths(t, a, at)
					})
				}
			}
		}
	}
	if paths < 10 {
		t.Errorf("only %d arguments are paths: the test does not find them", paths)
	}
}

// pathsIn are the ways to the paths in a parameter: those marked as such and
// those called so.
func pathsIn(p catalogue.Param, above []string) [][]string {
	at := append(slices.Clone(above), p.Name)
	name := strings.ToLower(p.Name)
	named := strings.Contains(name, "path") || strings.Contains(name, "icon") || strings.Contains(name, "template")
	switch p.Type {
	case catalogue.String:
		if p.Ref == catalogue.RefPath || p.Ref == catalogue.RefHuman || named {
			return [][]string{at}
		}
	case catalogue.Array:
		if p.Items.Type == catalogue.String && (p.Items.Ref == catalogue.RefPath || p.Items.Ref == catalogue.RefHuman || named) {
			return [][]string{append(at, "[]")}
		}
	case catalogue.Object:
		var all [][]string
		for _, f := range p.Fields {
			all = append(all, pathsIn(f, at)...)
		}
		return all
	}
	return nil
}

func tryPaths(t *testing.T, a *catalogue.Action, at []string) {
	d := newDesk(t)
	box := filepath.Join(d.kernel.Dir(), "data", guardtest.Work)
	check(t, os.Symlink(filepath.Join(d.kernel.Dir(), "conf", "conf.json"), filepath.Join(box, link)))
	secrets := []string{d.kernel.Token(), guardtest.SecretTitle, "confidential"}
	before := elsewhere(d.files(t), box)
	grants := []*contract.Grant{helper(), owner()}
	if leaf, _ := a.Param(at[0]); leaf.Ref == catalogue.RefHuman || leaf.Items != nil && leaf.Items.Ref == catalogue.RefHuman {
		grants = grants[:1] // such a path may lead to any notebook that the caller may write
	}
	for _, args := range argumentsWith(t, a, at) {
		for _, path := range outside {
			for _, grant := range grants {
				r := d.callAs(grant, a.ID(), strings.ReplaceAll(args, pathHere, strings.Trim(sprintf("%q", []any{path}), `"`)))
				if r.Err != nil && r.Err.Type == contract.TypeInternal {
					t.Errorf("%s: %v", path, r.Err)
				}
				for _, s := range secrets {
					if strings.Contains(string(r.Body), s) || r.Err != nil && strings.Contains(string(r.Err.Body()), s) {
						t.Errorf("%s shows %q: %s", path, s, r.Body)
					}
				}
			}
		}
	}
	if after := elsewhere(d.files(t), box); !slices.Equal(after, before) {
		t.Errorf("something outside of the notebook changed")
	}
	for _, e := range d.front.take() {
		if strings.TrimSpace(string(e.body)) == `{"path":"/data/templates"}` {
			continue // where templates are looked for by name
		}
		if strings.HasPrefix(e.path, "/api/file/") || strings.HasPrefix(e.path, "/api/archive/") {
			t.Errorf("SiYuan was asked for a file: %s %s", e.path, e.body)
		}
		if e.path == "/api/notebook/setNotebookConf" && (strings.Contains(string(e.body), `"dailyNoteTemplatePath":"..`) || strings.Contains(string(e.body), `"dailyNoteTemplatePath":"/..`) ||
			strings.Contains(string(e.body), `"dailyNoteTemplatePath":"/data`) || strings.Contains(string(e.body), `conf.json"`) && strings.Contains(string(e.body), "Template")) {
			t.Errorf("a template outside of the folder was set: %s", e.body)
		}
	}
}

// elsewhere are the files of a workspace that are in no folder of the notebook.
func elsewhere(files map[string]string, box string) []string {
	var out []string
	for name, text := range files {
		if !strings.HasPrefix(name, box+string(filepath.Separator)) {
			out = append(out, name+"\n"+text)
		}
	}
	slices.Sort(out)
	return out
}

const pathHere = "PATH-HERE"

// argumentsWith are calls of an action that differ in what stands beside the
// path: the examples that have it, and the parameters it goes with.
func argumentsWith(t *testing.T, a *catalogue.Action, at []string) []string {
	t.Helper()
	var all []string
	for _, base := range append(slices.Clone(a.Examples), `{}`, `{"notebook":"`+guardtest.Work+`"}`, `{"toNotebook":"`+guardtest.Work+`","toPath":"/"}`,
		`{"notebook":"`+guardtest.Work+`","title":"x"}`, `{"toNotebook":"`+guardtest.Work+`","fromPaths":["/`+guardtest.Projects+`.sy"]}`, `{"query":"Alpha"}`) {
		var args map[string]any
		check(t, json.Unmarshal([]byte(base), &args))
		place(args, at)
		raw, err := json.Marshal(args)
		check(t, err)
		if _, invalid := a.Validate(raw); invalid == nil {
			all = append(all, string(raw))
		}
	}
	for _, drop := range []string{"id", "path"} { // what the path stands in for
		for _, base := range a.Examples {
			var args map[string]any
			check(t, json.Unmarshal([]byte(base), &args))
			delete(args, drop)
			args["notebook"] = guardtest.Work
			place(args, at)
			raw, err := json.Marshal(args)
			check(t, err)
			if _, invalid := a.Validate(raw); invalid == nil {
				all = append(all, string(raw))
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no arguments of %s have a %s", a.ID(), strings.Join(at, "."))
	}
	return all
}

func place(args map[string]any, at []string) {
	switch {
	case len(at) == 1:
		args[at[0]] = pathHere
	case at[1] == "[]":
		args[at[0]] = []any{pathHere}
	default:
		inner, _ := args[at[0]].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		args[at[0]] = inner
		place(inner, at[1:])
	}
}

// TestK41TextLinksToNoFileOutsideOfAssets, whoever writes it: SiYuan's exports
// copy what a note links to.
func TestK41TextLinksToNoFileOutsideOfAssets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, link := range []string{"assets/../../conf/conf.json", "/assets/../../conf/conf.json", "assets/x/%2e%2e/%2e%2e/%2e%2e/conf/conf.json", "assets/%252e%252e/%252e%252e/conf/conf.json", `assets/..\..\conf\conf.json`} {
		for _, text := range []string{"[x](" + link + ")", "![x](" + link + ")", `<audio src="` + link + `"></audio>`} {
			for id, args := range map[string]string{
				"block.append":    `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":%q}`,
				"block.update":    `{"id":"` + guardtest.Intro + `","dataType":"markdown","data":%q}`,
				"document.create": `{"notebook":"` + guardtest.Work + `","path":"/New","markdown":%q}`,
			} {
				for _, g := range []*contract.Grant{helper(), owner()} {
					if r := d.callAs(g, id, sprintf(args, []any{text})); r.Err == nil || contract.CodeOf(r.Err) != contract.HiddenReference {
						t.Errorf("%s %s: %v %s", id, text, r.Err, r.Body)
					}
				}
			}
		}
	}
	if r := d.callAs(owner(), "block.append", sprintf(`{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":%q}`, []any{"![x](assets/a..b-20240106090000-pngdot1.png)"})); r.Err != nil {
		t.Errorf("two dots in a name: %v", r.Err)
	}
}

// TestK43IconsAndTemplatesArePlainNames: SiYuan puts icons into its pages, and
// the text of a template file into the next daily note.
func TestK43IconsAndTemplatesArePlainNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, bad := range append(slices.Clone(outside), `<img src=x onerror=alert(1)>`, `javascript:alert(1)`, `a" onload="x.png`, "a\nb.png", "//evil.example/x.png") {
		for id, args := range map[string]string{
			"notebook.set_icon": `{"notebook":"` + guardtest.Work + `","icon":%q}`,
			"document.create":   `{"notebook":"` + guardtest.Work + `","path":"/New","icon":%q}`,
			"notebook.set_conf": `{"notebook":"` + guardtest.Work + `","conf":{"dailyNoteTemplatePath":%q}}`,
		} {
			r := d.callAs(owner(), id, sprintf(args, []any{bad}))
			if r.Err == nil || contract.CodeOf(r.Err) != contract.InvalidArguments {
				t.Errorf("%s %q: %v %s", id, bad, r.Err, r.Body)
			}
		}
	}
	for _, good := range []string{"1f4d4", "1f468-200d-1f4bb", "work/标志 1.png", "logo.svg", "", "api/icon/getDynamicIcon?type=1&color=%23d23f31&lang=zh_CN"} {
		if r := d.callAs(owner(), "notebook.set_icon", sprintf(`{"notebook":"`+guardtest.Work+`","icon":%q}`, []any{good})); r.Err != nil {
			t.Errorf("icon %q: %v", good, r.Err)
		}
	}
	for _, good := range []string{"daily.md", "/daily/日记 1.md", ""} {
		if r := d.callAs(owner(), "notebook.set_conf", sprintf(`{"notebook":"`+guardtest.Work+`","conf":{"dailyNoteTemplatePath":%q}}`, []any{good})); r.Err != nil {
			t.Errorf("template %q: %v", good, r.Err)
		}
	}
}
