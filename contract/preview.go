package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// MethodPreview is the method of a call that changes nothing and answers with a
// [Preview] of what the same call would do.
const MethodPreview = "tools/preview"

// Bounds of a Preview.
const (
	PreviewNamed = 20   // things named; the others are counted
	PreviewRunes = 80   // of one title or path
	PreviewArgs  = 2000 // of the arguments of a plugin's tool
)

// Preview says what an action would do, for the person who is asked to agree.
// Numbers cover only what the caller may see, and so do the names.
type Preview struct {
	Counts PreviewCounts `json:"counts"`
	// Uncounted says that there is more than Counts tells: it is in a closed
	// notebook, or too much to count.
	Uncounted bool          `json:"uncounted,omitempty"`
	Named     []PreviewItem `json:"named,omitempty"` // at most PreviewNamed
	More      int           `json:"more,omitempty"`  // things of the same kind that are not named
	Target    *PreviewItem  `json:"target,omitempty"`
	// Find and Replace are the words of a text replacement, Level what a notebook's
	// level becomes.
	Find    string `json:"find,omitempty"`
	Replace string `json:"replace,omitempty"`
	Level   string `json:"level,omitempty"`
	// Kept is how many documents an undo would leave as they are, all or in part.
	Kept int `json:"kept,omitempty"`
	// Lasting says that no undo takes the action back.
	Lasting bool `json:"lasting,omitempty"`
	// Arguments are what a plugin's tool is called with, as JSON.
	Arguments string `json:"arguments,omitempty"`
}

// PreviewCounts are the things an action takes away or touches.
type PreviewCounts struct {
	Notebooks  int `json:"notebooks,omitempty"`
	Documents  int `json:"documents,omitempty"`
	Blocks     int `json:"blocks,omitempty"`
	References int `json:"references,omitempty"` // from elsewhere into it
	Assets     int `json:"assets,omitempty"`
	Attributes int `json:"attributes,omitempty"` // set by people or plugins
	Rows       int `json:"rows,omitempty"`       // of databases
	Bytes      int `json:"bytes,omitempty"`      // of files that come or go
	Places     int `json:"places,omitempty"`     // where text changes
}

// PreviewItem is one thing by name.
type PreviewItem struct {
	Kind  string `json:"kind"` // one of PreviewKinds; Clean makes anything else a PreviewThing
	Title string `json:"title"`
	Path  string `json:"path,omitempty"` // readable, as the fs tool writes it
	// Places are those in it where text changes; 0: it goes as a whole, or moves.
	Places int `json:"places,omitempty"`
}

// Clean makes a preview fit to be shown, whoever sent it: bounded, and without
// characters that would make it read as something else.
func (p Preview) Clean() Preview {
	if len(p.Named) > PreviewNamed {
		p.More += len(p.Named) - PreviewNamed
	}
	named := make([]PreviewItem, min(len(p.Named), PreviewNamed))
	for i := range named {
		named[i] = p.Named[i].clean()
	}
	p.Named, p.More, p.Kept = named, max(0, p.More), max(0, p.Kept)
	if p.Target != nil {
		t := p.Target.clean()
		p.Target = &t
	}
	p.Find, p.Replace, p.Level = PlainText(p.Find, PreviewRunes), PlainText(p.Replace, PreviewRunes), PlainText(p.Level, PreviewRunes)
	p.Arguments = PlainText(p.Arguments, PreviewArgs)
	for _, n := range p.Counts.all() {
		*n.count = max(0, *n.count)
	}
	return p
}

// PreviewThing is the kind of what a home names by a word that is not known here.
const PreviewThing = "thing"

// PreviewKinds are the words for what previews name. People read them in their own
// language, so a page has each.
func PreviewKinds() []string {
	return []string{
		"notebook", "document", "block", "file", "tool", "node", "template", "database", "database row", "database column",
		"new database column", "dropped option", "template for new rows", "dropped template", "place of the new document", PreviewThing,
	}
}

func (i PreviewItem) clean() PreviewItem {
	if !slices.Contains(PreviewKinds(), i.Kind) {
		i.Kind = PreviewThing
	}
	return PreviewItem{i.Kind, PlainText(i.Title, PreviewRunes), PlainText(i.Path, PreviewRunes), max(0, i.Places)}
}

// PlainText is text of somebody else on one line: without control, format and
// bidirectional characters, spaces in one form, at most max runes with an
// ellipsis in place of the rest.
func PlainText(s string, max int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = n > 0
			continue
		case !unicode.IsPrint(r), unicode.In(r, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			continue
		}
		need := 1
		if space {
			need = 2
		}
		if n+need > max {
			return cutTo(b.String(), max-1) + "…"
		}
		if space {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		n, space = n+need, false
	}
	return b.String()
}

func cutTo(s string, runes int) string {
	for i := range s {
		if runes == 0 {
			return strings.TrimRight(s[:i], " ")
		}
		runes--
	}
	return s
}

type previewCount struct {
	count     *int
	one, many string
}

func (c *PreviewCounts) all() []previewCount {
	return []previewCount{
		{&c.Notebooks, "notebook", "notebooks"}, {&c.Documents, "document", "documents"}, {&c.Blocks, "block", "blocks"},
		{&c.References, "reference from elsewhere", "references from elsewhere"}, {&c.Assets, "asset", "assets"},
		{&c.Attributes, "attribute", "attributes"}, {&c.Rows, "database row", "database rows"},
		{&c.Bytes, "byte", "bytes"}, {&c.Places, "place to change", "places to change"},
	}
}

// Lines is a preview as plain text, numbers first. Every title stands in quotes,
// so that none can pass as a line of ours.
func (p Preview) Lines() []string {
	p = p.Clean()
	var counts, lines []string
	for _, n := range p.Counts.all() {
		switch *n.count {
		case 0:
		case 1:
			counts = append(counts, "1 "+n.one)
		default:
			counts = append(counts, fmt.Sprintf("%d %s", *n.count, n.many))
		}
	}
	if len(counts) > 0 {
		lines = append(lines, strings.Join(counts, ", "))
	}
	if p.Uncounted {
		lines = append(lines, "and what could not be counted")
	}
	for _, i := range p.Named {
		lines = append(lines, i.line())
	}
	if p.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.More))
	}
	if p.Target != nil {
		lines = append(lines, "to "+p.Target.line())
	}
	if p.Find != "" {
		lines = append(lines, "replace "+quoted(p.Find)+" by "+quoted(p.Replace))
	}
	if p.Kept > 0 {
		lines = append(lines, fmt.Sprintf("documents that stay as they are, all or in part: %d", p.Kept))
	}
	if p.Level != "" {
		lines = append(lines, "new level: "+p.Level)
	}
	if p.Lasting {
		lines = append(lines, "no undo takes this back")
	}
	if p.Arguments != "" {
		lines = append(lines, "with "+quoted(p.Arguments))
	}
	return lines
}

func (i PreviewItem) line() string {
	s := i.Kind + " " + quoted(i.Title)
	if i.Path != "" {
		s += " in " + quoted(i.Path)
	}
	switch i.Places {
	case 0:
		return s
	case 1:
		return s + ": 1 place"
	}
	return fmt.Sprintf("%s: %d places", s, i.Places)
}

// quoted puts a text between quotes that do not occur in it.
func quoted(s string) string {
	return "“" + strings.NewReplacer("“", "'", "”", "'").Replace(s) + "”"
}
