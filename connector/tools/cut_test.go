package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// cutter counts what the kernel carries out and loses one write: before the
// kernel has it, or after it was carried out and before anybody knows.
type cutter struct {
	isWrite func(path string) bool
	at      int  // the write that is lost, from 1; 0: none
	after   bool // lost after it was carried out

	mu     sync.Mutex
	n      int
	writes []string // carried out, in order
}

func (c *cutter) wrap(kernel http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.isWrite(r.URL.Path) {
			kernel.ServeHTTP(w, r)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
		hit := c.n == c.at
		if hit && !c.after {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		kernel.ServeHTTP(answer, r)
		if bytes.HasPrefix(answer.Body.Bytes(), []byte(`{"code":0`)) {
			c.writes = append(c.writes, strings.TrimPrefix(r.URL.Path, "/api/"))
		}
		if hit {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // a client gone is no concern of ours
	})
}

func (c *cutter) carriedOut() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// The notes of the cut writes, besides the standard ones.
const (
	betaDoc  = "20240102100200-betadoc"
	betaText = "20240102110100-betatxt"
	betaTask = "20240102110101-betatsk"
	betaHead = "20240102110102-betahed"
	betaBody = "20240102110103-betabdy"
	twinText = "20240102110104-twintxt"
)

func cutNotes() guardtest.Docs {
	ial := func(id string) string { return fmt.Sprintf("\n{: id=%q}\n\n", id) }
	return append(guardtest.Notes(),
		guardtest.Doc{Box: guardtest.Work, Path: "/" + betaDoc + ".sy", Title: "Beta", Text: "A word and ((" + guardtest.Intro + ` "start")).` + ial(betaText) +
			"A word as well." + ial(twinText) + "- {: id=\"" + betaTask + "\"}[ ] a task\n\n## Head" + ial(betaHead) + "Below the head." + ial(betaBody)},
		guardtest.Doc{Box: guardtest.Work, Path: "/" + betaDoc + "/20240102100300-gammado.sy", Title: "Gamma", Text: "Leaf.\n\n"})
}

// cutWrites are the calls that are cut, for every action that writes; of those
// with several kernel writes, ones that need them.
var cutWrites = map[string][]string{
	"av.create":                     {`{"blockID":"` + betaDoc + `","name":"Books"}`},
	"av.add_rows":                   {`{"avID":"` + guardtest.Database + `","blockIDs":["` + betaText + `"],"primaryKeyTexts":["x"]}`},
	"av.remove_rows":                {`{"avID":"` + guardtest.Database + `","srcIDs":["` + guardtest.DatabaseRow + `"]}`},
	"av.add_column":                 {`{"avID":"` + guardtest.Database + `","keyName":"Due","keyType":"date"}`},
	"av.remove_column":              {`{"avID":"` + guardtest.Database + `","keyID":"` + guardtest.DatabaseText + `"}`},
	"av.set_cells":                  {`{"avID":"` + guardtest.Database + `","rowID":"` + guardtest.DatabaseRow + `","columnID":"` + guardtest.DatabaseText + `","valueType":"text","text":"x"}`},
	"av.duplicate":                  {`{"avID":"` + guardtest.Database + `"}`},
	"av.add_view":                   {`{"avID":"` + guardtest.Database + `","blockID":"` + guardtest.DatabaseBlock + `","viewID":"20260131120000-newview","layout":"gallery","name":"Cards"}`},
	"av.set_filters":                {shownView + `,"filters":[{"column":"` + guardtest.DatabaseText + `","operator":"=","value":"x"}]}`},
	"av.set_sorts":                  {shownView + `,"sorts":[{"column":"` + guardtest.DatabaseText + `","order":"DESC"}]}`},
	"av.set_group":                  {shownView + `,"group":{"field":"` + guardtest.DatabasePick + `"}}`},
	"av.set_column_visibility":      {shownView + `,"keyID":"` + guardtest.DatabaseText + `","hidden":true}`},
	"av.set_column_order":           {shownView + `,"keyIDs":["20240106120000-keytitl","20240106120000-keynumb","20240106120000-keynote","20240106120000-keypick","20240106120000-keydate","20240106120000-keyrela","20240106120000-keyfree","20240106120000-keyroll"]}`},
	"av.set_column_options":         {`{"avID":"` + guardtest.Database + `","keyID":"` + guardtest.DatabasePick + `","options":[{"name":"Open","color":"2"},{"name":"New"}]}`},
	"av.duplicate_rows":             {`{"avID":"` + guardtest.Database + `","sourceRowIDs":["` + guardtest.DatabaseRow + `","` + guardtest.DatabaseRow + `"]}`},
	"av.set_relation":               {`{"avID":"` + guardtest.Database + `","keyID":"` + guardtest.DatabaseOwner + `","itemID":"` + guardtest.DatabaseRow + `","relatedItemIDs":["` + guardtest.PeopleRow + `"]}`},
	"av.configure_two_way_relation": {`{"avID":"` + guardtest.Database + `","keyID":"` + guardtest.DatabaseFree + `","destinationAvID":"` + guardtest.People + `","backRelationKeyID":"20260131120000-backkey","sourceName":"Place","destinationName":"Errands"}`},
	"av.configure_rollup":           {`{"avID":"` + guardtest.Database + `","keyID":"` + guardtest.DatabaseAges + `","relationKeyID":"` + guardtest.DatabaseOwner + `","destinationKeyID":"` + guardtest.PeopleAge + `","calc":{"operator":"Sum"}}`},
	"av.set_new_item_templates":     {`{"avID":"` + guardtest.Database + `","blockID":"` + guardtest.DatabaseBlock + `","templates":[],"defaultTemplateID":""}`},
	"av.create_from_template":       {`{"avID":"` + guardtest.Database + `","blockID":"` + guardtest.DatabaseBlock + `","templateID":"` + guardtest.Template + `"}`},
	"block.append":                  {`{"parentID":"` + betaDoc + `","dataType":"markdown","data":"a\n\n- b\n- c"}`},
	"block.update":                  {`{"id":"` + betaText + `","dataType":"markdown","data":"New **text**."}`, `{"items":[{"id":"` + betaText + `","dataType":"markdown","data":"uno"},{"id":"` + twinText + `","dataType":"markdown","data":"due"}]}`, `{"id":"` + guardtest.Intro + `","dataType":"markdown","data":"New, with attributes."}`, `{"id":"` + betaTask + `","dataType":"markdown","data":"- [X] a task that is done"}`},
	"block.insert":                  {`{"dataType":"markdown","data":"x\n\ny","previousID":"` + betaText + `"}`, `{"blocks":[{"dataType":"markdown","data":"x","previousID":"` + betaText + `"},{"dataType":"markdown","data":"y","nextID":"` + betaText + `"}]}`, `{"blocks":[{"dataType":"markdown","data":"x","previousID":"` + betaText + `"},{"dataType":"markdown","data":"y","parentID":"` + betaDoc + `"}]}`},
	"block.prepend":                 {`{"parentID":"` + betaDoc + `","dataType":"markdown","data":"first"}`},
	"block.replace":                 {`{"id":"` + betaText + `","old":"word","new":"phrase"}`},
	"block.delete":                  {`{"id":"` + betaText + `"}`},
	"block.move":                    {`{"ids":["` + betaText + `","` + twinText + `"],"parentID":"` + guardtest.Projects + `"}`},
	"block.set_attrs":               {`{"id":"` + guardtest.Intro + `","attrs":{"custom-status":"done","memo":""}}`},
	"block.set_fold_state":          {`{"id":"` + betaHead + `","folded":true}`},
	"block.transfer_references":     {`{"fromID":"` + guardtest.Intro + `","toID":"` + guardtest.Item + `","refIDs":["` + betaText + `"]}`},
	"block.add_to_daily_note":       {`{"notebook":"` + guardtest.Work + `","dataType":"markdown","data":"Called.","position":"append"}`, `{"notebook":"` + guardtest.Work + `","dataType":"markdown","data":"Called.","position":"prepend"}`},
	"document.create":               {`{"notebook":"` + guardtest.Work + `","path":"/a/b/c","markdown":"text","icon":"1f4d4"}`},
	"document.rename":               {`{"id":"` + betaDoc + `","title":"Beta 2"}`},
	"document.move":                 {`{"fromIDs":["` + betaDoc + `"],"toID":"` + guardtest.Projects + `"}`},
	"document.remove":               {`{"ids":["` + betaDoc + `","` + guardtest.Entry + `"]}`},
	"document.reorder":              {`{"parentID":"` + guardtest.Work + `","orderedIDs":["` + betaDoc + `","` + guardtest.Projects + `"]}`},
	"document.set_attr":             {`{"id":"` + betaDoc + `","attrs":{"icon":"1f4d4"}}`},
	"document.create_daily_note":    {`{"notebook":"` + guardtest.Work + `"}`},
	"document.duplicate":            {`{"id":"` + betaDoc + `"}`},
	"document.heading_to_doc":       {`{"headingID":"` + betaHead + `","targetNotebook":"` + guardtest.Work + `"}`},
	"document.doc_to_heading":       {`{"srcID":"20240102100300-gammado","targetID":"` + guardtest.Projects + `"}`},
	"document.ensure_link_targets":  {`{"notebook":"` + guardtest.Work + `","parentId":"` + guardtest.Projects + `","mode":"create","targets":[{"key":"a","title":"A"},{"key":"b","title":"B"}],"markdown":"x"}`},
	"file.upload_asset":             {`{"id":"` + guardtest.Alpha + `","fileName":"abc.txt","content":"YWJj"}`, `{"id":"` + guardtest.Alpha + `","fileName":"abc.txt","content":"YWJj","sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}`},
	"flashcard.create_card":         {`{"deckID":"","blockIDs":["` + betaText + `","` + twinText + `"]}`},
	"flashcard.remove_card":         {`{"deckID":"","blockIDs":["` + guardtest.Intro + `"]}`},
	"flashcard.review_card":         {`{"deckID":"20230218211946-2kw8jgx","cardID":"` + guardtest.Card + `","rating":3}`},
	"timeline.create_node":          {`{"name":"final","scope":"document","documentId":"` + betaDoc + `"}`, `{"name":"final","scope":"global"}`},
	"timeline.delete_node":          {`{"documentId":"` + guardtest.Alpha + `","tag":"` + guardtest.Moment + `"}`},
	"timeline.rollback_document":    {`{"documentId":"` + guardtest.Alpha + `","tag":"` + guardtest.Moment + `"}`},
	"timeline.rollback_block":       {`{"documentId":"` + guardtest.Alpha + `","tag":"` + guardtest.Moment + `","changeKey":"modified:` + guardtest.Intro + `:` + guardtest.Intro + `"}`},
	"fs.write":                      {`{"path":"/Work/New","markdown":"First."}`, `{"path":"/Work/Beta/Gamma","markdown":"All new.","overwrite":true}`},
	"fs.replace":                    {`{"path":"/Work/Beta","edit":[{"old":"word","new":"phrase","replaceAll":true}]}`},
	"fs.reorder":                    {`{"path":"/Work","orderedPaths":["/Work/Beta","/Work/Projects"]}`},
	"fs.mv":                         {`{"from":"/Work/Beta","to":"/Work/Projects/Beta 2"}`},
	"fs.rm":                         {`{"path":"/Work/Beta"}`},
	"notebook.create":               {`{"name":"Books","icon":"1f4d4"}`},
	"notebook.set_open_state":       {`{"notebook":"` + guardtest.Diary + `","opened":false}`},
	"notebook.remove":               {`{"notebook":"` + guardtest.Diary + `"}`},
	"notebook.rename":               {`{"notebook":"` + guardtest.Diary + `","name":"New"}`},
	"notebook.set_conf":             {`{"notebook":"` + guardtest.Diary + `","conf":{"dailyNoteSavePath":"/x","name":"New"}}`},
	"notebook.set_icon":             {`{"notebook":"` + guardtest.Diary + `","icon":"1f4d4"}`},
	"search.find_replace":           {`{"k":"word","r":"phrase","ids":["` + betaText + `","` + twinText + `"]}`},
	"file.create_template":          {`{"path":"new.md","markdown":"x"}`, `{"path":"daily.md","markdown":"x","overwrite":true}`},
	"file.update_template":          {`{"path":"daily.md","markdown":"x"}`},
	"file.delete_template":          {`{"path":"daily.md"}`},
	"file.save_doc_as_template":     {`{"id":"` + betaDoc + `","name":"beta"}`, `{"id":"` + betaDoc + `","name":"daily","overwrite":true}`},
	"file.rename_asset":             {`{"oldPath":"` + sharedFile + `","newName":"x"}`},
	"file.delete_asset":             {`{"path":"` + sharedFile + `"}`},
	"file.remove_unused_assets":     {`{}`},
}

const shownView = `{"avID":"` + guardtest.Database + `","blockID":"` + guardtest.DatabaseBlock + `","viewID":"` + guardtest.DatabaseView + `"`

// uncut are actions of the catalogue that write nothing to the kernel, or not
// here, with the reason.
var uncut = map[string]string{
	"extension.plugin_call": "a plugin's tool is called once and nothing shows what it did; TestACallOfAPluginsToolIsNeverRepeated loses it",
	"extension.native_call": "as extension.plugin_call",
	"system.notify":         "a message in SiYuan's window, which may show twice",
	"system.perform_sync":   "starts SiYuan's own sync, which may start twice",
	"timeline.undo":         "there are no restore points at this desk; TestAnUndoThatIsCutEndsAsItWasBefore loses its writes",
	"tag.rename":            "refused at this desk, where something is hidden; case K32 loses its writes",
	"tag.remove":            "refused at this desk, where something is hidden; case K32 loses its writes",
}

// repeatable are kernel writes that may be carried out twice, because the second
// changes nothing, writes the same file again, or makes a copy of a database that
// nothing shows.
var repeatable = []string{"template/docSaveAsTemplate", "av/duplicateAttributeViewBlock", "filetree/createDailyNote", "filetree/changeSort", "notebook/setNotebookConf", "repo/createSnapshot"}

// TestAfterAnyCutTheRetryTellsTheTruth loses every kernel write of every action,
// before and after it is carried out. The first answer claims nothing that is
// not so, and the retry completes the call, or says what of it happened.
func TestAfterAnyCutTheRetryTellsTheTruth(t *testing.T) {
	t.Parallel()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			if !a.Kind.Mutates() || uncut[a.ID()] != "" {
				continue
			}
			if len(cutWrites[a.ID()]) == 0 {
				t.Errorf("%s is not cut: add calls of it to cutWrites", a.ID())
			}
			for i, args := range cutWrites[a.ID()] {
				t.Run(fmt.Sprintf("%s %d", a.ID(), i), func(t *testing.T) {
					t.Parallel()
					cutEverywhere(t, a.ID(), args)
				})
			}
		}
	}
}

