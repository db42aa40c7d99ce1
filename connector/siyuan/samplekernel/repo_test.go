package samplekernel_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel"
)

type snapshots struct {
	Snapshots []struct {
		ID, Memo string
		Count    int
	}
}

func TestASnapshotBringsADocumentBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	doc := r.doc(r.notebook("Box"), "/Doc", "the first text")
	if a := r.call("/api/repo/createSnapshot", obj{"memo": "early"}); a.Code != -1 {
		t.Fatalf("a snapshot without a key answers code %d", a.Code)
	}
	r.call("/api/repo/initRepoKeyFromPassphrase", obj{"pass": "sesame"})
	r.clock.advance(samplekernel.DefaultIndexLag)
	r.call("/api/repo/createSnapshot", obj{"memo": "nothing changed"})
	r.append(doc, "the second text")
	r.clock.advance(samplekernel.DefaultIndexLag)
	r.call("/api/repo/createSnapshot", obj{"memo": "changed"})

	all := ok[snapshots](r, "/api/repo/getRepoSnapshots", obj{"page": 1}).Snapshots
	if len(all) != 2 || all[0].Memo != "changed" {
		t.Fatalf("snapshots %+v, want the one of the key and the changed one", all)
	}
	diff := ok[map[string]any](r, "/api/repo/diffRepoSnapshots", obj{"left": all[1].ID, "right": all[0].ID})
	updated := diff["updatesLeft"].([]any)
	if len(updated) != 1 || len(diff["addsLeft"].([]any)) != 0 {
		t.Fatalf("difference %v, want one changed file", diff)
	}
	file := updated[0].(map[string]any)["fileID"]
	if content := ok[map[string]any](r, "/api/repo/openRepoSnapshotFile", obj{"id": file})["content"].(string); strings.Contains(content, "second") {
		t.Fatalf("the old file has the new text: %s", content)
	}
	r.call("/api/repo/rollbackRepoSnapshotFile", obj{"id": file})
	if now := r.kramdown(doc); strings.Contains(now, "second") || !strings.Contains(now, "first") {
		t.Fatalf("after the rollback: %s", now)
	}
}

func TestATagKeepsASnapshotByName(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	r.doc(r.notebook("Box"), "/Doc", "text")
	r.call("/api/repo/initRepoKeyFromPassphrase", obj{"pass": "sesame"})
	id := ok[snapshots](r, "/api/repo/getRepoSnapshots", obj{"page": 1}).Snapshots[0].ID
	if a := r.call("/api/repo/tagSnapshot", obj{"id": id, "name": "a/b"}); a.Code != -1 {
		t.Fatalf("a name with a slash answers code %d", a.Code)
	}
	r.call("/api/repo/tagSnapshot", obj{"id": id, "name": "before the move"})
	if tagged := ok[snapshots](r, "/api/repo/getRepoTagSnapshots", obj{}).Snapshots; len(tagged) != 1 || tagged[0].ID != id {
		t.Fatalf("tagged %+v", tagged)
	}
	r.call("/api/repo/removeRepoTagSnapshot", obj{"tag": "before the move"})
	if tagged := ok[snapshots](r, "/api/repo/getRepoTagSnapshots", obj{}).Snapshots; len(tagged) != 0 {
		t.Fatalf("still tagged %+v", tagged)
	}
}

func TestAnExportedDocumentIsAZipToDownload(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	doc := r.doc(r.notebook("Box"), "/My plan", "whales sing")
	to := ok[map[string]string](r, "/api/export/exportMd", obj{"id": doc})["zip"]
	if to != "/export/My%20plan.md.zip" {
		t.Fatalf("path %q", to)
	}
	w := r.raw(http.MethodGet, to, nil, nil)
	z, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), int64(w.Body.Len()))
	if err != nil {
		t.Fatalf("status %d: %v", w.Code, err)
	}
	f, err := z.Open("My plan.md")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(f); err != nil || !strings.Contains(string(raw), "whales sing") {
		t.Fatalf("%s, %v", raw, err)
	}
}

func TestARowIsBoundToAnotherBlock(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	doc := r.doc(r.notebook("Box"), "/Doc", "text")
	first, second := r.append(doc, "first"), r.append(doc, "second")
	const av = "20240102100710-avtasks"
	r.append(doc, `<div data-type="NodeAttributeView" data-av-id="`+av+`" data-av-type="table"></div>`)
	r.call("/api/av/renderAttributeView", obj{"id": av})
	r.call("/api/av/addAttributeViewBlocks", obj{"avID": av, "srcs": []obj{{"id": first, "isDetached": false}}})
	item := ok[map[string]string](r, "/api/av/getAttributeViewItemIDsByBoundIDs", obj{"avID": av, "blockIDs": []string{first}})[first]
	if item == "" {
		t.Fatal("the first block has no row")
	}
	r.call("/api/av/batchReplaceAttributeViewBlocks", obj{"avID": av, "isDetached": false, "oldNew": []obj{{first: second}}})
	bound := ok[map[string]string](r, "/api/av/getAttributeViewItemIDsByBoundIDs", obj{"avID": av, "blockIDs": []string{first, second}})
	if bound[second] != item || bound[first] != "" {
		t.Fatalf("rows %v, want %s for %s only", bound, item, second)
	}
	for id, want := range map[string]string{first: "", second: av} {
		if got := ok[map[string]string](r, "/api/attr/getBlockAttrs", obj{"id": id})["custom-avs"]; got != want {
			t.Errorf("custom-avs of %s is %q, want %q", id, got, want)
		}
	}
}
