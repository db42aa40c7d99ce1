package disclosure

import (
	"reflect"
	"testing"

	"siyuan-broker/contract/tools"
)

func TestMentionsAreReadInAllTheirForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Mention{
		"Use search.fulltext.":                                   {{Tool: "search", Action: "fulltext"}},
		"`document.get_doc(id, blockStart?)` reads":              {{Tool: "document", Action: "get_doc", Params: []string{"id", "blockStart"}}},
		"`block.append {\"parentID\": \"<{id}>\"}` adds {more}":  {{Tool: "block", Action: "append", Args: []byte(`{"parentID": "<{id}>"}`)}},
		"file.export_md(ids), then tag.list":                     {{Tool: "file", Action: "export_md", Params: []string{"ids"}}, {Tool: "tag", Action: "list"}},
		"block.info {not JSON}":                                  {{Tool: "block", Action: "info"}},
		"notes.example, blocks.content, fs.md2, a textblock.get": nil, // fs.md2 is no action: a name does not end before a digit
	} {
		if got := Mentions(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestATextIsUsableOnlyIfAllThatItNamesIs(t *testing.T) {
	t.Parallel()
	enabled := func(a *tools.Action) bool { return a.Tool == "search" }
	for text, want := range map[string]bool{
		"No action.": true, "search.fulltext and search.query_sql": true,
		"search.fulltext, else fs.search": false, "search.no_such_action": false,
	} {
		if Usable(tools.New(), enabled, text) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}
