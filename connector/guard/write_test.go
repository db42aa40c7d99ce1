package guard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

func intent(targets ...guard.Target) guard.Intent {
	return guard.Intent{RequestID: "req", Action: "test", Targets: targets}
}

func appendTo(t *testing.T, s *guard.Session, id, text string) ([]string, error) {
	t.Helper()
	var ids []string
	b := block(t, s, id, contract.ReadWrite)
	err := s.Write(context.Background(), intent(b), func(ctx context.Context, tx *guard.Tx) (err error) {
		ids, err = tx.Append(ctx, b, guard.Text{Data: text})
		return err
	})
	return ids, err
}

func update(t *testing.T, s *guard.Session, id string, text guard.Text) (guard.Updated, error) {
	t.Helper()
	var done []guard.Updated
	b := block(t, s, id, contract.ReadWrite)
	err := s.Write(context.Background(), intent(b), func(ctx context.Context, tx *guard.Tx) (err error) {
		done, err = tx.Update(ctx, []guard.Update{{Block: b, Text: text}})
		return err
	})
	if len(done) == 0 {
		done = make([]guard.Updated, 1)
	}
	return done[0], err
}

func kramdown(t *testing.T, h *guardtest.Home, id string) string {
	t.Helper()
	text, err := h.Client.Reader().BlockKramdown(context.Background(), siyuan.ID(id), siyuan.KramdownMarkdown)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, "\u200b", "")
}

