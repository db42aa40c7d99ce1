package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const alpha = "/Work/Projects/Alpha"

// text is the whole text of a document.
func (d *desk) text(t testing.TB, path string) string {
	t.Helper()
	return ok[catalogue.FSReadOut](t, d, "read", `{"path":%q,"tokenBudget":32000,"blockLimit":200}`, path).Content
}

func (d *desk) attrs(t testing.TB, id string) siyuan.Attrs {
	t.Helper()
	attrs, err := d.Client.Reader().BlockAttrs(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return attrs
}

func TestReadShowsWhatGetDocShows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	out := ok[catalogue.FSReadOut](t, d, "read", `{"path":"`+alpha+`","includeBlockIds":true,"blockLimit":2}`)
	if out.Path != alpha || out.TotalBlocks != 5 || out.ReturnedBlocks != 2 || !out.HasNextWindow || out.NextWindow.BlockStart != 2 ||
		out.Content != "# Alpha goals\n\nAlpha ships a **small** tool. #urgent#" || out.BlockRefs[1].ID != guardtest.Intro || out.Outline[0].Title != "Alpha goals" {
		t.Errorf("%+v", out)
	}
	if strings.Contains(d.text(t, alpha), guardtest.SecretTitle) {
		t.Error("a hidden title is shown")
	}
	if err := d.fails(t, contract.InvalidArguments, "read", `{"path":"`+alpha+`","page":1}`); !strings.Contains(err.Message, "blockStart") {
		t.Errorf("%q does not say what to use instead", err.Message)
	}
}

func TestWriteMakesADocumentBelowWhatExists(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for path, text := range map[string]string{
		"/Work/Gamma": "# Gamma\n\nFirst line.", "/Work/Projects/50% & <b> \"q\" 世界 📓": "x", "/Work/家 👨\u200d👩\u200d👧": "joined", "Projects/Delta": "no notebook named",
		"/" + guardtest.Alpha + "/Below": "by id", `/Work/back\\slash`: "y",
	} {
		out := ok[catalogue.FSWriteOut](t, d, "write", `{"path":%q,"markdown":%q}`, path, text)
		if !out.Created || out.Overwritten || !contract.IsID(out.ID) {
			t.Errorf("%s: %+v", path, out)
		}
		if got := d.text(t, out.Path); got != strings.TrimPrefix(text, "# Gamma\n\n") {
			t.Errorf("%s: %q", path, got)
		}
		if got := d.text(t, "/"+out.ID); got != d.text(t, out.Path) {
			t.Errorf("%s is not document %s", out.Path, out.ID)
		}
	}
	d.fails(t, contract.AlreadyExists, "write", `{"path":%q,"markdown":"again"}`, "/Work/家 👨\u200d👩\u200d👧")
	if err := d.fails(t, contract.NotFound, "write", `{"path":"/Work/No/Such/Doc","markdown":"x"}`); !strings.Contains(err.Hint, "above") {
		t.Errorf("hint %q", err.Hint)
	}
	d.fails(t, contract.NotFound, "write", `{"path":"/Nowhere/Doc","markdown":"x"}`)
	d.fails(t, contract.NotFound, "write", `{"path":"/Private/Doc","markdown":"x"}`)
	d.fails(t, contract.PermissionDenied, "write", `{"path":"/日记/Doc","markdown":"x"}`)
	d.grant.Levels[guardtest.Archive] = contract.ReadWrite
	d.fails(t, contract.NotebookClosed, "write", `{"path":"/Archive/Doc","markdown":"x"}`)
	d.fails(t, contract.InvalidTarget, "write", `{"path":"/Work","markdown":"x"}`)
	d.fails(t, contract.InvalidArguments, "write", `{"path":"/","markdown":"x"}`)
	for _, title := range []string{`A\/B`, "..", " lead", "tab\there"} { // K10
		d.fails(t, contract.InvalidArguments, "write", `{"path":%q,"markdown":"x"}`, "/Work/"+title)
	}
}

