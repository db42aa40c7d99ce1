package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// liveNotes are notes of two notebooks in a real SiYuan: one that the reader may
// read, with references into another one that it may not.
type liveNotes struct {
	*desk
	all, reader    *contract.Grant
	open, shut     string // notebooks
	doc, child     string
	heading, plain string
	links, embed   string
	secret         string
}

func newLiveNotes(t *testing.T) *liveNotes {
	t.Helper()
	d, g := liveDesk(t)
	n := &liveNotes{desk: d, all: g, open: liveNotebook(t, d, g), shut: liveNotebook(t, d, g)}
	n.reader = writer()
	n.reader.Levels = map[string]contract.Level{n.open: contract.Read}
	n.secret = liveDoc(t, d, g, n.shut, "/Nightfall plan", "A confidential paragraph.")
	n.doc = liveDoc(t, d, g, n.open, "/A & <B> it's", "# Goals\n\nAlpha ships a **small** `tool`. #urgent#\n\n## Steps\n\n```go\n<textarea> a < b\n```\n\n- one\n- two\n")
	n.child = liveDoc(t, d, g, n.open, "/A & <B> it's/Child", "See (("+n.doc+" \"the parent\")). The A & <B> it's again.")
	top := n.children(t, n.doc)
	n.heading, n.plain = string(top[0].ID), string(top[1].ID)
	appended := ok[catalogue.BlockAppendOut](t, d, g, "block.append", fmt.Sprintf(`{"parentID":%q,"dataType":"markdown","data":%q}`, n.doc,
		"To (("+n.secret+" 'Nightfall plan')), (("+n.secret+" \"my words\")) and (("+n.child+" 'Child')).\n\n{{select * from blocks where box='"+n.shut+"'}}"))
	n.links, n.embed = appended.IDs[0], appended.IDs[1]
	if _, err := d.Client.Writer().SearchEmbed(context.Background(), siyuan.ID(n.embed), "select * from blocks where box='"+n.shut+"'", nil); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLiveReads(t *testing.T) {
	n := newLiveNotes(t)
	for _, g := range []*contract.Grant{n.reader, n.all} {
		n.readDocuments(t, g)
		n.readBlocks(t, g)
	}
	n.searchReferences(t)
	for _, tool := range []string{"document", "block", "search"} {
		list, _ := catalogue.New().Tool(tool)
		for _, a := range list.Actions {
			n.showsNothingHidden(t, a)
		}
	}
}

func (n *liveNotes) readDocuments(t *testing.T, g *contract.Grant) {
	t.Helper()
	const title = "A & <B> it's"
	for _, args := range []string{
		fmt.Sprintf(`{"id":%q,"include":["ids","docInfo"]}`, n.plain),
		fmt.Sprintf(`{"notebook":%q,"hpath":%q,"include":["ids","docInfo"]}`, n.open, "/"+title),
		fmt.Sprintf(`{"notebook":%q,"path":%q,"include":["ids","docInfo"]}`, n.open, "/"+n.doc+".sy"),
	} {
		l := ok[catalogue.DocumentLookupOut](t, n.desk, g, "document.lookup", args)
		if l.IDPath.ID != n.doc || l.IDPath.Path != "/"+n.doc+".sy" || l.HumanPath.HPath != "/"+title || !slices.Equal(l.IDPath.IDs, []string{n.doc}) ||
			l.DocInfo == nil || l.DocInfo.Name != title || *l.DocInfo.RefCount != 1 {
			t.Errorf("lookup %s: %+v %+v", args, l, l.DocInfo)
		}
	}
	docs := ok[catalogue.DocumentGetChildDocsOut](t, n.desk, g, "document.get_child_docs", `{"id":"`+n.doc+`"}`)
	if len(docs.Data) != 1 || docs.Data[0].ID != n.child || docs.Data[0].HPath != "/"+title+"/Child" || docs.Data[0].Path != "/"+n.doc+"/"+n.child+".sy" {
		t.Errorf("child documents %+v", docs)
	}
	root := ok[catalogue.DocumentGetChildDocsOut](t, n.desk, g, "document.get_child_docs", `{"id":"`+n.open+`"}`)
	if len(root.Data) != 1 || root.Data[0].ID != n.doc || root.Data[0].HPath != "/"+title || root.Data[0].SubFileCount != 1 {
		t.Errorf("documents of the notebook %+v", root)
	}
	blocks := ok[catalogue.DocumentGetChildBlocksOut](t, n.desk, g, "document.get_child_blocks", `{"id":"`+n.plain+`"}`)
	if len(blocks.Data) != 7 || blocks.Data[1].Content != "Alpha ships a small tool. #urgent#" || blocks.Data[3].Content != "<textarea> a < b" {
		t.Errorf("child blocks %+v", blocks)
	}
	outline := ok[catalogue.DocumentGetOutlineOut](t, n.desk, g, "document.get_outline", `{"id":"`+n.doc+`","preview":true}`)
	if len(outline.Outline) != 2 || outline.Outline[0].Title != title || outline.Outline[1].ID != n.heading || outline.Outline[1].Children[0].Title != "Steps" {
		t.Errorf("outline %+v", outline)
	}
	found := ok[catalogue.DocumentSearchDocsOut](t, n.desk, g, "document.search_docs", fmt.Sprintf(`{"notebook":%q,"query":"& <b>"}`, n.open))
	if len(found.Docs) != 1 || found.Docs[0].Title != title || found.Docs[0].HPath != "/"+title || found.Docs[0].Path != "/"+n.doc+".sy" {
		t.Errorf("documents by title %+v", found)
	}
	below := ok[catalogue.DocumentSearchDocsOut](t, n.desk, g, "document.search_docs", fmt.Sprintf(`{"notebook":%q,"query":"i","path":"/%s.sy"}`, n.open, n.doc))
	if len(below.Docs) != 1 || below.Docs[0].ID != n.child {
		t.Errorf("documents below %+v", below)
	}
}

func (n *liveNotes) readBlocks(t *testing.T, g *contract.Grant) {
	t.Helper()
	texts := ok[catalogue.BlockBatchKramdownOut](t, n.desk, g, "block.batch_kramdown", fmt.Sprintf(`{"ids":[%q,"20240199000000-missing",%q],"mode":"textmark"}`, n.plain, n.plain))
	if texts.Succeeded != 2 || texts.Failed != 1 || !strings.HasPrefix(texts.Items[0].Kramdown, `Alpha ships a <span data-type="strong">small</span>`) || texts.Items[2].ID != n.plain {
		t.Errorf("kramdown %+v", texts)
	}
	info := ok[catalogue.BlockInfoOut](t, n.desk, g, "block.info", `{"id":"`+n.plain+`"}`)
	if info.Box != n.open || info.RootID != n.doc || info.RootTitle != "A & <B> it's" || info.RootTitleEmpty || info.Path != "/"+n.doc+".sy" || info.RootChildID != n.plain {
		t.Errorf("info %+v", info)
	}
	crumbs := ok[catalogue.BlockBreadcrumbOut](t, n.desk, g, "block.breadcrumb", `{"id":"`+n.plain+`"}`).Breadcrumb
	if len(crumbs) != 3 || crumbs[0].Name != "live test/A & <B> it's" || crumbs[1].Name != "Goals" || crumbs[1].SubType != "h1" {
		t.Errorf("breadcrumb %+v", crumbs)
	}
	attrs := ok[catalogue.BlockGetAttrsOut](t, n.desk, g, "block.get_attrs", `{"id":"`+n.doc+`"}`).Attrs
	if attrs["title"] != "A & <B> it's" || attrs["id"] != n.doc {
		t.Errorf("attributes %v", attrs)
	}
	if size := ok[catalogue.BlockWordCountOut](t, n.desk, g, "block.word_count", `{"ids":["`+n.plain+`"]}`).Stat; size.RuneCount != 29 || size.BlockCount != 1 {
		t.Errorf("word count %+v", size)
	}
	heads := ok[catalogue.BlockDocsInfoOut](t, n.desk, g, "block.docs_info", fmt.Sprintf(`{"ids":[%q,%q],"refCount":true,"av":true}`, n.child, n.plain)).Data
	if len(heads) != 2 || heads[0].Name != "Child" || *heads[0].RefCount != 1 || heads[1].ID != n.doc || *heads[1].RefCount != 1 {
		t.Errorf("documents %+v", heads)
	}
	recent := ok[catalogue.BlockRecentUpdatedOut](t, n.desk, g, "block.recent_updated", `{"count":128}`)
	if !slices.ContainsFunc(recent.Documents, func(d catalogue.RecentDocument) bool { return d.DocumentID == n.doc && d.Name == "A & <B> it's" }) {
		t.Errorf("recent documents %+v", recent.Documents)
	}
}

func (n *liveNotes) searchReferences(t *testing.T) {
	t.Helper()
	links := ok[catalogue.SearchGetBacklinksOut](t, n.desk, n.reader, "search.get_backlinks", `{"id":"`+n.doc+`"}`)
	if len(links.Backlinks) != 1 || links.Backlinks[0].RootID != n.child || len(links.Backmentions) != 0 {
		t.Errorf("backlinks %+v", links)
	}
	for _, c := range []struct{ k, want string }{{"a & <b> it", n.doc}, {"Child", n.child}, {"ships a small", n.plain}} {
		refs := ok[catalogue.SearchRefsOut](t, n.desk, n.reader, "search.search_refs", fmt.Sprintf(`{"id":%q,"k":%q}`, n.links, c.k))
		if len(refs.Data) == 0 || refs.Data[0].ID != c.want {
			t.Errorf("references to %q: %+v", c.k, refs)
		}
	}
	invalid := ok[catalogue.SearchInvalidRefsOut](t, n.desk, n.reader, "search.list_invalid_refs", `{}`)
	if len(invalid.Data) != 1 || invalid.Data[0].ID != n.links || !strings.Contains(invalid.Data[0].Content, "[not available]") {
		t.Errorf("invalid references %+v", invalid)
	}
}

// showsNothingHidden calls a reading action on everything there is.
func (n *liveNotes) showsNothingHidden(t *testing.T, a *catalogue.Action) {
	t.Helper()
	if a.Kind != catalogue.Read {
		return
	}
	for _, id := range []string{n.doc, n.links, n.embed, n.secret, n.shut, n.open} {
		args := map[string]any{}
		for _, p := range a.Params {
			switch {
			case p.Ref.IsID() && p.Type == catalogue.String && (p.Required || p.Name == "id"):
				args[p.Name] = id
			case p.Name == "ids" && p.Type == catalogue.Array && args["id"] == nil:
				args[p.Name] = []string{id}
			case p.Name == "path" && p.Required:
				args[p.Name] = "/"
			case p.Name == "stmt":
				args[p.Name] = "SELECT * FROM blocks WHERE id = '" + id + "' OR content LIKE '%Nightfall%' OR content LIKE '%confidential%'"
			case p.Required && p.Type == catalogue.String:
				args[p.Name] = "Nightfall"
			}
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		r := n.call(n.reader, a.ID(), string(raw))
		if r.Err != nil && r.Err.Type == contract.TypeValidation {
			t.Errorf("%s %s: %v", a.ID(), raw, r.Err)
		}
		text := strings.ReplaceAll(string(r.Body), `"k":"Nightfall"`, "")
		if strings.Contains(text, "Nightfall") || strings.Contains(text, "confidential") {
			t.Errorf("%s %s shows something hidden: %s", a.ID(), raw, text)
		}
	}
}

// TestLiveSQL: the kernel runs the scoped form of a statement, and what comes
// back is what the statement says about the readable notebook.
func TestLiveSQL(t *testing.T) {
	n := newLiveNotes(t)
	for _, c := range []struct{ stmt, direct string }{
		{"SELECT id, content FROM blocks WHERE type = 'd' AND id <> box ORDER BY id", "SELECT id, content FROM blocks WHERE type = 'd' AND id <> box AND box = '%s' ORDER BY id LIMIT 999"},
		{"SELECT DISTINCT id, type, hpath, markdown, updated FROM blocks WHERE type IN ('h', 'c', 'l') ORDER BY id", "SELECT DISTINCT id, type, hpath, markdown, updated FROM blocks WHERE type IN ('h', 'c', 'l') AND box = '%s' ORDER BY id LIMIT 999"},
		{"SELECT type, count(DISTINCT id) AS n FROM blocks GROUP BY type HAVING n > 0 ORDER BY type", "SELECT type, count(DISTINCT id) AS n FROM blocks WHERE box = '%s' GROUP BY type HAVING n > 0 ORDER BY type LIMIT 999"},
		{"WITH h AS (SELECT id, root_id FROM blocks WHERE type = 'h') SELECT DISTINCT b.id, h.id AS hid FROM blocks b JOIN h ON h.root_id = b.id ORDER BY hid", "SELECT DISTINCT b.id, h.id AS hid FROM blocks b JOIN blocks h ON h.root_id = b.id AND h.type = 'h' WHERE b.box = '%s' ORDER BY hid LIMIT 999"},
		{"SELECT id FROM blocks_fts WHERE content MATCH 'small'", "SELECT id FROM blocks_fts WHERE content MATCH 'small' AND box = '%s' LIMIT 999"},
		{"SELECT id FROM blocks WHERE content REGEXP '^Alpha' OR id IN (SELECT block_id FROM spans WHERE type LIKE '%tag%') ORDER BY id", "SELECT id FROM blocks WHERE box = '%s' AND type = 'p' AND content LIKE 'Alpha%%' LIMIT 999"},
		{"SELECT DISTINCT block_id, def_block_id FROM refs WHERE def_block_path <> '' ORDER BY block_id", "SELECT DISTINCT block_id, def_block_id FROM refs WHERE box = '%[1]s' AND def_block_id IN (SELECT id FROM blocks WHERE box = '%[1]s') ORDER BY block_id LIMIT 999"},
		{"SELECT id FROM (SELECT DISTINCT id FROM blocks WHERE type IN ('p', 'h') AND root_id <> box ORDER BY id LIMIT 1, 2)", "SELECT DISTINCT id FROM blocks WHERE type IN ('p', 'h') AND root_id <> box AND box = '%s' ORDER BY id LIMIT 2 OFFSET 1"},
		{"SELECT DISTINCT id, row_number() OVER (PARTITION BY type ORDER BY id) AS n FROM blocks WHERE type = 'i' ORDER BY id", "SELECT DISTINCT id, row_number() OVER (PARTITION BY type ORDER BY id) AS n FROM blocks WHERE box = '%s' AND type = 'i' ORDER BY id LIMIT 999"},
	} {
		out := ok[catalogue.SearchQuerySQLOut](t, n.desk, n.reader, "search.query_sql", fmt.Sprintf(`{"stmt":%q}`, c.stmt))
		direct, err := n.Client.Reader().SQL(context.Background(), fmt.Sprintf(c.direct, n.open))
		if err != nil {
			t.Fatalf("%s: %v", c.direct, err)
		}
		got, want := encoded(t, out.Data), encoded(t, direct)
		if got != want || len(direct) == 0 {
			t.Errorf("%s\n gives %s\n want  %s", c.stmt, got, want)
		}
		whole := ok[catalogue.SearchQuerySQLOut](t, n.desk, n.all, "search.query_sql", fmt.Sprintf(`{"stmt":%q,"maxRows":1000}`, c.stmt))
		if whole.Showing < out.Showing {
			t.Errorf("%s: %d rows for one who may read everything, %d for another", c.stmt, whole.Showing, out.Showing)
		}
	}
	for stmt, want := range map[string]int{
		"SELECT id FROM blocks WHERE box = '" + n.shut + "'":                   0,
		"SELECT id FROM blocks WHERE content LIKE '%Nightfall%'":               0,
		"SELECT id FROM blocks_fts WHERE content MATCH 'Nightfall'":            0,
		"SELECT * FROM spans WHERE content LIKE '%Nightfall%'":                 0,
		"SELECT * FROM refs WHERE content LIKE '%Nightfall%'":                  0,
		"SELECT count(*) AS n FROM blocks WHERE content LIKE '%confidential%'": 1,
	} {
		if out := ok[catalogue.SearchQuerySQLOut](t, n.desk, n.reader, "search.query_sql", fmt.Sprintf(`{"stmt":%q}`, stmt)); out.Showing != want {
			t.Errorf("%s: %+v, want %d rows", stmt, out, want)
		}
	}
	cut := ok[catalogue.SearchQuerySQLOut](t, n.desk, n.reader, "search.query_sql", `{"stmt":"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 500) SELECT x FROM c","maxRows":300}`)
	if cut.Showing != 300 || !cut.Truncated || string(cut.Data[299]["x"]) != "300" {
		t.Errorf("500 rows, 300 wanted: %d, truncated %v", cut.Showing, cut.Truncated)
	}
	fails(t, n.call(n.reader, "search.query_sql", `{"stmt":"SELECT json_extract(content, '$') FROM blocks"}`), contract.StatementRefused)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
