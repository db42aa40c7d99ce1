package guard_test

import (
	"context"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// chained is a home in which a readable block quotes another readable block
// that quotes a hidden title, so that the title is in the anchor of the first.
func chained() guardtest.Docs {
	ref := func(id, anchor string) string { return "((" + id + " '" + anchor + "'))" }
	return append(guardtest.Notes(), guardtest.Doc{Box: guardtest.Work, Path: "/20240102100400-chaindc.sy", Title: "Chain", Text: "" +
		"inner " + ref(guardtest.Secret, guardtest.SecretTitle) + "\n{: id=\"20240102110090-block5a\"}\n\n" +
		"named " + ref(guardtest.Secret, guardtest.SecretTitle) + "\n{: id=\"20240102110091-block5b\" name=\"my-name\"}\n\n" +
		"outer " + ref("20240102110090-block5a", "inner "+guardtest.SecretTitle) + " and " + ref("20240102110091-block5b", "my-name") + " and " + ref(guardtest.Intro, "alpha-intro") + "\n{: id=\"20240102110092-block5c\"}\n\n" +
		"outermost " + ref("20240102110092-block5c", "outer inner "+guardtest.SecretTitle) + "\n{: id=\"20240102110093-block5d\"}\n"})
}

func TestAnAnchorThatQuotesAHiddenTitleIsHiddenToo(t *testing.T) {
	t.Parallel()
	s := guardtest.NewWith(t, chained()).Writer(t)
	ctx := context.Background()
	for id, want := range map[string]string{
		"20240102110092-block5c": "outer ((20240102110090-block5a '" + guard.Placeholder + "')) and ((20240102110091-block5b 'my-name')) and ((" + guardtest.Intro + " 'alpha-intro'))",
		"20240102110093-block5d": "outermost ((20240102110092-block5c '" + guard.Placeholder + "'))",
	} {
		b := block(t, s, id, contract.Read)
		text, err := s.Kramdown(ctx, b)
		if got, _, _ := strings.Cut(text, "\n"); err != nil || got != want {
			t.Errorf("%s: %s, want %s (err %v)", id, got, want, err)
		}
		dom, err := s.DOM(ctx, b)
		if err != nil || strings.Contains(dom, guardtest.SecretTitle) {
			t.Errorf("%s: DOM %s, err %v", id, dom, err)
		}
	}
	if hits := search(t, s, guard.Query{Text: "Nightfall"}); len(hits) != 0 {
		t.Errorf("search finds %+v", hits)
	}
}

func TestWhatDatabasesWroteIsNotShownAndNotLost(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	ctx := context.Background()
	tied := siyuan.Attrs{"custom-avs": av, "custom-sy-av-s-text-" + av: "CANARY"}
	for _, id := range []string{guardtest.Intro, guardtest.ItemText} {
		if err := h.Client.Writer().SetBlockAttrs(ctx, siyuan.ID(id), tied); err != nil {
			t.Fatal(err)
		}
	}
	s := h.Writer(t)
	for _, id := range []string{guardtest.Intro, guardtest.List, guardtest.Alpha} {
		b := block(t, s, id, contract.Read)
		text, err1 := s.Kramdown(ctx, b)
		dom, err2 := s.DOM(ctx, b)
		attrs, err3 := s.Attrs(ctx, b)
		for _, shown := range []string{text, dom, attrs["custom-avs"] + attrs["custom-sy-av-s-text-"+av]} {
			if strings.Contains(shown, "CANARY") || strings.Contains(shown, av) || err1 != nil || err2 != nil || err3 != nil {
				t.Errorf("%s shows %s; %v %v %v", id, shown, err1, err2, err3)
			}
		}
		if id == guardtest.Alpha {
			continue
		}
		if _, err := update(t, s, id, guard.Text{Data: strings.Replace(text, "small", "tiny", 1)}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []string{guardtest.Intro, guardtest.ItemText} {
		for k, v := range tied {
			if got := attrs(t, h, id)[k]; got != v {
				t.Errorf("%s of %s is %q after the update, was %q", k, id, got, v)
			}
		}
	}
}

func TestIndexTextAroundAnEmbedIsTheBlocksOwn(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	h.Answer("/api/query/sql", `[{"id":"`+guardtest.List+`","box":"`+guardtest.Work+`","type":"l","content":"mine `+guardtest.SecretTitle+`","markdown":"- mine\n\n  {{select * from blocks}}"}]`)
	rows, err := s.RowsOf(context.Background(), []string{guardtest.List})
	if err != nil || len(rows) != 1 || rows[0].Content != "mine" {
		t.Errorf("rows %+v, err %v", rows, err)
	}
	h.Answer("/api/search/fullTextSearchBlock", `{"blocks":[{"box":"`+guardtest.Work+`","path":"/x.sy","id":"`+guardtest.List+`","rootID":"`+guardtest.Alpha+
		`","type":"NodeList","content":"mine `+guardtest.SecretTitle+`","markdown":"- mine\n\n  {{select * from blocks}}"}],"matchedBlockCount":1,"matchedRootCount":1,"pageCount":1}`)
	if hits := search(t, s, guard.Query{Text: "Nightfall"}); len(hits) != 0 {
		t.Errorf("search finds %+v", hits)
	}
	if hits := search(t, s, guard.Query{Text: "mine"}); len(hits) != 1 || hits[0].Content != "mine" {
		t.Errorf("search finds %+v", hits)
	}
}
