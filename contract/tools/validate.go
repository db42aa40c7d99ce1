package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"siyuan-broker/contract"
)

// Validate normalises the raw arguments of an action, checks them against its
// contract and returns the settled form: an object with the action's own
// parameter names and types. Every front calls it before anything is sent home,
// and the executor calls it again on what arrives.
func (a *Action) Validate(raw json.RawMessage) (json.RawMessage, *contract.Error) {
	args := object{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, contract.InvalidFields(contract.Field{Message: "the arguments must be one JSON object"})
		}
	}
	delete(args, "action")
	args, err := a.normalise(args)
	if err != nil {
		return nil, contract.InvalidFields(contract.Field{Message: err.Error()})
	}
	if bad := a.check(args); len(bad) > 0 {
		return nil, contract.InvalidFields(bad...).WithHint("%s.%s takes %s. action=help with topic=%s shows the exact form.", a.Tool, a.Name, a.Signature(), a.Name)
	}
	return args.encode(), nil
}

// encode writes an object with its keys in order and without space. A text is
// taken as it is written: it has no space to lose, and may be long.
func (o object) encode() json.RawMessage {
	size := 2
	for key, v := range o {
		size += len(key) + len(v) + 4
	}
	out := append(make([]byte, 0, size), '{')
	for i, key := range sortedKeys(o) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendKey(out, key), ':')
		if v := o[key]; v[0] == '"' {
			out = append(out, v...)
		} else {
			out = append(out, marshal(v)...)
		}
	}
	return append(out, '}')
}

// appendKey writes a key; nearly every one is a plain word.
func appendKey(out []byte, key string) []byte {
	for _, c := range []byte(key) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return append(out, quote(key)...)
		}
	}
	out = append(out, '"')
	out = append(out, key...)
	return append(out, '"')
}

// Decode gives settled arguments as the action's input type.
func (a *Action) Decode(settled json.RawMessage) (any, error) { return a.decode(settled) }

// Signature is the action as a call: required parameters, a choice of which
// exactly one is required as a|b+c, then optional ones with a question mark.
// Parameters that are only accepted for old callers are left out.
func (a *Action) Signature() string {
	var need, may []string
	chosen := map[string]bool{}
	for _, r := range a.Rules {
		one, ok := r.(exactlyOne)
		if !ok {
			continue
		}
		var alts []string
		for _, g := range one.groups {
			for _, f := range g {
				chosen[f] = true
			}
			if !slices.ContainsFunc(g, a.isLegacy) {
				alts = append(alts, strings.Join(g, "+"))
			}
		}
		need = append(need, strings.Join(alts, "|"))
	}
	var required []string
	for _, p := range a.Params {
		switch {
		case p.Legacy || p.Everywhere || chosen[p.Name]:
		case p.Required:
			required = append(required, p.Name)
		default:
			may = append(may, p.Name+"?")
		}
	}
	return a.Name + "(" + strings.Join(slices.Concat(required, need, may), ", ") + ")"
}

func (a *Action) isLegacy(name string) bool {
	p, _ := a.Param(name)
	return p.Legacy
}

func (a *Action) check(args object) []contract.Field {
	var bad []contract.Field
	replacedNames := map[string]bool{}
	for _, r := range a.Rules {
		if r, ok := r.(replaced); ok {
			replacedNames[r.field] = true
		}
	}
	for name := range args {
		if _, ok := a.Param(name); !ok && !replacedNames[name] {
			bad = append(bad, contract.Field{Path: name, Message: "is not a parameter of this action"})
		}
	}
	slices.SortFunc(bad, func(a, b contract.Field) int { return strings.Compare(a.Path, b.Path) })
	bad = append(bad, checkFields("", a.Params, args)...)
	present := func(f string) bool { _, ok := args[f]; return ok }
	value := func(f string) any {
		var v any
		if json.Unmarshal(args[f], &v) != nil {
			return nil
		}
		return v
	}
	for _, r := range a.Rules {
		bad = append(bad, r.Check(present, value)...)
	}
	return bad
}

func checkFields(prefix string, params []Param, args object) []contract.Field {
	var bad []contract.Field
	for _, p := range params {
		v, ok := args[p.Name]
		switch {
		case ok:
			bad = append(bad, checkValue(prefix+p.Name, p, v)...)
		case p.Required:
			bad = append(bad, contract.Field{Path: prefix + p.Name, Message: "is required"})
		}
	}
	return bad
}

