package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// newKeepingDesk is a onceDesk whose guard keeps restore points.
func newKeepingDesk(t *testing.T) *onceDesk {
	t.Helper()
	d := &onceDesk{t: t, path: filepath.Join(t.TempDir(), "ledger.db")}
	d.Home = guardtest.NewKeeping(t, func(now func() time.Time) guard.Points {
		store, err := restore.Open(restore.Config{Path: filepath.Join(t.TempDir(), "restore.db"), Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		d.books = store
		return store
	})
	d.start()
	t.Cleanup(func() { _ = d.l.Close() })
	return d
}

func agent(name string) *contract.Grant {
	g := allGrant()
	g.Agent = contract.AgentRef{ID: name, Name: name}
	return g
}

// write changes a paragraph as an agent.
func (d *onceDesk) write(t *testing.T, who *contract.Grant, block, text string) {
	t.Helper()
	r := d.call(who, newKey(t), "block.update", fmt.Sprintf(`{"id":%q,"dataType":"markdown","data":%q}`, block, text))
	if r.Err != nil {
		t.Fatalf("write: %v", r.Err)
	}
}

func (d *onceDesk) text(t *testing.T, block string) string {
	t.Helper()
	r := d.call(agent("reader"), "", "block.get_kramdown", fmt.Sprintf(`{"id":%q}`, block))
	if r.Err != nil {
		t.Fatalf("read: %v", r.Err)
	}
	text, _, _ := strings.Cut(did[catalogue.BlockGetKramdownOut](t, r).Kramdown, "\n{:") // attributes are in no order
	return text
}

func did[T any](t *testing.T, r contract.Result) (out T) {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("%v %s", r.Err, r.Err.Detail)
	}
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (d *onceDesk) changes(t *testing.T, who *contract.Grant, args string) catalogue.TimelineListChangesOut {
	t.Helper()
	return did[catalogue.TimelineListChangesOut](t, d.call(who, "", "timeline.list_changes", args))
}

func (d *onceDesk) undo(t *testing.T, who *contract.Grant, args string) catalogue.TimelineUndoOut {
	t.Helper()
	return did[catalogue.TimelineUndoOut](t, d.call(who, newKey(t), "timeline.undo", args))
}

func TestAnAgentListsAndTakesBackItsOwnWritesOnly(t *testing.T) {
	t.Parallel()
	d := newKeepingDesk(t)
	mine, others := agent("mine"), agent("others")
	before, theirs := d.text(t, guardtest.EntryP), "Index by others."
	d.write(t, mine, guardtest.EntryP, "Mine.")
	d.write(t, others, guardtest.Index, theirs)

	seen := d.changes(t, mine, `{}`)
	if len(seen.Documents) != 1 || seen.Documents[0].ID != guardtest.Entry || seen.Documents[0].Effect != "restored" || seen.Total != 1 ||
		strings.Join(seen.Documents[0].Parts, ",") != "text" || len(seen.Sittings) != 1 || seen.Sittings[0].Writes != 1 {
		t.Fatalf("changes %+v", seen)
	}
	sitting := fmt.Sprintf(`{"sitting":%d}`, seen.Sittings[0].ID)
	if out := d.undo(t, others, sitting); len(out.Documents) != 0 || out.Undone != 0 {
		t.Errorf("another agent undid %+v", out)
	}
	if out := d.undo(t, mine, sitting); !out.Success || out.Undone != 1 || out.Left != 0 {
		t.Errorf("undo %+v", out)
	}
	if got := d.text(t, guardtest.EntryP); got != before {
		t.Errorf("the text is %s, was %s", got, before)
	}
	if got := d.text(t, guardtest.Index); !strings.Contains(got, theirs) {
		t.Errorf("what others wrote is %s", got)
	}
}

func TestAnUndoOfAnAgentIsASittingThatItCanUndo(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	before := d.text(t, guardtest.EntryP)
	d.write(t, who, guardtest.EntryP, "New words.")
	since := `{"since":"2020-01-01T00:00:00Z"}`
	for i, undone := range []int{1, 0} { // a second time there is nothing to do, not an undo of the undo
		if out := d.undo(t, who, since); out.Undone != undone || d.text(t, guardtest.EntryP) != before {
			t.Errorf("undo %d: %+v", i+1, out)
		}
	}
	var number int
	for _, s := range d.changes(t, who, `{}`).Sittings {
		if s.Undo {
			number = s.ID
		}
	}
	if out := d.undo(t, who, fmt.Sprintf(`{"sitting":%d}`, number)); out.Undone != 1 || !strings.Contains(d.text(t, guardtest.EntryP), "New words.") {
		t.Errorf("undo of the undo: %+v, text %s", out, d.text(t, guardtest.EntryP))
	}
}

func TestAnUndoLeavesAndNamesWhatSomebodyElseChangedSince(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	d.write(t, who, guardtest.EntryP, "By the agent.")
	d.write(t, who, guardtest.Index, "By the agent too.")
	d.write(t, agent("person"), guardtest.EntryP, "By a person.")
	out := d.undo(t, who, `{"since":"2020-01-01T00:00:00Z"}`)
	if out.Undone != 1 || out.Left != 1 || len(out.Documents) != 2 {
		t.Fatalf("%+v", out)
	}
	for _, doc := range out.Documents {
		if doc.ID == guardtest.Entry && (len(doc.Refused) != 1 || doc.Refused[0].Code != "changed_since" || doc.Effect != "nothing") {
			t.Errorf("%+v", doc)
		}
	}
	if got := d.text(t, guardtest.EntryP); !strings.Contains(got, "By a person.") {
		t.Errorf("the person's text is %s", got)
	}
}

// TestWhatAnAgentMayNoLongerReadIsNotListedOrTakenBack: it wrote there once.
func TestWhatAnAgentMayNoLongerReadIsNotListedOrTakenBack(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	d.write(t, who, guardtest.EntryP, "In the diary.")
	for level, want := range map[contract.Level]string{contract.None: "", contract.Read: "not_allowed"} {
		who.Levels = map[string]contract.Level{guardtest.Diary: level}
		got := ""
		for _, doc := range d.undo(t, who, `{"documentId":"`+guardtest.Entry+`"}`).Documents {
			got += doc.Refused[0].Code
		}
		if listed := len(d.changes(t, who, `{}`).Documents); got != want || (listed > 0) != (want != "") {
			t.Errorf("with %s: %q, %d listed", level, got, listed)
		}
		if !strings.Contains(d.text(t, guardtest.EntryP), "In the diary.") {
			t.Error("it was taken back")
		}
	}
}

func TestThePreviewOfAnUndoNamesItsDocumentsAndWritesNothing(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	d.write(t, who, guardtest.EntryP, "By the agent.")
	d.write(t, who, guardtest.Index, "By the agent too.")
	d.write(t, agent("person"), guardtest.EntryP, "By a person.")
	r := d.exec.Handle(context.Background(), contract.Call{Tool: "timeline", Action: "undo", Grant: who, Method: contract.MethodPreview, Args: json.RawMessage(`{"since":"2020-01-01T00:00:00Z"}`)}, nil)
	p := did[contract.Preview](t, r)
	if p.Counts.Documents != 1 || p.Kept != 1 || p.Lasting || len(p.Named) != 1 || p.Named[0] != (contract.PreviewItem{Kind: "document", Title: "Projects", Path: "/Work/Projects"}) {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(d.text(t, guardtest.Index), "By the agent too.") {
		t.Error("the preview took it back")
	}
}

func TestTheSittingsOfManyChangesAreListedWithoutTheirDocuments(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	d.write(t, who, guardtest.EntryP, "New words.")
	author := guard.Author{Scope: strings.Join([]string{who.Tenant, who.Instance, who.Member, who.Agent.ID}, "/"), Name: "a"}
	var points []*guard.Point
	for i := range 200 {
		points = append(points, &guard.Point{Doc: fmt.Sprintf("20240101120000-gone%03d", i), Made: time.Now(), Last: time.Now(), Before: guard.DocState{There: true}})
	}
	if err := d.books.(guard.Points).Save(t.Context(), author, points...); err != nil {
		t.Fatal(err)
	}
	seen := d.changes(t, who, `{}`)
	if len(seen.Sittings) != 1 || len(seen.Documents) != 0 || !strings.Contains(seen.Hint, "more than 200 documents") {
		t.Errorf("%+v", seen)
	}
	sitting := fmt.Sprintf(`{"sitting":%d}`, seen.Sittings[0].ID)
	if r := d.call(who, "", "timeline.list_changes", sitting); r.Err == nil || contract.CodeOf(r.Err) != contract.TooLarge {
		t.Errorf("the sitting alone: %v", r.Err)
	}
}

func TestAnUndoNeedsToBeToldWhat(t *testing.T) {
	t.Parallel()
	d, who := newKeepingDesk(t), agent("a")
	for _, args := range []string{`{}`, `{"since":"14:05"}`, `{"sitting":0}`} {
		if r := d.call(who, newKey(t), "timeline.undo", args); contract.CodeOf(r.Err) != contract.InvalidArguments {
			t.Errorf("%s: %v", args, r.Err)
		}
	}
	plain := newOnceDesk(t)
	for _, action := range []string{"timeline.undo", "timeline.list_changes"} {
		if r := plain.call(who, newKey(t), action, `{"sitting":1}`); contract.CodeOf(r.Err) != contract.Unsupported {
			t.Errorf("without restore points %s: %v", action, r.Err)
		}
	}
}

// TestAnUndoThatIsCutEndsAsItWasBefore loses every kernel write of an undo, before
// and after it is carried out. The retry judges anew what is left to do.
func TestAnUndoThatIsCutEndsAsItWasBefore(t *testing.T) {
	t.Parallel()
	whole := undoCut(t, &cutter{})
	if len(whole) == 0 {
		t.Fatal("undisturbed it writes nothing")
	}
	for n := range whole {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %d, after=%t", whole[n], n+1, after), func(t *testing.T) {
				t.Parallel()
				undoCut(t, &cutter{at: n + 1, after: after})
			})
		}
	}
}

