package guard

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
)

// Kramdown is SiYuan's Markdown with an inline attribute list, {: k="v" }, after
// each block, or behind the marker of a list item. This file reads as much of
// it as the guard needs. Where the text cannot be told apart without a full
// parser (code spans, for one), the guard errs towards seeing a reference.

// escNewline is how attribute lists spell a newline inside a value.
const escNewline = "_esc_newline_"

var (
	ialPattern  = regexp.MustCompile(`\{:((?:\s+[a-zA-Z][\w-]*="[^"]*")*)\s*\}`)
	attrPattern = regexp.MustCompile(`([a-zA-Z][\w-]*)="([^"]*)"`)
	// trailingIAL is a list that stands alone on the last line: the block's own.
	trailingIAL = regexp.MustCompile(`(?:^|\n)(\{:(?:\s+[a-zA-Z][\w-]*="[^"]*")*\s*\})\s*$`)
)

// parseIAL reads one attribute list into plain values.
func parseIAL(list string) siyuan.Attrs {
	attrs := siyuan.Attrs{}
	for _, m := range attrPattern.FindAllStringSubmatch(list, -1) {
		attrs[m[1]] = html.UnescapeString(strings.ReplaceAll(m[2], escNewline, "\n"))
	}
	return attrs
}

var attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", escNewline, "{", "&#123;", "}", "&#125;")

// formatIAL writes an attribute list, sorted by name.
func formatIAL(attrs siyuan.Attrs) string {
	var b strings.Builder
	b.WriteString("{:")
	for _, k := range slices.Sorted(maps.Keys(attrs)) {
		b.WriteString(" " + k + `="` + attrEscaper.Replace(attrs[k]) + `"`)
	}
	return b.String() + "}"
}

// cutOwnIAL splits the block's own attribute list from the end of its text.
func cutOwnIAL(text string) (body string, own siyuan.Attrs) {
	m := trailingIAL.FindStringSubmatchIndex(text)
	if m == nil {
		return text, siyuan.Attrs{}
	}
	return strings.TrimRight(text[:m[0]], "\n"), parseIAL(text[m[2]:m[3]])
}

// ialsByID are the attribute lists of a text that carry an id.
func ialsByID(text string) map[siyuan.ID]siyuan.Attrs {
	all := map[siyuan.ID]siyuan.Attrs{}
	outsideFences(text, func(part string) string {
		for _, list := range ialPattern.FindAllString(part, -1) {
			if attrs := parseIAL(list); attrs["id"] != "" {
				all[siyuan.ID(attrs["id"])] = attrs
			}
		}
		return part
	})
	return all
}

// dropForeignIDs takes id and updated out of every attribute list whose id is
// not kept: the kernel gives new blocks ids of its own, and an id that is in use
// elsewhere would come to exist twice. Lists left empty disappear.
func dropForeignIDs(text string, keep map[siyuan.ID]siyuan.Attrs) string {
	return outsideFences(text, func(part string) string {
		return ialPattern.ReplaceAllStringFunc(part, func(list string) string {
			attrs := parseIAL(list)
			if _, kept := keep[siyuan.ID(attrs["id"])]; kept {
				return list
			}
			if !owned(attrs) {
				return list
			}
			delete(attrs, "id")
			delete(attrs, "updated")
			maps.DeleteFunc(attrs, func(name, _ string) bool { return protected(name) })
			if len(attrs) == 0 {
				return ""
			}
			return formatIAL(attrs)
		})
	})
}

// owned reports whether a list has an attribute only the kernel may give out.
func owned(attrs siyuan.Attrs) bool {
	for name := range attrs {
		if name == "id" || name == "updated" || protected(name) {
			return true
		}
	}
	return false
}

// protectedAttrs tie a block to databases and card decks. They change through
// those, never through text.
var protectedAttrs = []string{"custom-avs", "custom-riff-decks", "av-names"}

// databaseText begins the names of attributes in which databases keep a text at
// the blocks that are their rows.
const databaseText = "custom-sy-av-s-text-"

// protected: the attribute changes through databases and decks only.
func protected(name string) bool {
	return slices.Contains(protectedAttrs, name) || strings.HasPrefix(name, databaseText)
}

// databaseAttr: a database wrote the attribute, possibly one the caller may not
// see.
func databaseAttr(name string) bool {
	return name == "custom-avs" || name == "av-names" || strings.HasPrefix(name, databaseText)
}

// withoutDatabases takes out of all attribute lists what databases wrote.
func withoutDatabases(text string) string {
	if !strings.Contains(text, "custom-avs=") && !strings.Contains(text, databaseText) {
		return text
	}
	return ialPattern.ReplaceAllStringFunc(text, func(list string) string {
		attrs := parseIAL(list)
		n := len(attrs)
		maps.DeleteFunc(attrs, func(name, _ string) bool { return databaseAttr(name) })
		if len(attrs) == n {
			return list
		}
		return formatIAL(attrs)
	})
}

// computedAttrs are not the block's own to keep: the kernel makes them.
var computedAttrs = []string{"id", "updated", "av-names", "type", "title"}

var fenceLine = regexp.MustCompile("^[ \t>]*(```+|~~~+|\\$\\$)")

// outsideFences applies f to the parts of a text that are not in a code or math
// fence, and leaves the others alone.
func outsideFences(text string, f func(part string) string) string {
	var out, part strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		mark := ""
		if m := fenceLine.FindStringSubmatch(line); m != nil {
			mark = m[1]
		}
		switch {
		case fence == "" && mark == "":
			part.WriteString(line)
		case fence == "":
			out.WriteString(f(part.String()))
			part.Reset()
			out.WriteString(line)
			if !closedOnLine(line, mark) {
				fence = mark
			}
		default:
			out.WriteString(line)
			if strings.HasPrefix(mark, fence) && onlyMark(line) {
				fence = ""
			}
		}
	}
	out.WriteString(f(part.String()))
	return out.String()
}

