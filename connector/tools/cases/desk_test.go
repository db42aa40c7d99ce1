package cases_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// desk is an executor before a kernel whose index lags as the real one does and
// whose clock stands still: without a flush the index never catches up.
type desk struct {
	kernel *samplekernel.Kernel
	front  *front
	client *siyuan.Client
	exec   *tools.Executor
}

// standard is the workspace folder of the standard home, built once: a test
// starts on a copy.
var standard struct {
	once sync.Once
	dir  string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(standard.dir); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// beta is a document beside Alpha, and its blocks.
const (
	beta     = "20240102100200-betadoc"
	betaText = "20240102110201-betap01" // cites Intro
	betaLine = "20240102110003-block03"
)

func standardDir(t testing.TB) string {
	t.Helper()
	standard.once.Do(func() {
		dir, err := os.MkdirTemp("", "cases-")
		check(t, err)
		standard.dir = dir
		home := guardtest.New(t)
		// From now on the settings are in the kernel's own words.
		check(t, home.Client.Writer().RenameNotebook(context.Background(), guardtest.Work, "Work"))
		home.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + guardtest.Projects + "/" + beta + ".sy", Title: "Beta",
			Text: "See ((" + guardtest.Intro + " 'alpha-intro')).\n{: id=\"" + betaText + "\"}\n\nA line.\n{: id=\"" + betaLine + "\"}\n\n"})
		check(t, os.CopyFS(dir, os.DirFS(home.Kernel.Dir())))
	})
	return standard.dir
}

// newDesk starts the standard home, with more notes if there are any.
func newDesk(t testing.TB, more ...guardtest.Doc) *desk {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(standardDir(t))))
	start := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	var slept atomic.Int64 // by the guard, which is when time passes
	k, err := samplekernel.New(samplekernel.Options{Dir: dir, DeleteLag: -1, MountLag: -1, RemoveLag: 2 * time.Second,
		Clock: func() time.Time { return start.Add(time.Duration(slept.Load())) }})
	check(t, err)
	t.Cleanup(func() { check(t, k.Close()) })
	d := &desk{kernel: k, front: &front{next: k.Handler()}}
	server := httptest.NewServer(d.front)
	t.Cleanup(server.Close)
	d.client, err = siyuan.New(siyuan.Config{BaseURL: server.URL, Token: siyuan.NewToken(k.Token()), Retry: siyuan.Retry{Attempts: 1}})
	check(t, err)
	t.Cleanup(d.client.Close)
	g := guard.New(d.client.Reader(), d.client.Writer(), guard.Options{Sleep: func(ctx context.Context, d time.Duration) error {
		slept.Add(int64(d))
		return ctx.Err()
	}})
	t.Cleanup(func() { check(t, g.Close()) })
	d.exec, err = tools.New(tools.Config{Guard: g, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome()}, handlers.All()...)
	check(t, err)
	for _, n := range more {
		d.add(t, n)
	}
	d.front.take()
	return d
}

// newDeskFor is a desk that has what the examples of an action are about.
func newDeskFor(t testing.TB, action string) *desk {
	t.Helper()
	d := newDesk(t)
	if strings.HasPrefix(action, "av.") {
		guardtest.AddDatabase(t, d.client.Writer())
		_, err := d.client.Reader().MirrorBlocks(context.Background(), guardtest.Database) // brings the index up to date
		check(t, err)
		d.front.take()
	}
	if strings.HasPrefix(action, "timeline.") {
		guardtest.AddMoment(t, d.client, d.kernel.Dir())
		_, err := d.client.Reader().SQL(context.Background(), "SELECT id FROM blocks LIMIT 1")
		check(t, err)
		d.front.take()
	}
	if strings.HasPrefix(action, "flashcard.") {
		guardtest.AddCard(t, d.client.Writer(), d.kernel.Dir())
		_, err := d.client.Reader().SQL(context.Background(), "SELECT id FROM blocks LIMIT 1") // brings the index up to date
		check(t, err)
		d.front.take()
	}
	if strings.HasPrefix(action, "file.") {
		d.addFiles(t)
	}
	return d
}

