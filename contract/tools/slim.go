package tools

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// VerboseParam is the parameter that every read takes: without it an answer
// leaves out the fields that agents seldom need.
const VerboseParam = "verbose"

// verboseParam is added to the parameters of every read. It stands in the schema
// and not in signatures: the instructions say once what it is.
func verboseParam() Param {
	return Param{Name: VerboseParam, Type: Boolean, Doc: "On reads: all fields.", Everywhere: true}
}

// Verbose splits the choice of fields off settled arguments.
func Verbose(settled json.RawMessage) (rest json.RawMessage, verbose bool) {
	if !bytes.Contains(settled, []byte(`"`+VerboseParam+`"`)) {
		return settled, false
	}
	args := object{}
	if json.Unmarshal(settled, &args) != nil {
		return settled, false
	}
	verbose = string(args[VerboseParam]) == "true"
	delete(args, VerboseParam)
	return args.encode(), verbose
}

// Slim takes the fields tagged full:"true" out of an answer, which it may change
// in place. Those fields are omitted where they are empty.
func Slim[T any](out T) T {
	v := reflect.New(reflect.TypeOf(&out).Elem()).Elem()
	v.Set(reflect.ValueOf(&out).Elem())
	if v.Kind() == reflect.Interface {
		inner := reflect.New(v.Elem().Type()).Elem()
		inner.Set(v.Elem())
		slim(inner)
		return inner.Interface().(T)
	}
	slim(v)
	return v.Interface().(T)
}

func slim(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			slim(v.Elem())
		}
	case reflect.Slice:
		if holdsStructs(v.Type().Elem()) {
			for i := range v.Len() {
				slim(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("full") == "true" {
				v.Field(i).SetZero()
			} else {
				slim(v.Field(i))
			}
		}
	}
}

func holdsStructs(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// FullFields are the fields that only a verbose answer has, as paths in its JSON:
// mode, data[].rootID.
func (a *Action) FullFields() []string {
	if a.Output == nil {
		return nil
	}
	return fullFields(a.Output, "", map[reflect.Type]bool{})
}

func fullFields(t reflect.Type, above string, seen map[reflect.Type]bool) (paths []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice && above != "" {
			above = strings.TrimSuffix(above, ".") + "[]."
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	defer delete(seen, t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("full") == "true":
			paths = append(paths, above+name)
		case f.Anonymous:
			paths = append(paths, fullFields(f.Type, above, seen)...)
		default:
			paths = append(paths, fullFields(f.Type, above+name+".", seen)...)
		}
	}
	return paths
}
