package index

import (
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Rows runs a statement of the kernel's own, as written, and gives all columns
// as text.
func (x *Index) Rows(stmt string, args ...any) ([]map[string]string, error) {
	var rows []map[string]string
	err := sqlitex.Execute(x.conn, stmt, &sqlitex.ExecOptions{Args: args, ResultFunc: func(s *sqlite.Stmt) error {
		m := make(map[string]string, s.ColumnCount())
		for i := range s.ColumnCount() {
			m[s.ColumnName(i)] = s.ColumnText(i)
		}
		rows = append(rows, m)
		return nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return rows, nil
}

// SetContent overwrites the content of a block's rows, in both tables.
func (x *Index) SetContent(id, content string) error {
	rows, err := x.Rows("SELECT rowid AS n, "+ftsColumns+" FROM blocks WHERE id = ?", id)
	if err != nil {
		return err
	}
	for _, r := range rows {
		var n int64
		if _, err := fmt.Sscan(r["n"], &n); err != nil {
			return fmt.Errorf("index: rowid: %w", err)
		}
		columns := [7]string{r["name"], r["alias"], r["memo"], r["tag"], r["content"], r["fcontent"], r["ial"]}
		if err := x.fts(n, true, columns); err != nil {
			return err
		}
		columns[4] = content
		if err := x.fts(n, false, columns); err != nil {
			return err
		}
		if err := x.exec("UPDATE blocks SET content = ? WHERE rowid = ?", content, n); err != nil {
			return err
		}
	}
	return nil
}