func cutEverywhere(t *testing.T, id, args string) {
	whole := &cutter{}
	d := cutDesk(t, whole, id)
	if r := d.call(cutGrant(id), newKey(t), id, args); r.Err != nil {
		t.Fatalf("undisturbed: %v %s", r.Err, r.Err.Detail)
	}
	want := whole.carriedOut()
	if len(want) == 0 {
		t.Fatal("undisturbed it writes nothing")
	}
	for n := 1; n <= len(want); n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %d of %d, after=%t", want[n-1], n, len(want), after), func(t *testing.T) {
				t.Parallel()
				c := &cutter{at: n, after: after}
				d := cutDesk(t, c, id)
				key := newKey(t)
				first := d.call(cutGrant(id), key, id, args)
				if did := c.carriedOut(); first.Err == nil && !sameWrites(did, want) {
					t.Errorf("answered success after %v of %v", did, want)
				} else if first.Err != nil && len(did) > 0 && contract.CodeOf(first.Err) != contract.OutcomeUnknown && first.Err.Detail == nil {
					t.Errorf("answered %v after %v", first.Err, did)
				}
				d.restart()
				judgeRetry(t, d.call(cutGrant(id), key, id, args), c.carriedOut(), want)
			})
		}
	}
}

// allGrant may do everything, in the workspace too.
func allGrant() *contract.Grant {
	g := wholeGrant()
	g.Switches = contract.Switches()
	return g
}

