package guides

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

func all(*tools.Action) bool { return true }

// texts are all texts as they are written, by kind and name.
func texts() map[string]source {
	l, found := New(), map[string]source{}
	add := func(kind string, list []source) {
		for _, s := range list {
			found[kind+"/"+s.name] = s
		}
	}
	add("pages", l.pages)
	add("skills", l.skills)
	for language, list := range l.prompts {
		add("prompts/"+language, list)
	}
	return found
}

// placeholder stands for a value the reader has to fill in.
var placeholder = regexp.MustCompile(`<[^<>]*>`)

// filled puts a value of the right form where a call to copy has a placeholder.
func filled(raw json.RawMessage) json.RawMessage {
	const id, day = "20240131120000-abc1234", "20240131"
	return placeholder.ReplaceAllFunc(raw, func(p []byte) []byte {
		switch name := string(p); {
		case strings.HasSuffix(name, " id>"):
			return []byte(id)
		case name == "<yyyyMMdd>":
			return []byte(day)
		case name == "<>": // of SQL
			return p
		}
		return []byte("words")
	})
}

// lint says what is wrong with what a text names.
func lint(c *tools.Catalogue, text string) (faults []string) {
	for _, m := range disclosure.Mentions(text) {
		id := m.Tool + "." + m.Action
		a, ok := c.Action(m.Tool, m.Action)
		if !ok {
			faults = append(faults, id+" is no action")
			continue
		}
		for _, name := range m.Params {
			if _, ok := a.Param(name); !ok {
				faults = append(faults, id+" has no parameter "+name)
			}
		}
		if m.Args != nil {
			if _, err := a.Validate(filled(m.Args)); err != nil {
				faults = append(faults, fmt.Sprintf("%s %s: %s", id, m.Args, err.Body()))
			}
		}
	}
	if strings.Contains(text, ".{") || strings.Contains(text, "`{\"") {
		faults = append(faults, "a call without its action")
	}
	return faults
}

func TestEveryActionAndParameterThatATextNamesExists(t *testing.T) {
	t.Parallel()
	named := 0
	for name, s := range texts() {
		for _, fault := range lint(tools.New(), s.body+"\n"+s.description) {
			t.Errorf("%s: %s", name, fault)
		}
		named += len(disclosure.Mentions(s.body))
		for _, oneOf := range s.needs {
			for _, id := range oneOf {
				tool, action, _ := strings.Cut(id, ".")
				if _, ok := tools.New().Action(tool, action); !ok {
					t.Errorf("%s needs %s, which is no action", name, id)
				}
			}
		}
		if s.title == "" || s.description == "" || strings.Contains(s.description, "`") || len(disclosure.Mentions(s.title+s.description)) > 0 {
			t.Errorf("%s: title %q, description %q", name, s.title, s.description)
		}
	}
	if named < 100 {
		t.Errorf("only %d actions are named: are the texts read?", named)
	}
}

func TestTheLintSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"block.no_such(id)":                            "block.no_such is no action",
		"block.info(id, colour)":                       "block.info has no parameter colour",
		"block.info {\"idd\": \"<block id>\"}":         "idd",
		"block.info {\"id\": \"<words>\"}":             "id",
		"file.no_such_thing":                           "file.no_such_thing is no action",
		"av.add_rows {\"avID\": \"<database id>\"}":    "blockIDs",
		"Send `{\"action\": \"info\"}` to some tool":   "a call without its action",
		"document.get_doc {\"id\": \"<document id>\"}": "",
	} {
		got := strings.Join(lint(tools.New(), text), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// An action's name without its tool would be missed by what leaves lines out.
func TestActionsAreNamedWithTheirTool(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tool := range tools.New().Tools() {
		for _, a := range tool.Actions {
			if strings.Contains(a.Name, "_") {
				names[a.Name] = true
			}
		}
	}
	word := regexp.MustCompile(`[\w.]+`)
	for name, s := range texts() {
		for _, w := range word.FindAllString(s.body, -1) {
			if names[w] {
				t.Errorf("%s names %s without its tool", name, w)
			}
		}
	}
}

// For any reader nothing is told that they may not use, in any text.
func TestWhatIsOffIsNotSpokenOf(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(3, 4))
	told, kept := 0, 0
	for range 60 {
		on := map[string]bool{}
		share := draw.IntN(10) + 1
		enabled := func(a *tools.Action) bool {
			if v, ok := on[a.ID()]; ok {
				return v
			}
			on[a.ID()] = draw.IntN(10) < share
			return on[a.ID()]
		}
		set := New().For(enabled, draw.IntN(2) == 0)
		skills := map[string]bool{indexName: true}
		for _, s := range set.Skills {
			skills[s.Name] = true
		}
		for name, text := range set.texts() {
			told++
			for _, m := range disclosure.Mentions(text) {
				kept++
				if !on[m.Tool+"."+m.Action] {
					t.Errorf("%s speaks of %s.%s", name, m.Tool, m.Action)
				}
			}
			for _, m := range skillURI.FindAllStringSubmatch(text, -1) {
				if !skills[m[1]] {
					t.Errorf("%s speaks of the skill %s", name, m[1])
				}
			}
		}
	}
	if told < 500 || kept < 2000 {
		t.Errorf("%d texts with %d names: the draw is lopsided", told, kept)
	}
}

// texts are all texts of a set by what they are.
func (s *Set) texts() map[string]string {
	found := map[string]string{"index": string(s.Index)}
	for _, p := range s.Pages {
		found["page "+p.Name] = p.Text
	}
	for _, k := range s.Skills {
		found["skill "+k.Name] = k.Text
	}
	for _, p := range s.Prompts {
		for language, text := range p.Languages {
			found["prompt "+p.Name+" "+language] = text.Description + "\n" + text.Text
		}
	}
	return found
}

func names[T any](list []T, name func(T) string) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, name(v))
	}
	return out
}

func TestATextWhoseCoreIsOffIsNotThere(t *testing.T) {
	t.Parallel()
	onlyReads := New().For(func(a *tools.Action) bool { return !a.Kind.Mutates() }, true)
	if got, want := names(onlyReads.Prompts, func(p Prompt) string { return p.Name }), []string{"daily_review", "health_check", "tidy_notebook"}; !slices.Equal(got, want) {
		t.Errorf("prompts of a reader: %v", got)
	}
	if got := names(onlyReads.Skills, func(s Skill) string { return s.Name }); slices.Contains(got, "create-edit") || !slices.Contains(got, "browse-read") {
		t.Errorf("skills of a reader: %v", got)
	}
	if got := names(onlyReads.Pages, func(p Page) string { return p.Name }); slices.Contains(got, "ai-layout-guide") {
		t.Errorf("pages of a reader: %v", got)
	}
	none := New().For(func(*tools.Action) bool { return false }, true)
	for name, text := range none.texts() {
		if len(disclosure.Mentions(text)) > 0 {
			t.Errorf("%s for nobody: %s", name, text)
		}
	}
	if len(none.Prompts) != 0 {
		t.Errorf("prompts for nobody: %+v", none.Prompts)
	}
}

func TestStepsAreNumberedAnewAndLostSectionsGo(t *testing.T) {
	t.Parallel()
	body := "Intro.\n\n## Steps\n\n1. `block.info(id)`\n2. `search.fulltext(query)`\n3. Tell.\n\n## Lost\n\nAbout blocks.\n\n- `block.dom(id)`\n\n## Outer\n\n- `block.append(parentID)`\n\n### Inner\n\n- `tag.list(keyword)`\n\n## Plain\n\n{strict} Only where it is offered.\n- Always.\n"
	r := reader{catalogue: tools.New(), enabled: func(a *tools.Action) bool { return a.Tool != "block" }}
	want := "Intro.\n\n## Steps\n\n1. `search.fulltext(query)`\n2. Tell.\n\n## Outer\n\n### Inner\n\n- `tag.list(keyword)`\n\n## Plain\n\n- Always.\n"
	if got := r.tell(body); got != want {
		t.Errorf("%q", got)
	}
	r.strict = true
	if got := r.tell(body); !strings.Contains(got, "\nOnly where it is offered.\n- Always.") {
		t.Errorf("%q", got)
	}
}

