package sqlscope

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

const (
	work    = "20240101090000-work001"
	diary   = "20240101090100-diary01"
	private = "20240101090200-private"
)

func someHidden() Scope { return Scope{Notebooks: []string{work, diary}} }

// admitted are statements people and agents write; most are recorded ones.
var admitted = []string{
	"select * from blocks where box='20240101090000-work001' and type='d' order by hpath, id",
	"select type, subtype, count(*) as n from blocks group by type, subtype order by type, subtype",
	"select count(*) from blocks",
	"SELECT count(*) FROM refs, spans",
	"select * from refs order by block_id, def_block_id",
	"select * from spans order by id limit 6",
	"select * from attributes where block_id in ('a','b') order by block_id, name",
	"select * from assets",
	"select * from file_annotation_refs",
	"select id, content from blocks_fts where content match 'confidential' order by id",
	"select id from blocks_fts f where f.content match '私密' and f.type='p'",
	"select id from blocks where id in (select id from blocks_fts where name match 'x')",
	"select sqlite_version() as v",
	"with recursive c(x) as (select 1 union all select x+1 from c where x<200) select x from c",
	"with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c",
	"with d as (select 1) select count(*) from d",
	"with d as materialized (select id from blocks), e as not materialized (select id from d) select * from e",
	"select b1.id from blocks b1, blocks b2 order by b1.id, b2.id limit 100",
	"select id from blocks order by id limit 3 offset 5",
	"select id from blocks order by id limit 5, 3",
	"select b1.id from blocks b1, blocks b2 limit -1",
	"select id from blocks where type='d' union select id from blocks where type='h' order by id",
	"with d as (select id, content from blocks where type='d') select d.content, count(b.id) n from d join blocks b on b.root_id=d.id group by d.id order by d.id",
	"select b.content, r.content as anchor from refs r join blocks b on b.id=r.block_id order by b.id",
	"select b.id, a.value from blocks b left join attributes a on a.block_id=b.id and a.name='custom-status'",
	"select id from blocks b where exists (select 1 from refs r where r.block_id=b.id) order by id",
	"select case when type='d' then 'doc' else 'other' end k, max(length(content)) m from blocks group by k",
	"select id || '/' || type as k from blocks",
	"select id, row_number() over (order by id) n from blocks",
	"select id, sum(length) over w from blocks window w as (partition by root_id order by id)",
	"select id from blocks where content glob '*Jonas*'",
	"select id from blocks where content regexp 'Jon.s'",
	"select content from blocks where content like '%100!%%' escape '!'",
	"select json_extract('{\"a\":1}','$.a') as a, '{}' -> '$', '{}' ->> '$.a'",
	"select value from json_each('[1,2]')",
	"select count(*) from json_tree('[1,2]')",
	"select 'it''s' as s, x'4142' as b, 1.5e+3 as f, 0x1F, null",
	"select 1 as a, 2 as a",
	"select * from blocks order by random() limit 1",
	"select strftime('%Y', 'now'), date('now','-7 day'), datetime(1, 'unixepoch')",
	"select 1 as x;",
	"select 1 as x ; -- done",
	"select 1 as x -- hi",
	"/* hi */ select /* there */ 1 as x",
	"select 'delete; drop -- x' as x",
	"select [id], `content`, \"type\" from \"blocks\" as [b]",
	"select content as 标题 from blocks",
	"select group_concat(content, ' ') filter (where type='p') from blocks having count(*) > 0",
	"select cast(length as text), printf('%d', length), round(1.5), abs(-1) from blocks",
	"select * from (values (1),(2))",
}

func TestReadingStatementsAreAdmitted(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for _, scope := range []Scope{someHidden(), {}, {All: true}} {
		for _, stmt := range admitted {
			plan, err := j.Scope(t.Context(), stmt, scope, 10)
			if err != nil {
				t.Errorf("all=%v %s: %v", scope.All, stmt, err)
			}
			if err == nil && !strings.HasSuffix(plan.SQL, ") LIMIT 11") {
				t.Errorf("%s: no probe row in %s", stmt, plan.SQL)
			}
		}
	}
}

