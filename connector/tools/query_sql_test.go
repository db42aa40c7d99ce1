package tools_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func query(t *testing.T, d *desk, g *contract.Grant, stmt, more string) catalogue.SearchQuerySQLOut {
	t.Helper()
	return ok[catalogue.SearchQuerySQLOut](t, d, g, "search.query_sql", fmt.Sprintf(`{"stmt":%q%s}`, stmt, more))
}

const numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 500) SELECT x FROM c"

// TestK11RowsBeyondTheLimitAreSaidToBeThere: the kernel returns 64 rows of a
// statement without LIMIT and says nothing.
func TestK11RowsBeyondTheLimitAreSaidToBeThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	for _, c := range []struct {
		more    string
		showing int
		cut     bool
	}{
		{"", 200, true}, {`,"maxRows":499`, 499, true}, {`,"maxRows":500`, 500, false}, {`,"maxRows":1000`, 500, false},
	} {
		out := query(t, d, writer(), numbers, c.more)
		if out.Showing != c.showing || len(out.Data) != c.showing || out.Truncated != c.cut || (out.Hint != "") != c.cut {
			t.Errorf("%s: %d rows, truncated %v, hint %q", c.more, out.Showing, out.Truncated, out.Hint)
		}
		if last := string(out.Data[c.showing-1]["x"]); last != fmt.Sprint(c.showing) {
			t.Errorf("%s: the last row is %s", c.more, last)
		}
	}
	if out := query(t, d, writer(), numbers, ""); !strings.Contains(out.Hint, "OFFSET 200") {
		t.Errorf("hint %q does not say how to go on", out.Hint)
	}
	if rest := query(t, d, writer(), numbers+" LIMIT 1000 OFFSET 400", ""); rest.Showing != 100 || string(rest.Data[0]["x"]) != "401" || rest.Truncated {
		t.Errorf("the rest: %d rows from %s", rest.Showing, rest.Data[0]["x"])
	}
	fails(t, d.call(writer(), "search.query_sql", `{"stmt":"SELECT 1","maxRows":1001}`), contract.InvalidArguments)
}

func TestRowsThatAreTooLargeAreLeftOutWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	out := query(t, d, writer(), "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT x, printf('%.10000c', '海') AS text FROM c", "")
	if out.Showing != 2 || !out.Truncated || utf8.RuneCount(out.Data[1]["text"]) != 10_002 || !strings.Contains(out.Hint, "OFFSET 2") {
		t.Errorf("%d rows, truncated %v, hint %q", out.Showing, out.Truncated, out.Hint)
	}
}

// TestK13AggregatesCountOnlyWhatIsReadable: filtering rows afterwards cannot do
// that.
func TestK13AggregatesCountOnlyWhatIsReadable(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	out := query(t, d, writer(), "SELECT box, count(*) AS n FROM blocks WHERE type = 'd' GROUP BY box ORDER BY box", "")
	if got, want := fmt.Sprintf("%s", out.Data), `[map[box:"`+guardtest.Work+`" n:2] map[box:"`+guardtest.Diary+`" n:1]]`; got != want {
		t.Errorf("documents by notebook %s, want %s", got, want)
	}
	cte := query(t, d, writer(), "WITH docs AS (SELECT id FROM blocks WHERE type = 'd') SELECT count(*) AS n, max(id) AS last FROM docs", "")
	if got := string(cte.Data[0]["n"]) + string(cte.Data[0]["last"]); got != `3"`+guardtest.Entry+`"` {
		t.Errorf("aggregate over a CTE: %s", got)
	}
}

