package tools_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// texts are the texts of a block's children in order.
func (d *desk) texts(t *testing.T, id string) []string {
	t.Helper()
	children, err := d.Client.Reader().ChildBlocks(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range children {
		out = append(out, strings.ReplaceAll(c.Markdown, "\u200b", ""))
	}
	return out
}

func (d *desk) kramdown(t *testing.T, id string) string {
	t.Helper()
	text, err := d.Client.Reader().BlockKramdown(context.Background(), siyuan.ID(id), siyuan.KramdownMarkdown)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (d *desk) exists(t *testing.T, id string) bool {
	t.Helper()
	there, err := d.Client.Reader().BlockExists(context.Background(), siyuan.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return there
}

func full() *contract.Grant { return grantOn(contract.ReadWriteDelete, contract.ReadWriteDelete) }

// plain is a document of three paragraphs A, B, C in Work.
const (
	plainDoc = "20240107000000-plaindc"
	plainA   = "20240107000001-plaina0"
	plainB   = "20240107000002-plainb0"
	plainC   = "20240107000003-plainc0"
)

func newPlainDesk(t *testing.T) *desk {
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	text := ""
	for _, p := range [][2]string{{plainA, "A"}, {plainB, "B"}, {plainC, "C"}} {
		text += p[1] + "\n{: id=\"" + p[0] + "\"}\n\n"
	}
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + plainDoc + ".sy", Title: "Plain", Text: text})
	return d
}

func TestInsertPutsTextWhereItIsAskedTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ where, want string }{
		"behind":                    {`"previousID":"` + plainB + `"`, "A B x y C"},
		"before":                    {`"nextID":"` + plainB + `"`, "A x y B C"},
		"first in a document":       {`"parentID":"` + plainDoc + `"`, "x y A B C"},
		"next wins over previous":   {`"nextID":"` + plainC + `","previousID":"` + plainA + `"`, "A B x y C"},
		"previous wins over parent": {`"previousID":"` + plainC + `","parentID":"` + plainDoc + `"`, "A B C x y"},
	} {
		for form, args := range map[string]string{
			"one text": `{"dataType":"markdown","data":"x\n\ny",` + c.where + `}`,
			"entries":  `{"blocks":[{"dataType":"markdown","data":"x"},{"dataType":"markdown","data":"y"}],` + c.where + `}`,
		} {
			d := newPlainDesk(t)
			out := ok[catalogue.BlockInsertOut](t, d, writer(), "block.insert", args)
			if got := strings.Join(d.texts(t, plainDoc), " "); got != c.want {
				t.Errorf("%s, %s: %q, want %q", name, form, got, c.want)
			}
			if out.Count != 2 || len(out.CreatedBlockIDs) != 2 || out.ID != out.CreatedBlockIDs[0] || !out.Success {
				t.Fatalf("%s, %s: %+v", name, form, out)
			}
			for i, want := range []string{"x\n", "y\n"} {
				if got := d.kramdown(t, out.CreatedBlockIDs[i]); !strings.HasPrefix(got, want) {
					t.Errorf("%s, %s: block %d is %q, want %q", name, form, i, got, want)
				}
			}
		}
	}
}

func TestEntriesWithPlacesOfTheirOwnKeepTheirOrder(t *testing.T) {
	t.Parallel()
	d := newPlainDesk(t)
	entry := func(text, where string) string {
		return fmt.Sprintf(`{"dataType":"markdown","data":%q%s}`, text, where)
	}
	out := ok[catalogue.BlockInsertOut](t, d, writer(), "block.insert", `{"previousID":"`+plainA+`","blocks":[`+strings.Join([]string{
		entry("1", ""), entry("2\n\n2b", `,"nextID":"`+plainC+`"`), entry("3", ""), entry("4", `,"parentID":"`+plainDoc+`"`), entry("5", `,"nextID":"`+plainC+`"`),
	}, ",")+`]}`)
	if got := strings.Join(d.texts(t, plainDoc), " "); got != "4 A 1 3 B 2 2b 5 C" {
		t.Errorf("order %q", got)
	}
	var said []string
	for _, id := range out.CreatedBlockIDs {
		text, _, _ := strings.Cut(d.kramdown(t, id), "\n")
		said = append(said, text)
	}
	if got := strings.Join(said, " "); got != "1 2 2b 3 4 5" || out.Count != 6 {
		t.Errorf("ids are of %q, want those of the entries in their order", got)
	}
}

