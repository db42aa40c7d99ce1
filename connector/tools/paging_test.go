package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// long is how one read deals with more than fits into an answer.
type long struct {
	args string
	list string // the list, or text, that goes on: with page where it takes that, else with blockStart
	cut  string // words of the hint that leads to the rest
	why  string // the answer is small by its nature, or why it is not tried here
}

const (
	longDoc  = "20240107000010-longdoc"
	headsDoc = "20240107000011-headdoc"
	manyDocs = "20240107000012-manydoc"
)

// longReads has every read of the catalogue.
func longReads() map[string]long {
	at := func(id string) string { return `{"id":"` + id + `"}` }
	nb := `{"notebook":"` + guardtest.Work + `"}`
	return map[string]long{
		"fs.ls":                             {args: `{"path":"/` + manyDocs + `"}`, list: "items"},
		"fs.tree":                           {args: `{"path":"/Work"}`, cut: "fs.ls"},
		"fs.read":                           {args: `{"path":"/Work/Long","tokenBudget":32000,"blockLimit":200,"includeBlockIds":true}`, list: "content"},
		"fs.search":                         {args: `{"path":"/Work","query":"needle"}`, list: "data"},
		"av.get":                            {why: "rows up to the budget, the rest by av.render"},
		"av.render":                         {why: "pages of rows, made smaller for the budget"},
		"av.get_attribute_view_keys":        {why: "the columns of one database"},
		"av.get_attribute_view_filter_sort": {why: "the conditions of one view"},
		"av.search":                         {why: "databases up to the budget, each with three rows"},
		"av.get_primary_key_values":         {why: "pages of rows, made smaller for the budget"},
		"extension.list":                    {why: "at most 40 tools, up to the budget, each with a bounded schema"},
		"extension.validate_package":        {why: "findings up to the budget"},
		"extension.diagnose_plugin_mcp":     {why: "at most 40 tools, without what they say"},
		"extension.plugin_read":             {why: "what one tool says, cut at the budget; it is asked once (TestWhatAToolSaysIsBounded)"},
		"extension.native_read":             {why: "as extension.plugin_read"},
		"flashcard.get_decks":               {args: `{}`, why: "a line for each deck"},
		"flashcard.get_cards":               {args: `{"deckID":""}`, list: "cards"},
		"flashcard.list_cards":              {args: `{"scope":"all","filter":"due"}`, cut: "narrow the scope"},
		"file.get_doc_assets":               {args: at("20240107000013-brokend"), cut: "OFFSET"},
		"file.list_unused_assets":           {why: "refused at this desk, where something is hidden; the list has a bound"},
		"file.list_templates":               {why: "tried in the tests of the file tool; few templates are readable here"},
		"file.read_template":                {why: "goes on by offset, as tried in the tests of the file tool"},
		"file.render":                       {why: "one template, cut at the budget"},
		"file.get_image_ocr_text":           {why: "the words of one picture"},
		"file.download_asset":               {why: "a file travels by itself"},
		"file.export_md":                    {args: at(longDoc), list: "content"},
		"file.export_resources":             {why: "a file travels by itself"},
		"file.extract_doc":                  {why: "files travel by themselves; the lists of their names are cut, with the numbers of all"},
		"file.export_markdown_snapshot":     {why: "whole documents up to the budget, the rest by a cursor (TestASnapshotKeepsWithinTheBudget)"},
		"file.audit_image_refs":             {why: "names of images, cut at the budget; a part of them is compared at a time"},
		"file.read_image":                   {why: "one image beside a line"},
		"notebook.list":                     {args: `{}`, why: "a line for each notebook"},
		"notebook.get_conf":                 {args: nb, why: "the settings of one notebook"},
		"notebook.get_permissions":          {args: `{}`, why: "a line for each notebook"},
		"notebook.get_child_docs":           {args: nb, list: "data"},
		"document.lookup":                   {args: at(longDoc), why: "the paths of one document"},
		"document.get_child_docs":           {args: at(manyDocs), list: "data"},
		"document.get_child_blocks":         {args: at(longDoc), cut: "block.get_children"},
		"document.get_outline":              {args: at(headsDoc), list: "outline"},
		"document.search_docs":              {args: `{"notebook":"` + guardtest.Work + `","query":"Doc"}`, list: "docs"},
		"document.get_doc":                  {args: `{"id":"` + longDoc + `","tokenBudget":32000,"blockLimit":200}`, list: "content"},
		"document.list_tree":                {args: `{"notebook":"` + guardtest.Work + `","path":"/"}`, cut: "childrenTruncated"},
		"block.get_kramdown":                {args: at(longDoc), list: "kramdown"},
		"block.batch_kramdown":              {args: `{"ids":["` + guardtest.Intro + `","` + guardtest.Heading + `","` + guardtest.Index + `","` + guardtest.ItemText + `"]}`, cut: "again with the last"},
		"block.get_children":                {args: at(longDoc), list: "data"},
		"block.get_attrs":                   {args: at(guardtest.Intro), why: "the attributes of one block"},
		"block.info":                        {args: at(guardtest.Intro), why: "one block"},
		"block.breadcrumb":                  {args: at(guardtest.Intro), why: "the levels above one block"},
		"block.dom":                         {args: at(longDoc), list: "dom"},
		"block.recent_updated":              {args: `{"count":128}`, cut: "search.query_sql"},
		"block.word_count":                  {args: `{"ids":["` + longDoc + `"]}`, why: "six numbers"},
		"block.docs_info":                   {args: `{"ids":["` + longDoc + `"]}`, why: "a line for each id asked for, at most 128"},
		"search.fulltext":                   {args: `{"query":"needle"}`, list: "data"},
		"search.query_sql":                  {args: `{"stmt":"SELECT id, content FROM blocks"}`, cut: "OFFSET"},
		"search.get_backlinks":              {args: at(guardtest.Index), cut: "refTreeID"},
		"search.search_refs":                {args: `{"id":"` + guardtest.Index + `","k":"Doc"}`, cut: "more of the text"},
		"search.list_invalid_refs":          {args: `{}`, list: "data"},
		"search.search_assets":              {args: `{"k":"pic"}`, cut: "more of the name"},
		"search.semantic":                   {why: "needs an embedding service; it pages as search.fulltext does"},
		"system.bootstrap":                  {why: "bounds itself: what the instructions say and a line for each notebook"},
		"system.get_version":                {why: "one line"},
		"system.get_current_time":           {why: "one line"},
		"system.changelog":                  {why: "the changes of one version"},
		"system.conf":                       {why: "needs a workspace switch; the settings of one SiYuan, by part"},
		"system.network":                    {why: "needs a workspace switch; a few lines"},
		"system.workspace_info":             {why: "needs a workspace switch; a few lines"},
		"timeline.list_nodes":               {why: "pages of names, made smaller for the budget; tried in the tests of the timeline tool"},
		"timeline.compare_node":             {why: "pages of blocks, made smaller for the budget; tried in the tests of the timeline tool"},
		"timeline.list_changes":             {why: "pages of documents, made smaller for the budget; there are no restore points here"},
		"tag.list":                          {why: "tried in the tests of the tag tool"},
		"search.fulltext_asset_content":     {why: "the sample kernel reads no files; it pages as search.fulltext does"},
	}
}

