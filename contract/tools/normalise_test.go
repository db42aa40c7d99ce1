package tools

import (
	"encoding/json"
	"testing"
)

func TestActionNamesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"get_doc": "get_doc", "get-doc": "get_doc", "getDoc": "get_doc", "GetDoc": "get_doc", "GET_DOC": "get_doc",
		" get doc ": "get_doc", "list": "list", "": "", "query-SQL": "query_sql",
	} {
		if got := ActionName(given); got != want {
			t.Errorf("ActionName(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestWordsForOneAnotherFindWhatTheToolHas(t *testing.T) {
	t.Parallel()
	c := Planned()
	for tool, words := range map[string]map[string]string{
		"notebook": {"ls": "list", "list": "list", "rm": "remove", "delete": "remove", "del": "remove", "Set-Conf": "set_conf"},
		"document": {"mv": "move", "rm": "remove", "delete": "remove", "del": "remove", "getDoc": "get_doc"},
		"block":    {"mv": "move", "move": "move", "rm": "delete", "remove": "delete", "del": "delete"},
	} {
		tl, _ := c.Tool(tool)
		for word, want := range words {
			if a, ok := tl.Resolve(word); !ok || a.Name != want {
				t.Errorf("%s %s finds %v, want %s", tool, word, a, want)
			}
		}
	}
	search, _ := c.Tool("search")
	for _, word := range []string{"rm", "ls", "mv", "help", ""} {
		if a, ok := search.Resolve(word); ok {
			t.Errorf("search %s finds %s", word, a.Name)
		}
	}
}

func TestTheCatalogueFindsByName(t *testing.T) {
	t.Parallel()
	c := New()
	if a, ok := c.Action("block", "append"); !ok || a.ID() != "block.append" {
		t.Errorf("block.append: %v", a)
	}
	for _, missing := range [][2]string{{"block", "nonsense"}, {"nonsense", "append"}} {
		if _, ok := c.Action(missing[0], missing[1]); ok {
			t.Errorf("%v exists", missing)
		}
	}
	last := ""
	for _, tool := range c.Tools() {
		if tool.Name <= last {
			t.Errorf("%s comes after %s", tool.Name, last)
		}
		last = tool.Name
	}
}

const box = `"notebook":"20240101090000-work001"`

func TestArgumentsAreSettled(t *testing.T) {
	t.Parallel()
	a := sample()
	for name, c := range map[string]struct{ given, want string }{
		"nothing to do":                          {`{` + box + `,"text":"a b"}`, `{` + box + `,"text":"a b"}`},
		"the action is not an argument":          {`{` + box + `,"action":"try"}`, `{` + box + `}`},
		"an alias of a parameter":                {`{"box":"20240101090000-work001"}`, `{` + box + `}`},
		"kebab, camel, snake and upper case":     {`{` + box + `,"scope-id":"20240102100100-alphadc"}`, `{` + box + `,"scopeID":"20240102100100-alphadc"}`},
		"snake case":                             {`{` + box + `,"scope_id":"20240102100100-alphadc"}`, `{` + box + `,"scopeID":"20240102100100-alphadc"}`},
		"null is absence":                        {`{` + box + `,"text":null,"raw":null}`, `{` + box + `}`},
		"a word for absence":                     {`{` + box + `,"scopeID":" ALL "}`, `{` + box + `}`},
		"a number as text":                       {`{` + box + `,"count":" 7 ","ratio":"1.5"}`, `{"count":7,` + box + `,"ratio":1.5}`},
		"a whole number with a fraction of zero": {`{` + box + `,"count":7.0}`, `{"count":7,` + box + `}`},
		"a whole number with an exponent":        {`{` + box + `,"count":1e1}`, `{"count":10,` + box + `}`},
		"true as text":                           {`{` + box + `,"flag":"True"}`, `{"flag":true,` + box + `}`},
		"no as text":                             {`{` + box + `,"flag":"no"}`, `{"flag":false,` + box + `}`},
		"a closed word in another case":          {`{` + box + `,"mode":" DOM "}`, `{"mode":"dom",` + box + `}`},
		"one id for a list":                      {`{` + box + `,"id":"20240102110002-block02"}`, `{"ids":["20240102110002-block02"],` + box + `}`},
		"ids with commas":                        {`{` + box + `,"ids":"20240102110002-block02, 20240102110003-block03,"}`, `{"ids":["20240102110002-block02","20240102110003-block03"],` + box + `}`},
		"words with commas":                      {`{` + box + `,"codes":"h, p"}`, `{"codes":["h","p"],` + box + `}`},
		"text with a comma is one element":       {`{` + box + `,"free":"red, green"}`, `{"free":["red, green"],` + box + `}`},
		"a list as JSON text":                    {`{` + box + `,"free":"[\"red\",\"green\"]"}`, `{"free":["red","green"],` + box + `}`},
		"Markdown that looks like a list":        {`{` + box + `,"free":"[red](green)"}`, `{"free":["[red](green)"],` + box + `}`},
		"numbers as text in a list":              {`{` + box + `,"numbers":["1",2.0]}`, `{` + box + `,"numbers":[1,2]}`},
		"one number for a list":                  {`{` + box + `,"numbers":3}`, `{` + box + `,"numbers":[3]}`},
		"one object for a list":                  {`{` + box + `,"edits":{"parentID":"20240102110002-block02","data":"x"}}`, `{"edits":[{"data":"x","parentID":"20240102110002-block02"}],` + box + `}`},
		"an object as JSON text":                 {`{` + box + `,"conf":"{\"closed\":\"yes\"}"}`, `{"conf":{"closed":true},` + box + `}`},
		"spelling, types and nulls in objects":   {`{` + box + `,"edits":[{"parent_id":"20240102110002-block02","data":"x","times":"2"}],"conf":{"Closed":null}}`, `{"conf":{},"edits":[{"data":"x","parentID":"20240102110002-block02","times":2}],` + box + `}`},
		"free keys are kept as they are":         {`{` + box + `,"attrs":{"Custom-A_b":"1"}}`, `{"attrs":{"Custom-A_b":"1"},` + box + `}`},
		"text stays text":                        {`{` + box + `,"text":" 12 "}`, `{` + box + `,"text":" 12 "}`},
		"anything is kept":                       {`{` + box + `,"raw":{"b":[1,null]}}`, `{` + box + `,"raw":{"b":[1,null]}}`},
	} {
		got, err := a.Validate(json.RawMessage(c.given))
		if err != nil {
			t.Errorf("%s: %s", name, err.Message)
			continue
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheEarlierNamesOfParametersAreAccepted(t *testing.T) {
	t.Parallel()
	c := Planned()
	for id, alias := range map[[2]string][2]string{
		{"block", "word_count"}:     {`{"id":"20240102110002-block02"}`, `{"ids":["20240102110002-block02"]}`},
		{"search", "search_refs"}:   {`{"id":"20240102110002-block02","keyword":"x"}`, `{"id":"20240102110002-block02","k":"x"}`},
		{"document", "lookup"}:      {`{"notebook":"20240101090000-work001","hPath":"/A"}`, `{"hpath":"/A","notebook":"20240101090000-work001"}`},
		{"search", "query_sql"}:     {`{"sql":"SELECT 1"}`, `{"stmt":"SELECT 1"}`},
		{"search", "get_backlinks"}: {`{"id":"20240102110002-block02","scopeRootId":"20240102100100-alphadc"}`, `{"id":"20240102110002-block02","refTreeID":"20240102100100-alphadc"}`},
		{"search", "fulltext"}:      {`{"query":"x","methodName":" REGEX ","sortBy":"Relevance","typeShortcodes":"h,p"}`, `{"methodName":"regex","query":"x","sortBy":"relevance","typeShortcodes":["h","p"]}`},
	} {
		a, ok := c.Action(id[0], id[1])
		if !ok {
			t.Fatalf("no action %v", id)
		}
		got, err := a.Validate(json.RawMessage(alias[0]))
		if err != nil || string(got) != alias[1] {
			t.Errorf("%s: %s, %v", a.ID(), got, err)
		}
	}
}