// usedFile is a file that a note links to.
const usedFile = "assets/dot-20240106090000-pngdot1.png"

// addFiles makes that file, one that nothing links to, and a template.
func (d *desk) addFiles(t testing.TB) {
	t.Helper()
	d.add(t, guardtest.Doc{Box: guardtest.Work, Path: "/20240109000021-picture.sy", Title: "Pictures", Text: "![](" + usedFile + ")\n"})
	for _, f := range []string{usedFile, "assets/loose.txt", "templates/daily.md"} {
		text := "A line."
		if f == usedFile {
			text = "\x89PNG\r\n\x1a\n" + text
		}
		check(t, os.WriteFile(filepath.Join(d.kernel.Dir(), "data", f), []byte(text), 0o600))
	}
	_, err := d.client.Reader().SQL(context.Background(), "SELECT id FROM blocks LIMIT 1") // brings the index up to date
	check(t, err)
	d.front.take()
}

// deskFor gives a desk for each call of an action: a new one where the action
// writes, else always the same.
func deskFor(t testing.TB, a *catalogue.Action) func() *desk {
	t.Helper()
	if a.Kind.Mutates() {
		return func() *desk { return newDeskFor(t, a.ID()) }
	}
	d := newDeskFor(t, a.ID())
	return func() *desk {
		d.front.answering(embedding)
		d.front.rewriting(nil)
		d.front.take()
		return d
	}
}

// embedding answers for a kernel that has an embedding service, which the sample
// kernel has not.
func embedding(path string, _ []byte) (int, []byte, bool) {
	return http.StatusOK, []byte(`{"code":0,"msg":"","data":{"conf":{"ai":{"embedding":{"enabled":true}}}}}`), path == "/api/system/getConf"
}

// add makes one more document.
func (d *desk) add(t testing.TB, n guardtest.Doc) {
	t.Helper()
	_, err := d.client.Writer().CreateDocAt(context.Background(), siyuan.ID(n.Box), n.Path, n.Title, n.Text, nil)
	check(t, err)
}

// files are the files of the workspace's notes and settings, and what is in them.
func (d *desk) files(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, top := range []string{"data", "conf"} {
		check(t, filepath.WalkDir(filepath.Join(d.kernel.Dir(), top), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		}))
	}
	return all
}

// front stands between client and kernel. It remembers the exchanges and may
// answer some itself.
type front struct {
	next http.Handler

	mu        sync.Mutex
	exchanges []exchange
	answer    func(path string, body []byte) (status int, reply []byte, mine bool) // nil: the kernel answers all
	rewrite   func(path string, reply []byte) []byte                               // nil: answers go on as they are
}

