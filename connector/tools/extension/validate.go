package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"siyuan-broker/connector/tools"
	catalogue "siyuan-broker/contract/tools"
)

// What a package of each kind is made of: its manifest, the file that SiYuan loads,
// and what the marketplace demands besides.
var (
	entryOf   = map[string]string{"plugin": "index.js", "theme": "theme.css", "widget": "index.html"}
	showFiles = []string{"README.md", "icon.png", "preview.png"}

	backends  = []string{"all", "windows", "linux", "darwin", "docker", "android", "ios", "harmony"}
	frontends = []string{"all", "desktop", "desktop-window", "mobile", "browser-desktop", "browser-mobile"}
	modes     = []string{"light", "dark"}
)

var (
	packageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	semver      = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	runsText    = regexp.MustCompile(`\beval\s*\(|\bnew\s+Function\s*\(`)
	loadsScript = regexp.MustCompile(`(?i)<script[^>]+src\s*=\s*["']?(https?:)?//`)
)

// inspection collects what is wrong with one package.
type inspection struct {
	p     catalogue.ExtensionPackage
	run   catalogue.ExtensionRuntime
	found []catalogue.PackageFinding
}

func (i *inspection) say(severity, at, format string, args ...any) {
	i.found = append(i.found, catalogue.PackageFinding{Severity: severity, Path: at, Message: fmt.Sprintf(format, args...)})
}

// validate looks at a package as it is sent and at nothing else.
func validate(_ context.Context, r *tools.Request, in catalogue.ExtensionValidateIn) (catalogue.ExtensionValidateOut, error) {
	i := &inspection{p: in.Package}
	if in.Runtime != nil {
		i.run = *in.Runtime
	}
	i.fields()
	i.fits("backends", backends, i.run.Backend)
	i.fits("frontends", frontends, i.run.Frontend)
	i.files()
	slices.SortStableFunc(i.found, func(a, b catalogue.PackageFinding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Path, b.Path)) // error before warning
	})
	out := catalogue.ExtensionValidateOut{Findings: []catalogue.PackageFinding{}}
	for _, f := range i.found {
		if f.Severity == "error" {
			out.Errors++
		} else {
			out.Warnings++
		}
	}
	out.Success = out.Errors == 0
	out.Findings = append(out.Findings, catalogue.Fit(i.found, len(i.found), r.Budget, catalogue.Chars[catalogue.PackageFinding])...)
	if out.Truncated = len(out.Findings) < len(i.found); out.Truncated {
		out.Hint = "There are more findings; mend these first."
	}
	return out, nil
}

// text is a field of the manifest that must be a text, "" with a finding otherwise.
func (i *inspection) text(field string, required bool) string {
	raw, given := i.p.Manifest[field]
	var s string
	switch {
	case !given && required:
		i.say("error", field, "is missing")
	case given && json.Unmarshal(raw, &s) != nil:
		i.say("error", field, "must be a text")
	case given && strings.TrimSpace(s) == "":
		i.say("error", field, "is empty")
	}
	return s
}

func (i *inspection) fields() {
	name, version, least := i.text("name", true), i.text("version", true), i.text("minAppVersion", false)
	i.text("author", true)
	if url := i.text("url", true); url != "" && !strings.HasPrefix(url, "https://") {
		i.say("warning", "url", "should be an https address")
	}
	if name != "" && !packageName.MatchString(name) {
		i.say("error", "name", "may have letters, digits and ._- only: it names a folder")
	}
	if version != "" && !semver.MatchString(version) {
		i.say("error", "version", "must be like 1.2.3")
	}
	switch {
	case least == "":
		if _, given := i.p.Manifest["minAppVersion"]; !given {
			i.say("warning", "minAppVersion", "is missing, so SiYuan offers the package to every version")
		}
	case !semver.MatchString(least):
		i.say("error", "minAppVersion", "must be like 3.0.0")
	case semver.MatchString(i.run.AppVersion) && older(i.run.AppVersion, least):
		i.say("error", "minAppVersion", "is %s, and that SiYuan is %s", least, i.run.AppVersion)
	}
	for _, field := range []string{"displayName", "description", "readme"} {
		i.localized(field)
	}
	if i.p.Type == "theme" {
		i.words("modes", modes)
	}
}

