package guard_test

import (
	"context"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
)

func TestLevelsDecideWhatABlockAnswers(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	levels := []contract.Level{contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete}
	for _, have := range levels {
		for _, need := range levels[1:] {
			s := h.Session(t, map[string]contract.Level{guardtest.Work: have})
			want := contract.Code("")
			switch {
			case have == contract.None:
				want = contract.NotFound
			case have < need:
				want = contract.PermissionDenied
			}
			_, err := s.Block(context.Background(), guardtest.Intro, need)
			if got := contract.CodeOf(err); got != want {
				t.Errorf("block: have %s, need %s: %q, want %q", have, need, got, want)
			}
			_, err = s.Doc(context.Background(), guardtest.Intro, need)
			if got := contract.CodeOf(err); got != want {
				t.Errorf("doc: have %s, need %s: %q, want %q", have, need, got, want)
			}
			_, err = s.Notebook(guardtest.Work, need)
			if got := contract.CodeOf(err); got != want {
				t.Errorf("notebook: have %s, need %s: %q, want %q", have, need, got, want)
			}
		}
	}
}

// answer is an error as an agent sees it, with the id asked for taken out.
func answer(err error, id string) string {
	if err == nil {
		return "ok"
	}
	return strings.ReplaceAll(string(guard.Public(err).Body()), id, "ID")
}

func TestHiddenClosedAndMissingAnswerTheSameBytes(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	ctx := context.Background()
	s := h.Writer(t)
	for _, need := range []contract.Level{contract.Read, contract.ReadWrite} {
		_, missing := s.Block(ctx, guardtest.Missing, need)
		for _, id := range []string{guardtest.SecretP, guardtest.Secret, guardtest.Private, guardtest.Closed, guardtest.ClosedDoc} {
			_, err := s.Block(ctx, id, need)
			if got, want := answer(err, id), answer(missing, guardtest.Missing); got != want {
				t.Errorf("block %s at %s answers %s, a missing one %s", id, need, got, want)
			}
		}
		_, missingNotebook := s.Notebook(guardtest.Missing, need)
		_, hidden := s.Notebook(guardtest.Private, need)
		if got, want := answer(hidden, guardtest.Private), answer(missingNotebook, guardtest.Missing); got != want {
			t.Errorf("hidden notebook answers %s, a missing one %s", got, want)
		}
	}
}

func TestWhileIndexingHiddenStillLooksMissing(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	if err := h.Kernel.Restart(0, 1<<40); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	s := h.Session(t, map[string]contract.Level{guardtest.Work: contract.Read})
	_, missing := s.Block(ctx, guardtest.Missing, contract.Read)
	_, hidden := s.Block(ctx, guardtest.SecretP, contract.Read)
	if got, want := answer(hidden, guardtest.SecretP), answer(missing, guardtest.Missing); got != want {
		t.Errorf("hidden answers %s, missing %s", got, want)
	}
}

func TestOnlyReadableNotebooksAreListed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, n := range guardtest.New(t).Writer(t).Notebooks() {
		names = append(names, n.Name()+" "+n.Level().String())
	}
	if got := strings.Join(names, ", "); got != "Work rw, 日记 r, Archive r" {
		t.Errorf("notebooks %s", got)
	}
}

