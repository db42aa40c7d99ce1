package disclosure

import (
	"strings"
	"unicode/utf8"

	"siyuan-broker/contract/tools"
)

// Plan is how many characters each tool may take in the list with every action
// on: what there is, and what is left for the tools to come.
var Plan = map[string]int{
	"av": 4_200, "block": 3_900, "document": 3_950, "extension": 950, "feedback": 550, "file": 2_050, "flashcard": 1_600,
	"fs": 3_050, "mascot": 600, "notebook": 1_500, "search": 3_500, "system": 1_200, "tag": 900, "timeline": 1_600,
}

// Payload is what an agent reads before its first call, in runes.
type Payload struct {
	Instructions int            `json:"instructions"`
	ToolsList    int            `json:"tools_list"` // compact JSON of {"tools":[…]}
	Total        int            `json:"total"`
	Tools        map[string]int `json:"tools"` // each descriptor alone
}

// Measure gives the payload of a catalogue for a caller.
func Measure(c *tools.Catalogue, enabled Enabled, strict bool, p Preface) Payload {
	m := Payload{Instructions: utf8.RuneCountInString(strings.TrimSpace(Instructions(p, enabled))), Tools: map[string]int{}}
	list := List(c, enabled, strict)
	for _, d := range list {
		m.Tools[d.Name] = utf8.RuneCount(mustEncode(d))
	}
	m.ToolsList = utf8.RuneCount(mustEncode(map[string]any{"tools": list}))
	m.Total = m.Instructions + m.ToolsList
	return m
}

// List describes every tool the caller may use, by name.
func List(c *tools.Catalogue, enabled Enabled, strict bool) []Descriptor {
	list := []Descriptor{}
	for _, t := range c.Tools() {
		if d, ok := Describe(t, enabled, strict); ok {
			list = append(list, d)
		}
	}
	return list
}
