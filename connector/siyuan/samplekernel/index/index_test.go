package index_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel/index"
	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func open(t *testing.T) *index.Index {
	t.Helper()
	n := 0
	x, err := index.Open(index.Environment{
		NewID:      func() string { n++; return fmt.Sprintf("20260102030405-made%03d", n) },
		Definition: func(string) (index.Definition, bool) { return index.Definition{RootID: "root"}, true },
		AssetHash:  func(string) string { return "hash" },
		Names:      func(string) string { return "" },
		Database:   func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

const rootID = "20240101000000-rootdoc"

func document(t *testing.T, md string) index.Document {
	t.Helper()
	n := 0
	dom, err := text.MarkdownToDOM(md, func() string { n++; return fmt.Sprintf("20240101000000-block%02d", n) })
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := text.DOMToBlocks(dom)
	if err != nil {
		t.Fatal(err)
	}
	root := &ast.Node{Type: ast.NodeDocument, ID: rootID}
	root.SetIALAttr("id", rootID)
	root.SetIALAttr("title", "Title")
	for _, b := range blocks {
		root.AppendChild(b)
	}
	return index.Document{Box: "20240101000000-notebok", Path: "/" + rootID + ".sy", HPath: "/Title", Root: root, Copies: 1}
}

func query(t *testing.T, x *index.Index, stmt string) []map[string]any {
	t.Helper()
	rows, err := x.Query(stmt, "")
	if err != nil {
		t.Fatalf("%s: %v", stmt, err)
	}
	return rows
}

func TestPutReplacesAllRowsOfADocument(t *testing.T) {
	t.Parallel()
	x := open(t)
	for range 2 {
		if err := x.Put(document(t, "one #tag# ((20240102110001-block01 \"ref\")) ![i](assets/a.png)\n{: custom-a=\"1\"}\n\ntwo")); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string]int64{"blocks": 3, "spans": 3, "refs": 1, "attributes": 1, "assets": 1} {
		if n := query(t, x, "select count(*) n from "+table)[0]["n"]; n != want {
			t.Errorf("%s has %v rows, want %d", table, n, want)
		}
	}
	if err := x.Delete(rootID); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"blocks", "spans", "refs", "attributes", "assets"} {
		if n := query(t, x, "select count(*) n from "+table)[0]["n"]; n != int64(0) {
			t.Errorf("%s has %v rows after the removal", table, n)
		}
	}
	if n := len(query(t, x, "select id from blocks_fts where blocks_fts match 'one'")); n != 0 {
		t.Errorf("full text still finds %d", n)
	}
}

func TestFullTextFindsAnyPartOfAnyScript(t *testing.T) {
	t.Parallel()
	x := open(t)
	if err := x.Put(document(t, "Launch 会议记录：周一")); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]int{"aunc": 1, "LAUNCH": 1, "议记": 1, "nothere": 0, "Launch NOT 会议": 0, "Launch OR nothere": 1, `"ch 会"`: 1} {
		stmt := "select id from blocks_fts where blocks_fts match '" + q + "' and type='p'"
		if n := len(query(t, x, stmt)); n != want {
			t.Errorf("%s: %d hits, want %d", q, n, want)
		}
	}
}

// The expected answers are recorded ones.
func TestStatementsAreRewrittenAsTheRealKernelDoes(t *testing.T) {
	t.Parallel()
	x := open(t)
	if err := x.Put(document(t, strings.Repeat("p\n\n", 99))); err != nil {
		t.Fatal(err)
	}
	for stmt, rows := range map[string]int{
		"select id from blocks":                                             64,
		"select id from blocks limit 70":                                    70,
		"select id from blocks limit -1":                                    100,
		"select id from blocks limit 5, 3":                                  5,
		"with a as (select id from blocks limit 99) select * from a":        64,
		"select id from blocks;":                                            64,
		"select id from blocks -- all":                                      64,
		"select id from blocks where id in (select id from blocks limit 2)": 2,
		"select id from blocks union all select id from blocks":             64,
		"select id from blocks where content = ';'":                         0,
		"with recursive c(x) as (select 1 union all select x+1 from c where x<200) select x from c /* limit 3 */": 64,
	} {
		if n := len(query(t, x, stmt)); n != rows {
			t.Errorf("%s: %d rows, want %d", stmt, n, rows)
		}
	}
	if r := query(t, x, "select nosuch from blocks")[0]; r[`"nosuch"`] != "nosuch" {
		t.Errorf("unknown column gives %v", r)
	}
	if r := query(t, x, `select id from blocks where type="d"`); len(r) != 1 {
		t.Errorf("double-quoted text gives %v", r)
	}
}

func TestWhatIsRefusedAndWhatFails(t *testing.T) {
	t.Parallel()
	x := open(t)
	for _, c := range []struct{ stmt, mode, refused, failed string }{
		{"select 1; select 2", "", "SQL statement is not single", ""},
		{"select 1; select 2", "readonly", "SQL statement is not single", ""},
		{"update stat set value=1", "readonly", "SQL statement is not a read-only query", ""},
		{"pragma table_info(blocks)", "readonly", "SQL statement is not a read-only query", ""},
		{"with a as (select 1) update stat set value=1 returning value", "readonly", "SQL statement is not read-only", ""},
		{"select 1", "zzz", "unknown [mode]", ""},
		{"selec 1", "", "", `near "selec": syntax error`},
		{"select * from", "", "", "incomplete input"},
		{"select * from nosuch", "", "", "no such table: nosuch"},
	} {
		_, err := x.Query(c.stmt, c.mode)
		var refused index.Refused
		switch {
		case errors.As(err, &refused):
			if refused.Message != c.refused {
				t.Errorf("%s (%s): refused %q, want %q", c.stmt, c.mode, refused.Message, c.refused)
			}
		case err == nil || err.Error() != c.failed:
			t.Errorf("%s (%s): %v, want %q", c.stmt, c.mode, err, c.failed+c.refused)
		}
	}
}

func TestWritesTakeEffectOnlyWithReturning(t *testing.T) {
	t.Parallel()
	x := open(t)
	const see = "select value from stat where key='k'"
	if rows, err := x.Query("insert into stat(key,value) values('k','1')", ""); err != nil || rows != nil || len(query(t, x, see)) != 0 {
		t.Fatalf("plain insert: %v %v", rows, err)
	}
	query(t, x, "insert into stat(key,value) values('k','1') returning key")
	if rows, err := x.Query("update stat set value='2' where key='k' returning value; select 3 as x", "multiple"); err != nil || rows[0]["x"] != int64(3) {
		t.Fatalf("multiple: %v %v", rows, err)
	}
	if r := query(t, x, see); len(r) != 1 || r[0]["value"] != "1" {
		t.Fatalf("%v", r)
	}
}

func FuzzQueryNeverPanics(f *testing.F) {
	for _, s := range []string{"select 1", "select '", "-- x", "select \"a from b", "select * from blocks_fts where blocks_fts match '\"'", ";;", "with", "limit 1,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stmt string) {
		x := open(t)
		if strings.Contains(strings.ToLower(stmt), "recursive") {
			t.Skip("may run for ever")
		}
		_, _ = x.Query(stmt, "readonly")
		_ = index.SpellQuery(stmt)
	})
}
