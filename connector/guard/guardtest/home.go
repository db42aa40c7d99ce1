// Package guardtest builds a small home for tests: a sample kernel with four
// notebooks whose notes cite each other in every way, and a guard in front of
// it. It is imported by tests only.
package guardtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

// The notebooks of the home.
const (
	Work    = "20240101090000-work001"
	Diary   = "20240101090100-diary01"
	Private = "20240101090200-private"
	Archive = "20240101090300-archive" // closed
)

// Some documents and blocks. Missing names nothing, Closed something in Archive.
const (
	Projects  = "20240102100000-projdoc" // Work
	Index     = "20240102110040-block28" // in Projects
	Alpha     = "20240102100100-alphadc" // Work, below Projects
	Heading   = "20240102110001-block01" // in Alpha
	Intro     = "20240102110002-block02" // in Alpha, with attributes
	List      = "20240102110013-block0d" // in Alpha
	Item      = "20240102110004-block04" // in List, with a nested list
	ItemText  = "20240102110005-block05"
	Links     = "20240102110042-block2a" // in Alpha: one reference of each kind
	Embed     = "20240102110043-block2b" // in Alpha: a query embed
	Secret    = "20240104090000-secretd" // Private
	SecretP   = "20240102110062-block3e" // in Secret
	Entry     = "20240103090000-readdoc" // Diary
	EntryP    = "20240102110070-block46" // in Entry
	Closed    = "20240102110080-block50" // in Archive
	ClosedDoc = "20240105090000-oldproj"
	Missing   = "20240199000000-missing"
)

// SecretTitle is the title of the hidden document; it must never be seen.
const SecretTitle = "Operation Nightfall"

// Home is a kernel with the notes above and the guard in front of it.
type Home struct {
	Kernel *samplekernel.Kernel
	Client *siyuan.Client
	Guard  *guard.Guard
	Pass   func(d time.Duration) // lets time pass; nil where it stands still

	mu      sync.Mutex
	answers map[string]string // canned data by API path
	between func(http.Handler) http.Handler
}

// Between puts something in front of the kernel, for what a test wants to count
// or to lose.
func (h *Home) Between(wrap func(http.Handler) http.Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.between = wrap
}

// Answer makes an API path such as /api/riff/getRiffDueCards answer the given
// data, for what the sample kernel does not have or would not say.
func (h *Home) Answer(path, data string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[path] = data
}

