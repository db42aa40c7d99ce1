package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// normalise renames parameters to their settled names, drops nulls and turns
// text into the type that is meant where that cannot be misread. It returns a
// message for a name that is given twice.
func (a *Action) normalise(args object) (object, error) {
	names := map[string]string{}
	for alias, name := range a.ParamAliases {
		names[spelling(alias)] = name
	}
	for _, p := range a.Params {
		names[spelling(p.Name)] = p.Name
	}
	out := make(object, len(args))
	for key, v := range args {
		name := key
		if settled, ok := names[spelling(key)]; ok {
			name = settled
		}
		if bytes.Equal(bytes.TrimSpace(v), []byte("null")) {
			continue
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s is given twice under different spellings", name)
		}
		if p, ok := a.Param(name); ok {
			v = coerce(p, v)
		}
		out[name] = v
	}
	return out, nil
}

// coerce turns a string into the list, number, boolean or object that the
// parameter wants, and a single value into a list of one. What cannot be
// turned is left for validation to name.
func coerce(p Param, v json.RawMessage) json.RawMessage {
	var s string
	isText := json.Unmarshal(v, &s) == nil
	if !isText {
		if p.Type == Array && len(v) > 0 && v[0] != '[' {
			return wrap(coerce(*p.Items, v))
		}
		return v
	}
	t := strings.TrimSpace(s)
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
		if strings.HasPrefix(t, "[") && json.Valid([]byte(t)) {
			return json.RawMessage(t)
		}
		if p.Items.Type == Object || p.Items.Type == Map {
			if strings.HasPrefix(t, "{") && json.Valid([]byte(t)) {
				return wrap(json.RawMessage(t))
			}
			return v
		}
		return splitList(p, t, v)
	case String:
		for _, e := range p.Enum {
			if strings.EqualFold(e, t) {
				return quote(e)
			}
		}
	}
	return v
}

// splitList reads a comma list where the elements are ids or closed words, for
// which a comma cannot be content; other text is one element.
func splitList(p Param, t string, v json.RawMessage) json.RawMessage {
	if p.Items.Ref == NoRef && len(p.Items.Enum) == 0 {
		return wrap(v)
	}
	var parts []json.RawMessage
	for part := range strings.SplitSeq(t, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, coerce(*p.Items, quote(part)))
		}
	}
	b, err := json.Marshal(parts)
	if err != nil {
		return v
	}
	return b
}

func wrap(v json.RawMessage) json.RawMessage {
	return json.RawMessage("[" + string(v) + "]")
}

func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return nil
	}
	return b
}
