package index_test

import "testing"

// Observed with kernel 3.7.3: what its parsers do not know comes back as null
// when there are no rows, and LIKE with ESCAPE finds nothing unless the
// statement is one of those.
func TestStatementsTheKernelCannotParse(t *testing.T) {
	t.Parallel()
	x := open(t)
	if err := x.Put(document(t, "walrus\n")); err != nil {
		t.Fatal(err)
	}
	const verbatim = "WITH v AS (SELECT 1 WHERE '' IS NOT DISTINCT FROM '') "
	for _, c := range []struct {
		stmt string
		rows int
		null bool
	}{
		{"SELECT id FROM blocks WHERE content = 'nosuch'", 0, false},
		{verbatim + "SELECT id FROM blocks WHERE content = 'nosuch'", 0, true},
		{verbatim + "SELECT id FROM blocks WHERE content = 'walrus'", 1, false},
		{`SELECT id FROM blocks WHERE content LIKE '%walrus%' ESCAPE '\'`, 0, true},
		{verbatim + `SELECT id FROM blocks WHERE content LIKE '%walrus%' ESCAPE '\'`, 1, false},
	} {
		rows, err := x.Query(c.stmt, "readonly")
		if err != nil || len(rows) != c.rows || (rows == nil) != c.null {
			t.Errorf("%s: rows %v, err %v", c.stmt, rows, err)
		}
	}
}