func checkValue(path string, p Param, v json.RawMessage) []contract.Field {
	fail := func(format string, args ...any) []contract.Field {
		return []contract.Field{{Path: path, Message: fmt.Sprintf(format, args...)}}
	}
	if p.Type == Any {
		return nil
	}
	if bytes.Equal(v, []byte("null")) {
		return fail("must not be null")
	}
	switch p.Type {
	case Boolean:
		var b bool
		if json.Unmarshal(v, &b) != nil {
			return fail("must be true or false")
		}
	case Integer, Number:
		return checkNumber(fail, p, v)
	case String:
		return checkString(fail, p, v)
	case Array:
		return checkList(fail, path, p, v)
	case Object, Map:
		return checkObject(fail, path, p, v)
	}
	return nil
}

type failer func(format string, args ...any) []contract.Field

func checkNumber(fail failer, p Param, v json.RawMessage) []contract.Field {
	var n float64
	if json.Unmarshal(v, &n) != nil {
		return fail("must be a number")
	}
	switch {
	case p.Type == Integer && (n != math.Trunc(n) || math.Abs(n) > maxWhole):
		return fail("must be a whole number")
	case p.Min != nil && n < *p.Min:
		return fail("must be at least %v", *p.Min)
	case p.Max != nil && n > *p.Max:
		return fail("must be at most %v", *p.Max)
	}
	return nil
}

func checkString(fail failer, p Param, v json.RawMessage) []contract.Field {
	// Where length in bytes settles it, a long text need not be decoded: no
	// string has more characters than its JSON has bytes.
	if v[0] == '"' && len(p.Enum) == 0 && !p.Ref.IsID() && p.MinLen < 2 && len(v)-2 >= p.MinLen && (p.MaxLen == 0 || len(v)-2 <= p.MaxLen) && utf8.Valid(v) {
		return nil
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return fail("must be a string")
	}
	n := utf8.RuneCountInString(s)
	switch {
	case !utf8.Valid(v):
		return fail("must be valid UTF-8")
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, s):
		return fail("must be one of %s", strings.Join(p.Enum, ", "))
	case n < p.MinLen:
		if p.MinLen == 1 {
			return fail("must not be empty")
		}
		return fail("must have at least %d characters", p.MinLen)
	case p.MaxLen > 0 && n > p.MaxLen:
		return fail("must have at most %d characters", p.MaxLen)
	case p.Ref.IsID() && !contract.IsID(s):
		return fail("must be an id such as 20240131120000-abc1234")
	}
	return nil
}

func checkList(fail failer, path string, p Param, v json.RawMessage) []contract.Field {
	var items []json.RawMessage
	if json.Unmarshal(v, &items) != nil {
		return fail("must be a list")
	}
	switch {
	case len(items) < p.MinLen && p.MinLen == 1:
		return fail("must not be empty")
	case len(items) < p.MinLen:
		return fail("must have at least %d entries", p.MinLen)
	case p.MaxLen > 0 && len(items) > p.MaxLen:
		return fail("must have at most %d entries", p.MaxLen)
	}
	var bad []contract.Field
	for i, item := range items {
		bad = append(bad, checkValue(fmt.Sprintf("%s.%d", path, i), *p.Items, item)...)
	}
	return bad
}

func checkObject(fail failer, path string, p Param, v json.RawMessage) []contract.Field {
	var fields object
	if json.Unmarshal(v, &fields) != nil || fields == nil {
		return fail("must be an object")
	}
	var bad []contract.Field
	if p.Type == Map {
		for _, k := range sortedKeys(fields) {
			bad = append(bad, checkValue(path+"."+k, *p.Items, fields[k])...)
		}
		return bad
	}
	known := map[string]bool{}
	for _, f := range p.Fields {
		known[f.Name] = true
	}
	for _, k := range sortedKeys(fields) {
		if !known[k] {
			bad = append(bad, contract.Field{Path: path + "." + k, Message: "is not a field here"})
		}
	}
	return append(bad, checkFields(path+".", p.Fields, fields)...)
}

func sortedKeys(m object) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func decodeStrict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Schema is the strict JSON Schema of the action's arguments, without the
// action field itself. Its root is an object; rules that involve several
// fields stand under allOf and are meant for validation and help, not for
// tools/list.
func (a *Action) Schema() map[string]any {
	s := objectSchema(a.Params)
	var all []any
	for _, r := range a.Rules {
		if part := r.Schema(); part != nil {
			all = append(all, part)
		}
	}
	if len(all) > 0 {
		s["allOf"] = all
	}
	return s
}