// cutGrant also hides nothing for the file tool, which is refused otherwise.
func cutGrant(id string) *contract.Grant {
	g := allGrant()
	if strings.HasPrefix(id, "file.") {
		g.Default, g.Levels = contract.ReadWriteDelete, nil
	}
	return g
}

func cutDesk(t *testing.T, c *cutter, id string) *onceDesk {
	t.Helper()
	d := newOnceDeskWith(t, cutNotes())
	if strings.HasPrefix(id, "av.") {
		guardtest.AddDatabase(t, d.Client.Writer())
	}
	if strings.HasPrefix(id, "flashcard.") {
		guardtest.AddCard(t, d.Client.Writer(), d.Kernel.Dir())
	}
	if strings.HasPrefix(id, "file.") {
		addFiles(t, d.Home)
	}
	if strings.HasPrefix(id, "timeline.") {
		guardtest.AddMoment(t, d.Client, d.Kernel.Dir())
	}
	c.isWrite = d.Kernel.Faults().IsWrite
	d.Between(c.wrap)
	return d
}

func judgeRetry(t *testing.T, r contract.Result, did, want []string) {
	t.Helper()
	switch {
	case r.Err == nil:
		if !sameWrites(did, want) {
			t.Errorf("the retry says success; carried out is %v of %v", did, want)
		}
	case contract.CodeOf(r.Err) == contract.PartlyDone:
		var detail struct{ Done []json.RawMessage }
		if err := json.Unmarshal(r.Err.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		if len(detail.Done) != len(did) || len(did) >= len(want) {
			t.Errorf("the retry says that %s happened; carried out is %v of %v", r.Err.Detail, did, want)
		}
	default:
		t.Errorf("the retry ends with %v %s after %v", r.Err, r.Err.Detail, did)
	}
}

// sameWrites: the same, but for what may be repeated.
func sameWrites(did, want []string) bool {
	count := func(list []string) map[string]int {
		n := map[string]int{}
		for _, p := range list {
			if n[p]++; slices.Contains(repeatable, p) {
				n[p] = 1
			}
		}
		return n
	}
	return maps.Equal(count(did), count(want))
}

func TestTheJudgeOfCutsSeesADoubleWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		did, want []string
		same      bool
	}{
		{[]string{"a"}, []string{"a"}, true},
		{[]string{"a", "a"}, []string{"a"}, false},
		{nil, []string{"a"}, false},
		{[]string{"filetree/changeSort", "filetree/changeSort"}, []string{"filetree/changeSort"}, true},
	} {
		if got := sameWrites(c.did, c.want); got != c.same {
			t.Errorf("%v for %v: %t", c.did, c.want, got)
		}
	}
}
