package integration

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// carrier is a tenant with a home whose agent may send files, once somebody
// agrees or nobody has to.
type carrier struct {
	*tenant
	at    *home
	s     *mcp.ClientSession
	agent tenants.ID
	token string
	doc   string
}

func (w *world) carrier(t *testing.T, name string, mode tenants.ConsentMode) *carrier {
	t.Helper()
	x := &carrier{tenant: w.tenant(name, tenants.NewID())}
	x.allow()
	x.change(func(tx tenants.Tx) error {
		return tx.SetConsent(t.Context(), x.instance, tenants.Consent{Tool: "file", Action: "upload_asset", Mode: mode})
	})
	x.at = x.home(nil)
	x.agent, x.token = x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	x.s = w.client(x.token, eras[0], nil, nil)
	nb := into[madeNotebook](t, x.s, "notebook", map[string]any{"action": "create", "name": "Files"}).Notebook.ID
	x.doc = into[made](t, x.s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/Papers", "markdown": "one"}).ID
	return x
}

// ticket is an answer with a one-time URL.
type ticket struct {
	UploadURL, DownloadURL, Method, ExpiresAt, Curl, RequestID, Name, Path, SHA256 string
	MaxBytes, Size                                                                 int64
	Replayed                                                                       bool
}

func uploading(doc, name string, size int, more ...any) map[string]any {
	args := map[string]any{"action": "upload_asset", "id": doc, "fileName": name, "size": size}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return args
}

// transfer makes an HTTP request and reads the whole answer.
func transfer(t *testing.T, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if method == http.MethodPut { // as curl does: what is refused at once is not sent
		r.Header.Set("Expect", "100-continue")
	}
	transport := &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}
	resp, err := transport.RoundTrip(r)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(b)
}

// refusedWith is the code of an answer that is an error.
func refusedWith(t *testing.T, status int, code contract.Code, resp *http.Response, body string) {
	t.Helper()
	var e struct{ Error struct{ Type, Code string } }
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if got := contract.Code(e.Error.Code); resp.StatusCode != status || got != code && contract.Code(e.Error.Type) != code {
		t.Errorf("%s %s, want %d %s", resp.Status, body, status, code)
	}
}

func (x *carrier) files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(x.at.kernel.Dir(), "data", "assets"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no folder yet
		t.Fatal(err)
	}
	return len(entries)
}

func TestAFileOf25MiBGoesHomeAndComesBackByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.carrier(t, "Ada", tenants.ConsentAllow)
	const size = 25 << 20
	content := func() io.Reader { return io.LimitReader(mathrand.NewChaCha8([32]byte{7}), size) }
	want := sha256.New()
	_, err := io.Copy(want, content())
	must(t, err)
	up := into[ticket](t, x.s, "file", uploading(x.doc, "../../conf/conf.json", size))
	if up.Method != "PUT" || up.MaxBytes != size || !strings.HasPrefix(up.UploadURL, w.url+"/transfer/") || !strings.Contains(up.Curl, "-T 'conf.json' '"+up.UploadURL+"'") || up.RequestID == "" {
		t.Fatalf("%+v", up)
	}
	resp, body := transfer(t, "PUT", up.UploadURL, content()) // of unknown length
	var stored ticket
	if err := json.Unmarshal([]byte(body), &stored); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s", resp.Status, body)
	}
	if stored.Size != size || stored.SHA256 != hex.EncodeToString(want.Sum(nil)) || !strings.HasPrefix(stored.Path, "assets/conf-") || stored.RequestID != up.RequestID {
		t.Errorf("%s", body)
	}
	again := into[ticket](t, x.s, "file", uploading(x.doc, "../../conf/conf.json", size, "requestId", up.RequestID))
	if again.Path != stored.Path || !again.Replayed || again.UploadURL != "" || x.files(t) != 1 {
		t.Errorf("the same call again: %+v with %d files", again, x.files(t))
	}
	down := into[ticket](t, x.s, "file", map[string]any{"action": "download_asset", "path": stored.Path})
	if down.Name != "conf.json" || down.Size != size || down.Method != "GET" {
		t.Errorf("%+v", down)
	}
	resp, body = transfer(t, "GET", down.DownloadURL, nil, "Range", "bytes=0-9")
	got := sha256.Sum256([]byte(body))
	if resp.StatusCode != 200 || resp.ContentLength != size || hex.EncodeToString(got[:]) != stored.SHA256 {
		t.Errorf("%s, %d bytes", resp.Status, len(body))
	}
	for name, want := range map[string]string{
		"Content-Disposition": `attachment; filename="conf.json"`, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Type": "application/octet-stream", "Accept-Ranges": "none",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox;") {
		t.Errorf("CSP %q", csp)
	}
	if strings.Contains(w.log.String(), strings.TrimPrefix(up.UploadURL, w.url+"/transfer/")) {
		t.Error("the log has a URL's secret")
	}
}

func TestAURLWorksOnceAndLookingDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.carrier(t, "Ada", tenants.ConsentAllow)
	file := into[ticket](t, x.s, "file", map[string]any{"action": "upload_asset", "id": x.doc, "fileName": "a.svg", "content": "YWJj"})
	link := func() string {
		return into[ticket](t, x.s, "file", map[string]any{"action": "download_asset", "path": file.Path}).DownloadURL
	}
	url := link()
	if resp, body := transfer(t, "HEAD", url, nil); resp.StatusCode != 200 || body != "" || resp.Header.Get("Content-Disposition") == "" {
		t.Errorf("HEAD: %s %s", resp.Status, body)
	}
	if resp, _ := transfer(t, "OPTIONS", url, nil, "Origin", w.url); resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != w.url {
		t.Errorf("OPTIONS: %s %v", resp.Status, resp.Header)
	}
	resp, body := transfer(t, "GET", url, nil, "Origin", "https://evil.example")
	refusedWith(t, 403, contract.PermissionDenied, resp, body)
	resp, body = transfer(t, "GET", url, nil, "Sec-Purpose", "prefetch")
	refusedWith(t, 501, contract.Unsupported, resp, body)
	resp, body = transfer(t, "PUT", url, strings.NewReader("x"))
	refusedWith(t, 405, contract.InvalidArguments, resp, body)
	if resp, body := transfer(t, "GET", url, nil); resp.StatusCode != 200 || body != "abc" || resp.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%s %q %v", resp.Status, body, resp.Header)
	}
	resp, body = transfer(t, "GET", url, nil)
	refusedWith(t, 410, contract.TransferUsed, resp, body)
	for _, bad := range []string{url + "x", url[:len(url)-1], w.url + "/transfer/", w.url + "/transfer/../mcp", w.url + "/transfer/" + strings.Repeat("A", 64)} {
		if resp, _ := transfer(t, "GET", bad, nil); resp.StatusCode != 404 && resp.StatusCode != 401 {
			t.Errorf("%s: %s", bad, resp.Status)
		}
	}
	// What is exported goes the same way.
	md := into[ticket](t, x.s, "file", map[string]any{"action": "export_md", "id": x.doc, "download": true})
	if resp, body := transfer(t, "GET", md.DownloadURL, nil); resp.StatusCode != 200 || body != "one\n" || resp.Header.Get("Content-Disposition") != `attachment; filename="Papers.md"` {
		t.Errorf("%s %q %v", resp.Status, body, resp.Header)
	}
	packed := into[ticket](t, x.s, "file", map[string]any{"action": "export_resources", "paths": []string{file.Path, "/data/" + file.Path}, "name": "Alle Bilder"})
	_, body = transfer(t, "GET", packed.DownloadURL, nil)
	z, err := zip.NewReader(bytes.NewReader([]byte(body)), int64(len(body)))
	must(t, err)
	if len(z.File) != 1 || z.File[0].Name != file.Path {
		t.Fatalf("%+v", z.File)
	}
	f, err := z.File[0].Open()
	must(t, err)
	if inside, err := io.ReadAll(f); err != nil || string(inside) != "abc" {
		t.Errorf("%q, %v", inside, err)
	}
}