// TestK14SQLIsNoSideDoor: nothing of the hidden notebook comes out of any table,
// and what could look past the scope is refused.
func TestK14SQLIsNoSideDoor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	for _, table := range []string{"blocks", "blocks_fts", "spans", "refs", "attributes", "assets", "file_annotation_refs"} {
		if out := query(t, d, writer(), "SELECT * FROM "+table+" WHERE box = '"+guardtest.Private+"'", ""); out.Showing != 0 {
			t.Errorf("%s shows %s", table, out.Data)
		}
		if text := fmt.Sprintf("%s", query(t, d, writer(), "SELECT * FROM "+table, "").Data); strings.Contains(text, "Nightfall") || strings.Contains(text, "confidential") {
			t.Errorf("%s shows something hidden: %s", table, text)
		}
	}
	for _, stmt := range []string{
		"SELECT id FROM blocks WHERE content LIKE '%Nightfall%'",
		"SELECT id FROM blocks_fts WHERE content MATCH 'Nightfall'",
		"SELECT id FROM blocks WHERE box IN (SELECT box FROM blocks WHERE box LIKE '%private')",
		"SELECT id FROM blocks WHERE box = 'x' UNION SELECT id FROM blocks WHERE box = '" + guardtest.Private + "'",
	} {
		if out := query(t, d, writer(), stmt, ""); out.Showing != 0 || out.Data == nil || out.Hint == "" {
			t.Errorf("%s: %+v", stmt, out)
		}
	}
	for _, stmt := range []string{
		"SELECT * FROM main.blocks", "SELECT * FROM temp.blocks", "SELECT * FROM sqlite_master", "SELECT 1; SELECT * FROM blocks",
		"SELECT 1 /* ; */ ; DELETE FROM blocks", "PRAGMA table_info(blocks)", "ATTACH 'x' AS y", "EXPLAIN SELECT 1", "SELECT * FROM pragma_table_info('blocks')",
		"WITH blocks AS (SELECT 1) SELECT * FROM blocks", "UPDATE blocks SET content = '' RETURNING id", "SELECT nosuch FROM blocks", "SELECT * FROM stat", "SELECT 1 WHERE",
		"SELECT bm25(blocks_fts) FROM blocks_fts WHERE content MATCH 'a'",
	} {
		r := d.call(writer(), "search.query_sql", fmt.Sprintf(`{"stmt":%q}`, stmt))
		fails(t, r, contract.StatementRefused)
		if r.Err != nil && (r.Err.Message == "" || strings.Contains(r.Err.Message, "sqlite_master") || r.Stats.KernelCalls > 1) {
			t.Errorf("%s: %q after %d kernel calls", stmt, r.Err.Message, r.Stats.KernelCalls)
		}
	}
	whole := writer()
	whole.Default = contract.Read
	if out := query(t, d, whole, "SELECT id FROM blocks WHERE content LIKE '%Nightfall%' AND type = 'd'", ""); out.Showing != 1 {
		t.Errorf("one who may read everything finds %+v", out)
	}
}

// TestAStatementThatFailsOnAValueSaysSo: the kernel leaves the row out, and all
// behind it.
func TestAStatementThatFailsOnAValueSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const stmt = "WITH c(x) AS (VALUES ('1'), ('2'), ('{')) SELECT json_extract(x, '$') AS y FROM c"
	r := d.call(writer(), "search.query_sql", fmt.Sprintf(`{"stmt":%q}`, stmt))
	fails(t, r, contract.StatementRefused)
	if r.Err == nil || !strings.Contains(r.Err.Hint, "json_valid") {
		t.Errorf("error %+v", r.Err)
	}
	if out := query(t, d, writer(), stmt+" WHERE json_valid(x)", ""); out.Showing != 2 {
		t.Errorf("without the bad row: %+v", out)
	}
	if out := query(t, d, writer(), "SELECT upper(id) AS u FROM blocks WHERE content REGEXP 'no such'", ""); out.Showing != 0 || out.Truncated {
		t.Errorf("no row at all: %+v", out)
	}
}