func attrs(t *testing.T, h *guardtest.Home, id string) siyuan.Attrs {
	t.Helper()
	a, err := h.Client.Reader().BlockAttrs(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func wantCode(t *testing.T, err error, want contract.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	if got := contract.CodeOf(guard.Public(err)); got != want {
		t.Fatalf("code %s (%v), want %s", got, err, want)
	}
}

// intact runs f and fails if it changed the block.
func intact(t *testing.T, h *guardtest.Home, id string, f func()) {
	t.Helper()
	before := attrs(t, h, id)
	text, _, _ := strings.Cut(kramdown(t, h, id), "{: ")
	f()
	if after, _, _ := strings.Cut(kramdown(t, h, id), "{: "); after != text {
		t.Errorf("the text of %s changed from %q to %q", id, text, after)
	}
	for k, v := range before {
		if attrs(t, h, id)[k] != v {
			t.Errorf("attribute %s of %s changed", k, id)
		}
	}
}

func TestAppendReturnsEveryNewBlockInOrder(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	ids, err := appendTo(t, h.Writer(t), guardtest.Projects, "one\n\n- two\n\n# three")
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != 3 {
		t.Fatalf("ids %v, want three", ids)
	}
	for i, want := range []string{"one\n", "- {:", "# three\n"} {
		if got := kramdown(t, h, ids[i]); !strings.HasPrefix(got, want) {
			t.Errorf("block %d is %q, want it to begin with %q", i, got, want)
		}
	}
}

func TestUnicodeIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	body := strings.Repeat("海洋𠮷", 64<<10/10)
	for _, text := range []string{"Hello — 世界 𠮷 👨‍👩‍👧", body} {
		ids, err := appendTo(t, s, guardtest.Projects, text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Kramdown(context.Background(), block(t, s, ids[0], contract.Read))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ = strings.Cut(got, "\n{:"); got != text {
			t.Errorf("%d bytes came back as %d bytes", len(text), len(got))
		}
	}
}

func TestAppendingNeverTakesOverForeignIDs(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	ids, err := appendTo(t, h.Writer(t), guardtest.Projects, "copy\n{: id=\""+guardtest.Intro+"\" custom-x=\"1\" custom-avs=\"20240102100710-avtasks\"}")
	if err != nil {
		t.Fatal(err)
	}
	if ids[0] == guardtest.Intro {
		t.Error("the new block has the id of another one")
	}
	if a := attrs(t, h, ids[0]); a["custom-x"] != "1" || a["custom-avs"] != "" {
		t.Errorf("attributes %v, want custom-x and no database", a)
	}
	if _, err := appendTo(t, h.Writer(t), guardtest.Projects, "bad\n{: id=\"oops\"}"); err != nil {
		t.Errorf("a malformed id in the text: %v", err)
	}
}

func TestAppendingToALeafSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := guardtest.New(t).Writer(t)
	for _, id := range []string{guardtest.Heading, guardtest.Intro} {
		_, err := appendTo(t, s, id, "x")
		wantCode(t, err, contract.InvalidTarget)
	}
}

func TestABareReferenceGetsTheTextOfItsTarget(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	ids, err := appendTo(t, h.Writer(t), guardtest.Projects, "see (("+guardtest.Heading+")) and (("+guardtest.Intro+"))")
	if err != nil {
		t.Fatal(err)
	}
	want := "see ((" + guardtest.Heading + " 'Alpha goals')) and ((" + guardtest.Intro + " 'alpha-intro'))"
	if got, _, _ := strings.Cut(kramdown(t, h, ids[0]), "\n"); got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
}

func TestAWriteCannotPullInWhatItsWriterMayNotRead(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	for name, form := range map[string]string{
		"bare reference":    "((%s))",
		"static reference":  `((%s "x"))`,
		"dynamic reference": "((%s 'x'))",
		"link":              "[x](siyuan://blocks/%s)",
		"span":              `<span data-type="block-ref" data-subtype="d" data-id="%s">x</span>`,
		"embed of a block":  "{{select * from blocks where id='%s'}}",
		"in a list":         "- a ((%s 'x'))",
		"in a quote":        "> ((%s 'x'))",
		"in a table":        "|a|\n|-|\n|((%s 'x'))|",
		"in a heading":      "# ((%s 'x'))",
	} {
		var answers []string
		for _, id := range []string{guardtest.Missing, guardtest.Secret, guardtest.SecretP, guardtest.Closed, guardtest.Private} {
			_, err := appendTo(t, s, guardtest.Projects, fmt.Sprintf(form, id))
			wantCode(t, err, contract.HiddenReference)
			answers = append(answers, answer(err, id))
		}
		if len(slices.Compact(answers)) != 1 {
			t.Errorf("%s: hidden, closed and missing differ: %v", name, answers)
		}
		if _, err := appendTo(t, s, guardtest.Projects, fmt.Sprintf(form, guardtest.EntryP)); err != nil {
			t.Errorf("%s to a readable block: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"query embed":  "{{select * from blocks where content like '%plan%'}}",
		"union embed":  "{{select * from blocks where id='" + guardtest.EntryP + "' union select * from blocks}}",
		"script embed": "{{//!js return []}}",
		"database":     `<div data-type="NodeAttributeView" data-av-id="20240102100710-avtasks" data-av-type="table"></div>`,
		"asset":        "![x](assets/secret-20240106090000-pngdot1.png)",
	} {
		_, err := appendTo(t, s, guardtest.Projects, text)
		if err == nil {
			t.Errorf("%s: written", name)
			continue
		}
		wantCode(t, err, contract.HiddenReference)
	}
}

func TestQueryEmbedsAreForThoseFromWhomNothingIsHidden(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	w, err := h.Guard.Workspace(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	g := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWrite})
	g.Default = contract.Read
	s := h.Guard.Session(w, g)
	if _, err := appendTo(t, s, guardtest.Projects, "{{select * from blocks where type='h'}}"); err != nil {
		t.Error(err)
	}
	_, err = appendTo(t, s, guardtest.Projects, "{{//!js return []}}")
	wantCode(t, err, contract.HiddenReference)
}

func TestUpdatingTextKeepsTheBlocksAttributes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"paragraph": "New **text**.", "heading": "## Now a heading", "fence": "```go\nx := 1\n```", "open fence": "```\nx",
		"html": "<div>now html</div>", "table": "|a|\n|-|\n|b|", "own list": "again\n{: id=\"" + guardtest.Intro + "\" custom-new=\"2\"}", "empty": "",
	} {
		h := guardtest.New(t)
		before := attrs(t, h, guardtest.Intro)
		got, err := update(t, h.Writer(t), guardtest.Intro, guard.Text{Data: text})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		after := attrs(t, h, guardtest.Intro)
		for _, k := range []string{"name", "alias", "memo", "bookmark", "custom-status", "id"} {
			if after[k] != before[k] || after[k] == "" {
				t.Errorf("%s: %s is %q, was %q", name, k, after[k], before[k])
			}
		}
		if name == "own list" && after["custom-new"] != "2" {
			t.Errorf("%s: the attribute sent with the text is missing", name)
		}
		if got.Preserved < 5 {
			t.Errorf("%s: %d attributes preserved, want at least 5", name, got.Preserved)
		}
		if strings.Contains(strings.Split(got.Kramdown, "{: ")[0], "custom-status") {
			t.Errorf("%s: attributes became text: %s", name, got.Kramdown)
		}
	}
}

