package cases_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	catalogue "siyuan-broker/contract/tools"
)

func (d *desk) query(t testing.TB, stmt, more string) catalogue.SearchQuerySQLOut {
	t.Helper()
	return ok[catalogue.SearchQuerySQLOut](t, d, "search.query_sql", `{"stmt":%q`+more+`}`, stmt)
}

// TestK11NoListIsCutInSilence: 500 documents, 500 blocks and 500 citations, and
// every action that lists them. What comes back is all, or says that it is not
// and how to get the rest.
func TestK11NoListIsCutInSilence(t *testing.T) {
	t.Parallel()
	const n = 500
	var docs []guardtest.Doc
	for i := range n {
		docs = append(docs, guardtest.Doc{Box: guardtest.Work, Path: fmt.Sprintf("/20240201%06d-bulkdoc.sy", i), Title: fmt.Sprintf("Bulk %d", i),
			Text: "zanzibar ((" + guardtest.Heading + " \"goals\"))"})
	}
	d := newDesk(t, docs...)
	const long = "20240202000000-longdoc"
	d.add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + long + ".sy", Title: "Long", Text: strings.Repeat("# h\n\n", n)})

	out := d.query(t, "SELECT id FROM blocks WHERE type = 'd' AND content LIKE 'Bulk %'", "")
	if !out.Truncated || out.Showing != len(out.Data) || out.Showing >= n || !strings.Contains(out.Hint, fmt.Sprint("OFFSET ", out.Showing)) {
		t.Errorf("sql: %d rows, truncated %v, hint %q", out.Showing, out.Truncated, out.Hint)
	}
	seen := map[string]bool{}
	for offset := 0; offset < n; offset += 200 {
		page := d.query(t, fmt.Sprintf("SELECT id FROM blocks WHERE type = 'd' AND content LIKE 'Bulk %%' ORDER BY id LIMIT 200 OFFSET %d", offset), "")
		for _, row := range page.Data {
			seen[string(row["id"])] = true
		}
	}
	if len(seen) != n {
		t.Errorf("sql by pages: %d documents, want %d", len(seen), n)
	}
	if exact := d.query(t, "SELECT id FROM blocks WHERE type = 'd' AND content LIKE 'Bulk %'", `,"maxRows":500`); exact.Truncated || exact.Showing != n {
		t.Errorf("exactly as many as fit: %d, truncated %v", exact.Showing, exact.Truncated)
	}
	for id, args := range map[string]string{
		"search.fulltext":           `{"query":"zanzibar"}`,
		"search.get_backlinks":      `{"id":"` + guardtest.Heading + `"}`,
		"search.search_refs":        `{"id":"` + guardtest.Index + `","k":"Bulk"}`,
		"document.search_docs":      `{"notebook":"` + guardtest.Work + `","query":"Bulk"}`,
		"document.list_tree":        `{"notebook":"` + guardtest.Work + `","path":"/"}`,
		"notebook.get_child_docs":   `{"notebook":"` + guardtest.Work + `"}`,
		"document.get_child_blocks": `{"id":"` + long + `"}`,
		"document.get_outline":      `{"id":"` + long + `"}`,
		"block.get_children":        `{"id":"` + long + `"}`,
		"document.get_doc":          `{"id":"` + long + `"}`,
	} {
		r := d.call(id, args)
		if r.Err != nil {
			t.Errorf("%s: %v", id, r.Err)
			continue
		}
		if listed := longest(r.Body); listed < n && !saysMore(t, r.Body) {
			t.Errorf("%s gives %d of %d and does not say so: %.300s", id, listed, n, r.Body)
		}
	}
}

// longest is the number of elements of the longest list in a body.
func longest(body []byte) int {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return 0
	}
	var walk func(v any) int
	walk = func(v any) int {
		most := 0
		switch v := v.(type) {
		case []any:
			most = len(v)
			for _, w := range v {
				most = max(most, walk(w))
			}
		case map[string]any:
			for _, w := range v {
				most = max(most, walk(w))
			}
		}
		return most
	}
	return walk(v)
}

// saysMore: the body says at its top that there is more.
func saysMore(t *testing.T, body []byte) bool {
	t.Helper()
	var says struct {
		Truncated, HasNextPage, HasNextWindow bool
	}
	check(t, json.Unmarshal(body, &says))
	return says.Truncated || says.HasNextPage || says.HasNextWindow
}

// TestK12RowsOfTableFunctionsAreCountedLikeAll: SiYuan's own tool cut these at a
// hundred.
func TestK12RowsOfTableFunctionsAreCountedLikeAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	eleven, ten := "[0,1,2,3,4,5,6,7,8,9,10]", "[0,1,2,3,4,5,6,7,8,9]"
	stmt := fmt.Sprintf("SELECT a.value AS x, b.value AS y FROM json_each('%s') AS a, json_each('%s') AS b", eleven, ten)
	if out := d.query(t, stmt, ""); out.Showing != 110 || out.Truncated {
		t.Errorf("%d rows, truncated %v, want all 110", out.Showing, out.Truncated)
	}
	if out := d.query(t, stmt, `,"maxRows":109`); out.Showing != 109 || !out.Truncated || !strings.Contains(out.Hint, "OFFSET 109") {
		t.Errorf("%d rows, truncated %v, hint %q", out.Showing, out.Truncated, out.Hint)
	}
	if out := d.query(t, stmt, `,"maxRows":110`); out.Showing != 110 || out.Truncated {
		t.Errorf("exactly as many as fit: %d, truncated %v", out.Showing, out.Truncated)
	}
}
