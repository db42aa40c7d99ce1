package sqlscope

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The index of the kernel as its sqlite_master describes it (recording
// "sqlite_master"), with SQLite's own tokenizer instead of the kernel's.
const kernelSchema = `
CREATE TABLE blocks (id, parent_id, root_id, hash, box, path, hpath, name, alias, memo, tag, content, fcontent, markdown, length, type, subtype, ial, sort, created, updated);
CREATE TABLE refs (id, def_block_id, def_block_parent_id, def_block_root_id, def_block_path, block_id, root_id, box, path, content, markdown, type);
CREATE TABLE spans (id, block_id, root_id, box, path, content, markdown, type, ial);
CREATE TABLE attributes (id, name, value, type, block_id, root_id, box, path);
CREATE TABLE assets (id, block_id, root_id, box, docpath, path, name, title, hash);
CREATE TABLE file_annotation_refs (id, file_path, annotation_id, block_id, root_id, box, path, content, type);
CREATE TABLE block_embeddings (id TEXT PRIMARY KEY, root_id TEXT, box TEXT, path TEXT, embedding BLOB, model TEXT, content_len INTEGER, updated TEXT, fail_count INTEGER NOT NULL DEFAULT 0, last_tried INTEGER NOT NULL DEFAULT 0, ignored_type INTEGER NOT NULL DEFAULT 0);
CREATE TABLE stat (key, value);
CREATE INDEX idx_assets_root_id ON assets(root_id);
CREATE INDEX idx_attributes_block_id ON attributes(block_id);
CREATE INDEX idx_attributes_root_id ON attributes(root_id);
CREATE INDEX idx_blocks_id ON blocks(id);
CREATE INDEX idx_blocks_parent_id ON blocks(parent_id);
CREATE INDEX idx_blocks_root_id ON blocks(root_id);
CREATE INDEX idx_blocks_root_id_id_hash ON blocks(root_id, id, hash);
CREATE INDEX idx_spans_root_id ON spans(root_id);
CREATE VIRTUAL TABLE blocks_fts USING fts5(id UNINDEXED, parent_id UNINDEXED, root_id UNINDEXED, hash UNINDEXED, box UNINDEXED, path UNINDEXED, hpath UNINDEXED, name, alias, memo, tag, content, fcontent, markdown UNINDEXED, length UNINDEXED, type UNINDEXED, subtype UNINDEXED, ial, sort UNINDEXED, created UNINDEXED, updated UNINDEXED, content='blocks', content_rowid='rowid');
INSERT INTO stat VALUES ('siyuan_database_ver', '202607031200');
`

// row is one row of a kernel table, by column.
type row map[string]any

type fixture map[string][]row // by table

// openKernel fills an index. Rows of blocks marked with "unindexed" are kept
// out of full text.
func openKernel(t testing.TB, data fixture) *sqlite.Conn {
	t.Helper()
	conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := sqlitex.ExecuteScript(conn, kernelSchema, nil); err != nil {
		t.Fatal(err)
	}
	// Errors of Go functions become values in this library, so a bad pattern
	// gives NULL.
	match := func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
		re, err := regexp.Compile(args[0].Text())
		if err != nil {
			return sqlite.Value{}, nil
		}
		if re.MatchString(args[1].Text()) {
			return sqlite.IntegerValue(1), nil
		}
		return sqlite.IntegerValue(0), nil
	}
	if err := conn.CreateFunction("regexp", &sqlite.FunctionImpl{NArgs: 2, Scalar: match}); err != nil {
		t.Fatal(err)
	}
	for _, table := range kernelTables() {
		for _, r := range data[table.name] {
			insert(t, conn, table.name, r)
		}
	}
	return conn
}

func insert(t testing.TB, conn *sqlite.Conn, table string, r row) {
	t.Helper()
	var columns, marks []string
	var args []any
	for c, v := range r {
		if c == "unindexed" {
			continue
		}
		columns, marks, args = append(columns, c), append(marks, "?"), append(args, v)
	}
	stmt := fmt.Sprintf("INSERT INTO %s(%s) VALUES (%s)", table, strings.Join(columns, ","), strings.Join(marks, ","))
	if err := sqlitex.Execute(conn, stmt, &sqlitex.ExecOptions{Args: args}); err != nil {
		t.Fatal(err)
	}
	if table == "blocks" && r["unindexed"] == nil {
		const index = `INSERT INTO blocks_fts(rowid, id, box, name, alias, memo, tag, content, fcontent, markdown, ial)
			SELECT rowid, id, box, name, alias, memo, tag, content, fcontent, markdown, ial FROM blocks WHERE rowid = last_insert_rowid()`
		if err := sqlitex.Execute(conn, index, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// answer runs a statement and returns the rows as text, or the error.
func answer(conn *sqlite.Conn, stmt string) string {
	var b strings.Builder
	err := sqlitex.ExecuteTransient(conn, stmt, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		for i := range s.ColumnCount() {
			value := s.ColumnText(i)
			if s.ColumnType(i) == sqlite.TypeNull {
				value = "NULL"
			}
			fmt.Fprintf(&b, "%s=%s|", s.ColumnName(i), value)
		}
		b.WriteString("\n")
		return nil
	}})
	if err != nil {
		return "error: " + sqlite.ErrCode(err).String()
	}
	return b.String()
}

func newJudge(t testing.TB) *Judge {
	t.Helper()
	j, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}
