package guard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
)

// linked is the standard home with links into it from everywhere: a readable
// notebook, a hidden one, and the document itself.
func linked() guardtest.Docs {
	return append(guardtest.Notes(),
		guardtest.Doc{Box: guardtest.Diary, Path: "/20240103090100-readsub.sy", Title: "Sub",
			Text: "cites ((" + guardtest.Heading + " \"goals\")) #urgent# #阅读#\n{: id=\"20240102110071-block47\" bookmark=\"Review\"}\n\nmentions alpha-intro only\n{: id=\"20240102110072-block48\"}\n"},
		guardtest.Doc{Box: guardtest.Private, Path: "/20240104090100-healthd.sy", Title: "Hidden Alpha",
			Text: "hidden cites ((" + guardtest.Heading + " \"goals\")) and alpha-intro #private/plan# #urgent#\n{: id=\"20240102110064-block40\" bookmark=\"Secret\"}\n\n## Hidden heading\n"},
	)
}

func ids[T any](list []T, id func(T) string) string {
	var out []string
	for _, v := range list {
		out = append(out, id(v))
	}
	return strings.Join(out, " ")
}

func rowID(r guard.Row) string { return r.ID }

func TestCollectionsCountNothingHidden(t *testing.T) {
	t.Parallel()
	s := guardtest.NewWith(t, linked()).Writer(t)
	ctx := context.Background()
	heading, intro := block(t, s, guardtest.Heading, contract.Read), block(t, s, guardtest.Intro, contract.Read)
	alpha, err := s.Doc(ctx, guardtest.Alpha, contract.Read)
	if err != nil {
		t.Fatal(err)
	}

	links, more, err := s.Backlinks(ctx, heading)
	if got := ids(links, func(b guard.Backlink) string { return b.ID }); err != nil || more || got != "20240102110071-block47" {
		t.Errorf("backlinks of the heading: %s, more %v, err %v", got, more, err)
	}
	links, _, err = s.Backlinks(ctx, alpha.Block())
	if got := ids(links, func(b guard.Backlink) string { return b.ID }); err != nil || !strings.Contains(got, "block47") || strings.Contains(got, "block40") {
		t.Errorf("backlinks of the document: %s, err %v", got, err)
	}
	mentions, _, err := s.Mentions(ctx, intro)
	if got := ids(mentions, rowID); err != nil || got != "20240102110072-block48" {
		t.Errorf("mentions: %s, err %v", got, err)
	}
	refs, err := s.Refs(ctx, block(t, s, guardtest.Links, contract.Read))
	if got := ids(refs, rowID); err != nil || got != guardtest.Intro+" "+guardtest.Entry {
		t.Errorf("references of the paragraph: %s, err %v", got, err)
	}
	tags, err := s.Tags(ctx)
	if got := fmt.Sprint(tags); err != nil || got != "[{urgent 2} {阅读 1}]" {
		t.Errorf("tags %s, err %v", got, err)
	}
	marks, err := s.Bookmarks(ctx)
	if err != nil || len(marks) != 1 || marks[0].Label != "Review" || len(marks[0].Blocks) != 2 {
		t.Errorf("bookmarks %+v, err %v", marks, err)
	}
	docs, err := s.FindDocs(ctx, "alpha", 10)
	if got := ids(docs, rowID); err != nil || got != guardtest.Alpha {
		t.Errorf("documents: %s, err %v", got, err)
	}
	if docs, err = s.FindDocs(ctx, "%", 10); err != nil || len(docs) != 0 {
		t.Errorf("a percent sign finds %d documents, err %v", len(docs), err)
	}
	info, err := s.DocInfo(ctx, alpha)
	if err != nil || info.Title != "Alpha" || info.Children != 0 || info.Backlinks != len(links) {
		t.Errorf("document %+v, err %v", info, err)
	}
	recent, err := s.Recent(ctx, 100)
	for _, r := range recent {
		if r.Notebook.ID() == guardtest.Private || strings.Contains(r.Content, guardtest.SecretTitle) {
			t.Errorf("recent shows %+v", r)
		}
	}
	if err != nil || len(recent) == 0 {
		t.Errorf("recent: %d rows, err %v", len(recent), err)
	}
}

