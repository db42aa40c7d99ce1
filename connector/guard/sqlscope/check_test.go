package sqlscope

import (
	"context"
	"strings"
	"testing"
)

// TestOneRowOfTheCheckMeansNothingFailed: the kernel gives the rows before a
// failure as if they were all.
func TestOneRowOfTheCheckMeansNothingFailed(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	const box = "20240101090000-work001"
	conn := openKernel(t, fixture{"blocks": {
		{"id": "1", "box": box, "type": "p", "content": `{"a":1}`, "markdown": "", "length": 1},
		{"id": "2", "box": box, "type": "p", "content": "{", "markdown": "", "length": 2},
		{"id": "3", "box": "20240101090200-private", "type": "p", "content": "[", "markdown": "", "length": 3},
	}})
	for _, c := range []struct {
		stmt string
		want string // n=… of a check, "error" of one that fails, "" for no check
	}{
		{"SELECT id FROM blocks", ""},
		{"SELECT b.id, c.id FROM blocks b, blocks c", ""},
		{"SELECT json_extract(content, '$.a') AS a FROM blocks", "error"},
		{"SELECT id, json_extract(content, '$.a') AS a FROM blocks ORDER BY id LIMIT 1", "n=1|"},
		{"SELECT json_extract(content, '$.a') AS a FROM blocks WHERE json_valid(content)", "n=1|"},
		{"SELECT abs(length) AS a FROM blocks WHERE id = 'none'", "n=0|"},
		{"SELECT content -> '$' AS a FROM blocks", "error"},
		{"SELECT sum(length) AS s FROM blocks", "n=1|"},
		{"SELECT sum(9223372036854775807) AS s FROM blocks", "error"},
	} {
		for _, scope := range []Scope{{Notebooks: []string{box}}, {All: true}} {
			plan, err := j.Scope(context.Background(), c.stmt, scope, 10)
			if err != nil {
				t.Fatalf("%s: %v", c.stmt, err)
			}
			got := ""
			if plan.Check != "" {
				got = strings.TrimSpace(answer(conn, plan.Check))
			}
			if strings.HasPrefix(got, "error") {
				got = "error"
			}
			if got != c.want {
				t.Errorf("%s (all %v): check gives %q, want %q", c.stmt, scope.All, got, c.want)
			}
		}
	}
}

func TestVerbatimChangesNoResult(t *testing.T) {
	t.Parallel()
	conn := openKernel(t, fixture{"blocks": {{"id": "1", "content": `it's a\b`}}})
	for _, stmt := range []string{"SELECT id FROM blocks", `SELECT id FROM blocks WHERE content LIKE '%a\\b' ESCAPE '\'`, "SELECT id FROM blocks WHERE id = 'none'"} {
		if got, want := answer(conn, Verbatim(stmt)), answer(conn, stmt); got != want {
			t.Errorf("%s gives %q, want %q", Verbatim(stmt), got, want)
		}
	}
}
