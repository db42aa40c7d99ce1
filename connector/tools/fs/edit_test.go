package fs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func (d *desk) kramdown(t testing.TB, id string) string {
	t.Helper()
	text, err := d.Client.Reader().BlockKramdown(context.Background(), siyuan.ID(id), siyuan.KramdownMarkdown)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, "\u200b", "")
}

func TestReplaceChangesTheTextAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, block, want string }{
		"plain text":               {`"old":"Alpha ships","new":"Beta sends"`, guardtest.Intro, "Beta sends a **small** tool. #urgent#"},
		"inside a mark":            {`"old":"small","new":"large"`, guardtest.Intro, "Alpha ships a **large** tool. #urgent#"},
		"with marks":               {`"old":"a **small** tool","new":"*two* tools"`, guardtest.Intro, "Alpha ships *two* tools. #urgent#"},
		"a heading with its mark":  {`"old":"# Alpha goals","new":"# Ziele 目标"`, guardtest.Heading, "# Ziele 目标"},
		"a list item":              {`"old":"Collect","new":"Gather"`, guardtest.ItemText, "Gather notes"},
		"a list item with marker":  {`"old":"- Sort them","new":"- Sort 它们"`, "20240102110012-block0c", "Sort 它们"},
		"a nested item":            {`"old":"  - from mail","new":"  - from post"`, "20240102110007-block07", "from post"},
		"a marker that is told":    {`"edit":[{"old":"tool","new":"Sort them"},{"old":"* Sort them","new":"* Order them"}]`, "20240102110012-block0c", "Order them"},
		"a part that goes":         {`"old":" #urgent#","new":""`, guardtest.Intro, "Alpha ships a **small** tool."},
		"the second of two edits":  {`"edit":[{"old":"ships","new":"moves"},{"old":"moves a","new":"carries one"}]`, guardtest.Intro, "Alpha carries one **small** tool."},
		"after an edit with marks": {`"edit":[{"old":"**small**","new":"_new_"},{"old":"tool","new":"thing"}]`, guardtest.Intro, "Alpha ships a *new* thing."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			before, list := d.attrs(t, c.block), d.kramdown(t, guardtest.List)
			out := ok[catalogue.FSReplaceOut](t, d, "replace", `{"path":"`+alpha+`",`+c.args+`}`)
			if !out.Changed || !out.Success || out.Path != alpha {
				t.Errorf("%+v", out)
			}
			if got := d.kramdown(t, c.block); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			after := d.attrs(t, c.block)
			delete(before, "updated")
			for k, v := range before {
				if after[k] != v {
					t.Errorf("attribute %s is %q, was %q", k, after[k], v)
				}
			}
			ids := []string{guardtest.List, guardtest.Item, guardtest.ItemText, "20240102110006-block06", "20240102110010-block0a", "20240102110011-block0b"}
			for _, id := range ids {
				if !strings.Contains(list, id) || !strings.Contains(d.kramdown(t, guardtest.List), id) {
					t.Errorf("the list lost %s", id)
				}
			}
			if refs := d.kramdown(t, guardtest.Links); !strings.Contains(refs, guardtest.Secret) || !strings.Contains(refs, guardtest.SecretTitle) {
				t.Errorf("a reference was lost: %s", refs)
			}
		})
	}
}

func TestReplaceMeansTheFirstMatchUnlessAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-thriced.sy", Title: "Thrice", Text: "x one x\n\n- x two\n- three\n\n> x quoted"})
	out := ok[catalogue.FSReplaceOut](t, d, "replace", `{"path":"/Work/Thrice","old":"x","new":"y"}`)
	if got := d.text(t, "/Work/Thrice"); got != "y one x\n\n- x two\n- three\n\n> x quoted" || out.Replacements[0].Replaced != 1 {
		t.Errorf("%q %+v", got, out)
	}
	out = ok[catalogue.FSReplaceOut](t, d, "replace", `{"path":"/Work/Thrice","edit":[{"old":"x","new":"z","replace_all":true},{"old":"three","new":"3"}]}`)
	if got := d.text(t, "/Work/Thrice"); got != "y one z\n\n- z two\n- 3\n\n> z quoted" || out.Replacements[0].Replaced != 3 || out.EditsApplied != 2 || !out.Replacements[0].ReplaceAll {
		t.Errorf("%q %+v", got, out)
	}
	out = ok[catalogue.FSReplaceOut](t, d, "replace", `{"path":"/Work/Thrice","old":"z","new":"z","replace_all":true}`)
	if out.Changed || !out.Success {
		t.Errorf("an edit without effect: %+v", out)
	}
}

