package guides

import (
	"strings"

	"siyuan-broker/contract/disclosure"
)

// Marks in a page that stand for what the catalogue itself says.
const (
	overviewMark = "{tools}"
	examplesMark = "{examples}"
)

// generated puts the catalogue's own words into a page.
func (l *Library) generated(s source, r reader) string {
	switch {
	case strings.Contains(s.body, overviewMark):
		return strings.Replace(s.body, overviewMark, l.overview(r), 1)
	case strings.Contains(s.body, examplesMark):
		return strings.Replace(s.body, examplesMark, l.examples(r), 1)
	}
	return s.body
}

// overview has a section for every tool with the signatures of its actions.
func (l *Library) overview(r reader) string {
	var b strings.Builder
	for _, ix := range disclosure.HelpIndex(l.catalogue, r.enabled) {
		b.WriteString("## " + ix.Tool + "\n\n" + ix.Purpose + "\n\n")
		for _, e := range ix.Actions {
			b.WriteString("- `" + e.Action + "`: " + e.Summary + "\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// examples has the catalogue's own example calls.
func (l *Library) examples(r reader) string {
	var b strings.Builder
	for _, t := range l.catalogue.Tools() {
		title := "## " + t.Name + "\n\n"
		for _, a := range t.Actions {
			if !r.enabled(a) {
				continue
			}
			for _, example := range a.Examples {
				b.WriteString(title + "- `" + a.ID() + " " + example + "`\n")
				title = ""
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
