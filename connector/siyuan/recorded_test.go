package siyuan

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// Expected kinds come from the recordings' names and API.md, section 9.
func TestRecordedTrapsHaveTheirKind(t *testing.T) {
	t.Parallel()
	const gone ID = "20240199000000-missing"
	cases := []struct {
		recording string
		call      func(context.Context, *Writer) error
		want      Kind
	}{
		{"getBlockInfo: missing id", func(c context.Context, w *Writer) error { _, err := w.BlockInfo(c, gone); return err }, Missing},
		{"getBlockInfo: malformed id", func(c context.Context, w *Writer) error { _, err := w.BlockInfo(c, gone); return err }, Indexing},
		{"getBlockKramdown: missing id", func(c context.Context, w *Writer) error {
			_, err := w.BlockKramdown(c, gone, KramdownMarkdown)
			return err
		}, Missing},
		{"getBlockDOM: missing id", func(c context.Context, w *Writer) error { _, err := w.BlockDOM(c, gone); return err }, Missing},
		{"getBlockBreadcrumb: missing id", func(c context.Context, w *Writer) error { _, err := w.Breadcrumb(c, gone); return err }, Missing},
		{"getTreeStat: missing id", func(c context.Context, w *Writer) error { _, err := w.TreeStat(c, gone); return err }, Missing},
		{"getBlockAttrs: missing id", func(c context.Context, w *Writer) error { _, err := w.BlockAttrs(c, gone); return err }, Missing},
		{"exportMdContent: missing id", func(c context.Context, w *Writer) error {
			_, err := w.ExportMarkdown(c, gone, Export{})
			return err
		}, Missing},
		{"getAttributeView: missing", func(c context.Context, w *Writer) error { _, err := w.AttributeView(c, gone); return err }, Missing},
		{"getFile: missing", func(c context.Context, w *Writer) error { _, err := w.GetFile(c, "/data/nosuch.txt"); return err }, Missing},
		{"getFile: directory", func(c context.Context, w *Writer) error { _, err := w.GetFile(c, "/data/assets"); return err }, Rejected},
		{"getFile: outside workspace", func(c context.Context, w *Writer) error { _, err := w.GetFile(c, "/../x"); return err }, Rejected},
		{"readDir: missing", func(c context.Context, w *Writer) error { _, err := w.ReadDir(c, "/data/x"); return err }, Missing},
		{"readDir: a file", func(c context.Context, w *Writer) error { _, err := w.ReadDir(c, "/data/x"); return err }, Rejected},
		{"removeFile: missing", func(c context.Context, w *Writer) error { return w.RemoveFile(c, "/data/x") }, Missing},
		{"insertBlock: no anchor", func(c context.Context, w *Writer) error {
			_, err := w.InsertBlock(c, Markdown, "x", Anchor{Previous: gone})
			return err
		}, Rejected},
		{"updateBlock: missing id", func(c context.Context, w *Writer) error {
			_, err := w.UpdateBlock(c, gone, Markdown, "x")
			return err
		}, Rejected},
		{"no token, no cookie", func(c context.Context, w *Writer) error { _, _, err := w.Notebooks(c); return err }, Unauthorized},
		{"trailing slash", func(c context.Context, w *Writer) error { _, err := w.Decks(c); return err }, Internal},
	}
	for _, tc := range cases {
		t.Run(tc.recording, func(t *testing.T) {
			t.Parallel()
			k := replay(t, tc.recording)
			err := tc.call(t.Context(), newClient(t, k.URL).Writer())
			if got := KindOf(err); tc.want != Internal && (got != tc.want || !errors.Is(err, tc.want)) {
				t.Errorf("got %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}

func TestAMissingDatabaseIsMissing(t *testing.T) {
	t.Parallel()
	k := replay(t, "renderAttributeView: missing, no create", "getAttributeView: missing")
	_, err := newClient(t, k.URL).Reader().RenderAttributeView(t.Context(), Render{ID: av1})
	if !errors.Is(err, Missing) {
		t.Errorf("got %v", err)
	}
	if got := string(k.requests()[0].fields["createIfNotExist"]); got != "false" {
		t.Errorf("createIfNotExist is %s: the kernel would create the database", got)
	}
}

func TestARefusalOfAnExistingBlockStaysRejected(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, path string) {
		if path == "block/checkBlockExist" {
			sendData(w, true)
			return
		}
		sendJSON(w, http.StatusOK, map[string]any{"code": -1, "msg": "not found", "data": nil})
	})
	_, err := newClient(t, k.URL).Reader().BlockInfo(t.Context(), id1)
	if !errors.Is(err, Rejected) {
		t.Errorf("got %v: the message must not decide", err)
	}
}

func TestNoDocumentOfManyExistingIsNoError(t *testing.T) {
	t.Parallel()
	all := load[map[string]exchange](t, "exchanges.json")
	k := newKernel(t, func(w http.ResponseWriter, path string) {
		if path == "block/checkBlocksExist" {
			sendData(w, map[ID]bool{id1: false})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(all["getDocsInfo: missing"].Answer)
	})
	infos, err := newClient(t, k.URL).Reader().DocsInfo(t.Context(), []ID{id1})
	if err != nil || len(infos) != 0 {
		t.Errorf("got %v, %v", infos, err)
	}
}

func TestBlockInfoReadsTheRecordedBlock(t *testing.T) {
	t.Parallel()
	k := replay(t, "getBlockInfo")
	got, err := newClient(t, k.URL).Reader().BlockInfo(t.Context(), id3)
	want := BlockInfo{
		Box: box, Path: "/20240102100000-projdoc/20240102100100-alphadc.sy",
		RootID: "20240102100100-alphadc", RootTitle: "Alpha",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAJSONFileIsAFileAndNotAnAnswer(t *testing.T) {
	t.Parallel()
	k := replay(t, "getFile: notebook conf")
	f, err := newClient(t, k.URL).Reader().GetFile(t.Context(), "/data/x/.siyuan/conf.json")
	if err != nil || f.ContentType != "application/json" || len(f.Data) == 0 || f.Data[0] != '{' {
		t.Errorf("got %q %q, %v", f.ContentType, f.Data, err)
	}
}

func TestIdentityIsOneCallAndTellsNoSecret(t *testing.T) {
	t.Parallel()
	conf := func(system, dir string) *kernel {
		return newKernel(t, func(w http.ResponseWriter, _ string) {
			sendData(w, map[string]any{"conf": map[string]any{
				"system":   map[string]any{"id": system, "workspaceDir": dir, "kernelVersion": "3.7.3"},
				"fileTree": map[string]any{"boxDocEnabled": true}, "api": map[string]any{"token": testToken},
			}})
		})
	}
	identify := func(k *kernel) Identity {
		id, err := newClient(t, k.URL).Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(k.requests()); n != 1 {
			t.Errorf("%d calls", n)
		}
		return id
	}
	home := identify(conf("install-1", "/w/a"))
	if home.Version != "3.7.3" || !home.BoxDocs {
		t.Errorf("got %+v", home)
	}
	if again := identify(conf("install-1", "/w/a")); again != home {
		t.Error("the same workspace has another identity")
	}
	if other := identify(conf("install-1", "/w/b")); other.System != home.System || other.Workspace == home.Workspace {
		t.Error("another workspace of the same installation is not told apart")
	}
	if other := identify(conf("install-2", "/w/a")); other.System == home.System || other.Workspace == home.Workspace {
		t.Error("another installation is not told apart")
	}
}

func TestPublicProbesCarryNoToken(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, path string) {
		if path == "system/version" {
			sendData(w, "3.7.3")
			return
		}
		sendData(w, map[string]any{"details": "indexing", "progress": 42})
	})
	c := newClient(t, k.URL)
	if v, err := c.Version(t.Context()); err != nil || v != "3.7.3" {
		t.Errorf("got %q, %v", v, err)
	}
	if b, err := c.BootProgress(t.Context()); err != nil || b.Progress != 42 || b.Ready() {
		t.Errorf("got %+v, %v", b, err)
	}
	for _, r := range k.requests() {
		if r.auth != "" {
			t.Errorf("%s was sent the token", r.path)
		}
	}
}
