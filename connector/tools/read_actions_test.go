package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// aimedReads are the reading actions that point at a block or document, with a
// %s for its id.
var aimedReads = [][2]string{
	{"document.lookup", `{"id":"%s","include":["docInfo"]}`},
	{"document.get_child_docs", `{"id":"%s"}`},
	{"document.get_child_blocks", `{"id":"%s"}`},
	{"document.get_outline", `{"id":"%s"}`},
	{"block.get_children", `{"id":"%s"}`},
	{"block.get_attrs", `{"id":"%s"}`},
	{"block.info", `{"id":"%s"}`},
	{"block.breadcrumb", `{"id":"%s"}`},
	{"block.dom", `{"id":"%s"}`},
	{"block.word_count", `{"ids":["` + guardtest.Intro + `","%s"]}`},
	{"block.docs_info", `{"ids":["` + guardtest.Intro + `","%s"],"refCount":true,"av":true}`},
	{"search.get_backlinks", `{"id":"%s"}`},
	{"search.get_backlinks", `{"id":"` + guardtest.Intro + `","refTreeID":"%s"}`},
	{"search.search_refs", `{"id":"%s","k":"a"}`},
	{"search.search_refs", `{"id":"` + guardtest.Intro + `","rootID":"%s","k":"a"}`},
}

func TestReadsNeedReadAndNoMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for _, c := range aimedReads {
		for level := contract.None; level <= contract.ReadWriteDelete; level++ {
			r := d.call(guardtest.Grant(map[string]contract.Level{guardtest.Work: level}), c[0], fmt.Sprintf(c[1], guardtest.Heading))
			if level == contract.None {
				fails(t, r, contract.NotFound)
			} else if r.Err != nil {
				t.Errorf("%s at level %s: %v", c[0], level, r.Err)
			}
		}
	}
}

func TestHiddenClosedAndMissingTargetsAnswerTheSameBytes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	answer := func(c [2]string, id string) string {
		r := d.call(writer(), c[0], fmt.Sprintf(c[1], id))
		if r.Err == nil {
			return string(r.Body)
		}
		return strings.ReplaceAll(string(r.Err.Body()), id, "ID") + fmt.Sprint(r.Stats.KernelCalls)
	}
	for _, c := range append(aimedReads, [2]string{"block.batch_kramdown", `{"ids":["%s"]}`}) {
		missing := strings.ReplaceAll(answer(c, guardtest.Missing), guardtest.Missing, "ID")
		if !strings.Contains(missing, `"not_found"`) {
			t.Errorf("%s of a missing block answers %s", c[0], missing)
		}
		for _, id := range []string{guardtest.SecretP, guardtest.Secret, guardtest.Private, guardtest.Closed, guardtest.ClosedDoc} {
			if got := strings.ReplaceAll(answer(c, id), id, "ID"); got != missing {
				t.Errorf("%s %s answers %s, a missing one %s", c[0], id, got, missing)
			}
		}
	}
	for _, args := range []string{`{"notebook":"%s","hpath":"/x"}`, `{"notebook":"%s","path":"/` + guardtest.Alpha + `.sy"}`} {
		for _, id := range []string{guardtest.Private, guardtest.Missing} {
			fails(t, d.call(writer(), "document.lookup", fmt.Sprintf(args, id)), contract.NotFound)
		}
	}
	fails(t, d.call(writer(), "document.search_docs", `{"notebook":"`+guardtest.Private+`","query":"a"}`), contract.NotFound)
	fails(t, d.call(writer(), "document.search_docs", `{"notebook":"`+guardtest.Archive+`","query":"a"}`), contract.NotebookClosed)
}

func TestNoReadShowsWhatIsHidden(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	calls := append([][2]string{
		{"block.recent_updated", `{"count":128}`}, {"search.list_invalid_refs", `{}`}, {"search.search_assets", `{"k":""}`},
		{"document.search_docs", `{"notebook":"` + guardtest.Work + `","query":"n"}`},
		{"search.query_sql", `{"stmt":"SELECT * FROM blocks"}`}, {"search.query_sql", `{"stmt":"SELECT * FROM refs"}`}, {"search.query_sql", `{"stmt":"SELECT * FROM spans"}`},
		{"block.batch_kramdown", `{"ids":["` + guardtest.Alpha + `"],"mode":"textmark"}`}, {"block.batch_kramdown", `{"ids":["` + guardtest.Links + `"]}`},
	}, aimedReads...)
	for _, c := range calls {
		for _, id := range []string{guardtest.Alpha, guardtest.Links, guardtest.Embed} {
			args := strings.ReplaceAll(c[1], "%s", id)
			if r := d.call(writer(), c[0], args); r.Err != nil || strings.Contains(string(r.Body), "Nightfall") || strings.Contains(string(r.Body), "confidential") {
				t.Errorf("%s %s: %v %s", c[0], args, r.Err, r.Body)
			}
		}
	}
}

