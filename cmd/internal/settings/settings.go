package settings

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Setting is one field of a configuration struct, read from its tags:
//
//	key:"listen" env:"BROKER_LISTEN" default:"127.0.0.1:8080" doc:"…" secret:"true"
//
// Fields may be string, bool, int, time.Duration or []string (comma separated
// in the environment and in defaults).
type Setting struct {
	Key, Env, Default, Doc string
	Secret                 bool
	value                  reflect.Value
}

// Source is where values come from; a test replaces the environment.
type Source struct {
	File    string   // YAML file, "" for none
	Environ []string // as os.Environ
	Prefix  string   // variables that start so and are unknown are errors, such as BROKER_
	Read    func(name string) ([]byte, error)
}

// OS is the real environment with an optional file.
func OS(file, prefix string) Source {
	return Source{File: file, Environ: os.Environ(), Prefix: prefix, Read: os.ReadFile}
}

// Problems are all mistakes of a configuration at once, so that a person does
// not have to meet them one by one.
type Problems []string

func (p Problems) Error() string {
	return "configuration: " + strings.Join(p, "; ")
}

// List returns the settings of the struct that cfg points at.
func List(cfg any) []Setting {
	v := reflect.ValueOf(cfg).Elem()
	var all []Setting
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if tag.Get("key") == "" {
			continue
		}
		all = append(all, Setting{
			Key: tag.Get("key"), Env: tag.Get("env"), Default: tag.Get("default"), Doc: tag.Get("doc"),
			Secret: tag.Get("secret") == "true", value: v.Field(i),
		})
	}
	return all
}

// Load fills cfg. It returns Problems when anything does not fit.
func Load(cfg any, src Source) error {
	var bad Problems
	all := List(cfg)
	for _, s := range all {
		if err := set(s.value, s.Default); err != nil {
			bad = append(bad, fmt.Sprintf("default of %s: %v", s.Key, err))
		}
	}
	bad = append(bad, fromFile(all, src)...)
	bad = append(bad, fromEnv(all, src)...)
	if len(bad) > 0 {
		return bad
	}
	return nil
}

func fromFile(all []Setting, src Source) Problems {
	if src.File == "" {
		return nil
	}
	b, err := src.Read(src.File)
	if err != nil {
		return Problems{fmt.Sprintf("cannot read the configuration file: %v", err)}
	}
	var values map[string]any
	if err := yaml.Unmarshal(b, &values); err != nil {
		return Problems{fmt.Sprintf("%s is not valid YAML: %v", src.File, err)}
	}
	var bad Problems
	for _, key := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == key })
		if i < 0 {
			bad = append(bad, fmt.Sprintf("%s: unknown key %q%s", src.File, key, nearest(key, keys(all))))
			continue
		}
		if err := set(all[i].value, text(values[key])); err != nil {
			bad = append(bad, fmt.Sprintf("%s: %s: %v", src.File, key, err))
		}
	}
	return bad
}

func text(v any) string {
	if list, ok := v.([]any); ok {
		var parts []string
		for _, x := range list {
			parts = append(parts, fmt.Sprint(x))
		}
		return strings.Join(parts, ",")
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func fromEnv(all []Setting, src Source) Problems {
	var bad Problems
	env := map[string]string{}
	for _, kv := range src.Environ {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	known := map[string]bool{}
	for _, s := range all {
		known[s.Env] = true
		value, direct := env[s.Env]
		if s.Secret {
			known[s.Env+"_FILE"] = true
			if file, ok := env[s.Env+"_FILE"]; ok {
				if direct {
					bad = append(bad, fmt.Sprintf("%s and %s_FILE are both set; keep one", s.Env, s.Env))
					continue
				}
				b, err := src.Read(file)
				if err != nil {
					bad = append(bad, fmt.Sprintf("%s_FILE: %v", s.Env, err))
					continue
				}
				value, direct = strings.TrimRight(string(b), "\r\n"), true
			}
		}
		if !direct {
			continue
		}
		if err := set(s.value, value); err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", s.Env, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if src.Prefix != "" && strings.HasPrefix(name, src.Prefix) && !known[name] {
			bad = append(bad, fmt.Sprintf("unknown variable %s%s", name, nearest(name, envs(all))))
		}
	}
	return bad
}

func keys(all []Setting) (out []string) {
	for _, s := range all {
		out = append(out, s.Key)
	}
	return out
}

func envs(all []Setting) (out []string) {
	for _, s := range all {
		out = append(out, s.Env)
	}
	return out
}

func set(v reflect.Value, s string) error {
	s = strings.TrimSpace(s)
	switch v.Interface().(type) {
	case string:
		v.SetString(s)
	case bool:
		b, err := strconv.ParseBool(orZero(s, "false"))
		if err != nil {
			return fmt.Errorf("%q is not true or false", s)
		}
		v.SetBool(b)
	case time.Duration:
		d, err := time.ParseDuration(orZero(s, "0s"))
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 30s", s)
		}
		v.SetInt(int64(d))
	case int:
		n, err := strconv.Atoi(orZero(s, "0"))
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		v.SetInt(int64(n))
	case []string:
		list := []string{}
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		v.Set(reflect.ValueOf(list))
	default:
		return errors.New("unsupported type " + v.Type().String())
	}
	return nil
}

func orZero(s, zero string) string {
	if s == "" {
		return zero
	}
	return s
}

// Dump writes the settings in force as YAML with their meaning. Secrets show
// only whether they are set.
func Dump(w io.Writer, cfg any) error {
	for _, s := range List(cfg) {
		value := yamlValue(s)
		if _, err := fmt.Fprintf(w, "# %s (%s)\n%s: %s\n", s.Doc, s.Env, s.Key, value); err != nil {
			return err
		}
	}
	return nil
}

func yamlValue(s Setting) string {
	switch v := s.value.Interface().(type) {
	case string:
		if s.Secret {
			if v == "" {
				return `"" # not set`
			}
			return `"" # set, hidden`
		}
		return strconv.Quote(v)
	case []string:
		quoted := make([]string, len(v))
		for i, x := range v {
			quoted[i] = strconv.Quote(x)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

// nearest suggests the known name that differs least, where one is close.
func nearest(name string, known []string) string {
	best, at := "", 4
	for _, k := range known {
		if d := distance(name, k); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is the Levenshtein distance of two short names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