func TestNothingIsInsertedUnlessEverythingCanBe(t *testing.T) {
	t.Parallel()
	d := newPlainDesk(t)
	first := `{"dataType":"markdown","data":"x","previousID":"` + plainA + `"}`
	for second, want := range map[string]contract.Code{
		`{"dataType":"markdown","data":"y","previousID":"` + guardtest.Missing + `"}`:                  contract.NotFound,
		`{"dataType":"markdown","data":"y","previousID":"` + guardtest.EntryP + `"}`:                   contract.PermissionDenied,
		`{"dataType":"markdown","data":"y","parentID":"` + plainB + `"}`:                               contract.InvalidTarget,
		`{"dataType":"markdown","data":"((` + guardtest.SecretP + `))","previousID":"` + plainA + `"}`: contract.HiddenReference,
		`{"dataType":"dom","data":"<b>no block</b>","previousID":"` + plainA + `"}`:                    contract.InvalidValue,
	} {
		fails(t, d.call(writer(), "block.insert", `{"blocks":[`+first+`,`+second+`]}`), want)
	}
	if got := strings.Join(d.texts(t, plainDoc), " "); got != "A B C" {
		t.Errorf("the document is %q now", got)
	}
}

func TestPlacesWhereNothingCanStandAreExplained(t *testing.T) {
	t.Parallel()
	d := newPlainDesk(t)
	for where, hint := range map[string]string{
		`"previousID":"` + plainDoc + `"`:        "parentID",
		`"nextID":"` + plainDoc + `"`:            "parentID",
		`"parentID":"` + plainA + `"`:            "previousID",
		`"parentID":"` + guardtest.Heading + `"`: "previousID",
	} {
		r := d.call(writer(), "block.insert", `{"dataType":"markdown","data":"x",`+where+`}`)
		fails(t, r, contract.InvalidTarget)
		if r.Err != nil && !strings.Contains(r.Err.Hint, hint) {
			t.Errorf("%s: hint %q does not name %s", where, r.Err.Hint, hint)
		}
	}
}

// TestK04OnlyItemsOfItsKindGoIntoAList: the kernel stores whatever it is given
// between the items of a list, and drops all but the first of several items.
func TestK04OnlyItemsOfItsKindGoIntoAList(t *testing.T) {
	t.Parallel()
	beside := `"previousID":"` + guardtest.Item + `"`
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	before := d.kramdown(t, guardtest.List)
	for _, text := range []string{`plain`, `1. numbered`, `- [ ] task`, `- one\n- two`, `- one\n\ntext`, `# heading`, `> - quoted`} {
		for _, where := range []string{beside, `"nextID":"` + guardtest.Item + `"`} {
			fails(t, d.call(writer(), "block.insert", `{"dataType":"markdown","data":"`+text+`",`+where+`}`), contract.InvalidTarget)
		}
	}
	fails(t, d.call(writer(), "block.prepend", `{"dataType":"markdown","data":"plain","parentID":"`+guardtest.List+`"}`), contract.InvalidTarget)
	if got := d.kramdown(t, guardtest.List); len(got) != len(before) {
		t.Errorf("the list changed:\n%s", got)
	}
	for _, args := range []string{
		`{"dataType":"markdown","data":"- new",` + beside + `}`,
		`{"dataType":"markdown","data":"* new\n  - nested\n  - nested too",` + beside + `}`,
		`{"blocks":[{"dataType":"markdown","data":"- new"},{"dataType":"markdown","data":"- newer"}],` + beside + `}`,
		`{"dataType":"markdown","data":"- new\n- newer","parentID":"` + guardtest.List + `"}`,
	} {
		d := newDesk(t, policy.Fixed(contract.ReadWrite))
		out := ok[catalogue.BlockInsertOut](t, d, writer(), "block.insert", args)
		children, err := d.Client.Reader().ChildBlocks(context.Background(), guardtest.List)
		if err != nil {
			t.Fatal(err)
		}
		if len(children) != 2+out.Count {
			t.Errorf("%s: %d items, want %d", args, len(children), 2+out.Count)
		}
		for _, c := range children {
			if c.Type != "i" {
				t.Errorf("%s: a %s stands in the list", args, c.Type)
			}
		}
	}
}

// TestK30InsertedTextIsStoredByteForByte covers prepend and insert.
func TestK30InsertedTextIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Hello — 世界 𠮷 👨‍👩‍👧", strings.Repeat("海洋𠮷", 64<<10/10)} {
		d := newPlainDesk(t)
		for action, where := range map[string]string{"prepend": `"parentID":"` + plainDoc + `"`, "insert": `"nextID":"` + plainC + `"`} {
			out := ok[struct{ ID string }](t, d, writer(), "block."+action, fmt.Sprintf(`{"dataType":"markdown","data":%q,%s}`, text, where))
			if got, _, _ := strings.Cut(d.kramdown(t, out.ID), "\n{:"); got != text {
				t.Errorf("%s: %d bytes came back as %d", action, len(text), len(got))
			}
		}
	}
}

