package system

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// How much of the settings is shown unless more is asked for.
const (
	confDepth   = 1
	confItems   = 12
	confTopKeys = 100
	confText    = 2_000 // characters of one text
)

func conf(ctx context.Context, r *tools.Request, in catalogue.SystemConfIn) (out catalogue.SystemConfOut, err error) {
	settings, err := r.Session.Conf(ctx)
	if err != nil {
		return out, err
	}
	depth, items := or(in.MaxDepth, confDepth), or(in.MaxItems, confItems)
	if in.Mode == "get" {
		value, err := at(settings, in.KeyPath)
		if err != nil {
			return out, err
		}
		node := look(value, depth, items)
		return catalogue.SystemConfOut{Mode: "get", KeyPath: in.KeyPath, Value: &node}, nil
	}
	keys := slices.Sorted(maps.Keys(settings))
	node := look(settings, depth, items)
	out = catalogue.SystemConfOut{Mode: "summary", TotalTopLevelKeys: len(keys), Summary: &node}
	out.TopLevelKeys = keys[:min(len(keys), confTopKeys)]
	out.TruncatedTopLevelKeys = len(out.TopLevelKeys) < len(keys)
	if node.Truncated {
		out.Hint = "Raise maxItems or maxDepth, or read one setting with mode get and its keyPath."
	}
	return out, nil
}

func or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}

var indexed = regexp.MustCompile(`\[(\d+)\]`)

// at follows a path such as a.b[0].c, where [0] may also be written .0.
func at(v any, keyPath string) (any, error) {
	for _, step := range strings.Split(indexed.ReplaceAllString(keyPath, ".$1"), ".") {
		if step == "" {
			continue
		}
		next, ok := child(v, step)
		if !ok {
			return nil, contract.Fail(contract.NotFound, "There is no setting %q.", keyPath).WithHint("%s", choices(v))
		}
		v = next
	}
	return v, nil
}

func child(v any, step string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[step]
		return next, ok
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// choices says what there is where a path went wrong.
func choices(v any) string {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		return "There are: " + strings.Join(keys[:min(len(keys), confTopKeys)], ", ") + "."
	case []any:
		return fmt.Sprintf("There are %d entries, from [0].", len(v))
	}
	return "The setting before it has nothing below it."
}

// look shows a value to a depth, and so many entries of each level.
func look(v any, depth, items int) catalogue.ConfNode {
	switch v := v.(type) {
	case map[string]any:
		node := catalogue.ConfNode{Type: "object", Count: len(v)}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if depth == 0 || len(node.Entries) == items {
				node.Truncated = true
				break
			}
			node.Entries = append(node.Entries, catalogue.ConfEntry{Key: key, ConfNode: look(v[key], depth-1, items)})
		}
		return node
	case []any:
		node := catalogue.ConfNode{Type: "array", Count: len(v)}
		for _, e := range v {
			if depth == 0 || len(node.Entries) == items {
				node.Truncated = true
				break
			}
			node.Entries = append(node.Entries, catalogue.ConfEntry{ConfNode: look(e, depth-1, items)})
		}
		return node
	}
	return scalar(v)
}

func scalar(v any) catalogue.ConfNode {
	node := catalogue.ConfNode{Type: "string"}
	switch s := v.(type) {
	case nil:
		node.Type = "null"
	case bool:
		node.Type = "boolean"
	case json.Number:
		node.Type = "number"
	case string:
		if utf8.RuneCountInString(s) > confText {
			v, node.Truncated = string([]rune(s)[:confText]), true
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return node // a scalar of decoded JSON can always be encoded
	}
	node.Value = raw
	return node
}
