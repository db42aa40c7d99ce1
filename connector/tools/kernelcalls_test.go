package tools_test

import (
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
)

// A workspace of 5,000 documents.
const bigGroups, bigGroupSize = 50, 99

// TestKernelCallsDoNotGrowWithTheWorkspace holds how many requests to the kernel
// an action makes in a workspace of 5,000 documents. A number is part of what
// the action costs at home: raise one only with a reason.
func TestKernelCallsDoNotGrowWithTheWorkspace(t *testing.T) {
	t.Parallel()
	h := guardtest.Big(t, bigGroups, bigGroupSize)
	d, g := deskOf(t, h, policy.Fixed(contract.ReadWriteDelete)), guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.Read})
	group := guardtest.GroupID(7)
	doc := "20240303000007-d000005"
	block := "20240304000007-b000005"
	for _, c := range []struct {
		action, args string
		most         int
	}{
		{"notebook.list", `{}`, 2},
		{"notebook.get_permissions", `{}`, 2},
		{"notebook.get_conf", `{"notebook":"` + guardtest.Work + `"}`, 3},
		{"notebook.get_child_docs", `{"notebook":"` + guardtest.Work + `"}`, 3},
		{"document.list_tree", `{"notebook":"` + guardtest.Work + `","path":"/"}`, 4}, // however many folders
		{"document.list_tree", `{"notebook":"` + guardtest.Work + `","path":"/","maxDepth":1}`, 3},
		{"document.lookup", `{"notebook":"` + guardtest.Work + `","hpath":"/Projects/Alpha"}`, 6},
		{"document.lookup", `{"id":"` + doc + `"}`, 5},
		{"document.ensure_link_targets", `{"notebook":"` + guardtest.Work + `","parentId":"` + group + `","mode":"resolve","targets":[{"key":"a","id":"` + doc + `"},{"key":"b","id":"` + block + `"}]}`, 4},
		{"document.ensure_link_targets", `{"notebook":"` + guardtest.Work + `","parentId":"` + group + `","mode":"create","targets":[{"key":"a","title":"A"},{"key":"b","title":"B"}],"markdown":"x"}`, 12},
		{"document.get_child_docs", `{"id":"` + group + `"}`, 5},
		{"document.get_doc", `{"id":"` + doc + `"}`, 5},
		{"document.get_outline", `{"id":"` + guardtest.Alpha + `"}`, 5},
		{"document.get_child_blocks", `{"id":"` + doc + `"}`, 4},
		{"document.search_docs", `{"notebook":"` + guardtest.Work + `","query":"Note 5"}`, 4},
		{"block.get_kramdown", `{"id":"` + block + `"}`, 3},
		{"block.get_children", `{"id":"` + doc + `"}`, 3},
		{"block.get_attrs", `{"id":"` + block + `"}`, 3},
		{"block.info", `{"id":"` + block + `"}`, 4},
		{"block.breadcrumb", `{"id":"` + block + `"}`, 4},
		{"block.word_count", `{"ids":["` + doc + `","` + group + `"]}`, 5},
		{"block.docs_info", `{"ids":["` + doc + `","` + group + `"],"refCount":true}`, 6},
		{"block.recent_updated", `{"count":128}`, 5},
		{"search.query_sql", `{"stmt":"SELECT count(*) AS n FROM blocks"}`, 4},
		{"search.search_assets", `{"k":"x"}`, 4},
		{"search.get_backlinks", `{"id":"` + guardtest.Intro + `"}`, 12},
		{"search.list_invalid_refs", `{}`, 8},
		{"file.get_doc_assets", `{"id":"` + doc + `"}`, 4},
		{"file.audit_image_refs", `{"id":"` + doc + `","expectedRefs":[]}`, 5},
		{"file.extract_doc", `{"id":"` + doc + `","download":true}`, 6},
		{"file.export_markdown_snapshot", `{"notebookID":"` + guardtest.Work + `","documentIDs":["` + doc + `"]}`, 8},
		{"file.render", `{"engine":"sprig","template":"{{now}}"}`, 2},
		{"tag.list", `{}`, 5},
		{"flashcard.get_decks", `{}`, 4},
		{"flashcard.list_cards", `{"scope":"all","filter":"due"}`, 7},
		{"flashcard.create_card", `{"deckID":"","blockIDs":["` + block + `"]}`, 8},
		{"system.bootstrap", `{}`, 2},
		{"system.get_version", `{}`, 2},
		{"system.get_current_time", `{}`, 2},
		{"system.changelog", `{}`, 0},
		{"block.append", `{"parentID":"` + doc + `","dataType":"markdown","data":"x"}`, 9},
		{"block.replace", `{"id":"` + block + `","old":"word","new":"sign"}`, 14},
		{"document.create", `{"notebook":"` + guardtest.Work + `","path":"/New","markdown":"x"}`, 6},
	} {
		r := d.call(g, c.action, c.args)
		if r.Err != nil {
			t.Errorf("%s: %v", c.action, r.Err)
			continue
		}
		t.Logf("%-28s %3d kernel calls", c.action, r.Stats.KernelCalls)
		if r.Stats.KernelCalls > c.most || strings.Contains(string(r.Body), `"total":0`) {
			t.Errorf("%s: %d kernel calls, at most %d", c.action, r.Stats.KernelCalls, c.most)
		}
	}
}
