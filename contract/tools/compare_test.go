package tools_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"siyuan-broker/contract/tools"
)

// catalogued is testdata/catalogue.yaml: tools, their actions and parameters.
type catalogued struct {
	Tools map[string]map[string]cataloguedAction `yaml:"tools"`
}

type cataloguedAction struct {
	Kind      string            `yaml:"kind"`
	Dangerous bool              `yaml:"dangerous"`
	Default   string            `yaml:"default"`
	Tier      string            `yaml:"tier"`
	Guard     string            `yaml:"guard"`
	Level     string            `yaml:"level"`
	Params    []cataloguedParam `yaml:"params"`
	Names     []string          `yaml:"names"`   // other names of the action
	Aliases   map[string]string `yaml:"aliases"` // other names of parameters; the value begins with the settled one
	Results   []string          `yaml:"results"` // names of result fields, at any depth
}

type cataloguedParam struct {
	Name        string             `yaml:"name"`
	Type        string             `yaml:"type"`
	Required    bool               `yaml:"required"`
	Constraints map[string]float64 `yaml:"constraints"`
	Fields      []cataloguedParam  `yaml:"fields"`
}

// difference is one place where the contract is not what the catalogue says.
// In testdata/differences.yaml both texts may hold asterisks, and why says why.
type difference struct {
	At   string `yaml:"at"`
	What string `yaml:"what"`
	Why  string `yaml:"why"`
}

func (d difference) explains(found difference) bool {
	glob := func(pattern, text string) bool {
		return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(text)
	}
	return glob(d.At, found.At) && glob(d.What, found.What)
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestTheContractDiffersFromTheCatalogueOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	var catalogue catalogued
	load(t, "catalogue.yaml", &catalogue)
	var known []difference
	load(t, "differences.yaml", &known)

	used := make([]bool, len(known))
	for _, found := range compare(catalogue, tools.Planned()) {
		i := slices.IndexFunc(known, func(d difference) bool { return d.explains(found) })
		if i < 0 {
			t.Errorf("not explained:\n- at: %s\n  what: %s", found.At, found.What)
			continue
		}
		used[i] = true
	}
	for i, d := range known {
		if !used[i] {
			t.Errorf("no longer true: %s: %s", d.At, d.What)
		}
		if !strings.HasSuffix(d.Why, ".") {
			t.Errorf("%s: %s: has no reason", d.At, d.What)
		}
	}
}

func compare(catalogue catalogued, ours *tools.Catalogue) []difference {
	var found []difference
	for _, toolName := range slices.Sorted(maps.Keys(catalogue.Tools)) {
		actions := catalogue.Tools[toolName]
		tool, ok := ours.Tool(toolName)
		if !ok {
			found = append(found, difference{At: toolName, What: "missing"})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(actions)) {
			a, ok := tool.Action(name)
			if !ok {
				found = append(found, difference{At: toolName + "." + name, What: "missing"})
				continue
			}
			found = append(found, compareAction(tool, a, actions[name])...)
		}
		for _, a := range tool.Actions {
			if _, ok := actions[a.Name]; !ok {
				found = append(found, difference{At: a.ID(), What: "added"})
			}
		}
	}
	return found
}

// recorder collects the differences of one action.
type recorder struct{ found []difference }

func (r *recorder) add(at, format string, args ...any) {
	r.found = append(r.found, difference{At: at, What: fmt.Sprintf(format, args...)})
}

func (r *recorder) same(at, what string, theirs, ours any) {
	if t, o := fmt.Sprint(theirs), fmt.Sprint(ours); t != o {
		r.add(at, "%s %s, ours %s", what, t, o)
	}
}

func compareAction(tool *tools.Tool, a *tools.Action, c cataloguedAction) []difference {
	r := &recorder{}
	id := a.ID()
	r.same(id, "kind", c.Kind, a.Kind)
	r.same(id, "dangerous", c.Dangerous, a.Dangerous)
	r.same(id, "default", c.Default, map[bool]string{true: "disabled", false: "enabled"}[a.Off])
	r.same(id, "tier", c.Tier, a.Tier)
	r.same(id, "level", c.Level, a.Level)
	r.same(id, "guard", orNone(c.Guard), orNone(string(a.Guarded)))
	for _, name := range c.Names {
		if b, ok := tool.Resolve(name); !ok || b != a {
			r.add(id, "the name %s is not accepted", name)
		}
	}
	for alias, target := range c.Aliases {
		settled := strings.Fields(target)[0]
		if accepts(a, alias) != settled {
			r.add(id, "the parameter name %s is not accepted for %s", alias, settled)
		}
	}
	theirs := slices.DeleteFunc(slices.Clone(c.Params), func(p cataloguedParam) bool {
		_, own := a.Param(p.Name)
		return !own && accepts(a, p.Name) != ""
	})
	r.params(id, theirs, a.Params)
	ours := jsonNames(a.Output)
	for _, name := range c.Results {
		if !ours[name] {
			r.add(id, "no result field %s", name)
		}
	}
	return r.found
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// accepts is the settled name of a parameter that is also accepted under the
// given one.
func accepts(a *tools.Action, name string) string {
	for alias, settled := range a.ParamAliases {
		if strings.EqualFold(alias, name) {
			return settled
		}
	}
	return ""
}

func (r *recorder) params(prefix string, theirs []cataloguedParam, ours []tools.Param) {
	byName := map[string]tools.Param{}
	for _, p := range ours {
		byName[p.Name] = p
	}
	for _, c := range theirs {
		at := prefix + "." + c.Name
		p, ok := byName[c.Name]
		if !ok {
			r.add(at, "missing")
			continue
		}
		delete(byName, c.Name)
		r.same(at, "type", c.Type, notation(p))
		r.same(at, "required", c.Required, p.Required)
		r.bounds(at, c, p)
		fields := p.Fields
		if p.Items != nil {
			fields = p.Items.Fields
		}
		r.params(at, c.Fields, fields)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		r.add(prefix+"."+name, "added")
	}
}

// notation writes a type as the catalogue does.
func notation(p tools.Param) string {
	switch {
	case len(p.Enum) > 0:
		return "enum[" + strings.Join(p.Enum, "|") + "]"
	case p.Type == tools.Array:
		return "array<" + notation(*p.Items) + ">"
	case p.Type == tools.Map:
		return "object<string," + notation(*p.Items) + ">"
	}
	return string(p.Type)
}

func (r *recorder) bounds(at string, c cataloguedParam, p tools.Param) {
	if v, ok := c.Constraints["exclusiveMin"]; ok && p.Type == tools.Integer {
		c.Constraints["min"] = v + 1
	}
	lengths := [2]string{"minLength", "maxLength"}
	if p.Type == tools.Array {
		lengths = [2]string{"minItems", "maxItems"}
	}
	number := func(v *float64) string {
		if v == nil {
			return "none"
		}
		return fmt.Sprint(*v)
	}
	length := func(n int) string {
		if n == 0 {
			return "none"
		}
		return fmt.Sprint(n)
	}
	for _, b := range [][2]string{{"min", number(p.Min)}, {"max", number(p.Max)}, {lengths[0], length(p.MinLen)}, {lengths[1], length(p.MaxLen)}} {
		theirs := "none"
		if v, ok := c.Constraints[b[0]]; ok {
			theirs = fmt.Sprint(v)
		}
		r.same(at, b[0], theirs, b[1])
	}
}