// undoCut undoes a write through a cutter, tries again, and returns what the
// kernel carried out.
func undoCut(t *testing.T, c *cutter) []string {
	d, who := newKeepingDesk(t), agent("a")
	before := d.text(t, guardtest.EntryP)
	d.write(t, who, guardtest.EntryP, "New words.")
	c.isWrite = d.Kernel.Faults().IsWrite
	d.Between(c.wrap)
	key, args := newKey(t), `{"since":"2020-01-01T00:00:00Z"}`
	first := d.call(who, key, "timeline.undo", args)
	if first.Err == nil && d.text(t, guardtest.EntryP) != before {
		t.Errorf("answered %s, and the text is %s", first.Body, d.text(t, guardtest.EntryP))
	}
	d.restart()
	for range 3 {
		r := d.call(who, key, "timeline.undo", args)
		if r.Err == nil {
			break
		}
		t.Logf("retry: %v", r.Err)
		key = newKey(t)
	}
	if got := d.text(t, guardtest.EntryP); got != before {
		t.Errorf("after the retry the text is %s, was %s", got, before)
	}
	return c.carriedOut()
}

func TestLiveAnAgentTakesItsWritesBack(t *testing.T) {
	live, g := liveDesk(t)
	store, err := restore.Open(restore.Config{Path: filepath.Join(t.TempDir(), "restore.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	d := &desk{Home: &guardtest.Home{Client: live.Client, Guard: guard.New(live.Client.Reader(), live.Client.Writer(), guard.Options{Points: store})}}
	d.exec, err = tools.New(tools.Config{Guard: d.Guard, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.New(), Books: store}, handlers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	nb := liveNotebook(t, live, g)
	id := liveDoc(t, live, g, nb, "/Undo", "First.\n\nSecond.\n")
	block := string(live.children(t, id)[0].ID)
	ok[catalogue.BlockUpdateOut](t, d, g, "block.update", fmt.Sprintf(`{"id":%q,"dataType":"markdown","data":"Changed."}`, block))
	seen := ok[catalogue.TimelineListChangesOut](t, d, g, "timeline.list_changes", `{}`)
	if len(seen.Documents) != 1 || seen.Documents[0].ID != id || seen.Documents[0].Effect != "restored" {
		t.Fatalf("%+v", seen)
	}
	if out := ok[catalogue.TimelineUndoOut](t, d, g, "timeline.undo", `{"documentId":"`+id+`"}`); out.Undone != 1 {
		t.Errorf("%+v", out)
	}
	if text := d.kramdown(t, id); !strings.Contains(text, "First.") || strings.Contains(text, "Changed.") {
		t.Errorf("after the undo:\n%s", text)
	}
}

func TestAnAgentTakesBackCellsAndRowsOfADatabase(t *testing.T) {
	t.Parallel()
	d := newKeepingDesk(t)
	d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240102100200-betadoc.sy", Title: "Beta", Text: "Second.\n"})
	guardtest.AddDatabase(t, d.Client.Writer())
	if err := d.Client.Reader().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	mine := agent("mine")
	row := `"avID":"` + guardtest.Database + `","rowID":"` + guardtest.DatabaseRow + `","columnID":"`
	did[catalogue.AvSetCellsOut](t, d.call(mine, newKey(t), "av.set_cells", `{`+row+guardtest.DatabaseText+`","valueType":"text","text":"by the agent"}`))
	did[catalogue.AvSetCellsOut](t, d.call(mine, newKey(t), "av.set_cells", `{`+row+guardtest.DatabaseCount+`","valueType":"number","number":0}`))
	did[catalogue.AvAddRowsOut](t, d.call(mine, newKey(t), "av.add_rows", `{"avID":"`+guardtest.Database+`","primaryKeyTexts":["Mine"]}`))
	did[catalogue.AvAddColumnOut](t, d.call(mine, newKey(t), "av.add_column", `{"avID":"`+guardtest.Database+`","keyName":"Due","keyType":"date"}`))

	seen := d.changes(t, mine, `{}`)
	if len(seen.Documents) != 1 || len(seen.Sittings) != 1 {
		t.Fatalf("changes %+v", seen)
	}
	av := seen.Documents[0]
	if av.ID != guardtest.Database || av.Kind != "database" || av.Title != "/Beta" || av.Effect != "restored" || av.Cells != 2 || av.Rows != 1 {
		t.Errorf("the database is told as %+v", av)
	}
	if lasting := seen.Sittings[0].NotUndoable; len(lasting) != 1 || lasting[0].Action != "av.add_column" {
		t.Errorf("not undoable: %+v", lasting)
	}
	preview := did[contract.Preview](t, d.exec.Handle(context.Background(), contract.Call{
		Method: contract.MethodPreview, Tool: "timeline", Action: "undo", Grant: mine, Args: json.RawMessage(`{"documentId":"` + guardtest.Database + `"}`),
	}, nil))
	if want := (contract.PreviewItem{Kind: "database", Title: "/Beta", Places: 2}); len(preview.Named) != 1 || preview.Named[0] != want || preview.Counts.Rows != 1 || preview.Counts.Documents != 0 {
		t.Errorf("the preview is %+v", preview)
	}
	if out := d.undo(t, mine, `{"documentId":"`+guardtest.Database+`"}`); !out.Success || out.Undone != 1 || out.Left != 0 {
		t.Errorf("undo %+v", out)
	}
	rows := did[catalogue.AvGetOut](t, d.call(agent("reader"), "", "av.get", `{"id":"`+guardtest.Database+`"}`))
	text, err := json.Marshal(rows)
	if err != nil || strings.Contains(string(text), "by the agent") || strings.Contains(string(text), "Mine") {
		t.Errorf("the database still has it: %s (%v)", text, err)
	}
}