func TestUpdateByDOMKeepsTheBlocksAttributes(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	dom := `<div data-node-id="` + guardtest.Intro + `" data-type="NodeParagraph" class="p"><div contenteditable="true">via dom</div><div class="protyle-attr"></div></div>`
	if _, err := update(t, h.Writer(t), guardtest.Intro, guard.Text{Data: dom, DOM: true}); err != nil {
		t.Fatal(err)
	}
	if a := attrs(t, h, guardtest.Intro); a["name"] != "alpha-intro" || a["custom-status"] != "draft" {
		t.Errorf("attributes %v", a)
	}
	if got := kramdown(t, h, guardtest.Intro); !strings.HasPrefix(got, "via dom\n") {
		t.Errorf("text %q", got)
	}
}

func TestDOMOfAListMustKeepWhatIsInside(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	dom, err := s.DOM(context.Background(), block(t, s, guardtest.List, contract.Read))
	if err != nil {
		t.Fatal(err)
	}
	intact(t, h, guardtest.List, func() {
		_, err := update(t, s, guardtest.List, guard.Text{Data: strings.Replace(dom, ` custom-p="1"`, "", 1), DOM: true})
		wantCode(t, err, contract.WouldLoseAttrs)
	})
	if _, err := update(t, s, guardtest.List, guard.Text{Data: strings.Replace(dom, "Collect notes", "Gather notes", 1), DOM: true}); err != nil {
		t.Fatal(err)
	}
	if attrs(t, h, guardtest.ItemText)["custom-p"] != "1" || !strings.Contains(kramdown(t, h, guardtest.List), "Gather notes") {
		t.Errorf("list %s", kramdown(t, h, guardtest.List))
	}
}

func TestPastedDOMMakesBlocksOfItsOwn(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	dom, err := s.DOM(context.Background(), block(t, s, guardtest.List, contract.Read))
	if err != nil {
		t.Fatal(err)
	}
	b := block(t, s, guardtest.Projects, contract.ReadWrite)
	var ids []string
	err = s.Write(context.Background(), intent(b), func(ctx context.Context, tx *guard.Tx) (err error) {
		ids, err = tx.Append(ctx, b, guard.Text{Data: dom, DOM: true})
		return err
	})
	if err != nil || len(ids) != 1 || ids[0] == guardtest.List {
		t.Fatalf("ids %v, err %v", ids, err)
	}
	if got, want := bare(kramdown(t, h, ids[0])), bare(kramdown(t, h, guardtest.List)); got != want {
		t.Errorf("copy\n%s\nof\n%s", got, want)
	}
	if strings.Contains(kramdown(t, h, ids[0]), guardtest.ItemText) {
		t.Error("the copy has ids of the original")
	}
}

func TestAnUpdateWithItsOwnKramdownChangesNothing(t *testing.T) {
	t.Parallel()
	for _, id := range []string{guardtest.Intro, guardtest.List, guardtest.Item, guardtest.Embed, guardtest.Heading} {
		h := guardtest.New(t)
		s := h.Writer(t)
		shown, err := s.Kramdown(context.Background(), block(t, s, id, contract.Read))
		if err != nil {
			t.Fatal(err)
		}
		before := bare(kramdown(t, h, id))
		own := attrs(t, h, id)
		if _, err := update(t, s, id, guard.Text{Data: shown}); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if after := bare(kramdown(t, h, id)); after != before {
			t.Errorf("%s: text\n%s\nwas\n%s", id, after, before)
		}
		for k, v := range own {
			if k != "updated" && attrs(t, h, id)[k] != v {
				t.Errorf("%s: attribute %s lost", id, k)
			}
		}
	}
}

