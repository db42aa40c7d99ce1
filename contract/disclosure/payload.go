package disclosure

import (
	"strings"
	"unicode/utf8"

	"siyuan-broker/contract/tools"
)

// Payload is what an agent reads before its first call, in runes.
type Payload struct {
	Instructions int            `json:"instructions"`
	ToolsList    int            `json:"tools_list"` // compact JSON of {"tools":[…]}
	Total        int            `json:"total"`
	Tools        map[string]int `json:"tools"` // each descriptor alone
}

// Measure gives the payload of a catalogue for a caller.
func Measure(c *tools.Catalogue, enabled Enabled, p Preface) Payload {
	m := Payload{Instructions: utf8.RuneCountInString(strings.TrimSpace(Instructions(p))), Tools: map[string]int{}}
	list := List(c, enabled)
	for _, d := range list {
		m.Tools[d.Name] = utf8.RuneCount(mustEncode(d))
	}
	m.ToolsList = utf8.RuneCount(mustEncode(map[string]any{"tools": list}))
	m.Total = m.Instructions + m.ToolsList
	return m
}

// List describes every tool the caller may use, by name.
func List(c *tools.Catalogue, enabled Enabled) []Descriptor {
	list := []Descriptor{}
	for _, t := range c.Tools() {
		if d, ok := Describe(t, enabled); ok {
			list = append(list, d)
		}
	}
	return list
}