func TestAClosedNotebookSaysSoToThoseWhoMayReadIt(t *testing.T) {
	t.Parallel()
	n, err := guardtest.New(t).Writer(t).Notebook(guardtest.Archive, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	if got := contract.CodeOf(n.Reachable()); got != contract.NotebookClosed {
		t.Errorf("code %q, want notebook_closed", got)
	}
}

func block(t *testing.T, s *guard.Session, id string, need contract.Level) guard.Block {
	t.Helper()
	b, err := s.Block(context.Background(), id, need)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDynamicAnchorsOfUnreadableTargetsAreThePlaceholder(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	ctx := context.Background()
	text, err := s.Kramdown(ctx, block(t, s, guardtest.Links, contract.Read))
	if err != nil {
		t.Fatal(err)
	}
	want := `See ((` + guardtest.Secret + ` '[not available]')), ((` + guardtest.SecretP + ` "my words")), ((` + guardtest.Intro + ` 'alpha-intro')) and ((` + guardtest.Entry + ` "Entry")).`
	if got, _, _ := strings.Cut(text, "\n"); got != want {
		t.Errorf("kramdown\n%s\nwant\n%s", got, want)
	}
	dom, err := s.DOM(ctx, block(t, s, guardtest.Links, contract.Read))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`data-id="` + guardtest.Secret + `">[not available]</span>`, `>my words</span>`, `>alpha-intro</span>`} {
		if !strings.Contains(dom, part) {
			t.Errorf("DOM lacks %s:\n%s", part, dom)
		}
	}
	children, err := s.Children(ctx, block(t, s, guardtest.Alpha, contract.Read))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		if strings.Contains(c.Markdown, guardtest.SecretTitle) || strings.Contains(c.Title, guardtest.SecretTitle) {
			t.Errorf("child %s shows a hidden title: %s", c.ID, c.Markdown)
		}
	}
	doc, err := s.Doc(ctx, guardtest.Alpha, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := s.DocDOM(ctx, doc, 100)
	dom = strings.Join(parts, "")
	if err != nil || strings.Contains(dom, guardtest.SecretTitle) || strings.Contains(dom, "confidential paragraph") {
		t.Errorf("document DOM shows something hidden (err %v):\n%s", err, dom)
	}
}

func TestAReferenceOfAnotherSessionIsRefused(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	mine, other := h.Writer(t), h.Session(t, nil)
	b := block(t, mine, guardtest.Intro, contract.Read)
	if _, err := other.Kramdown(context.Background(), b); contract.CodeOf(err) != contract.Internal {
		t.Errorf("code %q, want internal_error", contract.CodeOf(err))
	}
	if _, err := mine.Kramdown(context.Background(), guard.Block{}); contract.CodeOf(err) != contract.Internal {
		t.Errorf("the zero Block: code %q, want internal_error", contract.CodeOf(err))
	}
}

func search(t *testing.T, s *guard.Session, q guard.Query) []guard.Hit {
	t.Helper()
	hits, more, err := s.Search(context.Background(), q)
	if err != nil || more {
		t.Fatalf("more %v, err %v", more, err)
	}
	return hits
}

func TestSearchFindsNothingHidden(t *testing.T) {
	t.Parallel()
	s := guardtest.New(t).Writer(t)
	for _, q := range []guard.Query{
		{Text: "confidential"}, {Text: "Nightfall"}, {Text: "Night.all", Method: guard.Regexp}, {Text: "Nightfall", Method: guard.QuerySyntax},
		{Text: "confidential", Within: []string{guardtest.Private}},
		{Text: "goals Nightfall"}, {Text: "small Operation"},
		{Text: "confidential", Types: map[string]bool{"embed": true}},
	} {
		if hits := search(t, s, q); len(hits) != 0 {
			t.Errorf("%+v finds %+v", q, hits)
		}
	}
}

func TestSearchShowsAPlaceholderInWhatItFinds(t *testing.T) {
	t.Parallel()
	hits := search(t, guardtest.New(t).Writer(t), guard.Query{Text: "my words", Types: map[string]bool{"p": true}})
	if len(hits) != 1 || hits[0].ID != guardtest.Links {
		t.Fatalf("hits %+v, want the paragraph of links", hits)
	}
	if want := "See [not available], my words, alpha-intro and Entry."; hits[0].Content != want {
		t.Errorf("content %q, want %q", hits[0].Content, want)
	}
}

func TestAHiddenTitleThatReadsLikeThePlaceholderIsNotFound(t *testing.T) {
	t.Parallel()
	notes := guardtest.Notes()
	notes[0].Title = "not available plans"
	s := guardtest.NewWith(t, notes).Writer(t)
	if hits := search(t, s, guard.Query{Text: "available"}); len(hits) != 0 {
		t.Errorf("hits %+v", hits)
	}
}

func TestSearchInsideABlock(t *testing.T) {
	t.Parallel()
	s := guardtest.New(t).Writer(t)
	list := block(t, s, guardtest.List, contract.Read)
	types := map[string]bool{"p": true}
	if hits := search(t, s, guard.Query{Text: "mail", Inside: &list, Types: types}); len(hits) != 1 {
		t.Errorf("in the list: %+v, want one paragraph", hits)
	}
	if hits := search(t, s, guard.Query{Text: "small", Inside: &list, Types: types}); len(hits) != 0 {
		t.Errorf("outside of the list: %+v", hits)
	}
	projects := block(t, s, guardtest.Projects, contract.Read)
	if hits := search(t, s, guard.Query{Text: "small", Inside: &projects, Types: types}); len(hits) != 1 {
		t.Errorf("in a document below: %+v, want one", hits)
	}
}

func TestSearchRefusesPathsTheKernelWouldDrop(t *testing.T) {
	t.Parallel()
	_, _, err := guardtest.New(t).Writer(t).Search(context.Background(), guard.Query{Text: "a", Within: []string{"../x"}})
	if contract.CodeOf(err) != contract.InvalidArguments {
		t.Errorf("code %q, want validation_error", contract.CodeOf(err))
	}
}

func TestTreeOfANotebookAndOfALeaf(t *testing.T) {
	t.Parallel()
	s := guardtest.New(t).Writer(t)
	nb, err := s.Notebook(guardtest.Work, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	nodes, _, err := s.Tree(ctx, nb, "/", 3)
	if err != nil || len(nodes) != 1 || nodes[0].Name != "Projects" || len(nodes[0].Children) != 1 || nodes[0].Children[0].ID != guardtest.Alpha {
		t.Errorf("tree %+v, err %v", nodes, err)
	}
	nodes, _, err = s.Tree(ctx, nb, "/", 1)
	if err != nil || !nodes[0].Cut || nodes[0].ChildCount != 1 || nodes[0].Children != nil {
		t.Errorf("depth 1: %+v, err %v", nodes, err)
	}
	nodes, _, err = s.Tree(ctx, nb, "/"+guardtest.Projects+"/"+guardtest.Alpha+".sy", 3)
	if err != nil || len(nodes) != 0 {
		t.Errorf("leaf: %+v, err %v", nodes, err)
	}
	for _, path := range []string{"/" + guardtest.Missing + ".sy", "/" + guardtest.Secret + ".sy", "/x/../y"} {
		if _, _, err = s.Tree(ctx, nb, path, 3); contract.CodeOf(err) != contract.NotFound {
			t.Errorf("%s: code %q, want not_found", path, contract.CodeOf(err))
		}
	}
}

func TestRenderedEmbedsAreInNoCollection(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	h.Answer("/api/search/fullTextSearchBlock", `{"blocks":[{"box":"`+guardtest.Work+`","path":"/x.sy","id":"`+guardtest.Embed+`","rootID":"`+guardtest.Alpha+
		`","type":"NodeBlockQueryEmbed","content":"`+guardtest.SecretTitle+`","markdown":"{{select}}"}],"matchedBlockCount":1,"matchedRootCount":1,"pageCount":1}`)
	h.Answer("/api/query/sql", `[{"id":"`+guardtest.Embed+`","box":"`+guardtest.Work+`","type":"query_embed","content":"`+guardtest.SecretTitle+`","markdown":"{{select}}"},`+
		`{"id":"`+guardtest.SecretP+`","box":"`+guardtest.Private+`","type":"p","content":"x","markdown":"x"}]`)
	if hits := search(t, s, guard.Query{Text: "Nightfall"}); len(hits) != 0 {
		t.Errorf("search finds %+v", hits)
	}
	if rows, err := s.RowsOf(context.Background(), []string{guardtest.Embed, guardtest.SecretP}); err != nil || len(rows) != 0 {
		t.Errorf("rows %+v, err %v", rows, err)
	}
}
