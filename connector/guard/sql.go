package guard

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"siyuan-broker/connector/guard/sqlscope"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// judge owns the judge of raw SQL. It is made when the first statement comes:
// most homes never see one.
type judge struct {
	mu     sync.Mutex
	sits   *sqlscope.Judge
	closed bool
}

func (j *judge) get() (*sqlscope.Judge, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, errors.New("guard: closed")
	}
	if j.sits == nil {
		var err error
		if j.sits, err = sqlscope.New(); err != nil {
			return nil, err
		}
	}
	return j.sits, nil
}

// Close frees what the guard keeps for judging SQL. Statements fail after it;
// closing again does nothing.
func (g *Guard) Close() error {
	g.judge.mu.Lock()
	defer g.judge.mu.Unlock()
	g.judge.closed = true
	if g.judge.sits == nil {
		return nil
	}
	return g.judge.sits.Close()
}

// sql runs a statement of this package, which may ask about anything: what it
// finds is filtered by whoever asks. The kernel would print a statement it can
// parse anew, and gets some wrong: LIKE with ESCAPE finds nothing, and a
// backslash ends a text where SQLite sees none.
func (g *Guard) sql(ctx context.Context, stmt string) ([]siyuan.Row, error) {
	return g.r.SQL(ctx, sqlscope.Verbatim(stmt))
}

// Record is one row of a statement's result: column to JSON value.
type Record = map[string]json.RawMessage

// SQL runs one SELECT over what the caller may read and returns at most limit
// rows; more says that there are more. A statement that may not run, or that
// fails on a value it meets, is statement_refused.
func (s *Session) SQL(ctx context.Context, stmt string, limit int) (rows []Record, more bool, err error) {
	found, more, err := s.scoped(ctx, stmt, limit)
	rows = make([]Record, len(found))
	for i, r := range found {
		rows[i] = Record(r)
	}
	return rows, more, err
}

// scoped runs a statement with everything hidden taken out of the tables, so
// that neither its rows nor how many there are can tell of it.
func (s *Session) scoped(ctx context.Context, stmt string, limit int) (rows []siyuan.Row, more bool, err error) {
	judge, err := s.g.judge.get()
	if err != nil {
		return nil, false, contract.Internalf(err, "judge statement")
	}
	scope := sqlscope.Scope{All: s.whole()}
	for _, id := range s.sidebar().order {
		scope.Notebooks = append(scope.Notebooks, string(id))
	}
	plan, err := judge.Scope(ctx, stmt, scope, limit)
	if refusal, ok := errors.AsType[*sqlscope.Refusal](err); ok {
		refused := contract.Fail(contract.StatementRefused, "%s", refusal.Reason)
		if refusal.Hint != "" {
			refused = refused.WithHint("%s", refusal.Hint)
		}
		return nil, false, refused
	}
	if err != nil {
		return nil, false, err
	}
	if rows, err = s.runPlan(ctx, plan); err != nil {
		return nil, false, err
	}
	if len(rows) > plan.Limit {
		return rows[:plan.Limit], true, nil
	}
	return rows, false, nil
}

// runPlan sends a judged statement and makes sure that it ran to its end.
func (s *Session) runPlan(ctx context.Context, plan sqlscope.Plan) ([]siyuan.Row, error) {
	rows, err := s.g.r.SQL(ctx, plan.SQL)
	if siyuan.KindOf(err) == siyuan.Rejected {
		return nil, contract.Fail(contract.StatementRefused, "SiYuan's database does not accept the statement.").
			WithHint("It may lack a function; write the statement without it.").WithCause(err)
	}
	if err != nil || plan.Check == "" {
		return rows, err
	}
	ran, err := s.g.r.SQL(ctx, plan.Check)
	if err == nil && len(ran) == 0 {
		err = contract.Fail(contract.StatementRefused, "The statement failed on a value of some row.").
			WithHint("json_extract fails on text that is not JSON, REGEXP on a bad pattern, abs and sum on too large numbers: leave such rows out, for example with CASE WHEN json_valid(x) THEN … END.")
	}
	return rows, err
}

// match finds blocks by a condition on their text, in the order given, at most
// limit. Unlike rows it may ask about text: a block that shows the title of
// something hidden has the placeholder instead of its text here. The condition
// is SQL of this package; every value in it goes through quoteSQL.
func (s *Session) match(ctx context.Context, condition, order string, limit int) (rows []Row, more bool, err error) {
	found, more, err := s.scoped(ctx, "SELECT id FROM blocks WHERE type <> 'query_embed' AND ("+condition+") ORDER BY "+order+", id", limit)
	if err != nil {
		return nil, false, err
	}
	ids := make([]string, len(found))
	for i, r := range found {
		ids[i] = r.Text("id")
	}
	rows, err = s.rowsInOrder(ctx, ids)
	return rows, more, err
}

// mentions is a condition for match: a block has a text in its own. The
// placeholder is no text.
func mentions(text string) string {
	return "(content <> " + quoteSQL(Placeholder) + " AND " + contains("content", text) + ")"
}

// rowsInOrder is RowsOf in the order of the ids.
func (s *Session) rowsInOrder(ctx context.Context, ids []string) ([]Row, error) {
	rows, err := s.RowsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]Row, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	ordered := make([]Row, 0, len(rows))
	for _, id := range ids {
		if r, ok := byID[id]; ok {
			ordered = append(ordered, r)
			delete(byID, id)
		}
	}
	return ordered, nil
}

// hpathOf is the readable path of a row's document. In the index that of a
// notebook's own document begins with the notebook's name.
func hpathOf(r siyuan.Row) string {
	if r.Text("root_id") == r.Text("box") {
		return "/"
	}
	return r.Text("hpath")
}
