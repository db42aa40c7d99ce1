package siyuan

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// live is a client of the SiYuan that the environment names, and a notebook of
// the test's own in it.
type live struct {
	*Writer
	t   *testing.T
	ctx context.Context
	nb  ID
	avs []ID // databases to remove; their files are not in the notebook
}

// liveName starts the name of everything the live tests make outside of their
// notebooks.
const liveName = "siyuan-broker-live"

func liveClient(t *testing.T, change ...func(*Config)) *Client {
	t.Helper()
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("SIYUAN_API_URL and SIYUAN_TOKEN name no SiYuan to test with")
	}
	cfg := Config{BaseURL: url, Token: NewToken(token)}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newLive makes a notebook that is removed with the test.
func newLive(t *testing.T) *live {
	t.Helper()
	l := &live{Writer: liveClient(t).Writer(), t: t, ctx: t.Context()}
	nb := take(l.CreateNotebook(l.ctx, liveName))(t)
	l.nb = nb.ID
	t.Cleanup(func() {
		ctx := context.Background()
		// A background task that comes after the removal makes the notebook
		// again, as a closed one named Untitled: wait before it and look after.
		settle(ctx, t, l.Reader)
		for range 3 {
			if err := l.RemoveNotebook(ctx, l.nb); err != nil {
				t.Errorf("remove the test's notebook %s: %v", l.nb, err)
			}
			settle(ctx, t, l.Reader)
			if _, err := l.NotebookConf(ctx, l.nb); KindOf(err) == Missing {
				break
			}
		}
		for _, av := range l.avs {
			if err := l.RemoveUnusedAttributeView(context.Background(), av); err != nil {
				t.Errorf("remove the test's database %s: %v", av, err)
			}
		}
	})
	settle(l.ctx, t, l.Reader)
	return l
}

// settle waits until the kernel has indexed nothing in the background for a
// third of a second: while it does, rows of a new notebook come and go.
func settle(ctx context.Context, t *testing.T, r *Reader) {
	t.Helper()
	const polls = 3
	quiet := 0
	eventually(ctx, t, "the kernel's index is at rest", func() bool {
		var conf struct {
			State int `json:"dataIndexState"` // 1 while indexing
		}
		if err := json.Unmarshal(take(r.RawConf(ctx))(t), &conf); err != nil {
			t.Fatal(err)
		}
		if quiet++; conf.State != 0 {
			quiet = 0
		}
		return quiet >= polls
	})
}

// scratch skips what cannot be done without touching a person's workspace,
// unless the workspace is declared to be nobody's.
func scratch(t *testing.T) {
	t.Helper()
	if os.Getenv("SIYUAN_SCRATCH") == "" {
		t.Skip("changes the whole workspace: set SIYUAN_SCRATCH=1 for one that may be changed")
	}
}

// take ends the test when a call failed.
func take[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%+v)", err, unwrapAll(err))
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %#v, want %#v", what, got, want)
	}
}

func wantKind(t *testing.T, what string, err error, want Kind) {
	t.Helper()
	if KindOf(err) != want {
		t.Errorf("%s: got %v (%v), want %v", what, KindOf(err), err, want)
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s has no %q: %q", what, p, text)
		}
	}
}

// eventually waits for what the kernel does in the background and no flush
// covers.
func eventually(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come true in 20 s", what)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

func (l *live) id() ID {
	l.t.Helper()
	return take(NewID(time.Now(), rand.Reader))(l.t)
}

// doc makes a document of the test's notebook.
func (l *live) doc(hpath, markdown string) ID {
	l.t.Helper()
	id := l.id()
	got := take(l.CreateDoc(l.ctx, NewDoc{Notebook: l.nb, HPath: hpath, Markdown: markdown, ID: id}))(l.t)
	equal(l.t, "the new document's id", got, id)
	return id
}

// para makes a paragraph at the end of a document.
func (l *live) para(doc ID, text string) ID {
	l.t.Helper()
	id := l.id()
	txs := take(l.AppendBlock(l.ctx, doc, Markdown, text+"\n{: id=\""+string(id)+"\"}"))(l.t)
	equal(l.t, "the appended block's id", Ops(txs)[0].ID, id)
	return id
}

func (l *live) children(id ID) []ID {
	l.t.Helper()
	var ids []ID
	for _, c := range take(l.ChildBlocks(l.ctx, id))(l.t) {
		ids = append(ids, c.ID)
	}
	return ids
}

func (l *live) markdown(id ID) string {
	l.t.Helper()
	return withoutIAL(take(l.BlockKramdown(l.ctx, id, KramdownMarkdown))(l.t))
}

// withoutIAL drops attribute lines, whose order is random.
func withoutIAL(kramdown string) string {
	lines := slices.DeleteFunc(strings.Split(kramdown, "\n"), func(s string) bool {
		return strings.HasPrefix(strings.TrimSpace(s), "{:")
	})
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// count counts rows by SQL, which the client makes wait for our writes. Rows
// that the kernel has twice, see CreateNotebook, count once.
func (l *live) count(table, where string) int64 {
	l.t.Helper()
	key := map[string]string{"blocks": "id", "refs": "block_id || def_block_id"}[table]
	if key == "" {
		key = "block_id || content"
	}
	rows := take(l.SQL(l.ctx, "SELECT count(DISTINCT "+key+") AS n FROM "+table+" WHERE "+where+" LIMIT 1"))(l.t)
	return rows[0].Int("n")
}

func blockIDs(blocks []Block) []ID {
	var ids []ID
	for _, b := range blocks {
		ids = append(ids, b.ID)
	}
	return ids
}
