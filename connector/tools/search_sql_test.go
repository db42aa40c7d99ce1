package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
)

// found are the ids that search.fulltext finds by a statement.
func foundBySQL(t *testing.T, d *desk, args string) (ids []string) {
	t.Helper()
	r := d.call(writer(), "search.fulltext", args)
	if r.Err != nil {
		t.Fatalf("%s: %v", args, r.Err)
	}
	var out struct {
		Data []struct{ ID, Content string }
	}
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatal(err)
	}
	for _, h := range out.Data {
		ids = append(ids, h.ID)
		if strings.Contains(h.Content, guardtest.SecretTitle) {
			t.Errorf("%s shows %q", args, h.Content)
		}
	}
	return ids
}

func TestSearchByStatementFindsTheBlocksItNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	for args, want := range map[string]string{
		`{"query":"SELECT id FROM blocks WHERE id = '` + guardtest.Heading + `'","methodName":"sql"}`:                                guardtest.Heading,
		`{"query":"SELECT * FROM blocks WHERE id IN ('` + guardtest.Intro + `','` + guardtest.EntryP + `') ORDER BY id","method":2}`: guardtest.Intro + " " + guardtest.EntryP,
		// The other restrictions hold too.
		`{"query":"SELECT id FROM blocks WHERE id IN ('` + guardtest.Intro + `','` + guardtest.EntryP + `')","method":2,"paths":["` + guardtest.Diary + `"]}`:  guardtest.EntryP,
		`{"query":"SELECT id FROM blocks WHERE id IN ('` + guardtest.Intro + `','` + guardtest.EntryP + `')","method":2,"parentId":"` + guardtest.Alpha + `"}`: guardtest.Intro,
		`{"query":"SELECT id FROM blocks WHERE id IN ('` + guardtest.Heading + `','` + guardtest.Intro + `')","method":2,"typeShortcodes":["h"]}`:              guardtest.Heading,
		`{"query":"SELECT id FROM blocks WHERE box = '` + guardtest.Private + `'","method":2}`:                                                                 "",
		`{"query":"SELECT '` + guardtest.SecretP + `' AS id","method":2}`:                                                                                      "",
		`{"query":"SELECT id FROM blocks WHERE content LIKE '%Nightfall%'","method":2}`:                                                                        "",
	} {
		if got := strings.Join(foundBySQL(t, d, args), " "); got != want {
			t.Errorf("%s: found %q, want %q", args, got, want)
		}
	}
}

func TestSearchByStatementNeedsTheIDColumn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	fails(t, d.call(writer(), "search.fulltext", `{"query":"SELECT content FROM blocks","method":2}`), contract.InvalidArguments)
	fails(t, d.call(writer(), "search.fulltext", `{"query":"DELETE FROM blocks RETURNING id","method":2}`), contract.StatementRefused)
}