// older compares the three numbers of two versions.
func older(a, b string) bool {
	parts := func(v string) (n [3]int) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
		for i, p := range strings.SplitN(v, ".", 3) {
			n[i], _ = strconv.Atoi(p) // the pattern has digits there
		}
		return n
	}
	x, y := parts(a), parts(b)
	return slices.Compare(x[:], y[:]) < 0
}

// localized looks at a text in several languages, and at the files that readme names.
func (i *inspection) localized(field string) {
	raw, given := i.p.Manifest[field]
	if !given {
		return
	}
	var texts map[string]string
	if json.Unmarshal(raw, &texts) != nil {
		i.say("error", field, "must be an object of texts by language, with default")
		return
	}
	if texts["default"] == "" {
		i.say("warning", field, "has no default, which other languages fall back on")
	}
	if field != "readme" {
		return
	}
	for _, lang := range slices.Sorted(maps.Keys(texts)) {
		if _, there := i.p.Files[texts[lang]]; texts[lang] != "" && !there {
			i.say("error", field+"."+lang, "names %q, which is not among the files", texts[lang])
		}
	}
}

// words looks at a list of known words and gives it.
func (i *inspection) words(field string, known []string) (list []string) {
	raw, given := i.p.Manifest[field]
	if !given {
		return nil
	}
	if json.Unmarshal(raw, &list) != nil {
		i.say("error", field, "must be a list of texts")
		return nil
	}
	for _, w := range list {
		if !slices.Contains(known, w) {
			i.say("warning", field, "%q is none of %s", w, strings.Join(known, ", "))
		}
	}
	return list
}

// fits compares what a plugin says it runs on with where it is to run.
func (i *inspection) fits(field string, known []string, here string) {
	if i.p.Type != "plugin" {
		return
	}
	if list := i.words(field, known); here != "" && len(list) > 0 && !slices.Contains(list, "all") && !slices.Contains(list, here) {
		i.say("error", field, "leaves out %q", here)
	}
}

func (i *inspection) files() {
	if _, there := i.p.Files[entryOf[i.p.Type]]; !there {
		i.say("error", entryOf[i.p.Type], "is missing; SiYuan loads it")
	}
	for _, f := range showFiles {
		if _, there := i.p.Files[f]; !there {
			i.say("warning", f, "is not among the files; the marketplace demands it")
		}
	}
	lower := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(i.p.Files)) {
		if name == "" || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") || strings.ContainsAny(name, "\\:\x00") {
			i.say("error", name, "must be a relative name inside the package, with / between folders")
			continue
		}
		if lower[strings.ToLower(name)] {
			i.say("error", name, "differs from another name only in upper and lower case")
		}
		lower[strings.ToLower(name)] = true
		i.content(name, i.p.Files[name])
	}
}

func (i *inspection) content(name, text string) {
	switch path.Ext(name) {
	case ".json":
		if text != "" && !json.Valid([]byte(text)) {
			i.say("error", name, "is no valid JSON")
		} else if name == i.p.Type+".json" {
			i.sameManifest(name, text)
		}
	case ".js":
		if runsText.MatchString(text) {
			i.say("warning", name, "runs text as code (eval or new Function)")
		}
		if name == "index.js" && i.p.Type == "plugin" && !strings.Contains(text, "exports") && !strings.Contains(text, "export default") {
			i.say("warning", name, "seems to export no plugin class")
		}
	case ".html":
		if loadsScript.MatchString(text) {
			i.say("warning", name, "loads a script from elsewhere")
		}
	}
}

// sameManifest compares the manifest among the files with the one that was sent.
func (i *inspection) sameManifest(name, text string) {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &in) != nil {
		i.say("error", name, "must be an object")
		return
	}
	for _, field := range []string{"name", "version"} {
		if string(in[field]) != string(i.p.Manifest[field]) {
			i.say("error", name, "has another %s than the manifest", field)
		}
	}
}
