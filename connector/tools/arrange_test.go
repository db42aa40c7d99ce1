package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// everywhere runs a test before the sample kernel, and before the SiYuan that the
// environment names, if it does, in a notebook of its own.
func everywhere(t *testing.T, test func(t *testing.T, d *desk, g *contract.Grant, nb string)) {
	t.Helper()
	t.Run("sample kernel", func(t *testing.T) {
		t.Parallel()
		d, g := newDesk(t, policy.Fixed(contract.ReadWriteDelete)), guardtest.Grant(nil)
		g.Default, g.Switches = contract.ReadWriteDelete, contract.Switches()
		test(t, d, g, liveNotebook(t, d, g))
	})
	t.Run("TestLive", func(t *testing.T) {
		d, g := liveDesk(t)
		test(t, d, g, liveNotebook(t, d, g))
	})
}

// ids are the ids of a document's top blocks.
func (d *desk) ids(t *testing.T, doc string) []string {
	t.Helper()
	var ids []string
	for _, c := range d.children(t, doc) {
		ids = append(ids, string(c.ID))
	}
	return ids
}

func TestFoldingIsForWhatTheWindowCanFold(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		doc := liveDoc(t, d, g, nb, "/Fold", "# Head\n\nunder\n\n- one\n")
		ids := d.ids(t, doc)
		fold := func(id string, folded bool) contract.Result {
			return d.call(g, "block.set_fold_state", fmt.Sprintf(`{"id":%q,"folded":%t}`, id, folded))
		}
		for _, id := range []string{ids[0], ids[2]} {
			for _, folded := range []bool{true, true, false, false} {
				if r := fold(id, folded); r.Err != nil {
					t.Errorf("fold %t: %v", folded, r.Err)
				}
				if got := strings.Contains(d.kramdown(t, id), ` fold="1"`); got != folded {
					t.Errorf("folded is %t, want %t", got, folded)
				}
			}
		}
		fails(t, fold(ids[1], true), contract.InvalidTarget)
		fails(t, fold(doc, true), contract.InvalidTarget)
	})
}

func TestIconAndCoverOfADocument(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		doc := liveDoc(t, d, g, nb, "/Look", "text")
		set := func(attrs string) contract.Result {
			return d.call(g, "document.set_attr", fmt.Sprintf(`{"id":%q,"attrs":%s}`, doc, attrs))
		}
		attr := func(name string) string {
			return ok[catalogue.BlockGetAttrsOut](t, d, g, "block.get_attrs", fmt.Sprintf(`{"id":%q}`, doc)).Attrs[name]
		}
		if r := set(`{"icon":"1f4d4","cover":"https://example.org/a.png"}`); r.Err != nil {
			t.Fatal(r.Err)
		}
		if attr("icon") != "1f4d4" || attr("title-img") != `background-image:url("https://example.org/a.png")` {
			t.Errorf("icon %q, cover %q", attr("icon"), attr("title-img"))
		}
		if r := set(`{"cover":""}`); r.Err != nil || attr("title-img") != "" || attr("icon") != "1f4d4" {
			t.Errorf("cleared: %v, icon %q, cover %q", r.Err, attr("icon"), attr("title-img"))
		}
		for _, bad := range []string{`javascript:alert(1)`, `https://x.org/a.png");color:red`, `/assets/../conf/conf.json`, `a.png`, `//x.org/a`} {
			fails(t, set(fmt.Sprintf(`{"cover":%q}`, bad)), contract.InvalidArguments)
		}
	})
}

func TestDocumentsTakeTheOrderThatNamesThemAll(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		a, b, c := liveDoc(t, d, g, nb, "/A", ""), liveDoc(t, d, g, nb, "/B", ""), liveDoc(t, d, g, nb, "/C", "")
		for _, want := range [][]string{{c, a, b}, {c, a, b}, {b, c, a}} {
			out := ok[catalogue.DocumentReorderOut](t, d, g, "document.reorder", fmt.Sprintf(`{"parentID":%q,"orderedIDs":["%s"]}`, nb, strings.Join(want, `","`)))
			if strings.Join(out.Order, " ") != strings.Join(want, " ") {
				t.Errorf("order %v, want %v", out.Order, want)
			}
		}
		for _, bad := range []string{a + `","` + b, a + `","` + b + `","` + b, a + `","` + b + `","` + c + `","` + guardtest.Missing} {
			if r := d.call(g, "document.reorder", fmt.Sprintf(`{"parentID":%q,"orderedIDs":["%s"]}`, nb, bad)); r.Err == nil {
				t.Errorf("%s: %s", bad, r.Body)
			}
		}
	})
}

