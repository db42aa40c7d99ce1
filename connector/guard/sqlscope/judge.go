package sqlscope

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// maxPreparing bounds the time SQLite may think about one statement.
const maxPreparing = 2 * time.Second

// Judge scopes statements. It is safe for concurrent use; statements are judged
// one after the other, which takes a few milliseconds each.
type Judge struct {
	turn chan struct{} // holds one token; owning it means owning both courts
	// scoped judges while something is hidden, open when nothing is.
	scoped, open *court
}

// court is a scratch database. Nothing is ever run or stored in it.
type court struct {
	conn *sqlite.Conn
	// secret is part of the name of every base table; empty in the open court,
	// whose tables carry the kernel's names.
	secret    string
	reads     map[string]bool // base tables and table functions
	views     map[string]bool // TEMP views with the kernel's names
	reserved  map[string]bool // names that a statement may not define
	functions map[string]bool
}

// New returns a judge with fresh secret names. Close it when done.
func New() (*Judge, error) {
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("sqlscope: choose secret names: %w", err)
	}
	scoped, err := newCourt("t" + hex.EncodeToString(secret) + "_")
	if err != nil {
		return nil, err
	}
	open, err := newCourt("")
	if err != nil {
		return nil, errors.Join(err, scoped.conn.Close())
	}
	j := &Judge{turn: make(chan struct{}, 1), scoped: scoped, open: open}
	j.turn <- struct{}{}
	return j, nil
}

// Close waits for the statement being judged and frees the scratch databases.
// A judge cannot be used after it; closing again does nothing.
func (j *Judge) Close() error {
	if _, open := <-j.turn; !open {
		return nil
	}
	close(j.turn)
	return errors.Join(j.scoped.conn.Close(), j.open.conn.Close())
}

// Scope judges a statement and returns what to send for it. The error is a
// *Refusal when the statement is not allowed; any other error is about the
// arguments, the context or a closed judge. limit is the number of rows wanted.
func (j *Judge) Scope(ctx context.Context, stmt string, scope Scope, limit int) (Plan, error) {
	if limit < 1 {
		return Plan{}, fmt.Errorf("sqlscope: limit %d is not positive", limit)
	}
	if err := scope.validate(); err != nil {
		return Plan{}, err
	}
	parsed, refusal := parse(stmt)
	if refusal != nil {
		return Plan{}, refusal
	}
	select {
	case _, ok := <-j.turn:
		if !ok {
			return Plan{}, errors.New("sqlscope: judge is closed")
		}
	case <-ctx.Done():
		return Plan{}, fmt.Errorf("sqlscope: wait for a turn: %w", ctx.Err())
	}
	defer func() { j.turn <- struct{}{} }()
	return j.judge(ctx, parsed, scope, limit)
}

func (j *Judge) judge(ctx context.Context, st *statement, scope Scope, limit int) (Plan, error) {
	c := j.scoped
	if scope.All {
		c = j.open
	} else if st.badMatch {
		return Plan{}, badMatching()
	}
	bare, err := c.hear(ctx, st, st.text)
	if err != nil {
		return Plan{}, err
	}
	if !scope.All && bare.functions["match"] && !bare.tables[fullText] {
		return Plan{}, badMatching()
	}
	total, overRows := set(totalFunctions), set(rowFunctions)
	mayFail, rows := !st.steady, st.ordered != "" && (bare.tables["blocks"] || bare.tables[fullText])
	for f := range bare.functions {
		mayFail = mayFail || !total[f]
		rows = rows && !overRows[f]
	}
	judged := builder{scope: scope, fence: mayFail || !rows, base: func(t string) string { return "main." + c.secret + t }}
	text := st.text
	if rows && !scope.All && (!judged.fence || bare.tables[fullText]) {
		text = st.ordered
	}
	if _, err := c.hear(ctx, st, judged.wrap(text, limit)); err != nil {
		return Plan{}, err
	}
	sent := judged
	sent.base = func(t string) string { return "main." + t }
	plan := Plan{SQL: sent.wrap(text, limit), Limit: limit}
	if mayFail || bare.functions["sum"] { // sums overflow
		if _, err := c.hear(ctx, st, judged.check(text, limit)); err != nil {
			return Plan{}, err
		}
		plan.Check = sent.check(text, limit)
	}
	return plan, nil
}

func newCourt(secret string) (_ *court, err error) {
	conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, fmt.Errorf("sqlscope: open scratch database: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sqlscope: set up scratch database: %w", err), conn.Close())
		}
	}()
	c := &court{
		conn: conn, secret: secret,
		reads: set(tableFunctions), views: map[string]bool{}, reserved: set(tableFunctions),
		functions: set(totalFunctions, partialFunctions),
	}
	if secret == "" {
		c.functions = set(totalFunctions, partialFunctions, corpusFunctions)
	}
	// SQLite has the operator but not the function; it is never called here.
	regexp := func(sqlite.Context, []sqlite.Value) (sqlite.Value, error) { return sqlite.Value{}, nil }
	if err := conn.CreateFunction("regexp", &sqlite.FunctionImpl{NArgs: 2, Deterministic: true, Scalar: regexp}); err != nil {
		return nil, err
	}
	for _, t := range kernelTables() {
		if err := c.add(t); err != nil {
			return nil, err
		}
	}
	const existing = "SELECT name FROM sqlite_master UNION SELECT name FROM pragma_module_list"
	err = sqlitex.ExecuteTransient(conn, existing, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		c.reserved[strings.ToLower(s.ColumnText(0))] = true
		return nil
	}})
	return c, err
}