// bare is kramdown without attribute lists.
func bare(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{: ")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, text, _ = strings.Cut(rest, "}")
	}
}

// TestAHiddenAnchorIsPutBackWhenItsTextIsWritten: the anchor of a readable block
// that quotes a hidden title in its own text is not shown.
func TestAHiddenAnchorIsPutBackWhenItsTextIsWritten(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	const quoting = "20240102110050-block32"
	h.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240102100300-quoting.sy", Title: "Quoting",
		Text: "Quotes ((" + guardtest.Links + " 'See " + guardtest.SecretTitle + "')).\n{: id=\"" + quoting + "\"}"})
	s := h.Writer(t)
	shown, err := s.Kramdown(context.Background(), block(t, s, quoting, contract.Read))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown, guard.Placeholder) {
		t.Fatalf("shown %s", shown)
	}
	anchor := strings.TrimPrefix(bare(kramdown(t, h, quoting)), "Quotes ")
	got, err := update(t, s, quoting, guard.Text{Data: strings.Replace(shown, "Quotes", "Repeats", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got.Kramdown, guardtest.SecretTitle) {
		t.Errorf("the answer shows a hidden title: %s", got.Kramdown)
	}
	if stored := bare(kramdown(t, h, quoting)); !strings.Contains(anchor, guardtest.SecretTitle) || stored != "Repeats "+anchor {
		t.Errorf("stored %s", stored)
	}
}

// TestAReferenceToAHiddenBlockIsWrittenLikeOneToAMissingBlock: SiYuan keeps the
// first and drops the second.
func TestAReferenceToAHiddenBlockIsWrittenLikeOneToAMissingBlock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fates := map[string]func(w *siyuan.Writer) error{
		"there": func(*siyuan.Writer) error { return nil }, "removed": func(w *siyuan.Writer) error { return w.RemoveDoc(ctx, guardtest.Secret) },
		"closed": func(w *siyuan.Writer) error { return w.CloseNotebook(ctx, guardtest.Private) },
	}
	for _, ref := range []string{"((" + guardtest.Secret + " '[not available]'))", "((" + guardtest.SecretP + ` "my words"))`, "((" + guardtest.Secret + "))"} {
		var answers []string
		for fate, change := range fates {
			h := guardtest.New(t)
			if err := change(h.Client.Writer()); err != nil {
				t.Fatal(err)
			}
			before := bare(kramdown(t, h, guardtest.Links))
			_, err := update(t, h.Writer(t), guardtest.Links, guard.Text{Data: "Changed " + ref})
			wantCode(t, err, contract.WouldLoseAttrs)
			if after := bare(kramdown(t, h, guardtest.Links)); after != before {
				t.Errorf("%s: written: %s", fate, after)
			}
			answers = append(answers, string(guard.Public(err).Body()))
		}
		if len(slices.Compact(answers)) != 1 {
			t.Errorf("%s tells hidden, closed and missing apart: %q", ref, answers)
		}
	}
}

func TestAPlaceholderElsewhereIsNoWayIn(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	intact(t, h, guardtest.Intro, func() {
		_, err := update(t, h.Writer(t), guardtest.Intro, guard.Text{Data: "((" + guardtest.Secret + " '" + guard.Placeholder + "'))"})
		wantCode(t, err, contract.HiddenReference)
	})
}

func TestTwoBlocksCannotBecomeOne(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	for _, text := range []string{"a\n\nb", "# a\nb", "a\n# b", "- a\n\nb", "```\na\n```\nb", "a\n\n- b", "> a\n\nb"} {
		intact(t, h, guardtest.Intro, func() {
			_, err := update(t, h.Writer(t), guardtest.Intro, guard.Text{Data: text})
			wantCode(t, err, contract.InvalidTarget)
		})
	}
}

