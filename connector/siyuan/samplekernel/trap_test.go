package samplekernel_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel"
)

func (r *rig) count(text string) int {
	r.t.Helper()
	return len(r.sql("select id from blocks where content like '%" + text + "%'"))
}

func (r *rig) append(parent, markdown string) string {
	r.t.Helper()
	txs := ok[[]struct{ DoOperations []struct{ ID string } }](r, "/api/block/appendBlock", obj{"dataType": "markdown", "data": markdown, "parentID": parent})
	return txs[0].DoOperations[0].ID
}

func (r *rig) kramdown(id string) string {
	r.t.Helper()
	return ok[map[string]string](r, "/api/block/getBlockKramdown", obj{"id": id})["kramdown"]
}

func TestSQLSeesAWriteOnlyAfterTheLagOrAFlush(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.doc(r.notebook("Box"), "/Doc", "text")
	r.append(id, "zebra")
	r.clock.advance(samplekernel.DefaultIndexLag - time.Millisecond)
	if n := r.count("zebra"); n != 0 {
		t.Fatalf("%d rows before the lag has passed", n)
	}
	if !strings.Contains(r.kramdown(id), "zebra") {
		t.Fatal("the tree does not see the write at once")
	}
	r.clock.advance(time.Millisecond)
	if n := r.count("zebra"); n != 1 {
		t.Fatalf("%d rows after the lag", n)
	}
	r.append(id, "giraffe")
	r.call("/api/sqlite/flushTransaction", obj{})
	if n := r.count("giraffe"); n != 1 {
		t.Fatalf("%d rows after a flush", n)
	}
}

func TestARenderedEmbedPutsTextOfAnotherNotebookInItsOwnRow(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	r.doc(r.notebook("Private"), "/Diary", "slept seven hours")
	work := r.notebook("Work")
	const stmt = "select * from blocks where content like '%slept%'"
	r.doc(work, "/Doc", "{{"+stmt+"}}")
	r.call("/api/sqlite/flushTransaction", obj{})
	embed := r.sql("select id from blocks where type = 'query_embed'")[0]["id"]
	leaked := func() int {
		return len(r.sql("select id from blocks where content like '%slept%' and box = '" + work + "'"))
	}
	render := func() []any {
		return ok[map[string][]any](r, "/api/search/searchEmbedBlock", obj{"embedBlockID": embed, "stmt": stmt, "excludeIDs": []string{}})["blocks"]
	}
	if shown := render(); len(shown) != 1 || leaked() != 0 {
		t.Fatalf("the embed shows %d blocks, want 1; %d rows leak before the index has caught up", len(shown), leaked())
	}
	r.call("/api/sqlite/flushTransaction", obj{})
	if n := leaked(); n != 1 {
		t.Fatalf("%d rows of the open notebook have the private text, want the embed's", n)
	}
	if shown := render(); len(shown) != 1 {
		t.Fatalf("the embed shows %d blocks: it must not show itself", len(shown))
	}
}

func TestAStreamOfWritesCannotKeepADocumentFromTheIndex(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.doc(r.notebook("Box"), "/Doc", "text")
	r.append(id, "zebra")
	for range 5 {
		r.clock.advance(samplekernel.DefaultIndexLag - time.Millisecond)
		r.append(id, "more")
	}
	if n := r.count("zebra"); n != 1 {
		t.Fatalf("%d rows after five lags of writes", n)
	}
}

func TestADeletedBlockIsThereForAMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.doc(r.notebook("Box"), "/Doc", "keep")
	gone := r.append(id, "gone")
	r.call("/api/block/deleteBlock", obj{"id": gone})
	exists := func() bool { return ok[bool](r, "/api/block/checkBlockExist", obj{"id": gone}) }
	if !exists() {
		t.Fatal("gone at once")
	}
	r.clock.advance(samplekernel.DefaultDeleteLag)
	if exists() {
		t.Fatal("still there after the lag")
	}
}

func TestOpeningANotebookIndexesInTheBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	box := r.notebook("Box")
	id := r.doc(box, "/Doc", "zebra")
	r.k.Flush()
	r.call("/api/notebook/closeNotebook", obj{"notebook": box})
	if r.kramdown(id) != "" || r.count("zebra") != 1 {
		t.Fatal("just closed: want no tree, but rows")
	}
	r.k.Flush()
	if r.count("zebra") != 1 {
		t.Fatal("a flush must not wait for the closing")
	}
	r.clock.advance(samplekernel.DefaultMountLag)
	if r.count("zebra") != 0 {
		t.Fatal("closed: rows are still there")
	}
	r.call("/api/notebook/openNotebook", obj{"notebook": box})
	r.k.Flush()
	if r.count("zebra") != 0 || len(r.sql("select id from blocks where type='d' and box='"+box+"'")) != 1 {
		t.Fatal("just opened: want the root document only")
	}
	r.clock.advance(samplekernel.DefaultMountLag)
	if r.count("zebra") != 1 || r.kramdown(id) == "" {
		t.Fatal("opened: rows or tree are missing")
	}
}

func TestASelectWithoutALimitEndsAt64Rows(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.doc(r.notebook("Box"), "/Doc", "first")
	r.append(id, strings.Repeat("zebra\n\n", 70))
	r.k.Flush()
	if n := r.count("zebra"); n != 64 {
		t.Fatalf("%d rows", n)
	}
	if n := len(r.sql("select id from blocks where content='zebra' limit 100")); n != 70 {
		t.Fatalf("%d rows with a limit of 100", n)
	}
}

func TestABadArgumentIsASuccessThatDoesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	for _, body := range []any{obj{}, obj{"id": 5}, obj{"id": nil}} {
		for _, path := range []string{"/api/block/getBlockKramdown", "/api/block/updateBlock", "/api/attr/setBlockAttrs", "/api/filetree/getPathByID", "/api/block/moveBlock"} {
			if a := r.call(path, body); a.Code != 0 || string(a.Data) != "null" {
				t.Errorf("%s %v: %+v", path, body, a)
			}
		}
	}
}

func TestUpdatingABlockLosesItsAttributes(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.append(r.doc(r.notebook("Box"), "/Doc", "x"), "text")
	r.call("/api/attr/setBlockAttrs", obj{"id": id, "attrs": obj{"custom-a": "1", "memo": "m"}})
	r.call("/api/block/updateBlock", obj{"dataType": "markdown", "data": "other", "id": id})
	if attrs := ok[map[string]string](r, "/api/attr/getBlockAttrs", obj{"id": id}); attrs["custom-a"] != "" || attrs["memo"] != "" || attrs["id"] != id {
		t.Fatalf("%v", attrs)
	}
}

func TestPlainTextForAListItemCorruptsTheList(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	doc := r.doc(r.notebook("Box"), "/Doc", "- one\n- two")
	list := ok[[]struct{ ID, Type string }](r, "/api/block/getChildBlocks", obj{"id": doc})[0].ID
	item := ok[[]struct{ ID, Type string }](r, "/api/block/getChildBlocks", obj{"id": list})[0].ID
	r.call("/api/block/updateBlock", obj{"dataType": "markdown", "data": "bare", "id": item})
	if first := ok[[]struct{ ID, Type string }](r, "/api/block/getChildBlocks", obj{"id": list})[0]; first.Type != "p" || first.ID != item {
		t.Fatalf("first child of the list is %+v", first)
	}
}

func TestTheOrderOfAttributesChangesFromCallToCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.append(r.doc(r.notebook("Box"), "/Doc", "x"), "text")
	r.call("/api/attr/setBlockAttrs", obj{"id": id, "attrs": obj{"custom-a": "1", "custom-b": "2", "custom-c": "3", "memo": "m"}})
	seen := map[string]bool{}
	for range 50 {
		seen[r.kramdown(id)] = true
	}
	if len(seen) < 2 {
		t.Fatalf("one order in 50 calls: %v", seen)
	}
}

