package guard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

// TestOpeningWaitsForWhatSiYuanDoesInTheBackground: the kernel answers before a
// notebook is open.
func TestOpeningWaitsForWhatSiYuanDoesInTheBackground(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	const path = "/api/notebook/openNotebook"
	h.Kernel.Faults().Set(path, samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
	waits := 0
	g := guard.New(h.Client.Reader(), h.Client.Writer(), guard.Options{Sleep: func(ctx context.Context, d time.Duration) error {
		if waits++; waits == 3 { // the background gets to it
			h.Kernel.Faults().Clear()
			return h.Client.Writer().OpenNotebook(ctx, guardtest.Archive)
		}
		return nil
	}})
	w, err := g.Workspace(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := g.Session(w, guardtest.Grant(map[string]contract.Level{guardtest.Archive: contract.ReadWrite}))
	n, err := s.Notebook(guardtest.Archive, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(context.Background(), intent(n), func(ctx context.Context, tx *guard.Tx) (err error) {
		n, err = tx.SetNotebookOpen(ctx, n, true)
		return err
	})
	if err != nil || n.Closed() || waits != 3 {
		t.Errorf("closed %t after %d waits (%v), want open after three", n.Closed(), waits, err)
	}
}

// TestANotebookThatComesBackIsRemovedAgain: SiYuan's background indexing can
// write the settings of a notebook that was just removed.
func TestANotebookThatComesBackIsRemovedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		returns, removals int
		want              contract.Code
	}{"never": {0, 1, ""}, "once": {1, 2, ""}, "every time": {9, 2, contract.WriteNotPersisted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := guardtest.New(t)
			k := &haunted{next: h.Kernel.Handler()}
			srv := httptest.NewServer(k)
			t.Cleanup(srv.Close)
			client, err := siyuan.New(siyuan.Config{BaseURL: srv.URL, Token: siyuan.NewToken(h.Kernel.Token())})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			returned := 0
			g := guard.New(client.Reader(), client.Writer(), guard.Options{Sleep: func(_ context.Context, d time.Duration) error {
				if d >= time.Second && returned < c.returns {
					returned++
					k.ghost.Store(true)
				}
				return nil
			}})
			w, err := g.Workspace(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			s := g.Session(w, guardtest.Grant(map[string]contract.Level{guardtest.Diary: contract.ReadWriteDelete}))
			n, err := s.Notebook(guardtest.Diary, contract.ReadWriteDelete)
			if err != nil {
				t.Fatal(err)
			}
			err = s.Write(context.Background(), intent(n), func(ctx context.Context, tx *guard.Tx) error { return tx.RemoveNotebook(ctx, n) })
			if got := contract.CodeOf(err); got != c.want || k.removals.Load() != int64(c.removals) {
				t.Errorf("ended with %q after %d removals, want %q after %d", got, k.removals.Load(), c.want, c.removals)
			}
		})
	}
}

// haunted is a kernel that lists the diary again while ghost is set; removing
// it clears that.
type haunted struct {
	next     http.Handler
	ghost    atomic.Bool
	removals atomic.Int64
}

func (k *haunted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/notebook/removeNotebook":
		k.removals.Add(1)
		k.ghost.Store(false)
	case "/api/notebook/lsNotebooks":
		if k.ghost.Load() {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = fmt.Fprintf(w, `{"code":0,"msg":"","data":{"boxDocEnabled":true,"notebooks":[{"id":%q,"name":"Untitled","icon":"","sort":0,"sortMode":15,"closed":true,`+
				`"subFileCount":0,"newFlashcardCount":0,"dueFlashcardCount":0,"flashcardCount":0,"encrypted":false,"unlocked":false}]}}`, guardtest.Diary)
			return
		}
	}
	k.next.ServeHTTP(w, r)
}

// TestAWriteStaysInsideItsIntent: what is not locked is not written.
func TestAWriteStaysInsideItsIntent(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Session(t, map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.ReadWriteDelete})
	ctx := context.Background()
	work, err := s.Notebook(guardtest.Work, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	diary, err := s.Notebook(guardtest.Diary, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	alpha, err := s.ExactDoc(ctx, guardtest.Alpha, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	intro := block(t, s, guardtest.Intro, contract.ReadWrite)
	entry := block(t, s, guardtest.EntryP, contract.ReadWrite)
	for name, do := range map[string]func(ctx context.Context, tx *guard.Tx) error{
		"delete": func(ctx context.Context, tx *guard.Tx) error { return tx.Delete(ctx, intro) },
		"set_attrs": func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.SetAttrs(ctx, intro, map[string]string{"memo": "x"})
			return err
		},
		"insert": func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.Insert(ctx, []guard.Insertion{{At: guard.Anchor{Block: intro}}})
			return err
		},
		"move": func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.Move(ctx, []guard.Block{entry}, guard.Anchor{Block: intro})
			return err
		},
		"rename": func(ctx context.Context, tx *guard.Tx) error { return tx.RenameDoc(ctx, alpha, "x") },
		"move document": func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.MoveDocs(ctx, []guard.Doc{alpha}, guard.Place{Notebook: diary})
			return err
		},
		"remove": func(ctx context.Context, tx *guard.Tx) error {
			_, err := tx.RemoveDocs(ctx, []guard.Doc{alpha})
			return err
		},
		"notebook": func(ctx context.Context, tx *guard.Tx) error { return tx.RenameNotebook(ctx, work, "x") },
	} {
		err := s.Write(ctx, intent(entry, diary), do)
		if err == nil || contract.CodeOf(guard.Public(err)) != contract.Internal {
			t.Errorf("%s outside of the intent: %v, want an internal error", name, err)
		}
	}
}

// TestADocumentThatMovedWhileTheCallWaitedIsMovedFromWhereItIs: paths are looked
// up again under the lock.
func TestADocumentThatMovedWhileTheCallWaitedIsMovedFromWhereItIs(t *testing.T) {
	t.Parallel()
	h := guardtest.New(t)
	s := h.Writer(t)
	ctx := context.Background()
	projects, err := s.ExactDoc(ctx, guardtest.Projects, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.Place(ctx, guardtest.Alpha, contract.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Client.Writer().MoveDocs(ctx, []siyuan.ID{guardtest.Alpha}, guardtest.Work); err != nil { // by a person, meanwhile
		t.Fatal(err)
	}
	err = s.Write(ctx, intent(append(to.Targets(), projects, projects.Notebook())...), func(ctx context.Context, tx *guard.Tx) error {
		paths, err := tx.MoveDocs(ctx, []guard.Doc{projects}, to)
		if want := "/" + guardtest.Alpha + "/" + guardtest.Projects + ".sy"; err == nil && paths[0] != want {
			t.Errorf("path %s, want %s", paths[0], want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