// ServeHTTP is the home's kernel.
func (h *Home) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	data, canned := h.answers[r.URL.Path]
	between := h.between
	h.mu.Unlock()
	if !canned {
		kernel := h.Kernel.Handler()
		if between != nil {
			kernel = between(kernel)
		}
		kernel.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"code":0,"msg":"","data":%s}`, data) // a client gone is no concern of ours
}

// Docs are the notes of a home, in the order they are made.
type Docs []Doc

// Doc is one note: its kramdown, with the ids that tests refer to.
type Doc struct{ Box, Path, Title, Text string }

// Notes are the standard notes.
func Notes() Docs {
	ial := func(id, more string) string { return fmt.Sprintf("\n{: id=%q%s}\n\n", id, more) }
	return Docs{
		{Private, "/" + Secret + ".sy", SecretTitle, "A confidential paragraph." + ial(SecretP, "")},
		{Diary, "/" + Entry + ".sy", "Entry", "今天读了一本书。" + ial(EntryP, "")},
		{Work, "/" + Projects + ".sy", "Projects", "Index of projects." + ial(Index, "")},
		{Work, "/" + Projects + "/" + Alpha + ".sy", "Alpha",
			"# Alpha goals" + ial(Heading, "") +
				"Alpha ships a **small** tool. #urgent#" + ial(Intro, ` name="alpha-intro" alias="start" memo="say &quot;hi&quot;" bookmark="Review" custom-status="draft"`) +
				"- {: id=\"" + Item + "\"}Collect notes\n  {: id=\"" + ItemText + "\" custom-p=\"1\"}\n\n" +
				"  - {: id=\"20240102110006-block06\"}from mail\n    {: id=\"20240102110007-block07\"}\n" +
				"  {: id=\"20240102110010-block0a\"}\n" +
				"- {: id=\"20240102110011-block0b\"}Sort them\n  {: id=\"20240102110012-block0c\"}\n" +
				"{: id=\"" + List + "\"}\n\n"},
	}
}

// linksText is a paragraph with references of every kind: a hidden and a
// readable target, static and dynamic. The kernel keeps dynamic anchors equal to
// their target's title.
func linksText(secretTitle string) string {
	return `See ((` + Secret + ` '` + secretTitle + `')), ((` + SecretP + ` "my words")), ((` + Intro + ` 'alpha-intro')) and ((` + Entry + ` "Entry")).`
}

// New starts a home. It ends with the test.
func New(t testing.TB) *Home { return NewWith(t, Notes()) }

// NewKeeping starts a home whose guard keeps restore points. Its time passes while
// somebody sleeps, and with [Home.Pass].
func NewKeeping(t testing.TB, points func(now func() time.Time) guard.Points) *Home {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(New(t).Kernel.Dir())))
	var passed atomic.Int64
	start := clock()()
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	h := openAt(t, dir, now)
	h.Pass = func(d time.Duration) { passed.Add(int64(d)) }
	check(t, h.Client.Reader().Flush(context.Background()))
	h.Guard = guard.New(h.Client.Reader(), h.Client.Writer(), guard.Options{Now: now, Points: points(now), Sleep: func(ctx context.Context, d time.Duration) error {
		h.Pass(d)
		return ctx.Err()
	}})
	return h
}

// NewWith starts a home with other notes in the same notebooks. The references
// and the embed are added to Alpha where there is one.
func NewWith(t testing.TB, notes Docs) *Home {
	t.Helper()
	dir := t.TempDir()
	for i, n := range []struct {
		id, name string
		closed   bool
	}{{Work, "Work", false}, {Diary, "日记", false}, {Private, "Private", false}, {Archive, "Archive", true}} {
		conf, err := json.Marshal(map[string]any{"name": n.name, "sort": i + 1, "closed": n.closed, "sortMode": 15})
		check(t, err)
		folder := filepath.Join(dir, "data", n.id, ".siyuan")
		check(t, os.MkdirAll(folder, 0o755))
		check(t, os.WriteFile(filepath.Join(folder, "conf.json"), conf, 0o600))
	}
	h := open(t, dir)
	h.fill(t, notes)
	return h
}

// open starts a kernel on a folder, and the guard in front of it.
func open(t testing.TB, dir string) *Home {
	t.Helper()
	return openAt(t, dir, clock())
}

func openAt(t testing.TB, dir string, now func() time.Time) *Home {
	t.Helper()
	k, err := samplekernel.New(samplekernel.Options{Dir: dir, IndexLag: -1, DeleteLag: -1, MountLag: -1, Clock: now})
	check(t, err)
	t.Cleanup(func() { check(t, k.Close()) })
	h := &Home{Kernel: k, answers: map[string]string{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := siyuan.New(siyuan.Config{BaseURL: server.URL, Token: siyuan.NewToken(k.Token()), Retry: siyuan.Retry{Attempts: 1}})
	check(t, err)
	t.Cleanup(client.Close)
	h.Client, h.Guard = client, guard.New(client.Reader(), client.Writer(), guard.Options{Sleep: noWait})
	t.Cleanup(func() { check(t, h.Guard.Close()) })
	return h
}

// clock is a time that passes only when asked, so that two homes built alike
// have the same times.
func clock() func() time.Time {
	start := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	return func() time.Time { return start }
}

// noWait is a sleep that is over at once: the sample kernel has no background.
func noWait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func (h *Home) fill(t testing.TB, notes Docs) {
	ctx := context.Background()
	w := h.Client.Writer()
	for _, d := range notes {
		_, err := w.CreateDocAt(ctx, siyuan.ID(d.Box), d.Path, d.Title, d.Text, nil)
		check(t, err)
		if filepath.Base(d.Path) == Alpha+".sy" {
			_, err = w.AppendBlock(ctx, Alpha, siyuan.Markdown, linksText(notes.title(Secret))+"\n{: id=\""+Links+"\"}")
			check(t, err)
			_, err = w.AppendBlock(ctx, Alpha, siyuan.Markdown, "{{"+embedQuery+"}}\n{: id=\""+Embed+"\"}")
			check(t, err)
		}
	}
	check(t, h.Client.Reader().Flush(ctx))
	if notes.title(Alpha) != "" { // as when somebody looked at the document
		_, err := w.SearchEmbed(ctx, Embed, embedQuery, nil)
		check(t, err)
	}
}

const embedQuery = "select * from blocks where box='" + Private + "'"

// title is the title of the document of an id, "" when there is none.
func (d Docs) title(id string) string {
	for _, n := range d {
		if filepath.Base(n.Path) == id+".sy" {
			return n.Title
		}
	}
	return ""
}

// Add makes one more document.
func (h *Home) Add(t testing.TB, d Doc) {
	t.Helper()
	_, err := h.Client.Writer().CreateDocAt(context.Background(), siyuan.ID(d.Box), d.Path, d.Title, d.Text, nil)
	check(t, err)
}

// Grant is a grant of the given levels; notebooks not named have none.
func Grant(levels map[string]contract.Level) *contract.Grant {
	return &contract.Grant{V: contract.GrantVersion, Tenant: "t", Instance: "i", Levels: levels, Exp: 1 << 40}
}

// Session opens a session with the given levels; notebooks not named are hidden.
func (h *Home) Session(t testing.TB, levels map[string]contract.Level) *guard.Session {
	t.Helper()
	return h.Holding(t, Grant(levels))
}

// Holding is a session under a grant.
func (h *Home) Holding(t testing.TB, g *contract.Grant) *guard.Session {
	t.Helper()
	w, err := h.Guard.Workspace(context.Background())
	check(t, err)
	return h.Guard.Session(w, g)
}

// Writer is a session that may write in Work, read Diary, and knows nothing of
// Private. Archive is readable and closed.
func (h *Home) Writer(t testing.TB) *guard.Session {
	t.Helper()
	return h.Session(t, map[string]contract.Level{Work: contract.ReadWrite, Diary: contract.Read, Archive: contract.Read})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
