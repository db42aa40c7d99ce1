package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// newTimelineDesk is a home with a data repository key.
func newTimelineDesk(t *testing.T) *onceDesk {
	t.Helper()
	d := newKeepingDesk(t)
	guardtest.AddKey(t, d.Kernel.Dir())
	return d
}

// name keeps the state of a document and lets time pass: a snapshot's time tells
// it from others.
func (d *onceDesk) name(t *testing.T, doc, name string) catalogue.TimelineNode {
	t.Helper()
	out := did[catalogue.TimelineCreateNodeOut](t, d.call(agent("a"), newKey(t), "timeline.create_node", fmt.Sprintf(`{"name":%q,"scope":"document","documentId":%q}`, name, doc)))
	d.Pass(2 * time.Second)
	return out.Node
}

func (d *onceDesk) compare(t *testing.T, doc, tag string) catalogue.TimelineCompareNodeOut {
	t.Helper()
	return did[catalogue.TimelineCompareNodeOut](t, d.call(agent("a"), "", "timeline.compare_node", fmt.Sprintf(`{"documentId":%q,"tag":%q}`, doc, tag)))
}

func (d *onceDesk) snapshots(t *testing.T) int {
	t.Helper()
	page, err := d.Client.Reader().Snapshots(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return page.TotalCount
}

func TestANodeIsASnapshotWithAName(t *testing.T) {
	t.Parallel()
	d := newTimelineDesk(t)
	n := d.name(t, guardtest.Alpha, "first, 第一版!")
	if n.Tag != "sisyphustimeline_"+guardtest.Alpha+"_first第一版" || n.Name != "first第一版" || n.Scope != "document" {
		t.Errorf("node %+v", n)
	}
	if again := d.name(t, guardtest.Alpha, "first, 第一版!"); again.Tag == n.Tag || !strings.HasPrefix(again.Tag, n.Tag+"2026") {
		t.Errorf("a second one of that name has the tag %q", again.Tag)
	}
	list := did[catalogue.TimelineListNodesOut](t, d.call(agent("a"), "", "timeline.list_nodes", `{"scope":"document","documentId":"`+guardtest.Alpha+`"}`))
	if list.Total != 2 {
		t.Errorf("listed %+v", list)
	}
	other := did[catalogue.TimelineListNodesOut](t, d.call(agent("a"), "", "timeline.list_nodes", `{"scope":"document","documentId":"`+guardtest.Entry+`"}`))
	if other.Total != 0 {
		t.Errorf("another document has %+v", other)
	}
	before := d.snapshots(t)
	out := did[catalogue.TimelineDeleteNodeOut](t, d.call(agent("a"), newKey(t), "timeline.delete_node", fmt.Sprintf(`{"documentId":%q,"tag":%q}`, guardtest.Alpha, n.Tag)))
	if !out.SnapshotRetained || d.snapshots(t) != before {
		t.Errorf("deleted %+v", out)
	}
	if r := d.call(agent("a"), "", "timeline.compare_node", fmt.Sprintf(`{"documentId":%q,"tag":%q}`, guardtest.Alpha, n.Tag)); contract.CodeOf(r.Err) != contract.NotFound {
		t.Errorf("a deleted node is compared: %v", r.Err)
	}
}

func TestComparingTellsWhatBecameOfEachBlockAndTakesNoSnapshot(t *testing.T) {
	t.Parallel()
	d := newTimelineDesk(t)
	n := d.name(t, guardtest.Alpha, "draft")
	if c := d.compare(t, guardtest.Alpha, n.Tag); !c.NoChanges || c.Total != 0 {
		t.Fatalf("nothing changed: %+v", c)
	}
	d.write(t, agent("a"), guardtest.Intro, "Alpha is new.")
	did[catalogue.BlockUpdateOut](t, d.call(agent("a"), newKey(t), "block.append", `{"parentID":"`+guardtest.Alpha+`","dataType":"markdown","data":"Added."}`))
	if r := d.call(agent("a"), newKey(t), "block.delete", `{"id":"`+guardtest.List+`"}`); r.Err != nil {
		t.Fatal(r.Err)
	}
	d.name(t, guardtest.Entry, "later") // a newer snapshot, which has the document as it is now
	before := d.snapshots(t)
	c := d.compare(t, guardtest.Alpha, n.Tag)
	got := ""
	for _, b := range c.Changes {
		got += fmt.Sprintf("%s %q>%q\n", b.Status, b.Old, b.Current)
	}
	want := `modified "Alpha ships a small tool. urgent">"Alpha is new."
removed "Collect notes\nfrom mail\nSort them">""
added "">"Added."
`
	if got != want || c.Stats != (catalogue.TimelineStats{AddedLines: 2, RemovedLines: 4, ChangedBlocks: 3, RollbackableBlocks: 3}) {
		t.Errorf("changes\n%s%+v, want\n%s", got, c.Stats, want)
	}
	if d.snapshots(t) != before {
		t.Error("comparing took a snapshot")
	}
}

func TestARollbackBringsBackADocumentOrOneBlock(t *testing.T) {
	t.Parallel()
	d := newTimelineDesk(t)
	n := d.name(t, guardtest.Alpha, "draft")
	d.write(t, agent("a"), guardtest.Intro, "Alpha is new.")
	if r := d.call(agent("a"), newKey(t), "block.delete", `{"id":"`+guardtest.List+`"}`); r.Err != nil {
		t.Fatal(r.Err)
	}
	doc := fmt.Sprintf(`"documentId":%q,"tag":%q`, guardtest.Alpha, n.Tag)
	for _, b := range d.compare(t, guardtest.Alpha, n.Tag).Changes {
		if b.Status == "removed" {
			did[catalogue.TimelineRollbackBlockOut](t, d.call(agent("a"), newKey(t), "timeline.rollback_block", fmt.Sprintf(`{%s,"changeKey":%q}`, doc, b.ChangeKey)))
		}
	}
	if c := d.compare(t, guardtest.Alpha, n.Tag); c.Total != 1 || c.Changes[0].Status != "modified" || c.Reordered {
		t.Errorf("after the list came back: %+v", c)
	}
	if r := d.call(agent("a"), newKey(t), "timeline.rollback_block", `{`+doc+`,"changeKey":"modified:x:x"}`); contract.CodeOf(r.Err) != contract.StateChanged {
		t.Errorf("a key of nothing: %v", r.Err)
	}
	if out := did[catalogue.TimelineRollbackDocumentOut](t, d.call(agent("a"), newKey(t), "timeline.rollback_document", `{`+doc+`}`)); out.Changed != 1 {
		t.Errorf("rollback %+v", out)
	}
	if c := d.compare(t, guardtest.Alpha, n.Tag); !c.NoChanges {
		t.Errorf("after the rollback: %+v", c)
	}
}

func TestNodesAreForThoseWhoMayReadTheDocument(t *testing.T) {
	t.Parallel()
	d := newTimelineDesk(t)
	n := d.name(t, guardtest.Entry, "draft")
	global := did[catalogue.TimelineCreateNodeOut](t, d.call(agent("a"), newKey(t), "timeline.create_node", `{"name":"all","scope":"global"}`)).Node
	reader := agent("a")
	reader.Switches, reader.Levels = nil, map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.Read}
	hidden := agent("a")
	hidden.Switches, hidden.Levels = nil, map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete}
	entry := `"documentId":"` + guardtest.Entry + `"`
	tag := func(tag string) string { return fmt.Sprintf(`{%s,"tag":%q}`, entry, tag) }
	for _, c := range []struct {
		who          *contract.Grant
		action, args string
		want         contract.Code
	}{
		{hidden, "list_nodes", `{"scope":"document",` + entry + `}`, contract.NotFound},
		{hidden, "compare_node", tag(n.Tag), contract.NotFound},
		{hidden, "compare_node", `{"documentId":"` + guardtest.Alpha + `","tag":"` + n.Tag + `"}`, contract.NotFound},
		{reader, "compare_node", tag(global.Tag), contract.NotFound},
		{reader, "list_nodes", `{"scope":"global"}`, contract.PermissionDenied},
		{reader, "create_node", `{"name":"x","scope":"global"}`, contract.PermissionDenied},
		{reader, "create_node", `{"name":"x","scope":"document",` + entry + `}`, contract.PermissionDenied},
		{reader, "rollback_document", tag(n.Tag), contract.PermissionDenied},
		{reader, "delete_node", tag(n.Tag), contract.PermissionDenied},
		{reader, "delete_node", `{"tag":"` + global.Tag + `"}`, contract.NotFound},
	} {
		if r := d.call(c.who, newKey(t), "timeline."+c.action, c.args); contract.CodeOf(r.Err) != c.want {
			t.Errorf("%s %s: %v, want %s", c.action, c.args, r.Err, c.want)
		}
	}
	if c := d.compare(t, guardtest.Entry, global.Tag); !c.NoChanges {
		t.Errorf("an owner compares with the workspace's state: %+v", c)
	}
}

