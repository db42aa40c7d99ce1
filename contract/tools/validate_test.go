package tools

import (
	"encoding/json"
	"slices"
	"testing"

	"siyuan-broker/contract"
)

// fieldsOf are the fields an error names, each as "path: message".
func fieldsOf(t *testing.T, err *contract.Error) []string {
	t.Helper()
	var detail struct {
		Fields []contract.Field `json:"fields"`
	}
	if e := json.Unmarshal(err.Detail, &detail); e != nil {
		t.Fatal(e)
	}
	var got []string
	for _, f := range detail.Fields {
		got = append(got, f.Path+": "+f.Message)
	}
	return got
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	a := sample(Replaced("page", "blockStart"))
	const id = `"20240102110002-block02"`
	for given, want := range map[string][]string{
		`[]`:                         {": the arguments must be one JSON object"},
		`{`:                          {": the arguments must be one JSON object"},
		`"x"`:                        {": the arguments must be one JSON object"},
		``:                           {"notebook: is required"},
		`{}`:                         {"notebook: is required"},
		`{"notebook":null}`:          {"notebook: is required"},
		`{"notebook":"Work"}`:        {"notebook: must be an id such as 20240131120000-abc1234"},
		`{` + box + `,"nonsense":1}`: {"nonsense: is not a parameter of this action"},
		`{` + box + `,"page":1}`:     {"page: is not a parameter here; use blockStart"},
		`{` + box + `,"b":1,"a":1}`:  {"a: is not a parameter of this action", "b: is not a parameter of this action"},
		`{` + box + `,"box":"x"}`:    {": notebook is given twice under different spellings"},
		`{` + box + `,"text":5}`:     {"text: must be a string"},
		`{` + box + `,"text":""}`:    {"text: must not be empty"},
		`{` + box + `,"text":"日记日记日记"}`:                                                     {"text: must have at most 5 characters"},
		`{` + box + `,"name":"ab"}`:                                                         {"name: must have at least 3 characters"},
		`{` + box + `,"mode":"html"}`:                                                       {"mode: must be one of plain, dom"},
		`{` + box + `,"count":"many"}`:                                                      {"count: must be a number"},
		`{` + box + `,"count":1.5}`:                                                         {"count: must be a whole number"},
		`{` + box + `,"count":1e300}`:                                                       {"count: must be a whole number"},
		`{` + box + `,"count":-1}`:                                                          {"count: must be at least 0"},
		`{` + box + `,"count":11}`:                                                          {"count: must be at most 10"},
		`{` + box + `,"count":true}`:                                                        {"count: must be a number"},
		`{` + box + `,"ratio":0.25}`:                                                        {"ratio: must be at least 0.5"},
		`{` + box + `,"ratio":"2.5"}`:                                                       {"ratio: must be at most 2"},
		`{` + box + `,"flag":1}`:                                                            {"flag: must be true or false"},
		`{` + box + `,"flag":"maybe"}`:                                                      {"flag: must be true or false"},
		`{` + box + `,"ids":[]}`:                                                            {"ids: must not be empty"},
		`{` + box + `,"ids":["x"]}`:                                                         {"ids.0: must be an id such as 20240131120000-abc1234"},
		`{` + box + `,"ids":[` + id + `,` + id + `,` + id + `,` + id + `]}`:                 {"ids: must have at most 3 entries"},
		`{` + box + `,"pair":["x"]}`:                                                        {"pair: must have at least 2 entries"},
		`{` + box + `,"free":["x",null]}`:                                                   {"free.1: must not be null"},
		`{` + box + `,"free":["x",5]}`:                                                      {"free.1: must be a string"},
		`{` + box + `,"numbers":["x",12]}`:                                                  {"numbers.0: must be a number", "numbers.1: must be at most 9"},
		`{` + box + `,"edits":[5]}`:                                                         {"edits.0: must be an object"},
		`{` + box + `,"edits":"text"}`:                                                      {"edits.0: must be an object"},
		`{` + box + `,"edits":[{"parentID":` + id + `,"data":null}]}`:                       {"edits.0.data: is required"},
		`{` + box + `,"edits":[{"parentID":` + id + `,"data":"x","times":9}]}`:              {"edits.0.times: must be at most 3"},
		`{` + box + `,"edits":[{"parentID":` + id + `,"data":"x","more":9}]}`:               {"edits.0.more: is not a field here"},
		`{` + box + `,"edits":[{"parentID":"","data":"x"}]}`:                                {"edits.0.parentID: must be an id such as 20240131120000-abc1234"},
		`{` + box + `,"edits":[{"parentID":` + id + `,"parent_id":` + id + `,"data":"x"}]}`: {": edits: parentID is given twice under different spellings"},
		`{` + box + `,"conf":[]}`:                                                           {"conf: must be an object"},
		`{` + box + `,"conf":"text"}`:                                                       {"conf: must be an object"},
		`{` + box + `,"conf":{"closed":"perhaps"}}`:                                         {"conf.closed: must be true or false"},
		`{` + box + `,"attrs":{"b":1,"a":null}}`:                                            {"attrs.a: must not be null", "attrs.b: must be a string"},
		`{` + box + `,"attrs":5}`:                                                           {"attrs: must be an object"},
		`{` + box + `,"scopeID":"some"}`:                                                    {"scopeID: must be an id such as 20240131120000-abc1234"},
		"{" + box + ",\"deep\":\"\xff\"}":                                                   {"deep: must be valid UTF-8"},
		`{"notebook":"x","text":"","count":99,"other":true}`:                                {"other: is not a parameter of this action", "notebook: must be an id such as 20240131120000-abc1234", "text: must not be empty", "count: must be at most 10"},
	} {
		_, err := a.Validate(json.RawMessage(given))
		if err == nil {
			t.Errorf("%s is accepted", given)
			continue
		}
		if got := fieldsOf(t, err); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
		if err.Type != contract.TypeValidation || err.Retry != contract.RetryNo {
			t.Errorf("%s: %s, retry %s", given, err.Type, err.Retry)
		}
	}
}

