package tools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// pages reads a list to its end, each time as the last answer says, and gives
// the ids in order. Every answer must fit the budget, but for one entry alone.
func pages(t *testing.T, d *desk, g *contract.Grant, id, args string, budget int) (ids []string, answers int) {
	t.Helper()
	page, size := 1, 0
	for answers < 1000 {
		more := fmt.Sprintf(`,"page":%d}`, page)
		if size > 0 {
			more = fmt.Sprintf(`,"page":%d,"pageSize":%d}`, page, size)
		}
		r := d.call(g, id, strings.TrimSuffix(args, "}")+more)
		if r.Err != nil {
			t.Fatalf("%s: %v", id, r.Err)
		}
		var out struct {
			Data []json.RawMessage
			catalogue.PageOut
		}
		if err := json.Unmarshal(r.Body, &out); err != nil {
			t.Fatal(err)
		}
		answers++
		chars := 0
		for _, raw := range out.Data {
			var entry struct{ ID string }
			if err := json.Unmarshal(raw, &entry); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, entry.ID)
			chars += utf8.RuneCount(raw)
		}
		if chars > budget && len(out.Data) > 1 || !utf8.Valid(r.Body) {
			t.Errorf("%s: page %d has %d characters in %d entries, the budget is %d", id, page, chars, len(out.Data), budget)
		}
		if !out.HasNextPage {
			return ids, answers
		}
		page, size = out.Page+1, out.PageSize
	}
	t.Fatalf("%s never ends", id)
	return nil, 0
}

// TestPagesThatShrinkGiveTheWholeList: whatever the sizes of the entries, going on
// as each answer says gives every entry once, in order.
func TestPagesThatShrinkGiveTheWholeList(t *testing.T) {
	t.Parallel()
	const doc = "20240107000010-longdoc"
	home := guardtest.New(t)
	text, want := "", []string{}
	for i := range 24 {
		id := fmt.Sprintf("202401070001%02d-longblk", i)
		want = append(want, id)
		text += fmt.Sprintf("needle %d %s\n{: id=%q}\n\n", i, strings.Repeat("海洋𠮷 ", i*i*5%97*3), id)
	}
	home.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + doc + ".sy", Title: "Long", Text: text})
	var docs []string
	for i := range 12 {
		id := fmt.Sprintf("202401070002%02d-manydoc", i)
		docs = append(docs, id)
		home.Add(t, guardtest.Doc{Box: guardtest.Diary, Path: "/" + id + ".sy", Title: fmt.Sprintf("Doc %02d %s", i, strings.Repeat("标题", i*7%40)), Text: "x"})
	}
	for _, budget := range []int{300, 2_000, 24_000} {
		d := &desk{Home: home}
		var err error
		d.exec, err = tools.New(tools.Config{Guard: home.Guard, Policy: policy.Fixed(contract.Read), Catalogue: catalogue.AtHome(), ResultChars: budget}, handlers.All()...)
		if err != nil {
			t.Fatal(err)
		}
		got, n := pages(t, d, writer(), "block.get_children", `{"id":"`+doc+`"}`, budget)
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("budget %d: children %v", budget, got)
		}
		if budget < 1_000 && n < 10 {
			t.Errorf("budget %d: only %d pages", budget, n)
		}
		got, _ = pages(t, d, writer(), "notebook.get_child_docs", `{"notebook":"`+guardtest.Diary+`"}`, budget)
		if strings.Join(got[len(got)-len(docs):], " ") != strings.Join(docs, " ") && strings.Join(got[:len(docs)], " ") != strings.Join(docs, " ") {
			t.Errorf("budget %d: documents %v", budget, got)
		}
		got, _ = pages(t, d, writer(), "search.fulltext", `{"query":"needle","typeShortcodes":["p"],"parentId":"`+doc+`"}`, budget)
		if slices.Sort(got); strings.Join(got, " ") != strings.Join(want, " ") { // they come the newest first
			t.Errorf("budget %d: hits %v", budget, got)
		}
	}
}

// TestWindowsOfADocumentGiveTheWhole is the same law for text.
func TestWindowsOfADocumentGiveTheWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const doc = "20240107000010-longdoc"
	var parts []string
	for i := range 24 {
		parts = append(parts, fmt.Sprintf("block %d.%s", i, strings.Repeat("𠮷海", i*i*3%53)))
	}
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + doc + ".sy", Title: "Long", Text: strings.Join(parts, "\n\n")})
	for _, budget := range []int{1, 20, 2_000} {
		for _, limit := range []int{1, 7, 200} {
			var got []string
			start := 0
			for {
				out := ok[catalogue.DocumentGetDocOut](t, d, writer(), "document.get_doc", fmt.Sprintf(`{"id":%q,"blockStart":%d,"blockLimit":%d,"tokenBudget":%d}`, doc, start, limit, budget))
				got = append(got, out.Content)
				if out.EstimatedTokens > budget && out.ReturnedBlocks > 1 {
					t.Fatalf("%d tokens in %d blocks, the budget is %d", out.EstimatedTokens, out.ReturnedBlocks, budget)
				}
				if out.NextWindow == nil {
					break
				}
				start = out.NextWindow.BlockStart
			}
			if strings.Join(got, "\n\n") != strings.Join(parts, "\n\n") {
				t.Errorf("budget %d, limit %d: the windows are not the whole", budget, limit)
			}
		}
	}
}

// TestM16ALongChineseDocumentIsReadInWindows: 400 KB of Chinese come in answers
// that a client shows whole, cut between blocks, and are the whole.
func TestM16ALongChineseDocumentIsReadInWindows(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const doc = "20240107000010-longdoc"
	var parts []string
	for i := range 140 {
		parts = append(parts, fmt.Sprintf("第%d段。%s", i, strings.Repeat("海内存知己", 190)))
	}
	text := strings.Join(parts, "\n\n")
	if len(text) < 400_000 {
		t.Fatalf("%d bytes", len(text))
	}
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + doc + ".sy", Title: "长", Text: text})
	var got []string
	for start := 0; ; {
		body := d.limited(t, "fs.read", fmt.Sprintf(`{"path":"/Work/长","tokenBudget":32000,"blockLimit":200,"blockStart":%d}`, start), 0)
		if n := utf8.RuneCount(body); n > catalogue.DefaultResultChars+frame || !utf8.Valid(body) {
			t.Errorf("%d characters in one answer", n)
		}
		var out catalogue.FSReadOut
		if err := json.Unmarshal(body, &out); err != nil {
			t.Fatal(err)
		}
		got = append(got, out.Content)
		if out.NextWindow == nil {
			break
		}
		start = out.NextWindow.BlockStart
	}
	if strings.Join(got, "\n\n") != text {
		t.Error("the windows are not the whole")
	}
}