func TestARollbackBringsBackNoLinkIntoWhatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	d := newTimelineDesk(t)
	d.write(t, agent("a"), guardtest.Intro, "See (("+guardtest.Entry+" 'entry')).")
	n := d.name(t, guardtest.Alpha, "draft")
	d.write(t, agent("a"), guardtest.Intro, "Alpha is new.")
	hidden := agent("a")
	hidden.Switches, hidden.Levels = nil, map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete}
	doc := fmt.Sprintf(`"documentId":%q,"tag":%q`, guardtest.Alpha, n.Tag)
	key := d.compare(t, guardtest.Alpha, n.Tag).Changes[0].ChangeKey
	for action, args := range map[string]string{"rollback_document": `{` + doc + `}`, "rollback_block": fmt.Sprintf(`{%s,"changeKey":%q}`, doc, key)} {
		if r := d.call(hidden, newKey(t), "timeline."+action, args); contract.CodeOf(r.Err) != contract.HiddenReference {
			t.Errorf("%s: %v", action, r.Err)
		}
	}
	if c := d.compare(t, guardtest.Alpha, n.Tag); c.Total != 1 || c.Changes[0].Current != "Alpha is new." {
		t.Errorf("a refused rollback wrote: %+v", c)
	}
	did[catalogue.TimelineRollbackDocumentOut](t, d.call(agent("a"), newKey(t), "timeline.rollback_document", `{`+doc+`}`))
}