// refused maps statements to a word that the refusal must contain.
var refused = map[string]string{
	"":                                           "empty",
	"-- nothing":                                 "empty",
	" ; ":                                        "empty",
	"select * from main.blocks":                  "schema",
	"select * from MAIN . blocks":                "schema",
	"select * from \"main\".blocks":              "schema",
	"select * from [temp].blocks":                "schema",
	"select * from `main`/**/.blocks":            "schema",
	"select * from 'main'.'blocks'":              "schema",
	"select count(*) from temp.blocks":           "schema",
	"select temp.blocks.id from blocks":          "schema",
	"select * from other.blocks":                 "table",
	"select * from temp.sqlite_master":           "schema",
	"select type, name, sql from sqlite_master":  "table",
	"select count(*) from sqlite_master":         "table",
	"select 1 from sqlite_schema":                "table",
	"select * from sqlite_temp_master":           "table",
	"select count(*) from sqlite_temp_schema":    "table",
	"select * from dbstat":                       "table",
	"select count(*) from dbstat":                "table",
	"select * from sqlite_dbpage":                "table",
	"select name from pragma_table_info('refs')": "table",
	"select count(*) from pragma_table_list":     "table",
	"select name from pragma_database_list()":    "table",
	"with blocks as (select * from sqlite_master) select * from blocks":                       "WITH",
	"with blocks as (select * from dbstat) select * from blocks":                              "WITH",
	"with Blocks(a) as (select 1) select a from blocks":                                       "WITH",
	"with \"refs\" as materialized (select 1) select * from refs":                             "WITH",
	"with 'spans' as not materialized (select 1) select * from spans":                         "WITH",
	"with stat as (select 1) select * from stat":                                              "WITH",
	"with x as (select 1), blocks_fts as (select 2) select * from x":                          "WITH",
	"select (with dbstat as (select 1) select 1), count(*) from dbstat":                       "WITH",
	"select (with sqlite_master as (select 1) select 1), count(*) from sqlite_master":         "WITH",
	"select (with pragma_table_list as (select 1) select 1), count(*) from pragma_table_list": "WITH",
	"select sum(1) over dbstat, count(*) from dbstat window dbstat as (order by 1)":           "window",
	"with x as (select * from sqlite_master) select * from x":                                 "table",
	"with x as (select count(*) from dbstat) select * from x":                                 "table",
	"pragma table_info(blocks)":                                                               "SELECT",
	"attach database ':memory:' as x":                                                         "SELECT",
	"vacuum":                                                                                  "SELECT",
	"explain select 1":                                                                        "SELECT",
	"explain query plan select * from blocks":                                                 "SELECT",
	"values (1)":                 "SELECT",
	"update blocks set memo='x'": "reading",
	"insert into stat(key,value) values('rec','1') returning key":          "reading",
	"delete from stat returning key":                                       "reading",
	"create table x(a)":                                                    "reading",
	"with a as (select 1 as x) update blocks set memo='3' returning id":    "reading",
	"with a as (select 1) delete from blocks":                              "reading",
	"with a as (select 1) insert into blocks(id) values('x') returning id": "reading",
	"with a as (delete from blocks returning id) select * from a":          "syntax",
	"select 1; select 2":                                                   "one statement",
	"select 1;; delete from blocks":                                        "one statement",
	"select 1) union select (2":                                            "parentheses",
	"select 1) limit 5 --":                                                 "parentheses",
	"select (1":                                                            "parentheses",
	"select nosuch from blocks":                                            "column nosuch",
	"select \"nosuch\" from blocks":                                        "single quotes",
	"select id from blocks where type=\"d\"":                               "single quotes",
	"select b.nosuch from blocks b":                                        "column b.nosuch",
	"select rowid from blocks":                                             "column rowid",
	"select oid from blocks":                                               "column oid",
	"select _rowid_ from refs":                                             "column _rowid_",
	"select rowid from blocks_fts":                                         "column rowid",
	"select id from blocks, refs":                                          "More than one",
	"select * from nosuch":                                                 "table nosuch",
	"select * from blocks_fts_data":                                        "table blocks_fts_data",
	"select nosuch(1)":                                                     "function nosuch",
	"select length(1, 2)":                                                  "arguments",
	"select * from":                                                        "too early",
	"select from blocks":                                                   "syntax",
	"select * from stat":                                                   "table stat",
	"select * from block_embeddings":                                       "table block_embeddings",
	"select id from blocks_fts where blocks_fts match 'x'":                 "MATCH",
	"select id from blocks_fts f where f match 'x'":                        "MATCH",
	"select id from blocks_fts where ial match 'x'":                        "MATCH",
	"select id from blocks_fts where content match 'a' || 'b' and blocks_fts match 'x'": "MATCH",
	"select id from blocks_fts where content match id":                                  "MATCH",
	"select id from blocks where content match 'x'":                                     "MATCH",
	"select match('x', content) from blocks_fts":                                        "MATCH",
	"select id from blocks_fts where content not match 'x'":                             "MATCH",
	"select * from blocks_fts('x')":                                                     "SQLite does not accept",
	"select bm25(blocks_fts) from blocks_fts where content match 'x'":                   "bm25",
	"select id from blocks_fts where content match 'x' order by rank":                   "column rank",
	"select highlight(blocks_fts, 1, '', '') from blocks_fts":                           "highlight",
	"select load_extension('x')":                                                        "load_extension",
	"select randomblob(1000000000)":                                                     "randomblob",
	"select zeroblob(1000000000)":                                                       "zeroblob",
	"select total_changes()":                                                            "total_changes",
	"select sqlite_compileoption_get(1)":                                                "sqlite_compileoption_get",
	"select sqlite_log(1, 'x')":                                                         "sqlite_log",
	"select fts5_source_id()":                                                           "fts5_source_id",
	"select ?":                                                                          "Parameters",
	"select :x":                                                                         "Parameters",
	"select @x, $y":                                                                     "Parameters",
	"select 'a":                                                                         "quote",
	"select \"a":                                                                        "quote",
	"select 1\u00a0as x":                                                                "character",
	"select 1\\2":                                                                       "character",
	"select '\x00'":                                                                     "UTF-8",
	"select '\xff'":                                                                     "UTF-8",
	"select 1 {":                                                                        "character",
}