// longHome has much of everything, in Chinese beyond the first plane and with
// text that JSON has to escape.
func longHome(t *testing.T) *guardtest.Home {
	t.Helper()
	h := guardtest.New(t)
	text, broken, heads := "", "", ""
	for i := range 24 {
		block := func(kind string) string { return fmt.Sprintf("\n{: id=\"202401070001%02d-%s\"}\n\n", i, kind) }
		filler := strings.Repeat("海洋𠮷 \\\" ", i*i*5%97)
		text += fmt.Sprintf("needle %d %s ((%s 'x'))", i, filler, guardtest.Index) + block("longblk")
		broken += fmt.Sprintf("lost %d ((%s 'x')) ![](assets/pic-%02d-20240101090000-abcdefg.png)", i, guardtest.SecretP, i) + block("brokenb")
		heads += strings.Repeat("#", 1+i*7%5) + fmt.Sprintf(" Heading %d %s", i, strings.Repeat("标题", i%9)) + block("headblk")
	}
	for id, doc := range map[string][2]string{longDoc: {"Long", text}, headsDoc: {"Heads", heads}, "20240107000013-brokend": {"Broken", broken}, manyDocs: {"Many", "x"}} {
		h.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: doc[0], Text: doc[1]})
	}
	var cards []siyuan.ID
	for i := range 24 {
		cards = append(cards, siyuan.ID(fmt.Sprintf("202401070001%02d-longblk", i)))
		id := fmt.Sprintf("202401070002%02d-manydoc", i)
		h.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + manyDocs + "/" + id + ".sy", Title: fmt.Sprintf("Doc %02d %s", i, strings.Repeat("标题", i*7%40)), Text: "x"})
	}
	if _, err := h.Client.Writer().AddCards(context.Background(), siyuan.BuiltinDeck, cards); err != nil {
		t.Fatal(err)
	}
	return h
}

// limited runs a call whose answer may have so many characters.
func (d *desk) limited(t *testing.T, id, args string, chars int) json.RawMessage {
	t.Helper()
	tool, name, _ := strings.Cut(id, ".")
	r := d.exec.Handle(context.Background(), contract.Call{Tool: tool, Action: name, Grant: writer(), ResultChars: chars, Args: json.RawMessage(args)}, nil)
	if r.Err != nil {
		t.Fatalf("%s %s: %v", id, args, r.Err)
	}
	return r.Body
}

// frame is what an answer may have beside its entries.
const frame = 700

