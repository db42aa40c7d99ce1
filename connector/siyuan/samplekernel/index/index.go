package index

import (
	"fmt"
	"regexp"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Version is the SQLite version statements are told, that of the real kernel.
const Version = "3.53.2"

const schema = `
CREATE TABLE stat (key, value);
CREATE TABLE blocks (id, parent_id, root_id, hash, box, path, hpath, name, alias, memo, tag, content, fcontent, markdown, length, type, subtype, ial, sort, created, updated);
CREATE INDEX idx_blocks_id ON blocks(id);
CREATE INDEX idx_blocks_parent_id ON blocks(parent_id);
CREATE INDEX idx_blocks_root_id ON blocks(root_id);
CREATE INDEX idx_blocks_root_id_id_hash ON blocks(root_id, id, hash);
CREATE VIRTUAL TABLE blocks_fts USING fts5(id UNINDEXED, parent_id UNINDEXED, root_id UNINDEXED, hash UNINDEXED, box UNINDEXED, path UNINDEXED, hpath UNINDEXED, name, alias, memo, tag, content, fcontent, markdown UNINDEXED, length UNINDEXED, type UNINDEXED, subtype UNINDEXED, ial, sort UNINDEXED, created UNINDEXED, updated UNINDEXED, content='blocks', content_rowid='rowid', tokenize="ascii");
CREATE TABLE spans (id, block_id, root_id, box, path, content, markdown, type, ial);
CREATE INDEX idx_spans_root_id ON spans(root_id);
CREATE TABLE assets (id, block_id, root_id, box, docpath, path, name, title, hash);
CREATE INDEX idx_assets_root_id ON assets(root_id);
CREATE TABLE attributes (id, name, value, type, block_id, root_id, box, path);
CREATE INDEX idx_attributes_block_id ON attributes(block_id);
CREATE INDEX idx_attributes_root_id ON attributes(root_id);
CREATE TABLE refs (id, def_block_id, def_block_parent_id, def_block_root_id, def_block_path, block_id, root_id, box, path, content, markdown, type);
CREATE TABLE file_annotation_refs (id, file_path, annotation_id, block_id, root_id, box, path, content, type);
CREATE TABLE block_embeddings (id TEXT PRIMARY KEY, root_id TEXT, box TEXT, path TEXT, embedding BLOB, model TEXT, content_len INTEGER, updated TEXT, fail_count INTEGER NOT NULL DEFAULT 0, last_tried INTEGER NOT NULL DEFAULT 0, ignored_type INTEGER NOT NULL DEFAULT 0);
CREATE INDEX idx_block_embeddings_root_id ON block_embeddings(root_id);
INSERT INTO stat (key, value) VALUES ('siyuan_database_ver', '202607031200');
`

// Environment is what the index must ask about the workspace.
type Environment struct {
	// NewID makes row ids.
	NewID func() string
	// Definition finds a referenced block, ok false when it is unknown.
	Definition func(id string) (d Definition, ok bool)
	// AssetHash is the content hash of an asset, empty when missing.
	AssetHash func(path string) string
	// Names is the av-names attribute of a block bound to databases, or empty.
	Names func(avs string) string
	// Database is the text of a database block.
	Database func(avID string) string
}

// Definition is where a referenced block stands.
type Definition struct{ ParentID, RootID, Path string }

// Index is one in-memory database. It is not safe for concurrent use: the
// kernel's lock guards it.
type Index struct {
	conn *sqlite.Conn
	env  Environment
}

// Open makes an empty index.
func Open(env Environment) (*Index, error) {
	conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, fmt.Errorf("index: open: %w", err)
	}
	x := &Index{conn: conn, env: env}
	if err := x.prepare(); err != nil {
		conn.Close()
		return nil, err
	}
	return x, nil
}

func (x *Index) prepare() error {
	if err := sqlitex.ExecuteScript(x.conn, schema, nil); err != nil {
		return fmt.Errorf("index: create tables: %w", err)
	}
	functions := map[string]*sqlite.FunctionImpl{
		"regexp":         {NArgs: 2, Deterministic: true, Scalar: matchRegexp},
		"sqlite_version": {NArgs: 0, Deterministic: true, Scalar: version},
	}
	for name, f := range functions {
		if err := x.conn.CreateFunction(name, f); err != nil {
			return fmt.Errorf("index: function %s: %w", name, err)
		}
	}
	return nil
}

func matchRegexp(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
	re, err := regexp.Compile(args[0].Text())
	if err != nil {
		return sqlite.Value{}, nil //nolint:nilerr // the library would return the error text as the value
	}
	if re.MatchString(args[1].Text()) {
		return sqlite.IntegerValue(1), nil
	}
	return sqlite.IntegerValue(0), nil
}

func version(sqlite.Context, []sqlite.Value) (sqlite.Value, error) {
	return sqlite.TextValue(Version), nil
}

// Close frees the database.
func (x *Index) Close() error { return x.conn.Close() }

// spell writes text as tokens, one per character, so that a phrase query finds
// any substring in any script, as the kernel's own tokenizer does.
func spell(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		fmt.Fprintf(&b, "x%x ", r)
	}
	return b.String()
}

// Phrase is an FTS5 phrase that finds s as a substring.
func Phrase(s string) string { return `"` + strings.TrimSpace(spell(s)) + `"` }
