package disclosure

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"siyuan-broker/contract/tools"
)

// foldAbove is the size in characters above which a nested schema is left to
// help; of a field that only advanced actions have, which are read there anyway,
// it is foldAdvancedAbove.
const (
	foldAbove         = 600
	foldAdvancedAbove = 100
)

// boundless is the first bound that tells a reader nothing; it is checked like any
// other.
const boundless = 1_000_000

// schema is a JSON Schema; encoding sorts its keys, so equal schemas are equal
// text.
type schema = map[string]any

// inputSchema is the loose schema of a tool: the enabled actions, and every
// field of any of them once, with a sentence where a basic action has it. What
// an action really demands is in help and is checked when it is called.
func inputSchema(tool *tools.Tool, actions []*tools.Action, strict bool) json.RawMessage {
	names := []string{}
	props := schema{TopicParam: schema{"type": "string"}} // the instructions explain it
	fields, spelledOut := map[string]tools.Param{}, map[string]bool{}
	for _, a := range actions {
		names = append(names, a.Name)
		if a.Kind.Mutates() || a.Dangerous {
			props[RequestParam] = schema{"type": "string", "description": "New UUIDv7."}
			if strict && a.Kind.Mutates() && a.Guarded != tools.NoPrecondition {
				props[ValidateParam] = schema{"type": "boolean"}
				props[a.Guarded.Field()] = schema{"type": "string"}
			}
		}
		for _, p := range a.Params {
			if p.Legacy {
				continue
			}
			spelledOut[p.Name] = spelledOut[p.Name] || a.Tier == tools.Basic
			if known, ok := fields[p.Name]; ok {
				p = merge(known, p)
			}
			fields[p.Name] = p
		}
	}
	for name, p := range fields {
		if doc, ok := tool.Fields[name]; ok {
			p.Doc = doc
		}
		if p.Everywhere {
			p.Doc = "" // the instructions explain it
		}
		limit := foldAbove
		if !spelledOut[name] {
			p, limit = bare(p), foldAdvancedAbove
		}
		props[name] = folded(p, limit)
	}
	props[ActionParam] = schema{"type": "string", "enum": append(names, HelpAction)}
	return mustEncode(schema{"type": "object", "properties": props, "required": []string{ActionParam}})
}

// bare is a parameter without sentences and bounds: those of advanced actions
// are read in help.
func bare(p tools.Param) tools.Param {
	p.Doc, p.Min, p.Max, p.MaxLen = "", nil, nil, 0
	if p.Items != nil {
		items := bare(*p.Items)
		p.Items = &items
	}
	p.Fields = slices.Clone(p.Fields)
	for i := range p.Fields {
		p.Fields[i] = bare(p.Fields[i])
	}
	return p
}

// folded is the listed schema of a field, or its container alone where the
// whole would be longer than the limit.
func folded(p tools.Param, limit int) schema {
	full := listed(p)
	container := p.Type == tools.Array || p.Type == tools.Object || p.Type == tools.Map
	if !container || utf8.RuneCount(mustEncode(full)) <= limit {
		return full
	}
	return schema{"type": full["type"], "description": strings.TrimSpace(p.Doc + " See help.")}
}

// listed is the schema of a parameter without what only matters when a call is
// checked: lengths, id patterns, closed objects.
func listed(p tools.Param) schema {
	s := schema{}
	switch p.Type {
	case tools.Any:
	case tools.Map:
		s["type"], s["additionalProperties"] = "object", listed(*p.Items)
	case tools.Array:
		s["type"], s["items"] = "array", listed(*p.Items)
		if p.MaxLen > 0 {
			s["maxItems"] = p.MaxLen
		}
	case tools.Object:
		props, required := schema{}, []string{}
		for _, f := range p.Fields {
			if f.Legacy {
				continue
			}
			props[f.Name] = listed(f)
			if f.Required {
				required = append(required, f.Name)
			}
		}
		s["type"], s["properties"] = "object", props
		if len(required) > 0 {
			s["required"] = required
		}
	default:
		s["type"] = string(p.Type)
	}
	if len(p.Enum) > 0 {
		s["enum"] = p.Enum
	}
	if p.Min != nil {
		s["minimum"] = *p.Min
	}
	if p.Max != nil && *p.Max < boundless {
		s["maximum"] = *p.Max
	}
	if p.Doc != "" {
		s["description"] = p.Doc
	}
	return s
}

// merge is the tightest parameter that admits everything a or b admits. It
// keeps the description of a.
func merge(a, b tools.Param) tools.Param {
	m := a
	m.Required = a.Required && b.Required
	switch {
	case a.Type == b.Type:
	case number(a.Type) && number(b.Type):
		m.Type = tools.Number
	default:
		return tools.Param{Name: a.Name, Type: tools.Any, Required: m.Required, Doc: a.Doc}
	}
	m.Enum = either(a.Enum, b.Enum)
	m.Min, m.Max = loosest(a.Min, b.Min, -1), loosest(a.Max, b.Max, 1)
	m.MaxLen = max(a.MaxLen, b.MaxLen)
	if a.MaxLen == 0 || b.MaxLen == 0 {
		m.MaxLen = 0
	}
	switch m.Type {
	case tools.Array, tools.Map:
		items := merge(*a.Items, *b.Items)
		m.Items = &items
	case tools.Object:
		m.Fields = mergeFields(a.Fields, b.Fields)
	}
	return m
}

func number(t tools.Type) bool { return t == tools.Integer || t == tools.Number }

// either is the union of two closed sets of words; an open set, which is empty,
// swallows the other.
func either(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	union := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(union, word) {
			union = append(union, word)
		}
	}
	return union
}

// loosest is the outer of two bounds in the given direction; no bound is the
// outermost.
func loosest(a, b *float64, direction float64) *float64 {
	switch {
	case a == nil || b == nil:
		return nil
	case *b*direction > *a*direction:
		return b
	}
	return a
}

func mergeFields(a, b []tools.Param) []tools.Param {
	merged := slices.Clone(a)
	for i := range merged {
		merged[i].Required = merged[i].Required && slices.ContainsFunc(b, named(merged[i].Name))
	}
	for _, f := range b {
		i := slices.IndexFunc(merged, named(f.Name))
		if i < 0 {
			f.Required = false
			merged = append(merged, f)
			continue
		}
		required := merged[i].Required
		merged[i] = merge(merged[i], f)
		merged[i].Required = required && f.Required
	}
	return merged
}

func named(name string) func(tools.Param) bool {
	return func(p tools.Param) bool { return p.Name == name }
}

// mustEncode encodes values made of maps, lists, texts and finite numbers,
// which always have a JSON form.
func mustEncode(v any) json.RawMessage {
	b, err := encode(v)
	if err != nil {
		panic(err)
	}
	return b
}
