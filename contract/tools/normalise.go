package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ActionName brings the spellings agents use for an action to one form: lower
// case, underscores. It does not resolve aliases.
func ActionName(s string) string {
	return snake(strings.TrimSpace(s))
}

// snake turns kebab-case, camelCase and spaces into snake_case.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '-' || r == ' ':
			b.WriteByte('_')
		case r >= 'A' && r <= 'Z':
			if i > 0 && !strings.HasSuffix(b.String(), "_") && !isUpper(s[i-1]) {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// spelling is what parameter names are compared by: letters and digits only,
// lower case, so that parentID, parent_id and parent-id are one name.
func spelling(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '-':
			return -1
		}
		return r
	}, s)
}

// object is a JSON object that keeps the text of its values.
type object map[string]json.RawMessage

// normalise brings the arguments into the settled form: see settle.
func (a *Action) normalise(args object) (object, error) {
	return settle(a.Params, a.ParamAliases, args)
}

// settle renames fields to their settled names, drops nulls and words that mean
// absence, and turns text into the type that is meant where that cannot be
// misread. It fails on a name that is given twice.
func settle(params []Param, aliases map[string]string, args object) (object, error) {
	out := make(object, len(args))
	for _, key := range sortedKeys(args) {
		name, v := settledName(params, aliases, key), bytes.TrimSpace(args[key])
		if bytes.Equal(v, []byte("null")) {
			continue
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s is given twice under different spellings", name)
		}
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			out[name] = v
			continue
		}
		p := &params[i]
		v, err := coerce(*p, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if p.Absent == "" || !isText(v, p.Absent) {
			out[name] = v
		}
	}
	return out, nil
}

// settledName is the parameter that a key means; the key itself where it means
// none. Nearly every key is exact, so nothing is made to look the others up.
func settledName(params []Param, aliases map[string]string, key string) string {
	for i := range params {
		if params[i].Name == key {
			return key
		}
	}
	spelled := spelling(key)
	for i := range params {
		if spelling(params[i].Name) == spelled {
			return params[i].Name
		}
	}
	for alias, name := range aliases {
		if spelling(alias) == spelled {
			return name
		}
	}
	return key
}

func isText(v json.RawMessage, want string) bool {
	var s string
	return json.Unmarshal(v, &s) == nil && strings.EqualFold(strings.TrimSpace(s), want)
}

// coerce brings a value to the type its parameter wants: text becomes the list,
// number, boolean or object it spells, a single value a list of one. What
// cannot be turned is left for validation to name.
func coerce(p Param, v json.RawMessage) (json.RawMessage, error) {
	if p.Type == String && len(p.Enum) == 0 {
		return v, nil // nothing to turn it into, and it may be long
	}
	var s string
	if v[0] == '"' && json.Unmarshal(v, &s) == nil {
		v = fromText(p, strings.TrimSpace(s), v)
	}
	switch p.Type {
	case Integer:
		return wholeNumber(v), nil
	case Array:
		return coerceList(p, v)
	case Object, Map:
		return coerceObject(p, v)
	}
	return v, nil
}

// fromText reads the text t as the type of p; v is the text as it came.
func fromText(p Param, t string, v json.RawMessage) json.RawMessage {
	switch p.Type {
	case Integer, Number:
		if _, err := strconv.ParseFloat(t, 64); err == nil && json.Valid([]byte(t)) {
			return json.RawMessage(t)
		}
	case Boolean:
		switch strings.ToLower(t) {
		case "true", "yes", "1":
			return json.RawMessage("true")
		case "false", "no", "0":
			return json.RawMessage("false")
		}
	case Object, Map:
		if strings.HasPrefix(t, "{") && json.Valid([]byte(t)) {
			return json.RawMessage(t)
		}
	case Array:
		switch {
		case strings.HasPrefix(t, "[") && json.Valid([]byte(t)):
			return json.RawMessage(t)
		case p.Words:
			return splitList(t)
		}
	case String:
		for _, e := range p.Enum {
			if strings.EqualFold(e, t) {
				return quote(e)
			}
		}
	}
	return v
}

// maxWhole is the largest whole number that every JSON reader keeps exact.
const maxWhole = 1 << 53

// wholeNumber writes 2.0 and 2e1 the way Go's decoder wants an int.
func wholeNumber(v json.RawMessage) json.RawMessage {
	var n float64
	if json.Unmarshal(v, &n) != nil || n != math.Trunc(n) || math.Abs(n) > maxWhole {
		return v
	}
	return strconv.AppendInt(nil, int64(n), 10)
}

func coerceList(p Param, v json.RawMessage) (json.RawMessage, error) {
	if v[0] != '[' {
		v = wrap(v)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(v, &items); err != nil {
		return v, nil
	}
	for i := range items {
		item, err := coerce(*p.Items, items[i])
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	return marshal(items), nil
}

func coerceObject(p Param, v json.RawMessage) (json.RawMessage, error) {
	var fields object
	if json.Unmarshal(v, &fields) != nil || fields == nil {
		return v, nil
	}
	if p.Type == Object {
		settled, err := settle(p.Fields, nil, fields)
		return marshal(settled), err
	}
	for k := range fields {
		item, err := coerce(*p.Items, fields[k])
		if err != nil {
			return nil, err
		}
		fields[k] = item
	}
	return marshal(fields), nil
}

// splitList reads a comma list of words; empty ones are dropped.
func splitList(t string) json.RawMessage {
	parts := []string{}
	for part := range strings.SplitSeq(t, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return marshal(parts)
}

func wrap(v json.RawMessage) json.RawMessage {
	return json.RawMessage("[" + string(v) + "]")
}

func quote(s string) json.RawMessage { return marshal(s) }

// marshal encodes strings, and lists and objects of valid JSON, which cannot
// fail.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