func TestKernelCallsPerReadingAction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, args string
		want     int // one locates each target, one lists the notebooks where they are named or looked through, one may flush
	}{
		{"document.lookup", `{"id":"` + guardtest.Entry + `"}`, 3},
		{"document.lookup", `{"notebook":"` + guardtest.Work + `","hpath":"/Projects"}`, 4},
		{"document.get_child_docs", `{"id":"` + guardtest.Projects + `"}`, 4},
		{"document.get_child_blocks", `{"id":"` + guardtest.Entry + `"}`, 2},
		{"document.get_outline", `{"id":"` + guardtest.Alpha + `"}`, 3},
		{"document.search_docs", `{"notebook":"` + guardtest.Work + `","query":"alpha"}`, 3},
		{"block.batch_kramdown", `{"ids":["` + guardtest.Intro + `","` + guardtest.Heading + `","` + guardtest.Item + `"]}`, 4},
		{"block.get_children", `{"id":"` + guardtest.List + `"}`, 2},
		{"block.get_attrs", `{"id":"` + guardtest.Intro + `"}`, 2},
		{"block.info", `{"id":"` + guardtest.Intro + `"}`, 3},
		{"block.breadcrumb", `{"id":"` + guardtest.Intro + `"}`, 3},
		{"block.dom", `{"id":"` + guardtest.Intro + `"}`, 2},
		{"block.word_count", `{"ids":["` + guardtest.Intro + `","` + guardtest.Heading + `"]}`, 4},
		{"block.docs_info", `{"ids":["` + guardtest.Entry + `","` + guardtest.Projects + `"]}`, 3},
		{"block.docs_info", `{"id":"` + guardtest.Entry + `","refCount":true,"av":true}`, 7},
		{"block.recent_updated", `{"count":1}`, 4},
		{"search.query_sql", `{"stmt":"SELECT id FROM blocks"}`, 3},
		{"search.query_sql", `{"stmt":"SELECT abs(length) FROM blocks"}`, 4},
		{"search.get_backlinks", `{"id":"` + guardtest.Entry + `","mode":"links"}`, 9}, // the row it finds shows two dynamic anchors
		{"search.search_refs", `{"id":"` + guardtest.Intro + `","k":"mail"}`, 6},
		{"search.list_invalid_refs", `{}`, 8}, // as get_backlinks
		{"search.search_assets", `{"k":"x"}`, 3},
	} {
		r := newDesk(t, policy.Fixed(contract.Read)).call(writer(), c.id, c.args)
		if r.Err != nil || r.Stats.KernelCalls != c.want {
			t.Errorf("%s %s: %d kernel calls, want %d (err %v)", c.id, c.args, r.Stats.KernelCalls, c.want, r.Err)
		}
	}
}

func TestLookupTurnsEachNameIntoTheOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	for _, args := range []string{
		`{"id":"` + guardtest.Intro + `","include":["ids","docInfo"]}`,
		`{"notebook":"` + guardtest.Work + `","hpath":"/Projects/Alpha","include":["ids","docInfo"]}`,
		`{"notebook":"` + guardtest.Work + `","path":"Projects/Alpha/","include":["ids","docInfo"]}`,
		`{"notebook":"` + guardtest.Work + `","path":"` + alphaPath + `","include":["ids","docInfo"]}`,
	} {
		out := ok[catalogue.DocumentLookupOut](t, d, writer(), "document.lookup", args)
		want := catalogue.IDPath{ID: guardtest.Alpha, IDs: []string{guardtest.Alpha}, Notebook: guardtest.Work, Path: alphaPath}
		if out.HumanPath != (catalogue.HumanPath{NotebookName: "Work", HPath: "/Projects/Alpha"}) || fmt.Sprint(out.IDPath) != fmt.Sprint(want) ||
			out.DocInfo == nil || out.DocInfo.Name != "Alpha" || *out.DocInfo.RefCount != 1 {
			t.Errorf("%s: %+v %+v", args, out, out.DocInfo)
		}
	}
	fails(t, d.call(writer(), "document.lookup", `{"notebook":"`+guardtest.Work+`","hpath":"/projects"}`), contract.NotFound)
	fails(t, d.call(writer(), "document.lookup", `{"notebook":"`+guardtest.Archive+`","hpath":"/x"}`), contract.NotebookClosed)
}