func TestK06AnExistingDocumentIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.text(t, "/Work/Projects")
	err := d.fails(t, contract.AlreadyExists, "write", `{"path":"/Work/Projects","markdown":"new"}`)
	if !strings.Contains(string(err.Detail), guardtest.Projects) || !strings.Contains(err.Hint, "overwrite") {
		t.Errorf("%+v %s", err, err.Detail)
	}
	if got := d.text(t, "/Work/Projects"); got != before {
		t.Errorf("changed to %q", got)
	}
}

func TestOverwriteSwapsTheBodyAndKeepsTheDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.Client.Writer()
	if err := w.SetBlockAttrs(context.Background(), guardtest.Projects, siyuan.Attrs{"icon": "1f4d4", "custom-own": "stays", "memo": "kept"}); err != nil {
		t.Fatal(err)
	}
	body := "# New\n\n- one\n  - two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSee ((" + guardtest.Intro + " \"intro\"))."
	out := ok[catalogue.FSWriteOut](t, d, "write", `{"path":"/Work/Projects","markdown":%q,"overwrite":true}`, body)
	if out.ID != guardtest.Projects || out.Created || !out.Overwritten || out.Path != "/Work/Projects" {
		t.Errorf("%+v", out)
	}
	text := d.text(t, "/Work/Projects")
	for _, want := range []string{"# New", "- one", "two", "|1|2|", "((" + guardtest.Intro + ` "intro"))`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "Index of projects") {
		t.Errorf("the old text is still there: %q", text)
	}
	if a := d.attrs(t, guardtest.Projects); a["icon"] != "1f4d4" || a["custom-own"] != "stays" || a["memo"] != "kept" || a["title"] != "Projects" {
		t.Errorf("attributes %v", a)
	}
	ok[catalogue.FSWriteOut](t, d, "write", `{"path":"/Work/Projects","markdown":"","overwrite":true}`)
	if got := d.text(t, "/Work/Projects"); got != "" {
		t.Errorf("emptied, it has %q", got)
	}
}

// TestK29OverwriteRefusesWhatWouldBeLost: at once after the attribute was set,
// and with everything that would go named.
func TestK29OverwriteRefusesWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, d *desk)
		path    string
		named   []string
	}{
		"names, attributes and references": {nil, alpha, nil},
		"an alias on a nested item": {func(t *testing.T, d *desk) {
			text := "- {: id=\"20240110000000-itemone\"}a\n  {: id=\"20240110000000-itempar\"}\n\n  - {: id=\"20240110000000-itemtwo\"}b\n    {: id=\"20240110000000-itempa2\"}\n"
			d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-nestdoc.sy", Title: "Nested", Text: text})
			if err := d.Client.Writer().SetBlockAttrs(context.Background(), "20240110000000-itemtwo", siyuan.Attrs{"alias": "inner"}); err != nil {
				t.Fatal(err)
			}
		}, "/Work/Nested", []string{"20240110000000-itemtwo", "alias"}},
		"a block that another document cites": {func(t *testing.T, d *desk) {
			d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-citedoc.sy", Title: "Cited", Text: "cited\n{: id=\"20240110000000-citedpa\"}"})
			d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-citingd.sy", Title: "Citing", Text: "see ((20240110000000-citedpa \"it\"))\n{: id=\"20240110000000-citingp\"}"})
		}, "/Work/Cited", []string{"20240110000000-citedpa", "20240110000000-citingp"}},
		"a super block": {func(t *testing.T, d *desk) {
			d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-superdo.sy", Title: "Super", Text: "{{{row\nleft\n\nright\n\n}}}\n{: id=\"20240110000000-superbl\"}"})
		}, "/Work/Super", []string{"20240110000000-superbl", `"s"`}},
		"an embed": {func(t *testing.T, d *desk) {
			d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-embeddo.sy", Title: "Embeds", Text: "{{select * from blocks where id='" + guardtest.Intro + "'}}\n{: id=\"20240110000000-embedbl\"}"})
		}, "/Work/Embeds", []string{"20240110000000-embedbl"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			if c.prepare != nil {
				c.prepare(t, d)
			}
			before := d.text(t, c.path)
			err := d.fails(t, contract.WouldLoseAttrs, "write", `{"path":%q,"markdown":"all new","overwrite":true}`, c.path)
			for _, want := range c.named {
				if !strings.Contains(string(err.Detail), want) {
					t.Errorf("the error does not name %s: %s", want, err.Detail)
				}
			}
			if after := d.text(t, c.path); after != before {
				t.Errorf("changed to %q", after)
			}
		})
	}
}