func TestOutlineAndBreadcrumbShowTitles(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	ctx := context.Background()
	made, err := create(t, s, guard.NewDoc{Title: "Headings", Markdown: "# One *two*\n\n## Three\n\ntext\n"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Doc(ctx, made.ID, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	outline, err := s.Outline(ctx, d)
	if err != nil || len(outline) != 2 || outline[0].Level != 1 || outline[1].Level != 2 || outline[1].Title != "Three" {
		t.Errorf("outline %+v, err %v", outline, err)
	}
	crumbs, err := s.Breadcrumb(ctx, block(t, s, guardtest.Intro, contract.Read))
	if got := fmt.Sprint(crumbs); err != nil || got != "[{"+guardtest.Alpha+" d Work/Projects/Alpha } {"+guardtest.Heading+" h Alpha goals h1} {"+guardtest.Intro+" p  }]" {
		t.Errorf("breadcrumb %s, err %v", got, err)
	}
}

func TestHeadingsShowNoHiddenTitle(t *testing.T) {
	t.Parallel()
	notes := append(guardtest.Notes(), guardtest.Doc{Box: guardtest.Work, Path: "/20240102100400-headdoc.sy", Title: "H",
		Text: "# About ((" + guardtest.Secret + " '" + guardtest.SecretTitle + "'))\n{: id=\"20240102110090-block5a\"}\n\nbelow\n{: id=\"20240102110091-block5b\"}\n"})
	s := guardtest.NewWith(t, notes).Writer(t)
	ctx := context.Background()
	d, err := s.Doc(ctx, "20240102110090-block5a", contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	outline, err := s.Outline(ctx, d)
	if err != nil || len(outline) != 1 || outline[0].Title != "About [not available]" {
		t.Errorf("outline %+v, err %v", outline, err)
	}
	crumbs, err := s.Breadcrumb(ctx, block(t, s, "20240102110091-block5b", contract.Read))
	if err != nil || crumbs[1].Name != "About [not available]" {
		t.Errorf("breadcrumb %+v, err %v", crumbs, err)
	}
	children, err := s.Children(ctx, d.Block())
	if err != nil || children[0].Title != "About [not available]" {
		t.Errorf("children %+v, err %v", children, err)
	}
}

func TestExportLeavesOutWhatComesFromElsewhere(t *testing.T) {
	t.Parallel()
	s := guardtest.New(t).Writer(t)
	d, err := s.Doc(context.Background(), guardtest.Alpha, contract.Read)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Export(context.Background(), d)
	want := "# Alpha goals\n\nAlpha ships a **small** tool. #urgent#\n\n- Collect notes\n\n  - from mail\n- Sort them\n\nSee [not available], my words, alpha-intro and Entry.\n"
	if err != nil || text != want {
		t.Errorf("export\n%q\nwant\n%q\nerr %v", text, want, err)
	}
}

func TestCollectionsOfNobodyAreEmpty(t *testing.T) {
	t.Parallel()
	s := guardtest.NewWith(t, linked()).Session(t, nil)
	ctx := context.Background()
	tags, err1 := s.Tags(ctx)
	marks, err2 := s.Bookmarks(ctx)
	recent, err3 := s.Recent(ctx, 10)
	hits, _, err4 := s.Search(ctx, guard.Query{Text: "Alpha"})
	if len(tags)+len(marks)+len(recent)+len(hits)+len(s.Notebooks()) != 0 || err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		t.Errorf("%v %v %v %v; %v %v %v %v", tags, marks, recent, hits, err1, err2, err3, err4)
	}
}