// TestK08LookupOfASharedPathPicksNone: two documents of one title under one
// parent.
func TestK08LookupOfASharedPathPicksNone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	twins := []string{"20240102100700-twin001", "20240102100800-twin002"}
	for _, id := range twins {
		d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: "Twin"})
	}
	out := ok[catalogue.DocumentLookupOut](t, d, writer(), "document.lookup", `{"notebook":"`+guardtest.Work+`","hpath":"/Twin","include":["docInfo"]}`)
	if out.IDPath.ID != "" || out.IDPath.Path != "" || !slices.Equal(out.IDPath.IDs, twins) || out.DocInfo != nil {
		t.Errorf("lookup %+v", out)
	}
}

// TestK28ALeafHasAnEmptyListOfDocuments: the kernel refuses to list below one.
func TestK28ALeafHasAnEmptyListOfDocuments(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	list := func(id string) catalogue.DocumentGetChildDocsOut {
		return ok[catalogue.DocumentGetChildDocsOut](t, d, writer(), "document.get_child_docs", `{"id":"`+id+`"}`)
	}
	if out := list(guardtest.Alpha); out.Data == nil || len(out.Data) != 0 || out.Truncated {
		t.Errorf("leaf: %+v", out)
	}
	want := catalogue.ChildDoc{ID: guardtest.Alpha, Notebook: guardtest.Work, Path: alphaPath, HPath: "/Projects/Alpha", Name: "Alpha"}
	if out := list(guardtest.Index); out.ID != guardtest.Projects || len(out.Data) != 1 || out.Data[0] != want {
		t.Errorf("below the document of a block: %+v", out)
	}
}

func TestChildBlocksBeyondTheLimitAreSaidToBeThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const id = "20240102100900-longdoc"
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: "Long", Text: strings.Repeat("a line\n\n", 520)})
	out := ok[catalogue.DocumentGetChildBlocksOut](t, d, writer(), "document.get_child_blocks", `{"id":"`+id+`"}`)
	if n := len(out.Data); n < 200 || n >= 520 || !out.Truncated || !strings.Contains(out.Hint, fmt.Sprintf("first %d of 520", n)) || !strings.Contains(out.Hint, "block.get_children") {
		t.Errorf("%d blocks, truncated %v, hint %q", len(out.Data), out.Truncated, out.Hint)
	}
	page := ok[catalogue.BlockGetChildrenOut](t, d, writer(), "block.get_children", `{"id":"`+id+`","page":3,"pageSize":200}`)
	if len(page.Data) != 120 || page.Total != 520 || page.PageCount != 3 || page.HasNextPage || page.Data[119].Content != "a line" {
		t.Errorf("last page: %d of %+v", len(page.Data), page.PageOut)
	}
	if beyond := ok[catalogue.BlockGetChildrenOut](t, d, writer(), "block.get_children", `{"id":"`+id+`","page":9,"pageSize":200}`); beyond.Page != 3 {
		t.Errorf("a page beyond the end is page %d, want the last", beyond.Page)
	}
	if leaf := ok[catalogue.BlockGetChildrenOut](t, d, writer(), "block.get_children", `{"id":"`+guardtest.Intro+`"}`); leaf.Total != 0 || leaf.PageCount != 1 || leaf.Data == nil || leaf.Hint == "" {
		t.Errorf("a leaf: %+v", leaf)
	}
}

func TestAPageOfChildrenWithTooMuchTextIsSmaller(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const id = "20240102100900-longdoc"
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: "Long", Text: strings.Repeat(strings.Repeat("字", 30_000)+"\n\n", 5)})
	first := ok[catalogue.BlockGetChildrenOut](t, d, writer(), "block.get_children", `{"id":"`+id+`"}`)
	if len(first.Data) != 1 || first.PageSize != 1 || first.PageCount != 5 || !strings.Contains(first.Hint, "page 2 with pageSize 1") {
		t.Errorf("%d blocks, %+v, hint %q", len(first.Data), first.PageOut, first.Hint)
	}
	if one := ok[catalogue.BlockGetChildrenOut](t, d, writer(), "block.get_children", `{"id":"`+id+`","pageSize":1}`); len([]rune(one.Data[0].Markdown)) != 30_000 {
		t.Errorf("one block: %d characters", len([]rune(one.Data[0].Markdown)))
	}
}

