package tools

import (
	"fmt"
	"slices"
	"strings"

	"siyuan-broker/contract"
)

// Rule is something the fields of an action must satisfy together. It can
// check itself and say itself, so schema, validation and help agree.
type Rule interface {
	// Check returns what is wrong with the given set of present fields.
	Check(present func(field string) bool, value func(field string) any) []contract.Field
	// Sentence is the rule in words, for help.
	Sentence() string
	// Schema is the rule as a fragment of JSON Schema to be joined with allOf.
	Schema() map[string]any
}

// ExactlyOne demands that all fields of exactly one group are present and none
// of the other groups.
func ExactlyOne(groups ...[]string) Rule { return exactlyOne{groups} }

type exactlyOne struct{ groups [][]string }

func (r exactlyOne) names() string {
	var parts []string
	for _, g := range r.groups {
		parts = append(parts, strings.Join(g, " + "))
	}
	return strings.Join(parts, ", or ")
}

func (r exactlyOne) Check(present func(string) bool, _ func(string) any) []contract.Field {
	for _, g := range r.groups {
		if all(g, present) && !slices.ContainsFunc(r.others(g), present) {
			return nil
		}
	}
	return []contract.Field{{Path: "", Message: "give exactly one of: " + r.names()}}
}

// others are the fields of the rule outside group g.
func (r exactlyOne) others(g []string) []string {
	var rest []string
	for _, h := range r.groups {
		for _, f := range h {
			if !slices.Contains(g, f) && !slices.Contains(rest, f) {
				rest = append(rest, f)
			}
		}
	}
	return rest
}

func all(fields []string, present func(string) bool) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return !present(f) })
}

func (r exactlyOne) Sentence() string { return "Exactly one of: " + r.names() + "." }

func (r exactlyOne) Schema() map[string]any {
	var alts []any
	for _, g := range r.groups {
		alt := map[string]any{"required": g}
		if rest := r.others(g); len(rest) > 0 {
			props := map[string]any{}
			for _, f := range rest {
				props[f] = false
			}
			alt["properties"] = props
		}
		alts = append(alts, alt)
	}
	return map[string]any{"oneOf": alts}
}

// AtLeastOne demands that one of the fields is present.
func AtLeastOne(fields ...string) Rule { return atLeastOne{fields} }

type atLeastOne struct{ fields []string }

func (r atLeastOne) Check(present func(string) bool, _ func(string) any) []contract.Field {
	for _, f := range r.fields {
		if present(f) {
			return nil
		}
	}
	return []contract.Field{{Path: "", Message: "give at least one of: " + strings.Join(r.fields, ", ")}}
}

func (r atLeastOne) Sentence() string {
	return "At least one of: " + strings.Join(r.fields, ", ") + "."
}

func (r atLeastOne) Schema() map[string]any {
	var alts []any
	for _, f := range r.fields {
		alts = append(alts, map[string]any{"required": []string{f}})
	}
	return map[string]any{"anyOf": alts}
}

// NotWith forbids fields while another field is present, or has a given value.
func NotWith(field, value string, forbidden ...string) Rule { return notWith{field, value, forbidden} }

type notWith struct {
	field, value string
	forbidden    []string
}

func (r notWith) condition() string {
	if r.value == "" {
		return r.field
	}
	return r.field + "=" + r.value
}

func (r notWith) Check(present func(string) bool, value func(string) any) []contract.Field {
	if !present(r.field) || r.value != "" && fmt.Sprint(value(r.field)) != r.value {
		return nil
	}
	var bad []contract.Field
	for _, f := range r.forbidden {
		if present(f) {
			bad = append(bad, contract.Field{Path: f, Message: "is not allowed together with " + r.condition()})
		}
	}
	return bad
}

func (r notWith) Sentence() string {
	return "With " + r.condition() + " leave out: " + strings.Join(r.forbidden, ", ") + "."
}

func (r notWith) Schema() map[string]any {
	cond := map[string]any{"required": []string{r.field}}
	if r.value != "" {
		cond["properties"] = map[string]any{r.field: map[string]any{"const": r.value}}
	}
	props := map[string]any{}
	for _, f := range r.forbidden {
		props[f] = false
	}
	return map[string]any{"if": cond, "then": map[string]any{"properties": props}}
}

// Needs demands further fields when a field is present, or has a given value.
func Needs(field, value string, needed ...string) Rule { return needs{field, value, needed} }

type needs struct {
	field, value string
	needed       []string
}

func (r needs) condition() string { return notWith{field: r.field, value: r.value}.condition() }

func (r needs) Check(present func(string) bool, value func(string) any) []contract.Field {
	if !present(r.field) || r.value != "" && fmt.Sprint(value(r.field)) != r.value {
		return nil
	}
	var bad []contract.Field
	for _, f := range r.needed {
		if !present(f) {
			bad = append(bad, contract.Field{Path: f, Message: "is required together with " + r.condition()})
		}
	}
	return bad
}

func (r needs) Sentence() string {
	return "With " + r.condition() + " also give: " + strings.Join(r.needed, ", ") + "."
}

func (r needs) Schema() map[string]any {
	cond := map[string]any{"required": []string{r.field}}
	if r.value != "" {
		cond["properties"] = map[string]any{r.field: map[string]any{"const": r.value}}
	}
	return map[string]any{"if": cond, "then": map[string]any{"required": r.needed}}
}

// Replaced refuses a parameter of an earlier interface and names what took its
// place, so that agents with old habits are not left guessing.
func Replaced(field, instead string) Rule { return replaced{field, instead} }

type replaced struct{ field, instead string }

func (r replaced) Check(present func(string) bool, _ func(string) any) []contract.Field {
	if !present(r.field) {
		return nil
	}
	return []contract.Field{{Path: r.field, Message: "is not a parameter here; use " + r.instead}}
}

func (r replaced) Sentence() string       { return "" }
func (r replaced) Schema() map[string]any { return nil }
