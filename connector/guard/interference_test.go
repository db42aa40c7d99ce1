package guard_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
)

// The two homes differ in nothing but what the hidden notebook contains: titles,
// texts, tags, bookmarks, and links into the readable notes.
func twoSecrets() (one, two guardtest.Docs) {
	one = linked()
	two = linked()
	two[0].Title, two[0].Text = "Alpha unavailable start", "(("+guardtest.Intro+" 'alpha-intro')) #urgent# #new#\n{: id=\""+guardtest.SecretP+"\" bookmark=\"Review\" custom-riff-decks=\"20230218211946-2kw8jgx\"}\n"
	two[len(two)-1] = guardtest.Doc{Box: guardtest.Private, Path: "/20240104090200-healthd.sy", Title: "Alpha",
		Text: "((" + guardtest.Heading + " 'Alpha goals')), ((" + guardtest.Alpha + " 'Alpha')), alpha-intro, ((" + guardtest.Entry + " \"x\"))\n"}
	return one, two
}

// observe runs every read of a session about one id and writes down everything
// that comes back.
func observe(s *guard.Session, id string) string {
	ctx := context.Background()
	var out strings.Builder
	note := func(what string, v any, err error) {
		if err != nil {
			v = string(guard.Public(err).Body())
		}
		fmt.Fprintf(&out, "%s %s: %+v\n", what, id, v)
	}
	_, err := s.Notebook(id, contract.Read)
	note("notebook", "", err)
	if b, err := s.Block(ctx, id, contract.Read); err != nil {
		note("block", nil, err)
	} else {
		text, err := s.Kramdown(ctx, b)
		note("kramdown", text, err)
		dom, err := s.DOM(ctx, b)
		note("dom", dom, err)
		children, err := s.Children(ctx, b)
		note("children", children, err)
		attrs, err := s.Attrs(ctx, b)
		note("attrs", attrs, err)
		crumbs, err := s.Breadcrumb(ctx, b)
		note("breadcrumb", crumbs, err)
		links, more, err := s.Backlinks(ctx, b)
		note("backlinks", fmt.Sprint(show(rowsOf(links)), more), err)
		mentions, _, err := s.Mentions(ctx, b)
		note("mentions", show(mentions), err)
		refs, err := s.Refs(ctx, b)
		note("refs", show(refs), err)
		g, err := s.Graph(ctx, b)
		note("graph", fmt.Sprint(show(g.Nodes), g.Links), err)
	}
	if d, err := s.Doc(ctx, id, contract.Read); err == nil {
		outline, err := s.Outline(ctx, d)
		note("outline", outline, err)
		info, err := s.DocInfo(ctx, d)
		note("info", info, err)
		export, err := s.Export(ctx, d)
		note("export", export, err)
		parts, err := s.DocDOM(ctx, d, 100)
		dom, n := strings.Join(parts, ""), len(parts)
		note("document", fmt.Sprint(dom, n), err)
		assets, err := s.DocAssets(ctx, d, false)
		note("assets", assets, err)
	} else {
		note("doc", nil, err)
	}
	rows, err := s.RowsOf(ctx, []string{id})
	note("rows", show(rows), err)
	_, err = s.Database(ctx, id, contract.Read)
	note("database", "", err)
	return out.String()
}

func overview(s *guard.Session) string {
	ctx := context.Background()
	tags, err1 := s.Tags(ctx)
	marks, err2 := s.Bookmarks(ctx)
	recent, err3 := s.Recent(ctx, 100)
	docs, err4 := s.FindDocs(ctx, "", 100)
	cards, err5 := s.Flashcards(ctx, "")
	var bookmarks []string
	for _, m := range marks {
		bookmarks = append(bookmarks, m.Label+show(m.Blocks))
	}
	return fmt.Sprint(tags, bookmarks, show(recent), show(docs), len(cards), err1, err2, err3, err4, err5)
}

func rowsOf(links []guard.Backlink) []guard.Row {
	var rows []guard.Row
	for _, l := range links {
		rows = append(rows, l.Row)
	}
	return rows
}

// show is rows without the session they carry.
func show(rows []guard.Row) string {
	var out strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&out, r.ID, r.Type, r.SubType, r.RootID, r.ParentID, r.Notebook.ID(), r.HPath, r.Content, r.Markdown, r.Name, r.Alias, r.Memo, r.Tags, r.Created, r.Updated)
	}
	return out.String()
}

var attrList = regexp.MustCompile(`\{: [^}]*\}|<[a-z]+ [^>]*>|map\[[^\]]*\]`)

// ordered sorts what the kernel writes in random order.
func ordered(text string) string {
	return attrList.ReplaceAllStringFunc(text, func(list string) string {
		words := strings.Fields(strings.Trim(list, "{:}<>"))
		slices.Sort(words)
		return strings.Join(words, " ")
	})
}

func TestHiddenNotesInterfereWithNoRead(t *testing.T) {
	t.Parallel()
	one, two := twoSecrets()
	a, b := guardtest.NewWith(t, one), guardtest.NewWith(t, two)
	ids := []string{
		guardtest.Work, guardtest.Diary, guardtest.Private, guardtest.Archive, guardtest.Projects, guardtest.Alpha, guardtest.Heading, guardtest.Intro,
		guardtest.Links, guardtest.Embed, guardtest.List, guardtest.Item, guardtest.Secret, guardtest.SecretP, guardtest.Entry, guardtest.EntryP,
		guardtest.Closed, guardtest.Missing, "20240104090100-healthd", "20240104090200-healthd", "20240102110064-block40", "20240102110071-block47",
	}
	for _, id := range ids {
		if x, y := ordered(observe(a.Writer(t), id)), ordered(observe(b.Writer(t), id)); x != y {
			t.Errorf("%s\n%s\n%s", id, x, y)
		}
	}
	if x, y := overview(a.Writer(t)), overview(b.Writer(t)); x != y {
		t.Errorf("overview\n%s\n%s", x, y)
	}
}