func TestOutlineNestsByLevel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	const id = "20240102100900-outline"
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: "Plan", Text: "## Two\n\n#### Four\n\n### Three\n\n# One\n\ntext\n\n## **Second** two\n"})
	out := ok[catalogue.DocumentGetOutlineOut](t, d, writer(), "document.get_outline", `{"id":"`+id+`"}`)
	var shape func(list []catalogue.OutlineHeading) string
	shape = func(list []catalogue.OutlineHeading) string {
		var parts []string
		for _, h := range list {
			parts = append(parts, fmt.Sprintf("%d %s(%s)", h.Level, h.Title, shape(h.Children)))
		}
		return strings.Join(parts, " ")
	}
	if got, want := shape(out.Outline), "2 Two(4 Four() 3 Three()) 1 One(2 Second two())"; got != want || out.HeadingCount != 5 {
		t.Errorf("%d headings: %s, want %s", out.HeadingCount, got, want)
	}
	preview := ok[catalogue.DocumentGetOutlineOut](t, d, writer(), "document.get_outline", `{"id":"`+id+`","preview":true}`)
	if got, want := shape(preview.Outline), "1 Plan(2 Two(4 Four() 3 Three())) 1 One(2 Second two())"; got != want {
		t.Errorf("preview: %s, want %s", got, want)
	}
	if none := ok[catalogue.DocumentGetOutlineOut](t, d, writer(), "document.get_outline", `{"id":"`+guardtest.Entry+`"}`); none.Outline == nil || none.HeadingCount != 0 {
		t.Errorf("without headings: %+v", none)
	}
}

// TestK38TitleSearchForgetsWhatIsGone: and says what it looked for.
func TestK38TitleSearchForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	g := writer()
	g.Levels[guardtest.Work] = contract.ReadWriteDelete
	find := func(args string) catalogue.DocumentSearchDocsOut {
		return ok[catalogue.DocumentSearchDocsOut](t, d, g, "document.search_docs", `{"notebook":"`+guardtest.Work+`",`+args+`}`)
	}
	made := ok[catalogue.DocumentCreateOut](t, d, g, "document.create", `{"notebook":"`+guardtest.Work+`","path":"/50%_off \\ x"}`)
	want := catalogue.FoundDoc{ID: made.ID, Notebook: guardtest.Work, Path: "/" + made.ID + ".sy", HPath: `/50%_off \ x`, Title: `50%_off \ x`}
	for _, query := range []string{`50%_`, `OFF`, `\\`} {
		if out := find(`"query":"` + query + `"`); len(out.Docs) != 1 || out.Docs[0] != want {
			t.Errorf("%s finds %+v, want %+v", query, out, want)
		}
	}
	if out := find(`"query":"alpha","path":"/` + guardtest.Projects + `.sy"`); len(out.Docs) != 1 || !out.PathApplied || out.Docs[0].HPath != "/Projects/Alpha" {
		t.Errorf("below a document: %+v", out)
	}
	if out := find(`"query":"%"`); len(out.Docs) != 1 {
		t.Errorf("%% is a character, not a pattern: %+v", out)
	}
	ok[catalogue.DocumentRemoveOut](t, d, g, "document.remove", `{"id":"`+made.ID+`"}`)
	if out := find(`"query":"50%_"`); out.Docs == nil || len(out.Docs) != 0 || !strings.Contains(out.Hint, guardtest.Work) {
		t.Errorf("after removing: %+v", out)
	}
}

func TestEachBlockOfABatchSucceedsOrFailsAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	ids := []string{guardtest.Intro, guardtest.SecretP, guardtest.Links, guardtest.Missing, guardtest.Intro}
	for _, mode := range []string{"md", "textmark"} {
		out := ok[catalogue.BlockBatchKramdownOut](t, d, writer(), "block.batch_kramdown", fmt.Sprintf(`{"ids":["%s"],"mode":"%s"}`, strings.Join(ids, `","`), mode))
		if out.Requested != 5 || out.Succeeded != 3 || out.Failed != 2 || len(out.Items) != 5 {
			t.Fatalf("%s: %+v", mode, out)
		}
		for i, item := range out.Items {
			if item.ID != ids[i] || item.OK == (item.Error != nil) || item.Error != nil && item.Error.Type != contract.TypeNotFound {
				t.Errorf("%s item %d: %+v", mode, i, item)
			}
		}
		anchor := map[string]string{
			"md":       "((" + guardtest.Secret + " '" + guard.Placeholder + "'))",
			"textmark": `data-id="` + guardtest.Secret + `">` + guard.Placeholder + "</span>",
		}[mode]
		if text := out.Items[2].Kramdown; !strings.Contains(text, anchor) || !strings.Contains(text, "my words") || !strings.Contains(text, "alpha-intro") {
			t.Errorf("%s: %s", mode, text)
		}
	}
}

