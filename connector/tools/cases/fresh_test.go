package cases_test

import (
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// TestK15WhatWasWrittenIsFoundAtOnce by everything that asks the index, after
// every action that writes text, a title, a reference or an attribute. The index
// of these tests never catches up by itself.
func TestK15WhatWasWrittenIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	const word = "zanzibar"
	cite := word + ` ((` + guardtest.Heading + ` "goals"))`
	for id, args := range map[string]string{
		"block.append":    `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":%q}`,
		"block.prepend":   `{"parentID":"` + guardtest.Projects + `","dataType":"markdown","data":%q}`,
		"block.insert":    `{"previousID":"` + guardtest.Intro + `","dataType":"markdown","data":%q}`,
		"block.update":    `{"id":"` + guardtest.Index + `","dataType":"markdown","data":%q}`,
		"document.create": `{"notebook":"` + guardtest.Work + `","path":"/New","markdown":%q}`,
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			for question, asked := range map[string]string{
				"search.fulltext":      `{"query":"zanzibar","typeShortcodes":["p"]}`,
				"search.query_sql":     `{"stmt":"SELECT id FROM blocks WHERE type = 'p' AND content LIKE 'zanzibar%'"}`,
				"search.get_backlinks": `{"id":"` + guardtest.Heading + `"}`,
				"block.recent_updated": `{}`,
			} {
				d := newDesk(t)
				if r := d.call(question, asked); r.Err != nil || strings.Contains(string(r.Body), word) {
					t.Fatalf("%s before: %v %s", question, r.Err, r.Body)
				}
				ok[struct{}](t, d, id, args, cite)
				if r := d.call(question, asked); r.Err != nil || longest(r.Body) == 0 || question != "search.query_sql" && !strings.Contains(string(r.Body), word) {
					t.Errorf("%s: %v %.300s", question, r.Err, r.Body)
				}
			}
		})
	}
	d := newDesk(t)
	ok[struct{}](t, d, "block.set_attrs", `{"id":%q,"attrs":{"custom-y":%q}}`, guardtest.Index, word)
	if out := d.query(t, "SELECT block_id FROM attributes WHERE value = '"+word+"'", ""); out.Showing != 1 {
		t.Errorf("the attribute: %+v", out)
	}
	ok[struct{}](t, d, "document.rename", `{"id":%q,"title":%q}`, guardtest.Alpha, word)
	if out := ok[catalogue.DocumentSearchDocsOut](t, d, "document.search_docs", `{"notebook":%q,"query":%q}`, guardtest.Work, word); len(out.Docs) != 1 {
		t.Errorf("the title: %+v", out)
	}
	ok[struct{}](t, d, "document.move", `{"fromIDs":[%q],"toID":%q}`, guardtest.Alpha, guardtest.Work)
	if out := d.query(t, "SELECT hpath FROM blocks WHERE id = '"+guardtest.Alpha+"'", ""); out.Showing != 1 || string(out.Data[0]["hpath"]) != `"/`+word+`"` {
		t.Errorf("the new place: %s", out.Data)
	}
}

// TestK38WhatWasRemovedIsFoundNoMore by anything that finds it before.
func TestK38WhatWasRemovedIsFoundNoMore(t *testing.T) {
	t.Parallel()
	find := map[string]string{
		"search.fulltext":      `{"query":"zanzibar"}`,
		"search.query_sql":     `{"stmt":"SELECT id FROM blocks WHERE content LIKE '%zanzibar%'"}`,
		"search.get_backlinks": `{"id":"` + guardtest.Heading + `"}`,
		"search.search_refs":   `{"id":"` + guardtest.Index + `","k":"zanzibar"}`,
		"document.search_docs": `{"notebook":"` + guardtest.Work + `","query":"zanzibar"}`,
	}
	for name, remove := range map[string]func(d *desk, doc, block string) contract.Result{
		"document": func(d *desk, doc, _ string) contract.Result { return d.call("document.remove", `{"id":"`+doc+`"}`) },
		"by path": func(d *desk, doc, _ string) contract.Result {
			return d.call("document.remove", `{"notebook":"`+guardtest.Work+`","path":"/`+doc+`.sy"}`)
		},
		"block": func(d *desk, _, block string) contract.Result { return d.call("block.delete", `{"id":"`+block+`"}`) },
		"text":  func(d *desk, _, block string) contract.Result { return d.update(block, "nothing") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			made := ok[catalogue.DocumentCreateOut](t, d, "document.create", `{"notebook":%q,"path":"/zanzibar page","markdown":%q}`, guardtest.Work, `zanzibar ((`+guardtest.Heading+` "goals"))`)
			block := string(d.children(t, made.ID)[0].ID)
			for id, args := range find {
				if r := d.call(id, args); r.Err != nil || longest(r.Body) == 0 {
					t.Fatalf("%s finds nothing before: %v %s", id, r.Err, r.Body)
				}
			}
			if r := remove(d, made.ID, block); r.Err != nil {
				t.Fatal(r.Err)
			}
			for id, args := range find {
				r := d.call(id, args)
				if strings.Contains(string(r.Body), block) || r.Err != nil {
					t.Errorf("%s still finds the block: %v %s", id, r.Err, r.Body)
				}
				if gone := name != "block" && name != "text"; gone && (longest(r.Body) != 0 || strings.Contains(string(r.Body), made.ID)) {
					t.Errorf("%s still finds the document: %s", id, r.Body)
				}
				if longest(r.Body) == 0 && id != "search.get_backlinks" && !strings.Contains(string(r.Body), `"hint":"`) {
					t.Errorf("%s finds nothing and does not say how it looked: %s", id, r.Body)
				}
			}
		})
	}
	d := newDesk(t)
	for _, filter := range []string{`"typeShortcodes":["t"]`, `"hasTags":true,"query":"nowhere"`, `"paths":["` + guardtest.Work + `"],"query":"nowhere"`, `"parentId":"` + guardtest.List + `","query":"nowhere"`, `"methodName":"regex","query":"nowhere[0-9]"`} {
		if !strings.Contains(filter, "query") {
			filter += `,"query":"nowhere"`
		}
		out := ok[catalogue.SearchFulltextOut](t, d, "search.fulltext", `{`+filter+`}`)
		if out.Total != 0 || len(out.Hint) < 30 || strings.Contains(out.Hint, "nowhere") {
			t.Errorf("%s: hint %q", filter, out.Hint)
		}
	}
}