// TestEveryReadPagesOrIsCutOrIsSmall: whatever the budget, going on as each
// answer says gives the whole, every entry once and in order, and an answer that
// is more than one entry is not larger than the budget.
func TestEveryReadPagesOrIsCutOrIsSmall(t *testing.T) {
	t.Parallel()
	d := deskOf(t, longHome(t), policy.Fixed(contract.Read))
	reads := longReads()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			if a.Kind != catalogue.Read {
				continue
			}
			r, known := reads[a.ID()]
			_, paged := a.Param("page")
			_, windowed := a.Param("blockStart")
			switch {
			case !known:
				t.Errorf("%s: say in longReads how it deals with much text", a.ID())
			case r.args == "":
			case r.list != "" && !paged && !windowed:
				t.Errorf("%s: takes neither page nor blockStart", a.ID())
			case r.list != "":
				d.goesOn(t, a.ID(), r, paged)
			case r.why != "":
				if body := d.limited(t, a.ID(), r.args, 1); utf8.RuneCount(body) > 4*frame {
					t.Errorf("%s: %d characters are not small: %.200s", a.ID(), utf8.RuneCount(body), body)
				}
			default:
				d.isCut(t, a.ID(), r)
			}
		}
	}
}

// isCut demands that an answer says that it is not all, and how to get the rest.
func (d *desk) isCut(t *testing.T, id string, r long) {
	t.Helper()
	var says struct {
		Truncated bool
		Hint      string
	}
	for _, chars := range []int{1, 300, 2_000} {
		body := d.limited(t, id, r.args, chars)
		if err := json.Unmarshal(body, &says); err != nil {
			t.Fatal(err)
		}
		if chars == 1 && (!says.Truncated || !strings.Contains(says.Hint, r.cut)) {
			t.Errorf("%s is cut without the way to the rest, %q: %.300s", id, r.cut, body)
		}
		if n := utf8.RuneCount(body); chars > 1 && n > chars+2*frame {
			t.Errorf("%s: %d characters, the budget is %d", id, n, chars)
		}
	}
}

// goesOn reads a list or text to its end with several budgets.
func (d *desk) goesOn(t *testing.T, id string, r long, paged bool) {
	t.Helper()
	const all = catalogue.MaxResultChars
	want, _ := d.walk(t, id, r, paged, all)
	for _, chars := range []int{1, 700, 5_000} {
		got, n := d.walk(t, id, r, paged, chars)
		if !slices.Equal(got, want) && strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("%s with %d characters: %d entries, the whole has %d", id, chars, len(got), len(want))
		}
		if chars == 1 && n < 5 {
			t.Errorf("%s with %d characters: only %d answers", id, chars, n)
		}
	}
}

func (d *desk) walk(t *testing.T, id string, r long, paged bool, chars int) (entries []string, answers int) {
	t.Helper()
	more := ""
	for answers < 500 {
		body := d.limited(t, id, strings.TrimSuffix(r.args, "}")+strings.TrimPrefix(more, map[bool]string{true: ","}[r.args == "{}"])+"}", chars)
		answers++
		found := entriesOf(t, body, r.list)
		if n := utf8.RuneCount(body); n > chars+frame+len(r.list) && len(found) > 1 && pieces(t, body) != 1 {
			t.Errorf("%s%s: %d characters in %d entries, the budget is %d", id, more, n, len(found), chars)
		}
		var says struct {
			catalogue.PageOut
			NextWindow *catalogue.NextPiece
		}
		if err := json.Unmarshal(body, &says); err != nil {
			t.Fatal(err)
		}
		text := len(found) == 1 && !paged
		if text && len(entries) > 0 && r.list == "content" {
			found[0] = "\n\n" + found[0]
		}
		entries = append(entries, found...)
		switch {
		case paged && says.HasNextPage:
			more = fmt.Sprintf(`,"page":%d,"pageSize":%d`, says.Page+1, says.PageSize)
		case !paged && says.NextWindow != nil:
			more = fmt.Sprintf(`,"blockStart":%d`, says.NextWindow.BlockStart)
		default:
			return entries, answers
		}
	}
	t.Fatalf("%s never ends", id)
	return nil, 0
}

// pieces is how many blocks a window has.
func pieces(t *testing.T, body []byte) int {
	t.Helper()
	var w struct{ ReturnedBlocks int }
	if err := json.Unmarshal(body, &w); err != nil {
		t.Fatal(err)
	}
	return w.ReturnedBlocks
}

// unlisted are attribute lists, whose order is not the same in every answer.
var unlisted = regexp.MustCompile(`\{: [^}\n]*\}| [\w-]+="[^"]*"`)

// entriesOf are the entries of a list, those inside an entry after it, or a text.
func entriesOf(t *testing.T, body []byte, list string) []string {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	var text string
	if json.Unmarshal(out[list], &text) == nil {
		return []string{unlisted.ReplaceAllString(text, "")}
	}
	var flat func(raw json.RawMessage) []string
	flat = func(raw json.RawMessage) (all []string) {
		var entries []map[string]json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		for _, e := range entries {
			children := e["children"]
			delete(e, "children")
			all = append(all, fmt.Sprintf("%s", e))
			if list == "outline" && children != nil {
				all = append(all, flat(children)...)
			}
		}
		return all
	}
	return flat(out[list])
}