func TestTodaysNoteIsMadeOnceAndWrittenTo(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		args := fmt.Sprintf(`{"notebook":%q}`, nb)
		first := ok[catalogue.DocumentCreateDailyNoteOut](t, d, g, "document.create_daily_note", args)
		again := ok[catalogue.DocumentCreateDailyNoteOut](t, d, g, "document.create_daily_note", args)
		if !first.Created || again.Created || again.ID != first.ID || !strings.HasPrefix(first.HPath, "/daily note/") {
			t.Errorf("%+v, then %+v", first, again)
		}
		for _, c := range [][2]string{{"middle", "append"}, {"last", "append"}, {"first", "prepend"}} {
			out := ok[catalogue.BlockAddToDailyNoteOut](t, d, g, "block.add_to_daily_note",
				fmt.Sprintf(`{"notebook":%q,"dataType":"markdown","data":%q,"position":%q}`, nb, c[0], c[1]))
			if out.ParentID != first.ID || out.ID == "" {
				t.Errorf("%+v", out)
			}
		}
		if got := strings.Join(strings.Fields(strings.Join(d.texts(t, first.ID), " ")), " "); got != "first middle last" {
			t.Errorf("the note says %q", got)
		}
	})
}

func TestADocumentIsCopiedWithNewIDs(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		doc := liveDoc(t, d, g, nb, "/Up/Copy me", "one\n\ntwo")
		out := ok[catalogue.DocumentDuplicateOut](t, d, g, "document.duplicate", fmt.Sprintf(`{"id":%q}`, doc))
		if out.SourceID != doc || out.ID == doc || out.Notebook != nb || !strings.HasPrefix(out.HPath, "/Up/Copy me") {
			t.Errorf("%+v", out)
		}
		if a, b := d.texts(t, doc), d.texts(t, out.ID); strings.Join(a, "|") != strings.Join(b, "|") {
			t.Errorf("text %q, copy %q", a, b)
		}
		for _, id := range d.ids(t, out.ID) {
			if strings.Contains(strings.Join(d.ids(t, doc), " "), id) {
				t.Errorf("block %s is in both", id)
			}
		}
	})
}

// TestADocumentBecomesAHeadingAndBack: SiYuan damages a document that is named
// as the target itself, and loses the other; the text must arrive all the same.
func TestADocumentBecomesAHeadingAndBack(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		text := func(doc string) string {
			// SiYuan chooses the level of the heading by what stands around it.
			return strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(d.texts(t, doc), " "), "## B", "# B")), " ")
		}
		for i, c := range []struct{ after, heading, want string }{
			{"true", "", "# H p # H2 q # B b"}, {"false", "", "# B b # H p # H2 q"},
			{"true", "h", "# H p # B b # H2 q"}, {"false", "h", "# B b # H p # H2 q"},
		} {
			a := liveDoc(t, d, g, nb, fmt.Sprintf("/T%d/A", i), "# H\n\np\n\n# H2\n\nq")
			b := liveDoc(t, d, g, nb, fmt.Sprintf("/T%d/B", i), "b")
			ok[catalogue.BlockSetAttrsOut](t, d, g, "block.set_attrs", fmt.Sprintf(`{"id":%q,"attrs":{"alias":"bee","custom-x":"1"}}`, b))
			target := a
			if c.heading != "" {
				target = d.ids(t, a)[0]
			}
			ok[catalogue.DocumentToHeadingOut](t, d, g, "document.doc_to_heading", fmt.Sprintf(`{"srcID":%q,"targetID":%q,"after":%s}`, b, target, c.after))
			if got := text(a); got != c.want {
				t.Errorf("after=%s at %q: %q, want %q", c.after, c.heading, got, c.want)
			}
			if k := d.kramdown(t, b); !strings.Contains(k, `alias="bee"`) || !strings.Contains(k, `custom-x="1"`) {
				t.Errorf("the heading lost attributes: %s", k)
			}
			out := ok[catalogue.DocumentHeadingToDocOut](t, d, g, "document.heading_to_doc", fmt.Sprintf(`{"headingID":%q,"targetNotebook":%q}`, b, nb))
			if out.ID != b || text(b) != "b" || strings.Contains(text(a), "# B") {
				t.Errorf("back: %+v, %q, %q", out, text(a), text(b))
			}
			if k := d.kramdown(t, b); !strings.Contains(k, `alias="bee"`) {
				t.Errorf("the document lost attributes: %s", k)
			}
		}
		up := liveDoc(t, d, g, nb, "/Parent", "x")
		liveDoc(t, d, g, nb, "/Parent/Child", "y")
		other := liveDoc(t, d, g, nb, "/Other", "z")
		fails(t, d.call(g, "document.doc_to_heading", fmt.Sprintf(`{"srcID":%q,"targetID":%q}`, up, other)), contract.InvalidTarget)
		fails(t, d.call(g, "document.doc_to_heading", fmt.Sprintf(`{"srcID":%q,"targetID":%q}`, up, d.ids(t, up)[0])), contract.InvalidTarget)
		fails(t, d.call(g, "document.heading_to_doc", fmt.Sprintf(`{"headingID":%q,"targetNotebook":%q}`, d.ids(t, other)[0], nb)), contract.InvalidTarget)
	})
}

