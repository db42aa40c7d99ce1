package guides

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

// Where the texts are as resources. Under SkillURI also stands the index.
const (
	PageURI       = "siyuan://help/"
	SkillURI      = "siyuan://skills/"
	SkillIndexURI = SkillURI + indexName

	indexName = "index"
)

// English is the language of every prompt that no other is asked for.
const English = "en"

// Languages are those of the prompts.
func Languages() []string { return []string{English, "zh"} }

//go:embed pages skills prompts
var files embed.FS

// Library is all texts there are. It is immutable.
type Library struct {
	catalogue     *tools.Catalogue
	pages, skills []source            // by name
	prompts       map[string][]source // by language, each by name
}

// New returns the texts, which are part of the program. It panics where one
// cannot be read, which the first test run meets.
var New = sync.OnceValue(func() *Library {
	l := &Library{catalogue: tools.New(), pages: load("pages"), skills: load("skills"), prompts: map[string][]source{}}
	for _, language := range Languages() {
		l.prompts[language] = load(path.Join("prompts", language))
	}
	return l
})

func load(dir string) []source {
	entries, err := files.ReadDir(dir) // by name
	if err != nil {
		panic(err)
	}
	var all []source
	for _, e := range entries {
		raw, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			panic(err)
		}
		s, err := parse(strings.TrimSuffix(e.Name(), ".md"), string(raw))
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	return all
}

// Page is a page of help.
type Page struct {
	Name, Title, Description string
	Text                     string // Markdown
}

// URI is the page's address.
func (p Page) URI() string { return PageURI + p.Name }

// Skill teaches one kind of work.
type Skill struct {
	Name, Title, Description string
	Text                     string // a SKILL.md: a head with name and description, then Markdown
	Digest                   string // sha256:… of Text
}

// URI is the skill's address.
func (s Skill) URI() string { return SkillURI + s.Name }

// FileURI is its address as a file, in the form that the Skills extension of MCP
// gives them.
func (s Skill) FileURI() string { return "skill://" + s.Name + "/SKILL.md" }

// Prompt is a workflow that a person starts.
type Prompt struct {
	Name, Title string
	Languages   map[string]PromptText
}

// PromptText is a prompt in one language.
type PromptText struct{ Description, Text string }

// In is the prompt in a language, in English where there is no such text.
func (p Prompt) In(language string) PromptText {
	if t, ok := p.Languages[language]; ok {
		return t
	}
	return p.Languages[English]
}

// Set is what there is for one reader, each by name.
type Set struct {
	Pages   []Page
	Skills  []Skill
	Prompts []Prompt
	Index   json.RawMessage // of the skills: [{name, title, description, uri, digest}]
}

// For tells all texts to a reader who may use what enabled says. strict says
// that writes can be validated before they are done.
func (l *Library) For(enabled disclosure.Enabled, strict bool) *Set {
	r := reader{catalogue: l.catalogue, enabled: enabled, strict: strict, skills: map[string]bool{}}
	for _, s := range l.skills {
		r.skills[s.name] = s.isFor(r)
	}
	set := &Set{}
	for _, s := range l.pages {
		if s.isFor(r) {
			set.Pages = append(set.Pages, Page{s.name, s.title, s.description, r.tell(l.generated(s, r))})
		}
	}
	for _, s := range l.skills {
		if r.skills[s.name] {
			set.Skills = append(set.Skills, skill(s, r))
		}
	}
	set.Index = index(set.Skills)
	set.Prompts = l.promptsFor(r)
	return set
}

// howToRead stands in every text with calls to copy.
var howToRead = map[string]string{
	English: "`tool.action {…}` is a call: the tool, its action, the other parameters. Put real values for <…>.",
	"zh":    "`tool.action {…}` 表示一次调用：工具、动作和其余参数。<…> 处填入真实的值。",
}

func skill(s source, r reader) Skill {
	head := fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n\n", s.name, quoted(s.description))
	text := head + "# " + s.title + "\n\n" + howToRead[English] + "\n\n" + r.tell(s.body)
	sum := sha256.Sum256([]byte(text))
	return Skill{s.name, s.title, s.description, text, "sha256:" + hex.EncodeToString(sum[:])}
}

// quoted is a text as a scalar that YAML and JSON read alike.
func quoted(text string) string { return string(encoded(text)) }

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and lists of them always have a JSON form
	}
	return b
}

func index(skills []Skill) json.RawMessage {
	type entry struct {
		Name        string `json:"name"`
		Title       string `json:"title"`
		Description string `json:"description"`
		URI         string `json:"uri"`
		Digest      string `json:"digest"`
	}
	list := []entry{}
	for _, s := range skills {
		list = append(list, entry{s.Name, s.Title, s.Description, s.URI(), s.Digest})
	}
	return encoded(map[string]any{"skills": list})
}

func (l *Library) promptsFor(r reader) []Prompt {
	byName := map[string]Prompt{}
	for _, language := range Languages() {
		for _, s := range l.prompts[language] {
			if !s.isFor(r) {
				continue
			}
			p, ok := byName[s.name]
			if !ok {
				p = Prompt{Name: s.name, Title: s.title, Languages: map[string]PromptText{}}
			}
			p.Languages[language] = PromptText{s.description, howToRead[language] + "\n\n" + r.tell(s.body)}
			byName[s.name] = p
		}
	}
	var list []Prompt
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}
