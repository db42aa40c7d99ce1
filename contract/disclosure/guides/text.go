package guides

import (
	"fmt"
	"regexp"
	"strings"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

// reader is whom a text is for.
type reader struct {
	catalogue *tools.Catalogue
	enabled   disclosure.Enabled
	strict    bool
	skills    map[string]bool // those there are for the reader
}

// source is one text as it is written in a file: a head between two lines of
// ---, with a title, a description and what the reader needs, then Markdown.
type source struct {
	name, title, description string
	needs                    [][]string // of each entry one action at least
	body                     string
}

func parse(name, text string) (source, error) {
	s := source{name: name}
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok {
		return s, fmt.Errorf("text %s: no head", name)
	}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "title":
			s.title = value
		case "description":
			s.description = value
		case "needs":
			for _, one := range strings.Fields(value) {
				s.needs = append(s.needs, strings.Split(one, "|"))
			}
		default:
			return s, fmt.Errorf("text %s: unknown line %q in its head", name, line)
		}
	}
	s.body = strings.TrimSpace(body)
	return s, nil
}

// isFor reports whether the text exists for a reader: whether its core is there.
func (s source) isFor(r reader) bool {
	for _, oneOf := range s.needs {
		if !r.hasOne(oneOf) {
			return false
		}
	}
	return true
}

func (r reader) hasOne(of []string) bool {
	for _, id := range of {
		tool, action, _ := strings.Cut(id, ".")
		if a, ok := r.catalogue.Action(tool, action); ok && r.enabled(a) {
			return true
		}
	}
	return false
}

var (
	step     = regexp.MustCompile(`^\d+\. `)
	skillURI = regexp.MustCompile(SkillURI + `([a-z-]+)`)
)

// strictOnly marks a line that speaks of validating writes, which not every
// tenant offers.
const strictOnly = "{strict} "

// tells reports whether a line is told to the reader, and conditional whether
// that depends on what it names.
func (r reader) tells(line string) (told, conditional bool) {
	told = disclosure.Usable(r.catalogue, r.enabled, line)
	conditional = len(disclosure.Mentions(line)) > 0
	if strings.Contains(line, SkillURI) {
		for _, m := range skillURI.FindAllStringSubmatch(line, -1) {
			conditional = true
			told = told && (m[1] == indexName || r.skills[m[1]])
		}
	}
	return told && (r.strict || !strings.Contains(line, strictOnly)), conditional
}

// section is a heading with what stands under it, up to the next heading.
type section struct {
	depth int // of the heading; 0: what stands before the first
	lines []string
	lost  bool // it names only what the reader may not use
}

// tell writes a body for a reader.
func (r reader) tell(body string) string {
	sections := r.sections(body)
	var out []string
	for i, s := range sections {
		if r.empty(sections, i) {
			continue
		}
		n := 0
		for _, line := range s.lines {
			if step.MatchString(line) {
				n++
				line = step.ReplaceAllString(line, fmt.Sprintf("%d. ", n))
			}
			out = append(out, line)
		}
	}
	text := strings.Join(out, "\n")
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	return strings.TrimSpace(text) + "\n"
}

func (r reader) sections(body string) []section {
	sections := []section{{}}
	var told, untold int
	end := func() {
		last := &sections[len(sections)-1]
		last.lost = told == 0 && untold > 0
		told, untold = 0, 0
	}
	for line := range strings.SplitSeq(body, "\n") {
		if text := strings.TrimLeft(line, "#"); len(text) < len(line) && strings.HasPrefix(text, " ") {
			end()
			sections = append(sections, section{depth: len(line) - len(text)})
		}
		ok, conditional := r.tells(line)
		switch {
		case !ok && conditional:
			untold++
		case conditional:
			told++
		}
		if !ok {
			continue
		}
		last := &sections[len(sections)-1]
		last.lines = append(last.lines, strings.Replace(line, strictOnly, "", 1))
	}
	end()
	return sections
}

// empty reports whether nothing of a section and of those under it is left.
func (r reader) empty(all []section, i int) bool {
	if !all[i].lost {
		return false
	}
	for _, s := range all[i+1:] {
		if s.depth <= all[i].depth {
			break
		}
		if !s.lost {
			return false
		}
	}
	return true
}
