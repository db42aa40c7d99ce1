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
	if slices.ContainsFunc(r.fields, present) {
		return nil
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

// AtLeastOneEach demands one of the fields at the top or, where the list is
// given, in every element of it.
func AtLeastOneEach(list string, fields ...string) Rule { return atLeastOneEach{list, fields} }

type atLeastOneEach struct {
	list   string
	fields []string
}

func (r atLeastOneEach) Check(present func(string) bool, value func(string) any) []contract.Field {
	if slices.ContainsFunc(r.fields, present) {
		return nil
	}
	message := "give at least one of: " + strings.Join(r.fields, ", ")
	items, _ := value(r.list).([]any)
	if !present(r.list) {
		return []contract.Field{{Message: message}}
	}
	var bad []contract.Field
	for i, item := range items {
		has := func(f string) bool {
			members, _ := item.(map[string]any)
			_, ok := members[f]
			return ok
		}
		if !slices.ContainsFunc(r.fields, has) {
			bad = append(bad, contract.Field{Path: fmt.Sprintf("%s.%d", r.list, i), Message: message + ", here or beside " + r.list})
		}
	}
	return bad
}

func (r atLeastOneEach) Sentence() string {
	return "At least one of: " + strings.Join(r.fields, ", ") + "; with " + r.list + " in each entry, or once for all."
}

func (r atLeastOneEach) Schema() map[string]any {
	one := atLeastOne{r.fields}.Schema()
	each := map[string]any{
		"required":   []string{r.list},
		"properties": map[string]any{r.list: map[string]any{"items": one}},
	}
	return map[string]any{"anyOf": append(one["anyOf"].([]any), each)}
}

// AtLeastOneIn demands that an object parameter has one of the members.
func AtLeastOneIn(object string, members ...string) Rule { return atLeastOneIn{object, members} }

type atLeastOneIn struct {
	object  string
	members []string
}

func (r atLeastOneIn) Check(_ func(string) bool, value func(string) any) []contract.Field {
	given, ok := value(r.object).(map[string]any)
	has := func(m string) bool { _, ok := given[m]; return ok }
	if !ok || slices.ContainsFunc(r.members, has) {
		return nil
	}
	return []contract.Field{{Path: r.object, Message: "give at least one of: " + strings.Join(r.members, ", ")}}
}

func (r atLeastOneIn) Sentence() string {
	return "In " + r.object + " at least one of: " + strings.Join(r.members, ", ") + "."
}

func (r atLeastOneIn) Schema() map[string]any {
	return map[string]any{"properties": map[string]any{r.object: atLeastOne{r.members}.Schema()}}
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

// EachHas demands of every entry of a list, while a field has a value, that it has
// one member and not the other.
func EachHas(field, value, list, has, hasNot string) Rule {
	return eachHas{field, value, list, has, hasNot}
}

type eachHas struct{ field, value, list, has, hasNot string }

func (r eachHas) Check(_ func(string) bool, value func(string) any) []contract.Field {
	if fmt.Sprint(value(r.field)) != r.value {
		return nil
	}
	var bad []contract.Field
	items, _ := value(r.list).([]any)
	for i, item := range items {
		members, _ := item.(map[string]any)
		with := " with " + r.field + "=" + r.value
		if _, ok := members[r.has]; !ok {
			bad = append(bad, contract.Field{Path: fmt.Sprintf("%s.%d.%s", r.list, i, r.has), Message: "is required" + with})
		}
		if _, ok := members[r.hasNot]; ok {
			bad = append(bad, contract.Field{Path: fmt.Sprintf("%s.%d.%s", r.list, i, r.hasNot), Message: "is not allowed" + with})
		}
	}
	return bad
}

func (r eachHas) Sentence() string {
	return "With " + r.field + "=" + r.value + " each of " + r.list + " has " + r.has + " and no " + r.hasNot + "."
}

func (r eachHas) Schema() map[string]any {
	each := map[string]any{"items": map[string]any{"required": []string{r.has}, "properties": map[string]any{r.hasNot: false}}}
	return map[string]any{
		"if":   map[string]any{"required": []string{r.field}, "properties": map[string]any{r.field: map[string]any{"const": r.value}}},
		"then": map[string]any{"properties": map[string]any{r.list: each}},
	}
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