func TestForbiddenStatementsAreRefused(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for stmt, word := range refused {
		plan, err := j.Scope(t.Context(), stmt, someHidden(), 10)
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: got %q, %v", stmt, plan.SQL, err)
			continue
		}
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", stmt, err, word)
		}
	}
}

func TestOnlyCorpusWideReadingOpensUpWhenNothingIsHidden(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	open := map[string]bool{
		"select id from blocks_fts where content not match 'x'": true,
		"select * from stat":                                                                true,
		"select * from block_embeddings":                                                    true,
		"select id from blocks_fts where blocks_fts match 'x'":                              true,
		"select id from blocks_fts where ial match 'x'":                                     true,
		"select id from blocks_fts where content match 'x' order by rank":                   true,
		"select bm25(blocks_fts) from blocks_fts where content match 'x'":                   true,
		"select highlight(blocks_fts, 1, '', '') from blocks_fts":                           true,
		"select id from blocks_fts where content match 'a' || 'b' and blocks_fts match 'x'": true,
		"select id from blocks where content match 'x'":                                     true,
		"select match('x', content) from blocks_fts":                                        true,
		"select id from blocks_fts where content match id":                                  true,
		"select * from blocks_fts('x')":                                                     true,
		"select rowid from blocks":                                                          true,
		"select oid from blocks":                                                            true,
		"select _rowid_ from refs":                                                          true,
		"select rowid from blocks_fts":                                                      true,
	}
	for stmt := range refused {
		_, err := j.Scope(t.Context(), stmt, Scope{All: true}, 10)
		var refusal *Refusal
		if allowed := !errors.As(err, &refusal); allowed != open[stmt] {
			t.Errorf("%s: %v", stmt, err)
		}
	}
}

