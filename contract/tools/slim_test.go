package tools_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/contract/tools"
)

func TestASlimAnswerLeavesOutWhatIsMarked(t *testing.T) {
	t.Parallel()
	out := tools.SearchFulltextOut{
		Data: []tools.SearchHit{{ID: "a", Type: "p", Notebook: "n", NotebookName: "Work", RootID: "r", HPath: "/A", Content: "海", Updated: "20240101000000"}}, Total: 1, Page: 1, PageSize: 32, PageCount: 1, Showing: 1,
	}
	raw, err := json.Marshal(tools.Slim(out))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"data":[{"id":"a","type":"p","notebookName":"Work","rootID":"r","hPath":"/A","content":"海"}],"total":1,"page":1,"pageSize":32,"pageCount":1,"hasNextPage":false,"showing":1,"truncated":false}`
	if string(raw) != want {
		t.Errorf("slim\n%s\nwant\n%s", raw, want)
	}
	tree := tools.Slim[any](tools.DocumentListTreeOut{Notebook: "n", Path: "/", MaxDepth: 3, Tree: []tools.TreeNode{{ID: "a", Icon: "1f4d4", Children: []tools.TreeNode{{ID: "b", Icon: "1f4d4"}}}}})
	if raw, err = json.Marshal(tree); err != nil || strings.Contains(string(raw), "1f4d4") || strings.Contains(string(raw), "maxDepth") || !strings.Contains(string(raw), `"id":"b"`) {
		t.Errorf("tree %s %v", raw, err)
	}
}

func TestEveryReadTakesVerboseAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.Planned().Tools() {
		for _, a := range tool.Actions {
			if _, takes := a.Param(tools.VerboseParam); takes != (a.Kind == tools.Read) {
				t.Errorf("%s: verbose %v", a.ID(), takes)
			}
			if full := a.FullFields(); len(full) > 0 && a.Kind != tools.Read {
				t.Errorf("%s is no read and keeps back %v", a.ID(), full)
			}
			if strings.Contains(a.Signature(), tools.VerboseParam) {
				t.Errorf("%s: verbose stands in the signature", a.ID())
			}
		}
	}
}

func TestVerboseIsReadLikeAnyParameter(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]bool{`{"query":"x","verbose":true}`: true, `{"query":"x","verbose":"true"}`: true, `{"query":"x","verbose":false}`: false, `{"query":"\"verbose\""}`: false} {
		settled, err := tools.SearchFulltext.Validate(json.RawMessage(given))
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		if _, got := tools.Verbose(settled); got != want {
			t.Errorf("%s: verbose %v", given, got)
		}
		if in, err := tools.SearchFulltext.Decode(settled); err != nil || in.(tools.SearchFulltextIn).Query == "" {
			t.Errorf("%s: %+v %v", given, in, err)
		}
	}
	if _, err := tools.SearchFulltext.Validate(json.RawMessage(`{"query":"x","verbose":"some"}`)); err == nil {
		t.Error("verbose: some is accepted")
	}
}

// TestFieldsThatAreKeptBackAreLeftOutWhole: an empty text in their place would say
// something else.
func TestFieldsThatAreKeptBackAreLeftOutWhole(t *testing.T) {
	t.Parallel()
	var walk func(t *testing.T, at reflect.Type, seen []reflect.Type)
	walk = func(t *testing.T, at reflect.Type, seen []reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || slices.Contains(seen, at) {
			return
		}
		for i := range at.NumField() {
			f := at.Field(i)
			if f.Tag.Get("full") == "true" && !strings.Contains(f.Tag.Get("json"), ",omitempty") {
				t.Errorf("%s.%s is full and not omitempty", at, f.Name)
			}
			walk(t, f.Type, append(seen, at))
		}
	}
	for _, tool := range tools.Planned().Tools() {
		for _, a := range tool.Actions {
			if a.Output != nil {
				walk(t, a.Output, nil)
			}
		}
	}
	want := []string{"data[].notebook", "data[].updated"}
	if got := tools.SearchFulltext.FullFields(); !slices.Equal(got, want) {
		t.Errorf("fulltext keeps back %v, want %v", got, want)
	}
}
