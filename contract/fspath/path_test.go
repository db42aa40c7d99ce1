package fspath_test

import (
	"slices"
	"strings"
	"testing"

	"siyuan-broker/contract/fspath"
)

func TestPathsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"/":                           nil,
		"///":                         nil,
		"/Work":                       {"Work"},
		"Work":                        {"Work"},
		" /Work/ ":                    {"Work"},
		"/Work//Projects/Alpha/":      {"Work", "Projects", "Alpha"},
		"/日记/今天 📓/👨‍👩‍👧":              {"日记", "今天 📓", "👨‍👩‍👧"},
		`/Work/A\/B test`:             {"Work", "A/B test"},
		`/Work/A\\/B`:                 {"Work", `A\`, "B"},
		`/Work/C:\notes`:              {"Work", `C:\notes`},
		`/Work/ends in \`:             {"Work", `ends in \`},
		"/Work/50% %2F ?a=1&b #x":     {"Work", "50% %2F ?a=1&b #x"},
		"/Work/../. /..":              {"Work", "..", ". ", ".."},
		"/Work/ two  spaces":          {"Work", " two  spaces"},
		"/Work/ends in space /":       {"Work", "ends in space "},
		"/Work/／fullwidth":            {"Work", "／fullwidth"},
		"/20240101090000-work001/Doc": {"20240101090000-work001", "Doc"},
	} {
		got, err := fspath.Parse(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}

func TestEmptyAndEndlessPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "\t\n", strings.Repeat("/a", 65)} {
		if got, err := fspath.Parse(text); err == nil {
			t.Errorf("%.20q is read as %q", text, got)
		}
	}
	if _, err := fspath.Parse(strings.Repeat("/a", 64)); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

func TestPathsAreWritten(t *testing.T) {
	t.Parallel()
	for want, path := range map[string]fspath.Path{
		"/":              nil,
		"/Work/Projects": {"Work", "Projects"},
		`/Work/A\/B`:     {"Work", "A/B"},
		`/Work/A\\\/B`:   {"Work", `A\/B`},
		"/Work/ends /":   {"Work", "ends "},
		"/日记/一 📓":        {"日记", "一 📓"},
	} {
		if got := path.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAChildDoesNotOverwriteASibling(t *testing.T) {
	t.Parallel()
	base := fspath.Path{"Work", "Projects"}
	one := base.Child("A")
	base.Child("B")
	if one.String() != "/Work/Projects/A" {
		t.Errorf("%s", one)
	}
	parent, name := one.Split()
	if parent.String() != "/Work/Projects" || name != "A" {
		t.Errorf("%s and %q", parent, name)
	}
	if parent, name := (fspath.Path)(nil).Split(); parent != nil || name != "" {
		t.Errorf("of the root: %q and %q", parent, name)
	}
}

func TestVirtualFilesStandAtTheRootOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/AGENTS.md": fspath.Memory, "AGENTS.md/": fspath.Memory, "//USER_RULES.md": fspath.Rules,
		"/agents.md": "", "/Work/AGENTS.md": "", "/": "", `/AGENTS.md\/`: "", "/AGENTS.md/x": "",
	} {
		path, err := fspath.Parse(text)
		if err != nil || path.Virtual() != want {
			t.Errorf("%q: %q %v, want %q", text, path.Virtual(), err, want)
		}
	}
}

// FuzzPrintedPathsAreReadBack holds the two laws: a printed path is read back as
// it was, and printing what was read changes nothing that reading sees.
func FuzzPrintedPathsAreReadBack(f *testing.F) {
	for _, seed := range []string{"Work\nProjects\nAlpha", "A/B\nC\\", "\\/\n\\\\", " a \n b ", "日记\n一 📓", ".\n..", "x\u00a0", "\\ "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, names string) {
		var path fspath.Path
		for name := range strings.SplitSeq(names, "\n") {
			if name != "" && len(path) < 64 {
				path = append(path, name)
			}
		}
		read, err := fspath.Parse(path.String())
		if err != nil || !slices.Equal(read, path) {
			t.Errorf("%q is written %q and read %q (%v)", []string(path), path.String(), []string(read), err)
		}
		if read, err = fspath.Parse(names); err != nil {
			return
		}
		if again, err := fspath.Parse(read.String()); err != nil || !slices.Equal(again, read) {
			t.Errorf("%q is read %q and then %q (%v)", names, []string(read), []string(again), err)
		}
	})
}