func TestInlineAttributesAreKeptOrTheUpdateIsRefused(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	ids, err := appendTo(t, s, guardtest.Projects, `a **b**{: custom-js="x"} c`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = update(t, s, ids[0], guard.Text{Data: `changed **b**{: custom-js="x"} c`}); err != nil {
		t.Fatal(err)
	}
	if got := kramdown(t, h, ids[0]); !strings.Contains(got, `**b**{: custom-js="x"}`) {
		t.Errorf("stored %s", got)
	}
	intact(t, h, ids[0], func() {
		_, err = update(t, s, ids[0], guard.Text{Data: "a **b** c"})
		wantCode(t, err, contract.WouldLoseAttrs)
	})
	if _, err = update(t, s, ids[0], guard.Text{Data: "something else"}); err != nil {
		t.Errorf("text without the marked words: %v", err)
	}
	intact(t, h, ids[0], func() {
		_, err = update(t, s, ids[0], guard.Text{Data: `![x](https://example.org/a.png){: style="width: 20px;"}`})
		wantCode(t, err, contract.WouldLoseAttrs)
	})
}

func TestAttributesInsideAListAreKeptOrTheUpdateIsRefused(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	intact(t, h, guardtest.List, func() {
		_, err := update(t, h.Writer(t), guardtest.List, guard.Text{Data: "- one\n- two"})
		wantCode(t, err, contract.WouldLoseAttrs)
		if !strings.Contains(string(guard.Public(err).Detail), guardtest.ItemText) {
			t.Errorf("detail %s does not name the block", guard.Public(err).Detail)
		}
	})
}

func TestAListItemStaysOneItemWithItsChildren(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	if _, err := update(t, s, guardtest.Item, guard.Text{Data: "* test3"}); err != nil {
		t.Fatal(err)
	}
	got := bare(kramdown(t, h, guardtest.List))
	if want := "- test3"; !strings.HasPrefix(got, want) || !strings.Contains(got, "from mail") || !strings.Contains(got, "Sort them") {
		t.Errorf("list\n%s", got)
	}
	if attrs(t, h, guardtest.ItemText)["custom-p"] != "1" {
		t.Error("the paragraph lost its attribute")
	}
	for _, text := range []string{"plain text", "- a\n- b"} {
		intact(t, h, guardtest.List, func() {
			_, err := update(t, s, guardtest.Item, guard.Text{Data: text})
			wantCode(t, err, contract.InvalidTarget)
		})
	}
}

func TestATaskCanBeTicked(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	if _, err := appendTo(t, s, guardtest.Projects, "- [ ] buy milk"); err != nil {
		t.Fatal(err)
	}
	hits := search(t, s, guard.Query{Text: "milk", Types: map[string]bool{"i": true}})
	if len(hits) != 1 {
		t.Fatalf("hits %+v", hits)
	}
	got, err := update(t, s, hits[0].ID, guard.Text{Data: "- [x] bought milk"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(bare(got.Kramdown), "- [X] bought milk") {
		t.Errorf("item %s", got.Kramdown)
	}
}

func TestABatchIsWrittenAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	a, b := block(t, s, guardtest.Intro, contract.ReadWrite), block(t, s, guardtest.Heading, contract.ReadWrite)
	run := func(second string) error {
		return s.Write(context.Background(), intent(a, b), func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.Update(ctx, []guard.Update{{Block: a, Text: guard.Text{Data: "first"}}, {Block: b, Text: guard.Text{Data: second}}})
			return err
		})
	}
	intact(t, h, guardtest.Intro, func() { wantCode(t, run("# (("+guardtest.Missing+"))"), contract.HiddenReference) })
	if err := run("# second"); err != nil {
		t.Fatal(err)
	}
	if got := kramdown(t, h, guardtest.Intro); !strings.HasPrefix(got, "first\n") || attrs(t, h, guardtest.Intro)["name"] != "alpha-intro" {
		t.Errorf("first block %s", got)
	}
}

func TestCodeZeroWithoutEffectIsNotSuccess(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/block/appendBlock", "/api/block/updateBlock", "/api/filetree/createDoc", "/api/filetree/createDocWithMd"} {
		h := guardtest.New(t)
		s := h.Writer(t)
		h.Kernel.Faults().Set(path, samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
		var err error
		switch path {
		case "/api/block/appendBlock":
			_, err = appendTo(t, s, guardtest.Projects, "x")
		case "/api/block/updateBlock":
			_, err = update(t, s, guardtest.Intro, guard.Text{Data: "x"})
		case "/api/filetree/createDoc":
			_, err = create(t, s, guard.NewDoc{Title: "New"})
		default:
			continue
		}
		if err == nil {
			t.Errorf("%s: success", path)
			continue
		}
		wantCode(t, err, contract.WriteNotPersisted)
	}
}

func TestAClaimedEffectThatIsNotThereIsNotSuccess(t *testing.T) {
	t.Parallel()
	claim := func(action, id string) string {
		return `[{"timestamp":0,"doOperations":[{"action":"` + action + `","id":"` + id + `","data":"<div data-node-id=\"` + id +
			`\" data-type=\"NodeParagraph\"><div>new words</div></div>"}],"undoOperations":null}]`
	}
	h := guardtest.New(t)
	s := h.Writer(t)
	h.Answer("/api/block/updateBlock", claim("update", guardtest.Intro))
	h.Answer("/api/block/appendBlock", claim("insert", "20240109000000-claimed"))
	h.Answer("/api/filetree/createDoc", `{"id":"20240109000000-claimed"}`)
	_, err := update(t, s, guardtest.Intro, guard.Text{Data: "new words"})
	wantCode(t, err, contract.WriteNotPersisted)
	_, err = appendTo(t, s, guardtest.Projects, "new words")
	wantCode(t, err, contract.WriteNotPersisted)
	_, err = create(t, s, guard.NewDoc{Title: "New"})
	wantCode(t, err, contract.WriteNotPersisted)
}

func TestABrokenConnectionLeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	h.Kernel.Faults().Set("/api/block/appendBlock", samplekernel.Fault{Kind: samplekernel.FaultDropAfter})
	_, err := appendTo(t, h.Writer(t), guardtest.Projects, "x")
	wantCode(t, err, contract.OutcomeUnknown)
}