func TestReplaceKeepsReferencesAndInlineAttributes(t *testing.T) {
	t.Parallel()
	text := "See ((" + guardtest.Intro + " 'alpha-intro')), ((" + guardtest.Entry + " \"my words\")) and [a link](siyuan://blocks/" + guardtest.Intro + "), **red**{: style=\"color:red\"}.\n\n|a|b|\n|-|-|\n|cell one|((" + guardtest.Intro + " \"cell\"))|\n\n```go\nfunc one() {}\n```"
	d := newDesk(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240110000000-refsdoc.sy", Title: "Refs", Text: text})
	before := d.kramdown(t, "20240110000000-refsdoc")
	ok[catalogue.FSReplaceOut](t, d, "replace", `{"path":"/Work/Refs","edit":[{"old":"See","new":"Compare 比较"},{"old":"a link","new":"the link"},{"old":"one","new":"two","replace_all":true}]}`)
	after := d.kramdown(t, "20240110000000-refsdoc")
	for _, kept := range []string{"((" + guardtest.Intro + " 'alpha-intro'))", "((" + guardtest.Entry + ` "my words"))`, `color`, "((" + guardtest.Intro + ` "cell"))`, "siyuan://blocks/" + guardtest.Intro} {
		if strings.Count(before, kept) != strings.Count(after, kept) || !strings.Contains(after, kept) {
			t.Errorf("%s stands %d times, stood %d times", kept, strings.Count(after, kept), strings.Count(before, kept))
		}
	}
	for _, want := range []string{"Compare 比较 ((", "[the link](", "|cell two|", "func two() {}"} {
		if !strings.Contains(after, want) {
			t.Errorf("no %q in %s", want, after)
		}
	}
}

func TestReplaceWritesNothingUnlessEveryEditFits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.text(t, alpha)
	for args, want := range map[string]contract.Code{
		`"edit":[{"old":"small","new":"big"},{"old":"absent","new":"x"}]`: contract.InvalidValue,
		`"old":"goals\n\nAlpha","new":"x"`:                                contract.InvalidValue,  // across blocks
		`"old":"select * from","new":"x"`:                                 contract.InvalidTarget, // in an embed only
		`"old":"` + guardtest.SecretTitle + `","new":"x"`:                 contract.InvalidValue,
		`"old":"` + guardtest.Entry + `","new":"x"`:                       contract.InvalidValue,
		`"old":"custom-status","new":"x"`:                                 contract.InvalidValue,
		`"edit":[{"old":"a","new":"b"}],"old":"c","new":"d"`:              contract.InvalidArguments,
		`"old":"","new":"d"`:                                              contract.InvalidArguments,
		`"new":"d"`:                                                       contract.InvalidArguments,
		`"edit":{"old":"See","new":"Compare"}`:                            contract.WouldLoseAttrs, // beside a reference to something hidden
	} {
		d.fails(t, want, "replace", `{"path":"`+alpha+`",`+args+`}`)
	}
	if got := d.text(t, alpha); got != before {
		t.Errorf("changed to %q", got)
	}
	d.fails(t, contract.PermissionDenied, "replace", `{"path":"/日记/Entry","old":"书","new":"x"}`)
}

func TestReorderPutsAllChildrenInOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twins()...)
	slashes(t, d)
	order := func() (paths []string) {
		for _, i := range ok[catalogue.FSLsOut](t, d, "ls", `{"path":"/Work"}`).Items {
			paths = append(paths, i.Path)
		}
		return paths
	}
	before := order()
	want := []string{"/" + noteTwo, `/Work/A\/B`, "/Work/Projects", "/" + noteOne, "/Work/A"}
	out := ok[catalogue.FSReorderOut](t, d, "reorder", `{"path":"/Work","orderedPaths":%q}`, want)
	if !slices.Equal(out.Order, want) || !slices.Equal(order(), want) || !slices.Equal(out.PreviousOrder, before) || !out.Changed || out.Notebook != guardtest.Work || out.ParentID != guardtest.Work {
		t.Errorf("%+v, and ls shows %q", out, order())
	}
	again := ok[catalogue.FSReorderOut](t, d, "reorder", `{"path":"Work/","orderedPaths":%q}`, want)
	if again.Changed || again.OrderChanged {
		t.Errorf("in order already: %+v", again)
	}
	for _, bad := range [][]string{want[:4], append(slices.Clone(want), alpha), append(slices.Clone(want[:4]), want[0]), {alpha}} {
		d.fails(t, contract.InvalidTarget, "reorder", `{"path":"/Work","orderedPaths":%q}`, bad)
	}
	d.fails(t, contract.NotFound, "reorder", `{"path":"/Work","orderedPaths":%q}`, append(slices.Clone(want[:4]), "/Work/None"))
	d.fails(t, contract.AmbiguousPath, "reorder", `{"path":"/Work","orderedPaths":%q}`, append(slices.Clone(want[:4]), "/Work/Note"))
	d.fails(t, contract.InvalidTarget, "reorder", `{"path":"/","orderedPaths":["/Work"]}`)
	d.fails(t, contract.PermissionDenied, "reorder", `{"path":"/日记","orderedPaths":["/日记/Entry"]}`)
	if got := order(); !slices.Equal(got, want) {
		t.Errorf("a refused call changed the order to %q", got)
	}
	if r := d.call("reorder", fmt.Sprintf(`{"path":"/Work/Projects","orderedPaths":["%s"]}`, alpha)); r.Err != nil {
		t.Errorf("the only child: %v", r.Err)
	}
}
