package tools

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"siyuan-broker/contract"
)

// Type is the JSON type of a parameter.
type Type string

// The parameter types. Map is an object with free keys and values of Items'
// type; Any is JSON of any kind.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Array   Type = "array"
	Object  Type = "object"
	Map     Type = "map"
	Any     Type = "any"
)

// Ref says that a string parameter identifies something in a notebook.
type Ref string

// What a parameter can point at.
const (
	NoRef       Ref = ""
	RefNotebook Ref = "notebook"
	RefBlock    Ref = "block" // any block, documents included
	RefDoc      Ref = "doc"   // a document block
	RefPath     Ref = "path"  // a storage path inside the notebook parameter
	RefPlace    Ref = "place" // a document, or a notebook as its top level
	RefHuman    Ref = "human" // a path of names, as package fspath reads it
	RefDatabase Ref = "database"
	RefPart     Ref = "part"     // a row, column, view or group of the database parameter
	RefAsset    Ref = "asset"    // a file below assets, of every notebook that links to it
	RefTemplate Ref = "template" // a file below templates, of every notebook that uses it
)

// IDPattern is the form of every id as a JSON Schema pattern; it says what
// contract.IsID checks.
const IDPattern = `^[0-9]{14}-[0-9a-z]{7}$`

// IsID reports whether the parameter's value is an id, not a path or free text.
func (r Ref) IsID() bool {
	return r == RefNotebook || r == RefBlock || r == RefDoc || r == RefPlace || r == RefDatabase
}

// Param describes one parameter or one member of an object parameter.
type Param struct {
	Name     string
	Type     Type
	Required bool
	Doc      string
	Enum     []string
	Min, Max *float64 // numbers
	MinLen   int      // characters of a string, items of an array
	MaxLen   int      // 0: only the call's size limit
	Ref      Ref
	Level    *contract.Level // needed at the target where it differs from the action's
	Items    *Param          // Array: the element; Map: the value
	Fields   []Param         // Object

	Absent string // a word that means the same as leaving the parameter out
	// Everywhere: every action of its kind takes it, so that signatures and pages
	// leave it out.
	Everywhere bool
	Legacy     bool // accepted and explained by help, but not listed
	Ordered    bool // Array: the order of the elements matters
	Complete   bool // Array: the list must name every element there is
	Words      bool // Array: elements never hold a comma, so text is split at commas
}

// paramsOf reads the exported fields of an input struct. The tags are
//
//	json:"name[,omitempty]"  settled name; omitempty makes it optional
//	doc:"…"                  one sentence
//	enum:"a|b"  min:"0"  max:"200"  minlen:"1"  maxlen:"512"
//	ref:"block[,rwd]"        what the string points at, and the level needed there
//
//	absent:"all"             a word that means "left out"
//	legacy:"true"            accepted, but not listed any more
//	list:"ordered,complete,words"
//
// On a list ref, enum, min and max apply to the elements; minlen and maxlen
// count them.
func paramsOf(t reflect.Type) []Param {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("input %s: not a struct", t))
	}
	var ps []Param
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			ps = append(ps, paramsOf(f.Type)...)
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			panic(fmt.Sprintf("input %s: field %s has no json name", t, f.Name))
		}
		p := typeParam(f.Type)
		p.Name, p.Required, p.Doc = name, !strings.Contains(opts, "omitempty"), f.Tag.Get("doc")
		applyTags(&p, f.Tag)
		ps = append(ps, p)
	}
	return ps
}

func typeParam(t reflect.Type) Param {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return Param{Type: String}
	case reflect.Bool:
		return Param{Type: Boolean}
	case reflect.Int, reflect.Int64:
		return Param{Type: Integer}
	case reflect.Float64:
		return Param{Type: Number}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // json.RawMessage
			return Param{Type: Any}
		}
		item := typeParam(t.Elem())
		return Param{Type: Array, Items: &item}
	case reflect.Map:
		item := typeParam(t.Elem())
		return Param{Type: Map, Items: &item}
	case reflect.Struct:
		return Param{Type: Object, Fields: paramsOf(t)}
	}
	panic(fmt.Sprintf("input type %s is not supported", t))
}

func applyTags(p *Param, tag reflect.StructTag) {
	leaf := p
	if p.Type == Array {
		leaf = p.Items
	}
	if v := tag.Get("enum"); v != "" {
		leaf.Enum = strings.Split(v, "|")
	}
	if v := tag.Get("min"); v != "" {
		leaf.Min = number(v)
	}
	if v := tag.Get("max"); v != "" {
		leaf.Max = number(v)
	}
	if v := tag.Get("minlen"); v != "" {
		p.MinLen = int(*number(v))
	}
	if v := tag.Get("maxlen"); v != "" {
		p.MaxLen = int(*number(v))
	}
	p.Absent, p.Legacy = tag.Get("absent"), tag.Get("legacy") == "true"
	list := strings.Split(tag.Get("list"), ",")
	p.Ordered, p.Complete = slices.Contains(list, "ordered"), slices.Contains(list, "complete")
	p.Words = slices.Contains(list, "words") || leaf != p && len(leaf.Enum) > 0
	if v := tag.Get("ref"); v != "" {
		p.Words = p.Words || leaf != p
		ref, level, ok := strings.Cut(v, ",")
		leaf.Ref = Ref(ref)
		if ok {
			l, err := contract.ParseLevel(level)
			if err != nil {
				panic(fmt.Sprintf("ref tag %q: %v", v, err))
			}
			leaf.Level = &l
		}
	}
}

func number(s string) *float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("tag value %q is not a number", s))
	}
	return &v
}

// Schema is the strict JSON Schema (2020-12) of a parameter.
func (p Param) Schema() map[string]any {
	s := map[string]any{}
	switch p.Type {
	case Any:
	case Map:
		s["type"], s["additionalProperties"] = "object", p.Items.Schema()
	case Object:
		s = objectSchema(p.Fields)
	case Array:
		s["type"], s["items"] = "array", p.Items.Schema()
		bound(s, "minItems", p.MinLen)
		bound(s, "maxItems", p.MaxLen)
	default:
		s["type"] = string(p.Type)
		bound(s, "minLength", p.MinLen)
		bound(s, "maxLength", p.MaxLen)
	}
	if len(p.Enum) > 0 {
		s["enum"] = p.Enum
	}
	if p.Ref.IsID() {
		s["pattern"] = IDPattern
	}
	if p.Min != nil {
		s["minimum"] = *p.Min
	}
	if p.Max != nil {
		s["maximum"] = *p.Max
	}
	if p.Doc != "" {
		s["description"] = p.Doc
	}
	return s
}

func bound(s map[string]any, key string, n int) {
	if n > 0 {
		s[key] = n
	}
}

func objectSchema(fields []Param) map[string]any {
	props, required := map[string]any{}, []string{}
	for _, f := range fields {
		props[f.Name] = f.Schema()
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