func create(t *testing.T, s *guard.Session, d guard.NewDoc) (guard.CreatedDoc, error) {
	t.Helper()
	nb, err := s.Notebook(guardtest.Work, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	var made guard.CreatedDoc
	d.Notebook = nb
	err = s.Write(context.Background(), intent(nb), func(ctx context.Context, tx *guard.Tx) (err error) {
		made, err = tx.CreateDoc(ctx, d)
		return err
	})
	return made, err
}

func TestParallelCreationsShareTheirParents(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	var wg sync.WaitGroup
	for i := range 10 {
		s := h.Writer(t)
		wg.Go(func() {
			if _, err := create(t, s, guard.NewDoc{Above: []string{"2023"}, Title: fmt.Sprintf("2023-%02d", i+1), Markdown: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := h.Writer(t)
	nb, err := s.Notebook(guardtest.Work, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	nodes, _, err := s.Tree(context.Background(), nb, "/", 3)
	if err != nil {
		t.Fatal(err)
	}
	years, months := 0, 0
	for _, n := range nodes {
		if n.Name == "2023" {
			years++
			months += len(n.Children)
		}
	}
	if years != 1 || months != 10 {
		t.Errorf("%d documents 2023 with %d below, want 1 with 10", years, months)
	}
}

func TestATakenPathIsAnError(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	first, err := create(t, s, guard.NewDoc{Title: "Note", Markdown: "one"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = create(t, s, guard.NewDoc{Title: "Note", Markdown: "two"})
	wantCode(t, err, contract.AlreadyExists)
	if !strings.Contains(string(guard.Public(err).Detail), first.ID) {
		t.Errorf("detail %s does not name %s", guard.Public(err).Detail, first.ID)
	}
	found, err := create(t, s, guard.NewDoc{Title: "Note", Markdown: "two", IfExists: guard.Return})
	if err != nil || found.ID != first.ID || found.Created {
		t.Errorf("return: %+v, %v", found, err)
	}
	other, err := create(t, s, guard.NewDoc{Title: "Note", Markdown: "two", IfExists: guard.Suffix})
	if err != nil || other.Title != "Note (2)" || !other.Created {
		t.Errorf("suffix: %+v, %v", other, err)
	}
	if got := kramdown(t, h, first.ID); !strings.HasPrefix(got, "one\n") {
		t.Errorf("the first document is now %q", got)
	}
}

func TestATitleIsStoredAsGivenOrRefused(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	for _, title := range []string{"50%", `A\B`, "A & B <i> \"q\" 'a' #t# 中文", "x.sy"} {
		made, err := create(t, s, guard.NewDoc{Title: title})
		if err != nil {
			t.Errorf("%q: %v", title, err)
			continue
		}
		if got := attrs(t, h, made.ID)["title"]; got != title {
			t.Errorf("title %q stored as %q", title, got)
		}
	}
	for _, title := range []string{"A/B test", " ..", "..", ".", "", "a\nb", " a", strings.Repeat("L", 513)} {
		if err := guard.CheckTitle("title", title); contract.CodeOf(err) != contract.InvalidArguments {
			t.Errorf("%q: %v, want it refused", title, err)
		}
	}
}

func TestAFirstHeadingEqualToTheTitleIsDropped(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	made, err := create(t, h.Writer(t), guard.NewDoc{Title: "Same", Markdown: "# Same\n\nbody", Icon: "1f4d4"})
	if err != nil {
		t.Fatal(err)
	}
	if got := kramdown(t, h, made.ID); !strings.HasPrefix(got, "body\n") {
		t.Errorf("document %q", got)
	}
	if got := attrs(t, h, made.ID)["icon"]; got != "1f4d4" {
		t.Errorf("icon %q", got)
	}
}

func TestAWholeDocumentCanBeRewritten(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	made, err := create(t, s, guard.NewDoc{Title: "Whole", Markdown: "old\n\n- a\n- b", Icon: "1f4d4"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := update(t, s, made.ID, guard.Text{Data: "# new\n\ntext\n\n- c"}); err != nil {
		t.Fatal(err)
	}
	if got := bare(kramdown(t, h, made.ID)); !strings.HasPrefix(got, "# new\n\n\ntext\n") || strings.Contains(got, "old") {
		t.Errorf("document %q", got)
	}
	if a := attrs(t, h, made.ID); a["title"] != "Whole" || a["icon"] != "1f4d4" {
		t.Errorf("attributes %v", a)
	}
	intact(t, h, guardtest.Alpha, func() {
		_, err := update(t, s, guardtest.Alpha, guard.Text{Data: "gone"})
		wantCode(t, err, contract.WouldLoseAttrs)
	})
}

func TestAReferenceTheKernelWouldDropIsNotWritten(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	made, err := create(t, s, guard.NewDoc{Title: "Target"})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := appendTo(t, s, guardtest.Projects, "see (("+made.ID+" \"it\"))")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Client.Writer().RemoveDoc(context.Background(), siyuan.ID(made.ID)); err != nil {
		t.Fatal(err)
	}
	intact(t, h, ids[0], func() {
		_, err := update(t, s, ids[0], guard.Text{Data: "look at ((" + made.ID + " \"it\"))"})
		wantCode(t, err, contract.WouldLoseAttrs)
	})
	if _, err := update(t, s, ids[0], guard.Text{Data: "no reference"}); err != nil {
		t.Error(err)
	}
}

func TestAReaderCannotWrite(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Session(t, map[string]contract.Level{guardtest.Work: contract.Read})
	b := block(t, s, guardtest.Intro, contract.Read)
	err := s.Write(context.Background(), intent(b), func(context.Context, *guard.Tx) error {
		t.Error("the write ran")
		return nil
	})
	wantCode(t, err, contract.PermissionDenied)
}

func TestAWriteOutsideOfItsIntentIsABug(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	a, b := block(t, s, guardtest.Intro, contract.ReadWrite), block(t, s, guardtest.Projects, contract.ReadWrite)
	err := s.Write(context.Background(), intent(a), func(ctx context.Context, tx *guard.Tx) error {
		_, err := tx.Append(ctx, b, guard.Text{Data: "x"})
		return err
	})
	wantCode(t, err, contract.Internal)
}