func TestPlaceAndTrailOfABlock(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	info := ok[catalogue.BlockInfoOut](t, d, writer(), "block.info", `{"id":"`+guardtest.ItemText+`"}`)
	want := catalogue.BlockInfoOut{ID: guardtest.ItemText, Box: guardtest.Work, Path: alphaPath, RootID: guardtest.Alpha, RootTitle: "Alpha", RootChildID: guardtest.List}
	if info != want {
		t.Errorf("info %+v, want %+v", info, want)
	}
	trail := func(args string) string {
		var steps []string
		for _, c := range ok[catalogue.BlockBreadcrumbOut](t, d, writer(), "block.breadcrumb", `{"id":"`+guardtest.ItemText+`"`+args+`}`).Breadcrumb {
			steps = append(steps, c.Type+c.SubType)
		}
		return strings.Join(steps, " ")
	}
	if got := trail(""); got != "d hh1 lu iu p" {
		t.Errorf("trail %s", got)
	}
	if got := trail(`,"excludeTypes":["NodeListItem","l"]`); got != "d hh1 p" {
		t.Errorf("trail without lists %s", got)
	}
	fails(t, d.call(writer(), "block.breadcrumb", `{"id":"`+guardtest.Intro+`","excludeTypes":["NodeNonsense"]}`), contract.InvalidArguments)
	attrs := ok[catalogue.BlockGetAttrsOut](t, d, writer(), "block.get_attrs", `{"id":"`+guardtest.Intro+`"}`).Attrs
	if attrs["memo"] != `say "hi"` || attrs["custom-status"] != "draft" || attrs["id"] != guardtest.Intro {
		t.Errorf("attributes %v", attrs)
	}
}

// TestCountsTellNothingOfAHiddenTitle: the kernel's count has its characters in
// it.
func TestCountsTellNothingOfAHiddenTitle(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.Read))
	size := func(g *contract.Grant, id string) catalogue.WordCount {
		return ok[catalogue.BlockWordCountOut](t, d, g, "block.word_count", `{"ids":["`+id+`"]}`).Stat
	}
	if s := size(writer(), guardtest.EntryP); s.RuneCount != 8 || s.BlockCount != 1 {
		t.Errorf("今天读了一本书。 has %+v", s)
	}
	whole := writer()
	whole.Default = contract.Read
	// See [not available], my words, alpha-intro and Entry.
	if s := size(writer(), guardtest.Links); s.RuneCount != 46 || s.WordCount != 8 || s.RefCount != size(whole, guardtest.Links).RefCount {
		t.Errorf("with the placeholder %+v", s)
	}
}

func TestRecentBlocksStandByDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	made := ok[catalogue.BlockAppendOut](t, d, writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"1\n\n2\n\n3\n\n4"}`)
	out := ok[catalogue.BlockRecentUpdatedOut](t, d, writer(), "block.recent_updated", `{"count":128}`)
	i := slices.IndexFunc(out.Documents, func(r catalogue.RecentDocument) bool { return r.DocumentID == guardtest.Projects })
	if i < 0 || out.Count != len(out.Items) || out.DocumentCount != len(out.Documents) {
		t.Fatalf("recent %+v", out)
	}
	if p := out.Documents[i]; p.Name != "Projects" || p.HPath != "/Projects" || p.Path != "/"+guardtest.Projects+".sy" || p.UpdatedBlockCount != 6 || len(p.SampleBlocks) != 3 {
		t.Errorf("document %+v", p)
	}
	if !slices.ContainsFunc(out.Items, func(b catalogue.RecentBlock) bool { return b.ID == made.IDs[3] && b.Content == "4" && b.Type == "p" }) {
		t.Errorf("blocks %+v", out.Items)
	}
	if one := ok[catalogue.BlockRecentUpdatedOut](t, d, writer(), "block.recent_updated", `{"count":1}`); one.Count != 1 || one.DocumentCount != 1 {
		t.Errorf("one: %+v", one)
	}
}