// TestK15SQLSeesWhatWasJustWritten: the index is behind by seconds otherwise.
func TestK15SQLSeesWhatWasJustWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	made := ok[catalogue.BlockAppendOut](t, d, writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"zanzibar"}`)
	out := query(t, d, writer(), "SELECT id FROM blocks WHERE type = 'p' AND content = 'zanzibar'", "")
	if out.Showing != 1 || string(out.Data[0]["id"]) != `"`+made.ID+`"` {
		t.Errorf("found %+v", out)
	}
}

func TestSQLShowsThePlaceholderOfTheOtherReads(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	out := query(t, d, writer(), "SELECT content FROM blocks WHERE id = '"+guardtest.Links+"'", "")
	if out.Showing != 1 || string(out.Data[0]["content"]) != `"`+guard.Placeholder+`"` {
		t.Errorf("rows %s, want the placeholder", out.Data)
	}
}

func TestBacklinksAreThoseTheCallerMayRead(t *testing.T) {
	t.Parallel()
	notes := append(guardtest.Notes(),
		guardtest.Doc{Box: guardtest.Diary, Path: "/20240103090100-readsub.sy", Title: "Sub",
			Text: "cites ((" + guardtest.Heading + " \"goals\"))\n{: id=\"20240102110071-block47\"}\n\nwrites of alpha-intro only\n{: id=\"20240102110072-block48\"}\n"},
		guardtest.Doc{Box: guardtest.Private, Path: "/20240104090100-healthd.sy", Title: "Hidden",
			Text: "hidden cites ((" + guardtest.Heading + " \"goals\")) and alpha-intro\n{: id=\"20240102110064-block40\"}\n"})
	d := deskOf(t, guardtest.NewWith(t, notes), policy.Fixed(contract.Read))
	find := func(args string) string {
		out := ok[catalogue.SearchGetBacklinksOut](t, d, writer(), "search.get_backlinks", `{`+args+`}`)
		if out.Truncated || out.Backlinks == nil || out.Backmentions == nil {
			t.Errorf("%s: %+v", args, out)
		}
		ids := out.Mode
		for _, h := range out.Backlinks {
			ids += " " + h.ID
		}
		ids += " |"
		for _, h := range out.Backmentions {
			ids += " " + h.ID
		}
		return ids
	}
	for args, want := range map[string]string{
		`"id":"` + guardtest.Heading + `"`:                                                    "both 20240102110071-block47 |",
		`"id":"` + guardtest.Heading + `","mode":"mentions"`:                                  "mentions |",
		`"id":"` + guardtest.Intro + `","mode":"mentions"`:                                    "mentions | 20240102110072-block48",
		`"id":"` + guardtest.Heading + `","keyword":"CITES"`:                                  "both 20240102110071-block47 |",
		`"id":"` + guardtest.Heading + `","keyword":"hidden"`:                                 "both |",
		`"id":"` + guardtest.Heading + `","refTreeID":"` + guardtest.Projects + `"`:           "both |",
		`"id":"` + guardtest.Heading + `","refTreeID":"20240102110072-block48"`:               "both 20240102110071-block47 |",
		`"id":"` + guardtest.Entry + `","mode":"links","keyword":"` + guard.Placeholder + `"`: "links |",
	} {
		if got := find(args); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

func TestCandidatesForAReference(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	refs := func(args string) (string, catalogue.SearchRefsOut) {
		out := ok[catalogue.SearchRefsOut](t, d, writer(), "search.search_refs", `{"id":"`+guardtest.Index+`",`+args+`}`)
		var ids []string
		for _, h := range out.Data {
			ids = append(ids, h.ID)
		}
		return strings.Join(ids, " "), out
	}
	for _, c := range []struct {
		args, want string
		newDoc     bool
	}{
		{`"k":"alpha"`, guardtest.Alpha, true}, // the exact title stands first
		{`"k":"Alpha"`, guardtest.Alpha, false},
		{`"k":"START"`, guardtest.Intro, true}, // an alias
		{`"k":"书","isDatabase":true`, guardtest.EntryP, true},
	} {
		got, out := refs(c.args)
		if first, _, _ := strings.Cut(got, " "); first != c.want || out.NewDoc != c.newDoc || out.Truncated {
			t.Errorf("%s: %s, %+v", c.args, got, out)
		}
	}
	for _, args := range []string{`"k":"Nightfall"`, `"k":"confidential"`, `"k":"not available"`, `"k":"Index of"`} {
		if got, out := refs(args); got != "" || out.Hint == "" || out.Data == nil {
			t.Errorf("%s finds %s, hint %q", args, got, out.Hint)
		}
	}
	if got, out := refs(`"isSquareBrackets":true,"reqId":"7"`); !strings.Contains(got, guardtest.Entry) || strings.Contains(got, guardtest.Intro) || out.ReqID != "7" {
		t.Errorf("documents only: %s", got)
	}
	if _, out := refs(`"k":"small","beforeLen":4`); len(out.Data) == 0 || !strings.HasPrefix(out.Data[0].Content, "s a small tool") || !out.Data[0].Truncated {
		t.Errorf("four characters before the hit: %+v", out.Data)
	}
}

// TestReferencesIntoTheHiddenCountAsInvalid: whether a target is hidden, closed
// or gone must not be told apart.
func TestReferencesIntoTheHiddenCountAsInvalid(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	list := func(g *contract.Grant) catalogue.SearchInvalidRefsOut {
		return ok[catalogue.SearchInvalidRefsOut](t, d, g, "search.list_invalid_refs", `{}`)
	}
	if out := list(writer()); out.Total != 1 || len(out.Data) != 1 || out.Data[0].ID != guardtest.Links || out.Truncated {
		t.Errorf("with a hidden target: %+v", out)
	}
	whole := writer()
	whole.Default = contract.Read
	if out := list(whole); out.Total != 0 || out.Data == nil || out.PageCount != 1 {
		t.Errorf("with nothing hidden: %+v", out)
	}
}

func TestAssetsAreThoseOfReadableNotes(t *testing.T) {
	t.Parallel()
	const open, shut = "assets/Invoice-20240106090000-invoice.pdf", "assets/invoice-20240106090100-private.pdf"
	notes := append(guardtest.Notes(),
		guardtest.Doc{Box: guardtest.Work, Path: "/20240102100700-withpdf.sy", Title: "Files", Text: "[i](" + open + ") ![p](assets/plan-20240106090200-picture.png)\n"},
		guardtest.Doc{Box: guardtest.Private, Path: "/20240104090100-healthd.sy", Title: "Hidden", Text: "[i](" + shut + ")\n"})
	d := deskOf(t, guardtest.NewWith(t, notes), policy.Fixed(contract.Read))
	find := func(args string) string {
		var paths []string
		for _, f := range ok[catalogue.SearchAssetsOut](t, d, writer(), "search.search_assets", args).Data {
			paths = append(paths, f.HName+" "+f.Path)
		}
		return strings.Join(paths, ", ")
	}
	for args, want := range map[string]string{
		`{"k":"INVOICE"}`:              "Invoice.pdf " + open,
		`{"k":"","exts":["png"]}`:      "plan.png assets/plan-20240106090200-picture.png",
		`{"k":"i","exts":[".PDF"]}`:    "Invoice.pdf " + open,
		`{"k":"assets"}`:               "",
		`{"k":"20240106090000"}`:       "",
		`{"k":"private"}`:              "",
		`{"k":"invoice","exts":["x"]}`: "",
	} {
		if got := find(args); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestSQLTellsNothingOfHiddenNotes: the same statements in two homes that differ
// in what is hidden.
func TestSQLTellsNothingOfHiddenNotes(t *testing.T) {
	t.Parallel()
	one := deskOf(t, guardtest.New(t), policy.Fixed(contract.Read))
	two := deskOf(t, guardtest.NewWith(t, otherSecrets()), policy.Fixed(contract.Read))
	var calls [][2]string
	for _, stmt := range []string{
		"SELECT * FROM blocks ORDER BY id", "SELECT * FROM blocks_fts", "SELECT block_id, def_block_id, content FROM refs", "SELECT block_id, content FROM spans", "SELECT block_id, name, value FROM attributes ORDER BY 1, 2",
		"SELECT count(*) AS n, sum(length) AS s, max(updated) AS u, group_concat(content) AS c FROM blocks",
		"SELECT a.id FROM blocks a JOIN blocks b ON a.content = b.content AND a.id <> b.id",
		"SELECT r.block_id, b.content FROM refs r LEFT JOIN blocks b ON b.id = r.def_block_id ORDER BY 1, 2",
		"SELECT id FROM blocks WHERE content LIKE '%Alpha%' OR content LIKE '%Nightfall%'", "SELECT id FROM blocks_fts WHERE content MATCH 'small OR Nightfall'",
		"SELECT json_extract(content, '$') FROM blocks", "SELECT abs(length) FROM blocks WHERE length > 40", "SELECT id FROM blocks WHERE content REGEXP '('",
		"SELECT id FROM blocks WHERE markdown GLOB '*" + guardtest.Secret + "*'", "SELECT DISTINCT box FROM blocks", "SELECT nosuch FROM blocks",
	} {
		for _, more := range []string{"", `,"maxRows":1`} {
			calls = append(calls, [2]string{"search.query_sql", fmt.Sprintf(`{"stmt":%q%s}`, stmt, more)})
		}
	}
	for _, k := range []string{"", "Alpha", "Entry", "Nightfall", "start", "not available"} {
		calls = append(calls, [2]string{"search.search_refs", fmt.Sprintf(`{"id":%q,"k":%q}`, guardtest.Index, k)})
	}
	for _, id := range []string{guardtest.Alpha, guardtest.Intro, guardtest.Entry, guardtest.Links} {
		calls = append(calls, [2]string{"search.get_backlinks", `{"id":"` + id + `"}`}, [2]string{"block.word_count", `{"ids":["` + id + `"]}`},
			[2]string{"block.docs_info", `{"id":"` + id + `","refCount":true,"av":true}`})
	}
	calls = append(calls, [2]string{"search.list_invalid_refs", "{}"}, [2]string{"block.recent_updated", "{}"}, [2]string{"search.search_assets", `{"k":""}`})
	for _, c := range calls {
		one.log.Reset()
		two.log.Reset()
		a, b := one.call(writer(), c[0], c[1]), two.call(writer(), c[0], c[1])
		if x, y := shown(a), shown(b); x != y {
			t.Errorf("%s %s\n%s\n%s", c[0], c[1], x, y)
		}
		if x, y := normal(one.log.String()), normal(two.log.String()); x != y {
			t.Errorf("%s %s logs\n%s\n%s", c[0], c[1], x, y)
		}
	}
}