func TestWithoutAKeyThereAreNoNodesAndNoKeyIsMade(t *testing.T) {
	t.Parallel()
	d := newKeepingDesk(t)
	list := did[catalogue.TimelineListNodesOut](t, d.call(agent("a"), "", "timeline.list_nodes", `{"scope":"global"}`))
	r := d.call(agent("a"), newKey(t), "timeline.create_node", `{"name":"x","scope":"global"}`)
	if list.Total != 0 || contract.CodeOf(r.Err) != contract.Unsupported || !strings.Contains(r.Err.Message, "key") {
		t.Errorf("%+v, %v", list, r.Err)
	}
	if _, err := d.Client.Reader().Snapshots(context.Background(), 1); siyuan.KindOf(err) != siyuan.Rejected {
		t.Errorf("the home has snapshots now: %v", err)
	}
}

func TestLiveNodes(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	id := liveDoc(t, d, g, nb, "/Nodes", "First.\n\nSecond.\n\n* one\n* two\n")
	block := string(d.children(t, id)[0].ID)
	r := d.call(g, "timeline.create_node", fmt.Sprintf(`{"name":"draft","scope":"document","documentId":%q}`, id))
	if r.Err != nil && contract.CodeOf(r.Err) == contract.Unsupported {
		t.Skip("this SiYuan has no data repository key")
	}
	tag := did[catalogue.TimelineCreateNodeOut](t, r).Node.Tag
	ok[catalogue.BlockUpdateOut](t, d, g, "block.update", fmt.Sprintf(`{"id":%q,"dataType":"markdown","data":"Changed."}`, block))
	ok[catalogue.BlockUpdateOut](t, d, g, "block.append", fmt.Sprintf(`{"parentID":%q,"dataType":"markdown","data":"Added."}`, id))
	args := fmt.Sprintf(`{"documentId":%q,"tag":%q}`, id, tag)
	c := ok[catalogue.TimelineCompareNodeOut](t, d, g, "timeline.compare_node", args)
	if c.Total != 2 || c.Changes[0].Old != "First." || c.Changes[0].Current != "Changed." || c.Changes[1].Status != "added" {
		t.Fatalf("%+v", c)
	}
	ok[catalogue.TimelineRollbackBlockOut](t, d, g, "timeline.rollback_block", fmt.Sprintf(`{"documentId":%q,"tag":%q,"changeKey":%q}`, id, tag, c.Changes[0].ChangeKey))
	if out := ok[catalogue.TimelineRollbackDocumentOut](t, d, g, "timeline.rollback_document", args); out.Changed != 1 {
		t.Errorf("%+v", out)
	}
	if c := ok[catalogue.TimelineCompareNodeOut](t, d, g, "timeline.compare_node", args); !c.NoChanges {
		t.Errorf("%+v", c)
	}
	ok[catalogue.TimelineDeleteNodeOut](t, d, g, "timeline.delete_node", args)
}