func TestAHeadingGoesBehindTheDocumentItNames(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		a, b := liveDoc(t, d, g, nb, "/Up/A", "# H\n\nx"), liveDoc(t, d, g, nb, "/Up/B", "")
		place := ok[catalogue.DocumentLookupOut](t, d, g, "document.lookup", fmt.Sprintf(`{"id":%q}`, a)).IDPath.Path
		h := d.ids(t, a)[0]
		ok[catalogue.DocumentHeadingToDocOut](t, d, g, "document.heading_to_doc", fmt.Sprintf(`{"headingID":%q,"targetNotebook":%q,"previousPath":%q}`, h, nb, place))
		up := ok[catalogue.DocumentLookupOut](t, d, g, "document.lookup", fmt.Sprintf(`{"notebook":%q,"hpath":"/Up"}`, nb)).IDPath.ID
		var got []string
		for _, c := range ok[catalogue.DocumentGetChildDocsOut](t, d, g, "document.get_child_docs", fmt.Sprintf(`{"id":%q}`, up)).Data {
			got = append(got, c.ID)
		}
		if want := a + " " + h + " " + b; strings.Join(got, " ") != want {
			t.Errorf("order %v, want %s", got, want)
		}
	})
}

func TestReferencesAreTransferredWhereTheyMayBeEdited(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d *desk, g *contract.Grant, nb string) {
		from, to := liveDoc(t, d, g, nb, "/From", "f"), liveDoc(t, d, g, nb, "/To", "t")
		citing := d.ids(t, liveDoc(t, d, g, nb, "/Citing", fmt.Sprintf("a ((%s 'From'))\n\nb ((%s \"fixed\"))\n\nc ((%s 'From'))", from, from, from)))
		out := ok[catalogue.BlockTransferReferencesOut](t, d, g, "block.transfer_references", fmt.Sprintf(`{"fromID":%q,"toID":%q,"refIDs":[%q]}`, from, to, citing[0]))
		if len(out.IDs) != 1 || !strings.Contains(d.kramdown(t, citing[0]), to) || strings.Contains(d.kramdown(t, citing[1])+d.kramdown(t, citing[2]), to) {
			t.Errorf("one: %+v", out)
		}
		out = ok[catalogue.BlockTransferReferencesOut](t, d, g, "block.transfer_references", fmt.Sprintf(`{"fromID":%q,"toID":%q}`, from, to))
		if len(out.IDs) != 2 || !strings.Contains(d.kramdown(t, citing[1]), to+` "fixed"`) || !strings.Contains(d.kramdown(t, citing[2]), to+` 'To'`) {
			t.Errorf("the others: %+v\n%s\n%s", out, d.kramdown(t, citing[1]), d.kramdown(t, citing[2]))
		}
		fails(t, d.call(g, "block.transfer_references", fmt.Sprintf(`{"fromID":%q,"toID":%q,"refIDs":[%q]}`, from, to, citing[0])), contract.InvalidTarget)
	})
}

// TestTransferLeavesOtherNotebooksAlone: the kernel changes those of all
// notebooks unless it is told which.
func TestTransferLeavesOtherNotebooksAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	const diary, secret = "20240103090100-diaryci", "20240104090100-secreci"
	for box, id := range map[string]string{guardtest.Diary: diary, guardtest.Private: secret} {
		d.Add(t, guardtest.Doc{Box: box, Path: "/" + id + ".sy", Title: "Cites", Text: "x ((" + guardtest.Heading + " \"h\"))"})
	}
	r := d.call(writer(), "block.transfer_references", `{"fromID":"`+guardtest.Heading+`","toID":"`+guardtest.List+`"}`)
	if r.Err != nil || strings.Contains(d.kramdown(t, diary)+d.kramdown(t, secret), guardtest.List) {
		t.Errorf("%v %s\n%s\n%s", r.Err, r.Body, d.kramdown(t, diary), d.kramdown(t, secret))
	}
}