// closedOnLine: $$x$$ opens and closes on one line.
func closedOnLine(line, mark string) bool {
	return mark == "$$" && strings.Count(line, "$$") > 1
}

func onlyMark(line string) bool { return strings.Trim(line, " \t>`~$\r\n") == "" }

// fenced reports whether a text ends inside a fence it opened.
func fenced(text string) bool {
	const probe = "\nx"
	open := true
	outsideFences(text+probe, func(part string) string {
		if strings.HasSuffix(part, "x") {
			open = false
		}
		return part
	})
	return open
}

// zwsp is what the kernel puts beside tags and inline code. Joiners such as
// U+200D are part of people's text and stay.
const zwsp = "\u200b"

// withoutZWSP removes the kernel's zero width spaces.
func withoutZWSP(text string) string { return strings.ReplaceAll(text, zwsp, "") }

var (
	listLine  = regexp.MustCompile(`^(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)`)
	blockLine = regexp.MustCompile(`^(?:#{1,6}[ \t]|>|\{\{|(?:\*[ \t]*){3,}$|(?:-[ \t]*){3,}$|(?:_[ \t]*){3,}$)`)
)

// topBlocks counts the top-level blocks of Markdown, as far as it matters for
// telling one from several.
func topBlocks(text string) int {
	n, kind, blank := 0, "", false
	depth := 0 // of super blocks
	inFence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		bare := strings.TrimSpace(line)
		switch {
		case inFence != "":
			if strings.HasPrefix(bare, inFence) && onlyMark(bare) {
				inFence, kind, blank = "", "closed", false
			}
			continue
		case depth > 0:
			switch {
			case strings.HasPrefix(bare, "{{{"):
				depth++
			case bare == "}}}":
				if depth--; depth == 0 {
					kind, blank = "closed", false
				}
			}
			continue
		case bare == "":
			blank = true
			continue
		case trailingIAL.MatchString(bare):
			continue
		}
		next := lineKind(line, bare)
		if !continues(kind, next, blank, line) {
			n++
			kind = next
		}
		blank = false
		switch next {
		case "fence":
			if mark := fenceLine.FindStringSubmatch(line)[1]; !closedOnLine(line, mark) {
				if kind != "list" || line == bare {
					inFence = mark
				}
			} else {
				kind = "closed"
			}
		case "super":
			depth = 1
		case "heading":
			kind = "closed"
		}
	}
	return n
}

func lineKind(line, bare string) string {
	switch {
	case line != bare && (strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")):
		return "indented"
	case strings.HasPrefix(bare, "{{{"):
		return "super"
	case fenceLine.MatchString(bare) && bare[0] != '>':
		return "fence"
	case bare[0] == '>':
		return "quote"
	case blockLine.MatchString(bare):
		return "heading"
	case listLine.MatchString(bare):
		return "list"
	case bare[0] == '|':
		return "table"
	case bare[0] == '<':
		return "html"
	}
	return "text"
}

// continues: the line belongs to the block before it.
func continues(kind, next string, blank bool, line string) bool {
	switch kind {
	case "":
		return false
	case "list":
		return next == "indented" || next == "list" || next == "text" && !blank
	case "quote":
		return next == "quote" && !blank || next == "text" && !blank
	case "html":
		return !blank
	case "table":
		return !blank && (next == "table" || next == "text")
	case "text":
		return !blank && (next == "text" || next == "indented" || next == "html" || next == "table")
	}
	return false
}