type exchange struct {
	path        string // such as /api/block/appendBlock
	body, reply []byte
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.mu.Lock()
	answer, rewrite := f.answer, f.rewrite
	f.mu.Unlock()
	if answer != nil {
		if status, reply, mine := answer(r.URL.Path, body); mine {
			f.remember(r.URL.Path, body, reply)
			send(w, status, reply)
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	held := httptest.NewRecorder()
	f.next.ServeHTTP(held, r)
	reply := held.Body.Bytes()
	if rewrite != nil {
		reply = rewrite(r.URL.Path, reply)
	}
	f.remember(r.URL.Path, body, reply)
	for name, values := range held.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(held.Code)
	_, _ = w.Write(reply) // a client gone is no concern of ours
}

func send(w http.ResponseWriter, status int, reply []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if status == http.StatusNotFound {
		w.Header().Set("Content-Type", "text/plain")
	}
	w.WriteHeader(status)
	_, _ = w.Write(reply)
}

func (f *front) remember(path string, body, reply []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exchanges = append(f.exchanges, exchange{path, body, reply})
}

// take returns what was exchanged since the last time.
func (f *front) take() []exchange {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.exchanges
	f.exchanges = nil
	return all
}

// answering makes the front answer for the kernel; nil stops that.
func (f *front) answering(answer func(path string, body []byte) (status int, reply []byte, mine bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// rewriting makes the front change the kernel's answers.
func (f *front) rewriting(rewrite func(path string, reply []byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewrite = rewrite
}

// owner may do everything in every notebook.
func owner() *contract.Grant {
	g := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete})
	g.Default, g.Switches = contract.ReadWriteDelete, contract.Switches()
	return g
}

// helper may do everything in Work, read Diary, and knows nothing of Private.
func helper() *contract.Grant {
	return guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.Read})
}

const requestID = "req-1"

func (d *desk) callAs(g *contract.Grant, id, args string) contract.Result {
	tool, action, _ := strings.Cut(id, ".")
	return d.exec.Handle(context.Background(), contract.Call{Tool: tool, Action: action, RequestID: requestID, Grant: g, Args: json.RawMessage(args)}, nil)
}

func (d *desk) call(id, args string) contract.Result { return d.callAs(helper(), id, args) }

// ok runs a call that must succeed and gives its body. format has a %q for each
// text that belongs into the arguments.
func ok[T any](t testing.TB, d *desk, id, format string, texts ...any) T {
	t.Helper()
	r := d.call(id, sprintf(format, texts))
	var out T
	if r.Err != nil {
		t.Fatalf("%s %.200s: %v", id, sprintf(format, texts), r.Err)
	}
	check(t, json.Unmarshal(r.Body, &out))
	return out
}

// sprintf fills texts in as JSON strings.
func sprintf(format string, texts []any) string {
	quoted := make([]any, len(texts))
	for i, v := range texts {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			panic(err) // a test's own texts
		}
		quoted[i] = strings.TrimSpace(buf.String())
	}
	return fmt.Sprintf(strings.ReplaceAll(format, "%q", "%s"), quoted...)
}

func (d *desk) fails(t testing.TB, want contract.Code, id, format string, texts ...any) *contract.Error {
	t.Helper()
	r := d.call(id, sprintf(format, texts))
	if r.Err == nil {
		t.Errorf("%s %.200s: answer %s, want %s", id, sprintf(format, texts), r.Body, want)
		return contract.Fail(contract.Internal, "no error")
	}
	if got := contract.CodeOf(r.Err); got != want {
		t.Errorf("%s %.200s: code %s (%v), want %s", id, sprintf(format, texts), got, r.Err, want)
	}
	return r.Err
}

// append adds Markdown to a document and gives the ids of the new blocks.
func (d *desk) append(t testing.TB, parent, markdown string) []string {
	t.Helper()
	return ok[catalogue.BlockAppendOut](t, d, "block.append", `{"parentID":%q,"dataType":"markdown","data":%q}`, parent, markdown).IDs
}

func (d *desk) attrs(t testing.TB, id string) siyuan.Attrs {
	t.Helper()
	attrs, err := d.client.Reader().BlockAttrs(context.Background(), siyuan.ID(id))
	check(t, err)
	return attrs
}

// kramdown is a block as the kernel has it, without the kernel's zero width
// spaces.
func (d *desk) kramdown(t testing.TB, id string) string {
	t.Helper()
	text, err := d.client.Reader().BlockKramdown(context.Background(), siyuan.ID(id), siyuan.KramdownMarkdown)
	check(t, err)
	return strings.ReplaceAll(text, "\u200b", "")
}

func (d *desk) children(t testing.TB, id string) []siyuan.ChildBlock {
	t.Helper()
	list, err := d.client.Reader().ChildBlocks(context.Background(), siyuan.ID(id))
	check(t, err)
	return list
}

// untouched runs do and demands that the block is byte for byte what it was, but
// for the order of its attributes, which is random.
func (d *desk) untouched(t testing.TB, id string, do func()) {
	t.Helper()
	sorted := func() string {
		words := strings.Fields(strings.NewReplacer("{:", " {: ", "}", " } ").Replace(d.kramdown(t, id)))
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	before := sorted()
	do()
	if after := sorted(); after != before {
		t.Errorf("block %s changed from\n%s\nto\n%s", id, before, after)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
