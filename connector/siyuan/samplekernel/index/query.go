package index

import (
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
)

// Refused is a statement the kernel would not run at all, as opposed to one
// SQLite found wrong.
type Refused struct{ Message string }

// Error is the kernel's own text.
func (e Refused) Error() string { return e.Message }

// Limit is how many rows a SELECT without a LIMIT of its own gets.
const Limit = 64

// Query runs a statement as /api/query/sql does. Rows are maps by column name
// (a doubled name keeps the last value); nil means a statement without columns, or no
// rows of one that the kernel could not parse.
// SQLite's errors come with its bare message.
func (x *Index) Query(stmt, mode string) ([]map[string]any, error) {
	parts := splitStatements(stmt)
	switch mode {
	case "", "readonly":
		if len(parts) > 1 {
			return nil, Refused{"SQL statement is not single"}
		}
	case "multiple":
		return x.queryMultiple(parts)
	default:
		return nil, Refused{"unknown [mode]"}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	if mode == "readonly" {
		if err := x.readOnly(parts[0]); err != nil {
			return nil, err
		}
	}
	verbatim := hasWords(parts[0], "distinct", "from")
	if hasWords(parts[0], "escape") && !verbatim {
		return nil, nil // the kernel's own printing of LIKE … ESCAPE finds nothing
	}
	rows, err := x.rewrittenQuery(parts[0])
	if err == nil && len(rows) == 0 && verbatim {
		return nil, nil
	}
	return rows, err
}

// hasWords looks for words that follow each other, also inside parentheses. IS
// NOT DISTINCT FROM is syntax that the kernel's parsers do not know: SQLite gets
// the statement as it is, and no rows are nil instead of an empty list.
func hasWords(stmt string, words ...string) bool {
	tokens := slices.DeleteFunc(scan(stmt), func(t token) bool { return t.comment || strings.TrimSpace(t.text) == "" })
	for i := range tokens {
		n := 0
		for n < len(words) && i+n < len(tokens) && strings.EqualFold(tokens[i+n].text, words[n]) {
			n++
		}
		if n == len(words) {
			return true
		}
	}
	return false
}

// queryMultiple gives the rows of the first SELECT; nothing else takes effect.
func (x *Index) queryMultiple(parts []string) ([]map[string]any, error) {
	for _, p := range parts {
		if firstWord(p) == "select" {
			return x.rewrittenQuery(p)
		}
	}
	return nil, nil
}

// ReadOnly reports, as a Refused, that a statement is no SELECT or CTE or that
// it would write.
func (x *Index) ReadOnly(stmt string) error {
	parts := splitStatements(stmt)
	if len(parts) != 1 {
		return Refused{"SQL statement is not single"}
	}
	return x.readOnly(parts[0])
}

func (x *Index) readOnly(stmt string) error {
	if w := firstWord(stmt); w != "select" && w != "with" {
		return Refused{"SQL statement is not a read-only query"}
	}
	if x.writes(stmt) {
		return Refused{"SQL statement is not read-only"}
	}
	return nil
}

// writes asks SQLite whether the prepared statement would change anything.
func (x *Index) writes(stmt string) (writes bool) {
	watch := sqlite.AuthorizeFunc(func(a sqlite.Action) sqlite.AuthResult {
		switch a.Type() {
		case sqlite.OpInsert, sqlite.OpUpdate, sqlite.OpDelete:
			writes = true
		}
		return sqlite.AuthResultOK
	})
	if x.conn.SetAuthorizer(watch) != nil {
		return true
	}
	defer x.conn.SetAuthorizer(nil)
	if s, _, err := x.conn.PrepareTransient(stmt); err == nil {
		s.Finalize()
	}
	return writes
}

func (x *Index) rewrittenQuery(stmt string) ([]map[string]any, error) {
	stmt = spellMatches(stmt)
	if w := firstWord(stmt); w != "select" && w != "with" {
		return x.run(stmt)
	}
	if writing(stmt) {
		return x.run(stmt)
	}
	if _, err := x.prepared(stmt); err != nil {
		if _, unknown := unknownColumn(err); !unknown {
			return nil, err
		}
	}
	stmt = swapLimit(stmt)
	if !hasWord(stmt, "limit") {
		stmt = strings.TrimRight(stmt, " \t\r\n") + "\nLIMIT " + strconv.Itoa(Limit)
	}
	return x.runQuoting(stmt)
}

// runQuoting repeats a statement with an unknown column as a string. The real
// kernel's SQLite takes an unknown name in double quotes for a string, and its
// rewriting puts every name of a plain SELECT in double quotes; the library
// used here does not allow the first.
func (x *Index) runQuoting(stmt string) ([]map[string]any, error) {
	plain := firstWord(stmt) == "select" && !hasWord(stmt, "over")
	var strs []string
	for range maxUnknown {
		rows, err := x.run(stmt)
		name, unknown := unknownColumn(err)
		if !unknown {
			return renameColumns(rows, strs), err
		}
		quoted := quoteWord(stmt, name, plain)
		if quoted == stmt {
			return rows, err
		}
		stmt, strs = quoted, append(strs, name)
	}
	return x.run(stmt)
}

// maxUnknown bounds how many unknown names of one statement become strings.
const maxUnknown = 16

// renameColumns gives columns that are an unknown name the label SQLite has for
// it: the name in double quotes.
func renameColumns(rows []map[string]any, names []string) []map[string]any {
	for _, name := range names {
		for _, r := range rows {
			if v, ok := r["'"+name+"'"]; ok {
				delete(r, "'"+name+"'")
				r[`"`+name+`"`] = v
			}
		}
	}
	return rows
}

// prepared reports what SQLite says about a statement before it is rewritten.
func (x *Index) prepared(stmt string) (columns int, err error) {
	s, _, err := x.conn.PrepareTransient(stmt)
	if err != nil {
		return 0, bare(err)
	}
	defer s.Finalize()
	return s.ColumnCount(), nil
}

func (x *Index) run(stmt string) ([]map[string]any, error) {
	s, _, err := x.conn.PrepareTransient(stmt)
	if err != nil {
		return nil, bare(err)
	}
	if s == nil {
		return nil, nil
	}
	defer s.Finalize()
	if s.ColumnCount() == 0 {
		return nil, nil // a write without RETURNING is never stepped
	}
	rows := []map[string]any{}
	for {
		more, err := s.Step()
		if err != nil || !more { // a value that makes a function fail ends the rows without a word
			return rows, nil
		}
		rows = append(rows, row(s))
	}
}

func row(s *sqlite.Stmt) map[string]any {
	m := make(map[string]any, s.ColumnCount())
	for i := range s.ColumnCount() {
		var v any
		switch s.ColumnType(i) {
		case sqlite.TypeInteger:
			v = s.ColumnInt64(i)
		case sqlite.TypeFloat:
			v = s.ColumnFloat(i)
		case sqlite.TypeText:
			v = s.ColumnText(i)
		case sqlite.TypeBlob:
			b := make([]byte, s.ColumnLen(i))
			s.ColumnBytes(i, b)
			v = base64.StdEncoding.EncodeToString(b)
		}
		if name := s.ColumnName(i); name != "" { // a doubled name is told once, for the last of its columns
			m[name] = v
		}
	}
	return m
}

var libraryPrefix = regexp.MustCompile(`^sqlite: (?:prepare|step): `)

// bare strips what the Go library puts around SQLite's message.
func bare(err error) error {
	msg := libraryPrefix.ReplaceAllString(err.Error(), "")
	if i := strings.Index(msg, "SQL logic error: "); i >= 0 {
		msg = msg[i+len("SQL logic error: "):]
	}
	return errors.New(msg)
}

var noColumn = regexp.MustCompile(`no such column: "?([^\s"]+)`)

func unknownColumn(err error) (string, bool) {
	if err == nil {
		return "", false
	}
	m := noColumn.FindStringSubmatch(err.Error())
	if m == nil || strings.Contains(m[1], ".") {
		return "", false
	}
	return m[1], true
}