func TestErrorsNeverNameTheScratchDatabase(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	statements := admitted
	for stmt := range refused {
		statements = append(statements, stmt)
	}
	for _, stmt := range statements {
		for _, broken := range []string{stmt, stmt + " union select 1", stmt + " group by max(id)", "select nosuch, * from (" + stmt + ")", stmt + " )", stmt[:len(stmt)/2]} {
			plan, err := j.Scope(t.Context(), broken, someHidden(), 10)
			text := plan.SQL
			if err != nil {
				text = err.Error()
			}
			if strings.Contains(text, j.scoped.secret[:8]) || strings.Contains(text, "sqlite:") {
				t.Errorf("%s: %s", broken, text)
			}
		}
	}
}

func TestSecretNamesDifferBetweenJudges(t *testing.T) {
	t.Parallel()
	a, b := newJudge(t), newJudge(t)
	if a.scoped.secret == b.scoped.secret || len(a.scoped.secret) != 34 {
		t.Errorf("secrets %q and %q", a.scoped.secret, b.scoped.secret)
	}
}

// The name of a function is in an unexported field of the library.
func TestFunctionNamesReachTheAuthorizer(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	heard, err := j.scoped.hear(t.Context(), &statement{}, "SELECT upper(content) FROM blocks WHERE content REGEXP 'x'")
	if err != nil {
		t.Fatal(err)
	}
	if !heard.functions["upper"] || !heard.functions["regexp"] || len(heard.functions) != 2 {
		t.Errorf("heard %v", heard.functions)
	}
}

// The lexer refuses both before; this is the second lock.
func TestTrailingTextAndParametersDoNotPassPreparing(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for _, text := range []string{"SELECT 1; SELECT 2", "SELECT 1 ;x", "SELECT ?", "SELECT :a"} {
		var refusal *Refusal
		if _, err := j.scoped.hear(t.Context(), &statement{}, text); !errors.As(err, &refusal) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestEveryListedFunctionOfSQLiteIsKnownToIt(t *testing.T) {
	t.Parallel()
	conn := openKernel(t, nil)
	known := answer(conn, "SELECT DISTINCT lower(name) AS f FROM pragma_function_list")
	for f := range set(totalFunctions, partialFunctions, corpusFunctions) {
		if !strings.Contains(known, "f="+f+"|") {
			t.Errorf("SQLite has no function %s", f)
		}
	}
}

func TestOneJudgeServesManyCallersUntilItIsClosed(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			scope := Scope{Notebooks: []string{work}, All: i%2 == 0}
			for range 5 {
				if _, err := j.Scope(t.Context(), "select id from blocks", scope, 1); err != nil {
					t.Error(err)
				}
				if _, err := j.Scope(t.Context(), "select id from nosuch", scope, 1); err == nil {
					t.Error("an unknown table was admitted")
				}
			}
		})
	}
	callers.Wait()
}

func TestWrongArgumentsAreNotRefusals(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	closed, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, run := range map[string]func() error{
		"limit": func() error { _, err := j.Scope(t.Context(), "select 1", Scope{}, 0); return err },
		"notebook": func() error {
			_, err := j.Scope(t.Context(), "select 1", Scope{Notebooks: []string{"x') --"}}, 1)
			return err
		},
		"context": func() error { _, err := j.Scope(cancelled, "select 1", Scope{}, 1); return err },
		"closed":  func() error { _, err := closed.Scope(t.Context(), "select 1", Scope{}, 1); return err },
	} {
		err := run()
		var refusal *Refusal
		if err == nil || errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkScope(b *testing.B) {
	j := newJudge(b)
	for b.Loop() {
		if _, err := j.Scope(b.Context(), "select b.content, r.content as anchor from refs r join blocks b on b.id=r.block_id where b.content like '%x%' order by b.id limit 5, 3", someHidden(), 64); err != nil {
			b.Fatal(err)
		}
	}
}