func TestSkillsAreWellFormed(t *testing.T) {
	t.Parallel()
	set := New().For(all, true)
	var listed struct {
		Skills []struct{ Name, Title, Description, URI, Digest string }
	}
	if err := json.Unmarshal(set.Index, &listed); err != nil || len(listed.Skills) != len(set.Skills) {
		t.Fatalf("%s: %v", set.Index, err)
	}
	// Agent Skills: 1 to 64 of a-z, 0-9 and single hyphens; a description of up to 1024 characters.
	wellNamed := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for i, s := range set.Skills {
		sum := sha256.Sum256([]byte(s.Text))
		if want := "sha256:" + hex.EncodeToString(sum[:]); s.Digest != want || listed.Skills[i].Digest != want || listed.Skills[i].URI != "siyuan://skills/"+s.Name {
			t.Errorf("%s: %s, listed as %+v", s.Name, s.Digest, listed.Skills[i])
		}
		head, body, ok := strings.Cut(strings.TrimPrefix(s.Text, "---\n"), "\n---\n")
		var front map[string]string
		if err := yaml.Unmarshal([]byte(head), &front); err != nil || !ok || !maps.Equal(front, map[string]string{"name": s.Name, "description": s.Description}) {
			t.Errorf("%s begins with %q: %v", s.Name, head, err)
		}
		if !wellNamed.MatchString(s.Name) || len(s.Name) > 64 || len(s.Description) > 1024 || len(body) > 6000 || len(body) < 300 {
			t.Errorf("%s: %d characters, description %q", s.Name, len(body), s.Description)
		}
	}
}

// A prompt is the same workflow in every language.
func TestPromptsNameTheSameCallsInEveryLanguage(t *testing.T) {
	t.Parallel()
	han := regexp.MustCompile(`\p{Han}`)
	for _, p := range New().For(all, true).Prompts {
		if len(p.Languages) != len(Languages()) {
			t.Errorf("%s is there in %d languages", p.Name, len(p.Languages))
		}
		want := fmt.Sprintf("%+q", disclosure.Mentions(p.In(English).Text))
		for language, text := range p.Languages {
			if got := fmt.Sprintf("%+q", disclosure.Mentions(text.Text)); got != want {
				t.Errorf("%s in %s:\n%s\nwant\n%s", p.Name, language, got, want)
			}
		}
		if !han.MatchString(p.In("zh").Description) || p.In("xx").Text != p.In("en").Text {
			t.Errorf("%s: languages", p.Name)
		}
	}
}

func TestPagesSayWhatTheCatalogueSays(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, p := range New().For(all, true).Pages {
		pages[p.Name] = p.Text
	}
	for _, want := range []string{"## block\n", "- `get_kramdown(id, blockStart?)`: "} {
		if !strings.Contains(pages["tool-overview"], want) {
			t.Errorf("tool-overview lacks %q", want)
		}
	}
	if !strings.Contains(pages["examples"], `block.get_kramdown {"id":"20240102110002-block02"}`) {
		t.Errorf("examples: %.300s", pages["examples"])
	}
	for name, text := range pages {
		if strings.Contains(text, "{tools}") || strings.Contains(text, "{examples}") || strings.Contains(text, "{strict}") {
			t.Errorf("%s shows a mark", name)
		}
	}
}

func BenchmarkFor(b *testing.B) {
	for b.Loop() {
		New().For(all, true)
	}
}