func TestDeleteTakesABlockWithAllInItAndNoMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	n := len(d.texts(t, guardtest.Alpha))
	ok[catalogue.BlockDeleteOut](t, d, full(), "block.delete", `{"id":"`+guardtest.Heading+`"}`)
	ok[catalogue.BlockDeleteOut](t, d, full(), "block.delete", `{"id":"`+guardtest.List+`"}`)
	if got := len(d.texts(t, guardtest.Alpha)); got != n-2 || d.exists(t, guardtest.Item) || !d.exists(t, guardtest.Intro) {
		t.Errorf("%d blocks, want %d; the list's item must be gone, the text below the heading not", got, n-2)
	}
	r := d.call(full(), "block.delete", `{"id":"`+guardtest.Alpha+`"}`)
	fails(t, r, contract.InvalidTarget)
	if r.Err != nil && !strings.Contains(r.Err.Hint, "document.remove") {
		t.Errorf("hint %q", r.Err.Hint)
	}
}

func TestMoveKeepsOrderAndIDs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, want string }{
		"behind another":           {`"id":"` + plainA + `","previousID":"` + plainC + `"`, "B C A"},
		"to the start":             {`"id":"` + plainC + `","parentID":"` + plainDoc + `"`, "C A B"},
		"several behind another":   {`"ids":["` + plainB + `","` + plainA + `"],"previousID":"` + plainC + `"`, "C B A"},
		"several to the start":     {`"ids":["` + plainC + `","` + plainB + `"],"parentID":"` + plainDoc + `"`, "C B A"},
		"where it is":              {`"id":"` + plainB + `","previousID":"` + plainA + `"`, "A B C"},
		"previous wins over other": {`"id":"` + plainA + `","previousID":"` + plainB + `","parentID":"` + plainDoc + `"`, "B A C"},
	} {
		d := newPlainDesk(t)
		out := ok[catalogue.BlockMoveOut](t, d, writer(), "block.move", `{`+c.args+`}`)
		if got := strings.Join(d.texts(t, plainDoc), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if want := append(out.IDs, out.ID); out.Count != len(out.FinalOrder) || !slices.Contains(want, out.FinalOrder[0]) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestMoveBetweenNotebooksNeedsRwdAtTheSourceAndRwAtTheTarget(t *testing.T) {
	t.Parallel()
	args := `{"id":"` + guardtest.Intro + `","previousID":"` + guardtest.EntryP + `"}`
	for _, c := range []struct {
		work, diary contract.Level
		allowed     bool
	}{
		{contract.ReadWriteDelete, contract.ReadWrite, true}, {contract.ReadWriteDelete, contract.Read, false},
		{contract.ReadWrite, contract.ReadWrite, false}, {contract.ReadWrite, contract.ReadWriteDelete, false},
		{contract.Read, contract.ReadWriteDelete, false},
	} {
		d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
		r := d.call(grantOn(c.work, c.diary), "block.move", args)
		if !c.allowed {
			fails(t, r, contract.PermissionDenied)
			if want := map[bool]string{true: `"required":"rwd"`, false: `"required":"rw"`}[c.work < contract.ReadWriteDelete]; !strings.Contains(string(r.Err.Body()), want) {
				t.Errorf("%v: %s, want %s", c, r.Err.Body(), want)
			}
			continue
		}
		if r.Err != nil || len(d.texts(t, guardtest.Entry)) != 2 || !strings.Contains(d.kramdown(t, guardtest.Intro), `custom-status="draft"`) {
			t.Errorf("%v: %v", c, r.Err)
		}
	}
}

func TestMovesThatWouldDamageADocumentAreRefused(t *testing.T) {
	t.Parallel()
	d := newPlainDesk(t)
	const numbered = "20240107000009-number0"
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240107000008-numberd.sy", Title: "Numbers", Text: "1. one\n{: id=\"" + numbered + "\"}\n"})
	before := d.kramdown(t, guardtest.Alpha)
	for name, args := range map[string]string{
		"into itself":              `"id":"` + guardtest.List + `","parentID":"` + guardtest.List + `"`,
		"into its own child":       `"id":"` + guardtest.List + `","parentID":"` + guardtest.Item + `"`,
		"behind itself":            `"id":"` + plainA + `","previousID":"` + plainA + `"`,
		"behind a document":        `"id":"` + plainA + `","previousID":"` + plainDoc + `"`,
		"into a paragraph":         `"id":"` + plainA + `","parentID":"` + plainB + `"`,
		"into a heading":           `"id":"` + plainA + `","parentID":"` + guardtest.Heading + `"`,
		"a document":               `"id":"` + plainDoc + `","parentID":"` + guardtest.Alpha + `"`,
		"twice":                    `"ids":["` + plainA + `","` + plainA + `"],"previousID":"` + plainC + `"`,
		"a paragraph into a list":  `"id":"` + plainA + `","parentID":"` + guardtest.List + `"`,
		"a paragraph beside items": `"id":"` + plainA + `","previousID":"` + guardtest.Item + `"`,
		"an item out of its list":  `"id":"` + guardtest.Item + `","previousID":"` + plainA + `"`,
		"an item to another kind":  `"id":"` + guardtest.Item + `","parentID":"` + numbered + `"`,
	} {
		r := d.call(full(), "block.move", `{`+args+`}`)
		if r.Err == nil || contract.CodeOf(r.Err) != contract.InvalidTarget {
			t.Errorf("%s: %v %s, want invalid_target", name, r.Err, r.Body)
		}
	}
	if got := d.kramdown(t, guardtest.Alpha); len(got) != len(before) || strings.Join(d.texts(t, plainDoc), " ") != "A B C" {
		t.Errorf("something moved:\n%s", got)
	}
	ok[catalogue.BlockMoveOut](t, d, writer(), "block.move", `{"id":"`+plainA+`","parentID":"`+guardtest.Item+`"}`)
	if got := d.texts(t, guardtest.Item); got[0] != "A" {
		t.Errorf("a paragraph may go into an item, which holds %q", got)
	}
}

func TestSetAttrsMergesAndRemoves(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	value := `a & <b> "q" {x} 𠮷`
	out := ok[catalogue.BlockSetAttrsOut](t, d, writer(), "block.set_attrs",
		fmt.Sprintf(`{"id":%q,"attrs":{"custom-x":%q,"memo":"","alias":" padded "}}`, guardtest.Intro, value))
	stored, err := d.Client.Reader().BlockAttrs(context.Background(), guardtest.Intro)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"custom-x": value, "alias": "padded", "name": "alpha-intro", "custom-status": "draft", "bookmark": "Review", "id": guardtest.Intro}
	for k, v := range want {
		if stored[k] != v || out.Attrs[k] != v {
			t.Errorf("%s: stored %q, told %q, want %q", k, stored[k], out.Attrs[k], v)
		}
	}
	if _, there := out.Attrs["memo"]; there {
		t.Errorf("memo is still there: %v", out.Attrs)
	}
}

func TestAttributesThatAreNotTheCallersAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	for _, name := range []string{"id", "updated", "type", "title", "icon", "title-img", "fold", "custom-avs", "custom-riff-decks", "custom-hidden",
		"av-names", "custom-sy-av-view", "foo", "Custom-X", "custom_x", "custom-", "", "ключ"} {
		r := d.call(writer(), "block.set_attrs", fmt.Sprintf(`{"id":%q,"attrs":{"custom-ok":"1",%q:"x"}}`, guardtest.Intro, name))
		fails(t, r, contract.InvalidArguments)
	}
	fails(t, d.call(writer(), "block.set_attrs", `{"id":"`+guardtest.Intro+`","attrs":{}}`), contract.InvalidArguments)
	if strings.Contains(d.kramdown(t, guardtest.Intro), "custom-ok") {
		t.Error("an attribute beside a refused one was set")
	}
}

// TestK04AppendingToAListTakesItsItems: of plain text the kernel would make an
// item with a marker of zero bytes.
func TestK04AppendingToAListTakesItsItems(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	appendTo := func(text string) contract.Result {
		return d.call(writer(), "block.append", fmt.Sprintf(`{"parentID":%q,"dataType":"markdown","data":%q}`, guardtest.List, text))
	}
	for _, text := range []string{"plain", "1. numbered", "- item\n\ntext"} {
		fails(t, appendTo(text), contract.InvalidTarget)
	}
	if r := appendTo("- one\n- two"); r.Err != nil || len(d.texts(t, guardtest.List)) != 4 {
		t.Errorf("%v: %q", r.Err, d.texts(t, guardtest.List))
	}
}

// TestK04HoldsForDOMToo: of several items beside an item the kernel stores one.
func TestK04HoldsForDOMToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	dom := func(id string) string {
		dom, err := d.Client.Reader().BlockDOM(context.Background(), siyuan.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		return dom
	}
	insert := func(dom string) contract.Result {
		return d.call(writer(), "block.insert", fmt.Sprintf(`{"dataType":"dom","data":%q,"previousID":%q}`, dom, guardtest.Item))
	}
	item := dom(guardtest.Item)
	for name, bad := range map[string]string{"a paragraph": dom(guardtest.Intro), "a list": dom(guardtest.List), "two items": item + item} {
		if r := insert(bad); r.Err == nil || contract.CodeOf(r.Err) != contract.InvalidTarget {
			t.Errorf("%s: %v %s, want invalid_target", name, r.Err, r.Body)
		}
	}
	if r := insert(item); r.Err != nil || len(d.texts(t, guardtest.List)) != 3 {
		t.Errorf("an item: %v; the list has %d items, want 3", r.Err, len(d.texts(t, guardtest.List)))
	}
}