// Nothing that breaks off is called stored, and the same request gets a new URL
// without anybody being asked again.
func TestAnUploadThatBreaksOffIsNotStoredAndCanBeSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.carrier(t, "Ada", tenants.ConsentConsole)
	// A person agrees before there is a URL.
	args := uploading(x.doc, "big.bin", 3<<20)
	asked := refused(t, call(t.Context(), x.s, "file", args), contract.ConfirmationRequired)
	person := x.person()
	person.submit(asked.Error.Detail.Link, map[string][]string{"do": {"approve"}})
	args["requestId"] = asked.Error.RequestID
	first := into[ticket](t, x.s, "file", args)

	content := strings.Repeat("0123456789abcdef", 3<<16)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "PUT", first.UploadURL, io.MultiReader(strings.NewReader(content[:2<<20]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	must(t, err)
	r.ContentLength = 3 << 20
	if resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r); err == nil {
		t.Fatalf("half a file: %s", resp.Status)
	}
	cancel()
	eventually(t, "the broker knows that it broke off", func() bool { return strings.Contains(w.log.String(), "transfer_interrupted") })
	if n := x.files(t); n != 0 {
		t.Errorf("%d files are there", n)
	}
	second := into[ticket](t, x.s, "file", args)
	if second.UploadURL == "" || second.UploadURL == first.UploadURL {
		t.Fatalf("%+v", second)
	}
	resp, body := transfer(t, "PUT", first.UploadURL, strings.NewReader(content))
	refusedWith(t, 404, contract.NotFound, resp, body)
	resp, body = transfer(t, "PUT", second.UploadURL, strings.NewReader(content[:5]))
	refusedWith(t, 400, contract.InvalidValue, resp, body)
	resp, body = transfer(t, "PUT", second.UploadURL, strings.NewReader(content+"x"))
	refusedWith(t, 413, contract.TooLarge, resp, body)
	if resp, body = transfer(t, "PUT", second.UploadURL, strings.NewReader(content)); resp.StatusCode != 201 || x.files(t) != 1 {
		t.Errorf("%s %s with %d files", resp.Status, body, x.files(t))
	}
	args["fileName"] = "other.bin"
	if a := call(t.Context(), x.s, "file", args); a.code != contract.Conflict {
		t.Errorf("the same request id for another file: %+v", a)
	}
}

// Rights are those of the moment in which the URL is used.
func TestRightsAreLookedAtAgainWhenAURLIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.carrier(t, "Ada", tenants.ConsentAllow)
	y := w.carrier(t, "Ben", tenants.ConsentAllow)
	file := into[ticket](t, x.s, "file", map[string]any{"action": "upload_asset", "id": x.doc, "fileName": "a.txt", "content": "YWJj"})
	into[map[string]any](t, x.s, "block", map[string]any{"action": "append", "parentID": x.doc, "dataType": "markdown", "data": "[a](" + file.Path + ")"})
	up := func() string { return into[ticket](t, x.s, "file", uploading(x.doc, "b.txt", 3)).UploadURL }
	down := func() string {
		return into[ticket](t, x.s, "file", map[string]any{"action": "download_asset", "path": file.Path}).DownloadURL
	}
	notebook := into[map[string]any](t, x.s, "document", map[string]any{"action": "get_doc", "id": x.doc})["notebook"].(string)

	// Another tenant's agent has no such file, and nothing of its URL leads here.
	if a := call(t.Context(), y.s, "file", map[string]any{"action": "download_asset", "path": file.Path}); a.code != contract.NotFound {
		t.Errorf("another tenant's: %+v", a)
	}
	theirs := into[ticket](t, y.s, "file", uploading(y.doc, "b.txt", 3)).UploadURL
	mixed := theirs[:len(w.url)+len("/transfer/")+20] + up()[len(w.url)+len("/transfer/")+20:]
	resp, body := transfer(t, "PUT", mixed, strings.NewReader("abc"))
	refusedWith(t, 404, contract.NotFound, resp, body)

	before := x.files(t)
	url, get := up(), down()
	x.change(func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), x.instance, notebook, contract.Read) })
	resp, body = transfer(t, "PUT", url, strings.NewReader("abc"))
	refusedWith(t, 403, contract.PermissionDenied, resp, body)
	if resp, body := transfer(t, "GET", get, nil); resp.StatusCode != 200 || body != "abc" {
		t.Errorf("reading is still allowed: %s %s", resp.Status, body)
	}
	x.change(func(tx tenants.Tx) error {
		return tx.SetLevel(t.Context(), x.instance, notebook, contract.ReadWriteDelete)
	})
	eventually(t, "the level is known", func() bool {
		return call(t.Context(), x.s, "file", uploading(x.doc, "b.txt", 3)).code == ""
	})

	url, get = up(), down()
	x.change(func(tx tenants.Tx) error {
		return tx.SetToggle(t.Context(), x.instance, tenants.Toggle{Tool: "file", Action: "upload_asset", Enabled: false})
	})
	resp, body = transfer(t, "PUT", url, strings.NewReader("abc"))
	refusedWith(t, 403, contract.ActionDisabled, resp, body)
	x.change(func(tx tenants.Tx) error { return tx.RevokeAgent(t.Context(), x.agent) })
	resp, body = transfer(t, "GET", get, nil)
	if resp.StatusCode != 403 {
		t.Errorf("a revoked agent's: %s %s", resp.Status, body)
	}
	if x.files(t) != before {
		t.Error("something was stored")
	}
}

func TestAnExpiredURLAndAHomeThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.carrier(t, "Ada", tenants.ConsentAllow)
	file := into[ticket](t, x.s, "file", map[string]any{"action": "upload_asset", "id": x.doc, "fileName": "a.txt", "content": "YWJj"})
	url := into[ticket](t, x.s, "file", map[string]any{"action": "download_asset", "path": file.Path}).DownloadURL
	put := into[ticket](t, x.s, "file", uploading(x.doc, "b.txt", 3))
	if until, err := time.Parse(time.RFC3339, put.ExpiresAt); err != nil || time.Until(until) > 5*time.Minute {
		t.Errorf("expires at %s", put.ExpiresAt)
	}
	_ = x.at.stop()
	for range 2 { // it is not used up
		resp, body := transfer(t, "GET", url, nil)
		refusedWith(t, 503, contract.ConnectorOffline, resp, body)
		if resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		resp, body = transfer(t, "PUT", put.UploadURL, strings.NewReader("abc"))
		refusedWith(t, 503, contract.ConnectorOffline, resp, body)
	}
	admin := x.w.db
	must(t, admin.In(t.Context(), x.id, func(tx tenants.Tx) error {
		kept, err := tx.TransferOf(t.Context(), x.agent, mustID(t, put.RequestID))
		must(t, err)
		kept.ExpiresAt = time.Now().Add(-time.Second)
		return tx.PutTransfer(t.Context(), kept, tenants.TransferBounds{PerAgent: 9, InAll: 9})
	}))
	resp, body := transfer(t, "PUT", put.UploadURL, strings.NewReader("abc"))
	refusedWith(t, 410, contract.TransferExpired, resp, body)
}

func mustID(t *testing.T, s string) (id tenants.ID) {
	t.Helper()
	must(t, id.UnmarshalText([]byte(s)))
	return id
}

// The home and the agent are on one node; the URL is used on the other.
func TestAURLIsServedByEveryNode(t *testing.T) {
	t.Parallel()
	one, two := neighbours(t, pgtest.New(t), redistest.New(t).URL, "")
	x := one.carrier(t, "Ada", tenants.ConsentAllow)
	content := strings.Repeat("0123456789abcdef", 1<<16)
	up := into[ticket](t, x.s, "file", uploading(x.doc, "a.bin", len(content)))
	resp, body := transfer(t, "PUT", two.url+strings.TrimPrefix(up.UploadURL, one.url), strings.NewReader(content))
	var stored ticket
	if must(t, json.Unmarshal([]byte(body), &stored)); resp.StatusCode != 201 || stored.Size != int64(len(content)) {
		t.Fatalf("%s %s", resp.Status, body)
	}
	down := into[ticket](t, x.s, "file", map[string]any{"action": "download_asset", "path": stored.Path})
	at := strings.TrimPrefix(down.DownloadURL, one.url)
	if resp, body := transfer(t, "GET", two.url+at, nil); resp.StatusCode != 200 || body != content {
		t.Errorf("%s, %d bytes", resp.Status, len(body))
	}
	resp, body = transfer(t, "GET", one.url+at, nil)
	refusedWith(t, 410, contract.TransferUsed, resp, body)
}
