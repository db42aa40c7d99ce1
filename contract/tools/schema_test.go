package tools

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

func compile(t testing.TB, schema map[string]any) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return resolved
}

func validates(t testing.TB, schema *jsonschema.Resolved, args json.RawMessage) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return err
	}
	return schema.Validate(v)
}

// agree holds Validate against the strict schema, which an independent library
// reads: what Validate settles fits the schema and decodes, and what fits the
// schema as it came is accepted.
func agree(t testing.TB, a *Action, schema *jsonschema.Resolved, given json.RawMessage) {
	t.Helper()
	settled, refused := a.Validate(given)
	if refused != nil {
		if err := validates(t, schema, given); err == nil && utf8.Valid(given) {
			t.Errorf("%s %s: the schema accepts what Validate refuses: %s", a.ID(), given, refused.Detail)
		}
		return
	}
	if err := validates(t, schema, settled); err != nil {
		t.Errorf("%s %s: settled %s does not fit the schema: %v", a.ID(), given, settled, err)
	}
	if _, err := a.Decode(settled); err != nil {
		t.Errorf("%s %s: settled %s does not decode: %v", a.ID(), given, settled, err)
	}
	again, err := a.Validate(settled)
	if err != nil || string(again) != string(settled) {
		t.Errorf("%s: settled again %s becomes %s, %v", a.ID(), settled, again, err)
	}
}

// corpus are values tried for every parameter of every action.
var corpus = []string{
	`null`, `true`, `"true"`, `0`, `1`, `1.0`, `-1`, `1.5`, `"2"`, `100000`, `1e300`, `""`, `"x"`, `"all"`, `"html"`, `"markdown"`, `"MARKDOWN"`, `"rw"`,
	`"20240102110002-block02"`, `"20240102110002-block02,20240102110003-block03"`, `"/A"`, `[]`, `["x"]`, `[null]`, `[1]`, `["20240102110002-block02"]`,
	`{}`, `{"x":true}`, `{"x":"y"}`, `{"name":"n"}`, `{"name":null}`, `"{}"`, `"[]"`, `[{}]`, `[[]]`,
	`[{"id":"20240102110002-block02","data":"x","dataType":"dom"}]`, `[{"data":"x","dataType":"dom"}]`, `[{"parentID":"20240102110002-block02","data":"x","dataType":"dom"}]`,
}

func TestTheStrictSchemaAgreesWithValidate(t *testing.T) {
	t.Parallel()
	actions := []*Action{sample(), sample(ExactlyOne([]string{"text"}, []string{"mode", "name"}), Needs("text", "", "flag"))}
	for _, tool := range Planned().Tools() {
		actions = append(actions, tool.Actions...)
	}
	for _, a := range actions {
		schema := compile(t, a.Schema())
		for _, base := range append([]string{`{}`, `{` + box + `}`}, a.Examples...) {
			agree(t, a, schema, json.RawMessage(base))
			for _, p := range a.Params {
				for _, v := range corpus {
					agree(t, a, schema, with(t, base, p.Name, v))
				}
				agree(t, a, schema, without(t, base, p.Name))
			}
			agree(t, a, schema, with(t, base, "nonsense", `1`))
		}
	}
}

func with(t testing.TB, base, name, value string) json.RawMessage {
	t.Helper()
	var args object
	if err := json.Unmarshal([]byte(base), &args); err != nil {
		t.Fatal(err)
	}
	args[name] = json.RawMessage(value)
	return marshal(args)
}

func without(t testing.TB, base, name string) json.RawMessage {
	t.Helper()
	var args object
	if err := json.Unmarshal([]byte(base), &args); err != nil {
		t.Fatal(err)
	}
	delete(args, name)
	return marshal(args)
}

func TestASchemaSaysWhatTheTagsSay(t *testing.T) {
	t.Parallel()
	schema := sample().Schema()
	props := schema["properties"].(map[string]any)
	for name, want := range map[string]string{
		"notebook": `{"description":"Notebook.","pattern":"^[0-9]{14}-[0-9a-z]{7}$","type":"string"}`,
		"text":     `{"description":"Text.","maxLength":5,"minLength":1,"type":"string"}`,
		"mode":     `{"description":"Mode.","enum":["plain","dom"],"type":"string"}`,
		"count":    `{"description":"Count.","maximum":10,"minimum":0,"type":"integer"}`,
		"ratio":    `{"description":"Ratio.","maximum":2,"minimum":0.5,"type":"number"}`,
		"flag":     `{"description":"Flag.","type":"boolean"}`,
		"ids":      `{"description":"Ids.","items":{"pattern":"^[0-9]{14}-[0-9a-z]{7}$","type":"string"},"maxItems":3,"minItems":1,"type":"array"}`,
		"attrs":    `{"additionalProperties":{"type":"string"},"description":"Attrs.","type":"object"}`,
		"raw":      `{"description":"Raw."}`,
		"conf":     `{"additionalProperties":false,"description":"Conf.","properties":{"closed":{"type":"boolean"},"name":{"type":"string"}},"type":"object"}`,
	} {
		if got := string(marshal(props[name])); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got, want := fmt.Sprintf("%v %v %v", schema["required"], schema["additionalProperties"], schema["type"]), "[notebook] false object"; got != want {
		t.Errorf("root %s, want %s", got, want)
	}
}

func FuzzValidate(f *testing.F) {
	actions := []*Action{sample()}
	for _, tool := range Planned().Tools() {
		actions = append(actions, tool.Actions...)
	}
	var schemas []*jsonschema.Resolved
	for i, a := range actions {
		schemas = append(schemas, compile(f, a.Schema()))
		for _, ex := range a.Examples {
			f.Add(uint(i), []byte(ex))
		}
	}
	f.Add(uint(0), []byte(`{"box":"20240101090000-work001","edits":"[{\"parent_id\":\"20240102110002-block02\",\"data\":\"<x>\"}]"}`))
	f.Add(uint(0), []byte(`{"notebook":"20240101090000-work001","count":"1e1","free":"a,b","raw":[null],"attrs":{"a":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, i uint, given []byte) {
		n := i % uint(len(actions))
		agree(t, actions[n], schemas[n], given)
	})
}