func TestRmTakesADocumentWithAllBelow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if out := ok[catalogue.FSRmOut](t, d, "rm", `{"path":"/Work/Projects"}`); out.Count != 2 || out.Path != "/Work/Projects" {
		t.Errorf("%+v", out)
	}
	d.fails(t, contract.NotFound, "read", `{"path":"`+alpha+`"}`)
	d.fails(t, contract.PermissionDenied, "rm", `{"path":"/日记/Entry"}`)
	d.fails(t, contract.InvalidTarget, "rm", `{"path":"/Work"}`)
	d.fails(t, contract.InvalidTarget, "rm", `{"path":"/"}`)
}

func TestMvMovesAndRenames(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twins()...)
	for _, c := range []struct{ from, to, moved string }{
		{"/Work/Projects/Alpha", "/Work/Projects/Alpha 一", "/Work/Projects/Alpha 一"},
		{"/Work/Projects/Alpha 一", "/Work/Alpha 一", "/Work/Alpha 一"},
		{"/Work/Alpha 一", "/" + noteTwo + "/Beta", "/" + noteTwo + "/Beta"},
		{"/" + noteTwo + "/Beta", "/Work/Projects/Alpha", "/Work/Projects/Alpha"},
		{"/Work/Projects/Alpha", "/Work/Projects/Alpha", "/Work/Projects/Alpha"},
	} {
		out := ok[catalogue.FSMvOut](t, d, "mv", `{"from":%q,"to":%q}`, c.from, c.to)
		if out.Path != c.from || out.MovedTo != c.moved {
			t.Errorf("%+v", out)
		}
		if refs := ok[catalogue.FSReadOut](t, d, "read", `{"path":%q,"includeBlockIds":true}`, c.moved).BlockRefs; len(refs) < 2 || refs[1].ID != guardtest.Intro {
			t.Errorf("at %s is another document", c.moved)
		}
		if c.from != c.to {
			d.fails(t, contract.NotFound, "read", `{"path":%q}`, c.from)
		}
	}
	d.fails(t, contract.AlreadyExists, "mv", `{"from":"`+alpha+`","to":"/Work/Projects"}`)
	d.fails(t, contract.AlreadyExists, "mv", `{"from":"`+alpha+`","to":"/Work/Note"}`)
	d.fails(t, contract.InvalidTarget, "mv", `{"from":"/Work/Projects","to":"`+alpha+`/Projects"}`)
	d.fails(t, contract.NotFound, "mv", `{"from":"`+alpha+`","to":"/Work/No/Alpha"}`)
	d.fails(t, contract.InvalidArguments, "mv", `{"from":"`+alpha+`","to":%q}`, `/Work/A\/B`)
	d.fails(t, contract.InvalidArguments, "mv", `{"from":"`+alpha+`","to":"/Work"}`)
	d.fails(t, contract.PermissionDenied, "mv", `{"from":"`+alpha+`","to":"/日记/Alpha"}`)
	d.grant.Levels[guardtest.Work], d.grant.Levels[guardtest.Diary] = contract.ReadWrite, contract.ReadWrite
	if err := d.fails(t, contract.PermissionDenied, "mv", `{"from":"`+alpha+`","to":"/日记/Alpha"}`); !strings.Contains(string(err.Detail), `"rwd"`) {
		t.Errorf("detail %s", err.Detail)
	}
}

func TestSearchFindsLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("前", 500) + " needle " + strings.Repeat("后", 300)
	d := newDesk(t, guardtest.Doc{Box: guardtest.Diary, Path: "/20240110000000-longdoc.sy", Title: "Long", Text: "first\n\n```\ncode one\n\ncode needle\n```\n\n" + long + "\n\n> quoted needle\n> second"})
	found := func(args string) (got []string) {
		for _, l := range ok[catalogue.FSSearchOut](t, d, "search", args).Data {
			got = append(got, fmt.Sprintf("%s:%d:%d", l.Path, l.Line, l.BlockIndex))
		}
		return got
	}
	for args, want := range map[string][]string{
		`{"path":"/","query":"SHIPS a **small**"}`:                   {alpha + ":3:1"},
		`{"path":"/","query":"SHIPS","caseSensitive":true}`:          nil,
		`{"path":"/Work","query":"needle"}`:                          nil,
		`{"path":"/日记","query":"needle"}`:                            {"/日记/Long:6:1", "/日记/Long:9:2", "/日记/Long:11:3"},
		`{"path":"/日记/Long","query":"^code \\w+$","regex":true}`:     {"/日记/Long:4:1", "/日记/Long:6:1"},
		`{"path":"/","query":"\\Aquoted|^> second\\z","regex":true}`: {"/日记/Long:12:3"},
		`{"path":"` + alpha + `","query":"from mail"}`:               {alpha + ":7:2"},
		`{"path":"/Work/Projects","query":"collect"}`:                {alpha + ":5:2"},
		`{"path":"/","query":"confidential"}`:                        nil,
		`{"path":"/","query":"` + guardtest.SecretTitle + `"}`:       nil,
		`{"path":"/","query":"custom-status"}`:                       nil,
		`{"path":"/","query":"读了"}`:                                  {"/日记/Entry:1:0"},
	} {
		if got := found(args); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	out := ok[catalogue.FSSearchOut](t, d, "search", `{"path":"/日记","query":"needle","page":2,"pageSize":1}`)
	if out.Page != 2 || len(out.Data) != 1 || !out.Data[0].TextTruncated || out.Data[0].OriginalTextLength != 808 || !strings.Contains(out.Data[0].Text, "needle") || len([]rune(out.Data[0].Text)) != 200 || !out.HasNextPage {
		t.Errorf("%+v", out)
	}
	d.fails(t, contract.InvalidArguments, "search", `{"path":"/","query":"(","regex":true}`)
	d.fails(t, contract.NotFound, "search", `{"path":"/Private","query":"a"}`)
}

// TestLinesAreThoseThatReadShows for every line of the home.
func TestLinesAreThoseThatReadShows(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-kindsof.sy", Title: "Kinds",
		Text: "# H\n\n1. one\n2. two\n\n   para in item\n\n   > quote in item\n\n> q\n>\n> - item in quote\n\n{{{col\nleft\n\nright\n\n}}}\n\n|a|b|\n|-|-|\n|1|2|\n\n```js\n{: id=\"20240110000000-notanid\"}\n```\n\n$$\nx^2\n$$\n\n---\n\nlast"})
	for _, path := range []string{alpha, "/Work/Projects", "/Work/Kinds", "/日记/Entry"} {
		lines := strings.Split(d.text(t, path), "\n")
		out := ok[catalogue.FSSearchOut](t, d, "search", `{"path":%q,"query":"^","regex":true,"pageSize":200}`, path)
		got := map[int]string{}
		for _, l := range out.Data {
			if l.Path == path {
				got[l.Line] = l.Text
			}
		}
		for i, want := range lines {
			if text, found := got[i+1]; text != want && !(want == "" && !found) {
				t.Errorf("%s line %d: %q, read shows %q", path, i+1, text, want)
			}
		}
	}
}

func TestResultsAreJSONObjectsWithoutNulls(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for action, args := range map[string]string{"ls": `{"path":"` + alpha + `"}`, "tree": `{"path":"` + alpha + `"}`, "search": `{"path":"/","query":"nosuchtext"}`} {
		r := d.call(action, args)
		if r.Err != nil || strings.Contains(string(r.Body), "null") || !json.Valid(r.Body) {
			t.Errorf("%s: %v %s", action, r.Err, r.Body)
		}
	}
}