func (c *court) add(t table) error {
	c.reserved[t.name] = true
	if c.secret != "" && t.hidden {
		return nil
	}
	script := t.create(c.secret + t.name)
	c.reads[c.secret+t.name] = true
	if c.secret != "" {
		c.views[t.name] = true
		script += fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT %s FROM main.%s;", t.name, strings.Join(t.columns, ", "), c.secret+t.name)
	}
	return sqlitex.ExecuteScript(c.conn, script, nil)
}

// hearing is what SQLite asked for while it prepared one text.
type hearing struct {
	court     *court
	ctes      map[string]bool
	functions map[string]bool
	tables    map[string]bool // the kernel's names
	denied    *Refusal
}

// hear prepares text without running it.
func (c *court) hear(ctx context.Context, st *statement, text string) (*hearing, error) {
	for name := range st.ctes {
		if c.reserved[name] || strings.HasPrefix(name, "sqlite_") || strings.HasPrefix(name, "pragma_") {
			return nil, refuse("A WITH clause or window may not take the name of a table of the index or of SQLite.",
				"Choose another name for it, such as found.")
		}
	}
	h := &hearing{court: c, ctes: st.ctes, functions: map[string]bool{}, tables: map[string]bool{}}
	if err := c.conn.SetAuthorizer(h); err != nil {
		return nil, fmt.Errorf("sqlscope: set authorizer: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, maxPreparing)
	defer cancel()
	c.conn.SetInterrupt(bounded.Done())
	prepared, trailing, err := c.conn.PrepareTransient(text)
	params := 0
	if err == nil {
		params = prepared.BindParamCount()
		// A statement that was never run has no error to report.
		_ = prepared.Finalize()
	}
	c.conn.SetInterrupt(nil)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("sqlscope: judge statement: %w", ctx.Err())
	case bounded.Err() != nil:
		return nil, refuse("The statement is too complicated to check.", "Join fewer tables.")
	case h.denied != nil:
		return nil, h.denied
	case err != nil:
		return nil, reworded(err, st.text)
	case trailing != 0 || params != 0:
		return nil, refuse("Only one statement without parameters can be run at a time.", "")
	}
	return h, nil
}

// Authorize admits by table and by function name, never by accessor.
func (h *hearing) Authorize(a sqlite.Action) sqlite.AuthResult {
	switch a.Type() {
	case sqlite.OpSelect, sqlite.OpRecursive:
		return sqlite.AuthResultOK
	case sqlite.OpFunction:
		return h.function(functionName(a))
	case sqlite.OpRead:
		return h.read(a)
	}
	return h.deny(onlyReading())
}

func (h *hearing) function(name string) sqlite.AuthResult {
	name = strings.ToLower(name)
	if h.court.functions[name] {
		h.functions[name] = true
		return sqlite.AuthResultOK
	}
	if set(corpusFunctions)[name] {
		return h.deny(refuse("The function "+name+" reads statistics and texts of the whole index and is not available here.",
			"Use content MATCH 'x' without it and order by updated."))
	}
	return h.deny(refuse("The function "+printable(name)+" is not allowed.", "Use SQLite's text, date, JSON, aggregate and window functions."))
}

// read admits base tables in main and views in temp. A table of which no column
// is used arrives without a schema; so do CTEs, whose names cannot be those of
// other tables.
func (h *hearing) read(a sqlite.Action) sqlite.AuthResult {
	c, name := h.court, strings.ToLower(a.Table())
	if c.views[name] || c.secret == "" && c.reads[name] {
		h.tables[name] = true
	}
	if kernel, ok := strings.CutPrefix(name, c.secret); ok && c.secret != "" {
		h.tables[kernel] = true
	}
	unnamed := a.Database() == "" && a.Column() == ""
	switch {
	case (a.Database() == "main" || unnamed) && c.reads[name],
		(a.Database() == "temp" || unnamed) && c.views[name],
		unnamed && h.ctes[name]:
		return sqlite.AuthResultOK
	}
	return h.deny(noSuchTable())
}

func (h *hearing) deny(r *Refusal) sqlite.AuthResult {
	if h.denied == nil {
		h.denied = r
	}
	return sqlite.AuthResultDeny
}

// functionName reads a field that the library does not export. A test fails if
// the field moves; an empty name is on no list.
func functionName(a sqlite.Action) string {
	if f := reflect.ValueOf(a).FieldByName("arg2"); f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}