func TestARefusalShowsTheSignatureAndTheWayToHelp(t *testing.T) {
	t.Parallel()
	_, err := sample(ExactlyOne([]string{"text"}, []string{"name", "mode"})).Validate(json.RawMessage(`{}`))
	want := "sample.try takes try(notebook, text|name+mode, count?, ratio?, flag?, ids?, pair?, free?, codes?, numbers?, edits?, conf?, attrs?, raw?, scopeID?, deep?). action=help with topic=try shows the exact form."
	if err.Hint != want {
		t.Errorf("hint %q, want %q", err.Hint, want)
	}
	if err.Message != "notebook: is required" {
		t.Errorf("message %q", err.Message)
	}
}

func TestSettledArgumentsDecodeIntoTheInputType(t *testing.T) {
	t.Parallel()
	a := sample()
	settled, err := a.Validate(json.RawMessage(`{"box":"20240101090000-work001","count":"3","id":"20240102110002-block02","conf":{"name":""},"deep":"d"}`))
	if err != nil {
		t.Fatal(err)
	}
	v, e := a.Decode(settled)
	if e != nil {
		t.Fatal(e)
	}
	in := v.(sampleIn)
	if in.Notebook != "20240101090000-work001" || *in.Count != 3 || in.IDs[0] != "20240102110002-block02" || *in.Conf.Name != "" || in.Conf.Closed != nil || in.Deep != "d" {
		t.Errorf("%+v", in)
	}
	if _, e := a.Decode(json.RawMessage(`{"nonsense":1}`)); e == nil {
		t.Error("an unknown field decodes")
	}
}

func TestTagsDescribeParameters(t *testing.T) {
	t.Parallel()
	a := sample()
	param := func(name string) Param {
		p, ok := a.Param(name)
		if !ok {
			t.Fatalf("no parameter %s", name)
		}
		return p
	}
	if ids := param("ids"); ids.Items.Ref != RefBlock || ids.Items.Level == nil || *ids.Items.Level != contract.ReadWriteDelete || !ids.Words || ids.Ordered {
		t.Errorf("ids: %+v", ids)
	}
	if pair := param("pair"); !pair.Ordered || !pair.Complete || pair.Words {
		t.Errorf("pair: %+v", pair)
	}
	if path := param("path"); !path.Legacy || path.Ref != RefPath || path.Ref.IsID() {
		t.Errorf("path: %+v", path)
	}
	if n := param("notebook"); !n.Required || n.Level != nil || !n.Ref.IsID() {
		t.Errorf("notebook: %+v", n)
	}
	if d := param("deep"); d.Type != String || d.Required {
		t.Errorf("a field of an embedded record: %+v", d)
	}
}

func TestAMalformedInputTypeIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	for name, definition := range map[string]func(){
		"no struct":    func() { define[string, sampleOut](Action{}) },
		"no json name": func() { define[struct{ A string }, sampleOut](Action{}) },
		"a strange type": func() {
			define[struct {
				A chan int `json:"a"`
			}, sampleOut](Action{})
		},
		"a bad bound": func() {
			define[struct {
				A int `json:"a" min:"x"`
			}, sampleOut](Action{})
		},
		"a bad level": func() {
			define[struct {
				A string `json:"a" ref:"block,all"`
			}, sampleOut](Action{})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			definition()
		}()
	}
}

func TestKindsThatMutateGoThroughTheWriteSeam(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]bool{Read: false, Write: true, Delete: true, UI: false, Meta: false} {
		if kind.Mutates() != want {
			t.Errorf("%s.Mutates() = %v", kind, kind.Mutates())
		}
	}
}

func TestSignaturesNameRequiredThenOptional(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]*Action{
		"create(notebook, path|parentPath+title, markdown?, icon?, ifExists?)": DocumentCreate.Action,
		"list()":                           NotebookList.Action,
		"append(parentID, data, dataType)": BlockAppend.Action,
		"update(items|id+dataType+data)":   BlockUpdate.Action,
		"replace(id, edit)":                BlockReplace.Action, // old, new are for old callers
	} {
		if got := a.Signature(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