func TestARootDocumentHasTheIDOfItsNotebookAndTwoRows(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	box := r.notebook("Box")
	if n := len(r.sql("select id from blocks where id='" + box + "'")); n != 2 {
		t.Fatalf("%d rows", n)
	}
	r.append(box, "into the notebook")
	if !strings.Contains(r.kramdown(box), "into the notebook") {
		t.Fatal("a notebook id does not work as a document id")
	}
	r.k.Flush()
	if n := len(r.sql("select id from blocks where id='" + box + "'")); n != 1 {
		t.Fatalf("%d rows after a write", n)
	}
}

func TestAReferenceToNowhereLosesItsTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	doc := r.doc(r.notebook("Box"), "/Doc", "x")
	if md := r.kramdown(r.append(doc, `see ((20240199000000-missing "gone"))`)); !strings.HasPrefix(md, "see (( 'gone'))") {
		t.Fatal(md)
	}
	if md := r.kramdown(r.append(doc, `see ((`+doc+` "doc"))`)); !strings.HasPrefix(md, "see (("+doc+` "doc"))`) {
		t.Fatal(md)
	}
}

func TestGetFileErrorsAreStatus202(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	w := r.raw(http.MethodPost, "/api/file/getFile", []byte(`{"path":"/data/nosuch"}`), nil)
	if w.Code != http.StatusAccepted || !strings.Contains(w.Body.String(), `"code":404`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w = r.raw(http.MethodPost, "/api/file/getFile", []byte(`{"path":"/conf/conf.json"}`), nil)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), token) {
		t.Fatal("the configuration with the token cannot be read")
	}
}

func TestFilesOutsideTheWorkspaceAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	for _, p := range []string{"/..", "/../x", "/data/../../x"} {
		if a := r.call("/api/file/readDir", obj{"path": p}); a.Code != http.StatusForbidden {
			t.Errorf("readDir %s: %+v", p, a)
		}
		if a := r.call("/api/file/removeFile", obj{"path": p}); a.Code != http.StatusForbidden {
			t.Errorf("removeFile %s: %+v", p, a)
		}
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	id := r.doc(r.notebook("Box"), "/Doc", "first")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				r.raw(http.MethodPost, "/api/block/appendBlock", []byte(`{"dataType":"markdown","data":"line","parentID":"`+id+`"}`), nil)
				r.raw(http.MethodPost, "/api/query/sql", []byte(`{"stmt":"select count(*) from blocks"}`), nil)
			}
		})
	}
	wg.Wait()
	if n := len(ok[[]obj](r, "/api/block/getChildBlocks", obj{"id": id})); n != 41 {
		t.Fatalf("%d blocks, want 41", n)
	}
}

func TestWhatWasWrittenIsFoundAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, samplekernel.Options{Dir: dir})
	box := r.notebook("Box")
	id := r.doc(box, "/A/B", "- [ ] task with #tag#\n\n> quote")
	r.call("/api/attr/setBlockAttrs", obj{"id": id, "attrs": obj{"custom-x": "line1\nline2 \"q\""}})
	r.k.Close()
	again := newRig(t, samplekernel.Options{Dir: dir})
	if p := ok[string](again, "/api/filetree/getHPathByID", obj{"id": id}); p != "/A/B" {
		t.Fatal(p)
	}
	if v := ok[map[string]string](again, "/api/attr/getBlockAttrs", obj{"id": id})["custom-x"]; v != "line1\nline2 \"q\"" {
		t.Fatalf("%q", v)
	}
	if n := len(again.sql("select id from spans where type='textmark tag'")); n != 1 {
		t.Fatalf("%d tags indexed", n)
	}
}

func TestATokenIsKeptInTheWorkspace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := samplekernel.New(samplekernel.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := samplekernel.New(samplekernel.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if first.Token() != second.Token() || first.Token() == "" {
		t.Fatalf("%q and %q", first.Token(), second.Token())
	}
}
