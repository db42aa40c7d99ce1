package disclosure

import (
	"encoding/json"
	"strings"

	"siyuan-broker/contract/tools"
)

// Mention is an action that a text for agents names, in one of three forms:
// tool.action alone, tool.action(a, b) with some of its parameters, and
// tool.action {"a": "<id>"}, a call to copy in which <…> stands for a value to
// fill in.
type Mention struct {
	Tool, Action string
	Params       []string        // named in parentheses
	Args         json.RawMessage // of a call to copy; nil where there is none
}

// Mentions lists the actions that a text names, in order. Only the names of
// tools that exist or are planned begin one, so that file names and addresses
// are none.
func Mentions(text string) []Mention {
	var all []Mention
	for at := strings.IndexByte(text, '.'); at >= 0; {
		rest := text[at+1:]
		tool := text[len(strings.TrimRightFunc(text[:at], inWord)):at]
		action := rest[:len(rest)-len(strings.TrimLeftFunc(rest, inWord))]
		if _, known := Plan[tool]; known && isName(action) {
			m := Mention{Tool: tool, Action: action}
			m.Params, rest = paramsAt(rest[len(action):])
			m.Args = argsAt(rest)
			all = append(all, m)
		}
		next := strings.IndexByte(text[at+1:], '.')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return all
}

func inWord(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func isName(word string) bool {
	return word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == "" && word[0] != '_'
}

// paramsAt reads names in parentheses from the start of a text.
func paramsAt(text string) (names []string, rest string) {
	inside, rest, closed := strings.Cut(text, ")")
	inside, opened := strings.CutPrefix(inside, "(")
	names = strings.FieldsFunc(inside, func(r rune) bool { return strings.ContainsRune(", ?|+", r) })
	if !opened || !closed || strings.ContainsFunc(strings.Join(names, ""), func(r rune) bool { return !inWord(r) }) {
		return nil, text
	}
	return names, rest
}

// argsAt reads an object from the start of a text, nil where there is none.
func argsAt(text string) (args json.RawMessage) {
	text = strings.TrimPrefix(text, " ")
	if strings.HasPrefix(text, "{") {
		_ = json.NewDecoder(strings.NewReader(text)).Decode(&args) // else the brace begins something else
	}
	return args
}

// Usable reports whether every action that a text names may be used. What
// agents read is told sentence by sentence or line by line, as far as it is
// usable: what is off is not spoken of.
func Usable(c *tools.Catalogue, enabled Enabled, text string) bool {
	for _, m := range Mentions(text) {
		if a, ok := c.Action(m.Tool, m.Action); !ok || !enabled(a) {
			return false
		}
	}
	return true
}
