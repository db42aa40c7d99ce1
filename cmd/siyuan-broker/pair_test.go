package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// browser follows links and sends forms, as a person does.
type browser struct {
	t      *testing.T
	client *http.Client
	path   string // of the page that is open
	html   string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, client: &http.Client{Jar: jar, Timeout: 20 * time.Second}}
}

func (b *browser) do(r *http.Request) {
	b.t.Helper()
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d, %v\n%s", resp.Request.URL, resp.StatusCode, err, text)
	}
	b.path, b.html = resp.Request.URL.Path, string(text)
}

func (b *browser) open(url string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(r)
}

var hiddenFields = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)

// send fills in the page's form for an address, with its hidden fields.
func (b *browser) send(url string, fields url.Values) {
	b.t.Helper()
	_, form, ok := strings.Cut(b.html, `action="`+strings.TrimPrefix(url, schemeAndHost.FindString(url))+`"`)
	if !ok {
		b.t.Fatalf("%s has no form for %s:\n%s", b.path, url, b.html)
	}
	form, _, _ = strings.Cut(form, "</form>")
	for _, m := range hiddenFields.FindAllStringSubmatch(form, -1) {
		if !fields.Has(m[1]) {
			fields.Set(m[1], m[2])
		}
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, url, strings.NewReader(fields.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	b.do(r)
}

var schemeAndHost = regexp.MustCompile(`^https?://[^/]+`)

func (b *browser) shows(parts ...string) {
	b.t.Helper()
	for _, p := range parts {
		if !strings.Contains(b.html, p) {
			b.t.Errorf("%s does not show %q:\n%s", b.path, p, b.html)
		}
	}
}

// pairing is a running `siyuan-connector pair`.
type pairing struct {
	cmd               *exec.Cmd
	lines             *bufio.Reader
	code, fingerprint string
	out, errOut       bytes.Buffer
}

var (
	codeLine        = regexp.MustCompile(`code +([A-Z]{4}-[A-Z]{4})`)
	fingerprintLine = regexp.MustCompile(`fingerprint +(\S{43})`)
)

// pair starts pairing and reads what a person reads, up to the waiting.
func (h *hosting) pair(args ...string) *pairing {
	h.t.Helper()
	p := &pairing{cmd: exec.Command(h.connector, append([]string{"pair"}, args...)...)}
	p.cmd.Env, p.cmd.Stderr = h.homeEnv, &p.errOut
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.lines = bufio.NewReader(out)
	for !strings.Contains(p.out.String(), "Waiting for") {
		line, err := p.lines.ReadString('\n')
		p.out.WriteString(line)
		if err != nil {
			_ = p.cmd.Wait()
			h.t.Fatalf("pair ended early: %s%s", &p.out, &p.errOut)
		}
	}
	p.code = codeLine.FindStringSubmatch(p.out.String())[1]
	p.fingerprint = fingerprintLine.FindStringSubmatch(p.out.String())[1]
	return p
}

// end waits for pair to end and returns its exit code; what it printed is in out.
func (p *pairing) end(t *testing.T) int {
	t.Helper()
	p.out.Reset()
	if _, err := io.Copy(&p.out, p.lines); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// try runs a command of the connector that may fail.
func (h *hosting) try(input string, args ...string) (code int, output string) {
	h.t.Helper()
	cmd := exec.Command(h.connector, args...)
	cmd.Env, cmd.Stdin = h.homeEnv, strings.NewReader(input)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

func (h *hosting) status() (code int, v map[string]any) {
	h.t.Helper()
	code, out := h.try("", "status")
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&v); err != nil {
		h.t.Fatalf("status printed %q", out)
	}
	return code, v
}

func (h *hosting) healthy() bool {
	code, _ := h.try("", "status", "--check")
	return code == 0
}

// pushed is how long a test waits for what the push or the feed of a change does.
// They take less than two seconds, and more on a busy machine; without them it
// would happen when the snapshot is loaded anew, after 30 s.
const pushed = 15 * time.Second

// endsRevoked waits for a connector that was just revoked.
func endsRevoked(t *testing.T, home *exec.Cmd) {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = home.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(pushed):
		t.Errorf("the revoked connector still runs after %s", pushed)
		<-ended
	}
	if code := home.ProcessState.ExitCode(); code != 77 {
		t.Errorf("the revoked connector ended with exit code %d, want 77", code)
	}
}

// TestAHomeIsPairedAndUnpaired does what a person does at home and in the
// browser, with the programs as they are released.
func TestAHomeIsPairedAndUnpaired(t *testing.T) {
	t.Parallel()
	h := newHosting(t)
	h.run(h.broker, h.env, "migrate")
	h.start(h.broker, h.env, "serve")
	h.await(t, "the broker is ready", func() bool {
		cmd := exec.Command(h.broker, "health")
		cmd.Env = h.env
		return cmd.Run() == nil
	})
	h.homeEnv = slices.DeleteFunc(slices.Clone(h.homeEnv), func(s string) bool { return strings.HasPrefix(s, "CONNECTOR_BROKER=") })
	data := ""
	for _, s := range h.homeEnv {
		if v, ok := strings.CutPrefix(s, "CONNECTOR_DATA="); ok {
			data = v
		}
	}
	b := newBrowser(t)
	added := h.run(h.broker, h.env, "user", "add", "ann@example.org", "--name", "Ann", "--tenant", "Home")
	b.open(added[strings.Index(added, "http"):])
	b.send(h.url+"/console/reset", url.Values{"password": {"correct horse battery staple"}})

	// Not paired: every command says what to do.
	if code, out := h.try("", "run"); code != 78 || !strings.Contains(out, "siyuan-connector pair") {
		t.Errorf("run before pairing: %d %s", code, out)
	}
	if code, out := h.try("", "unpair", "--yes"); code != 3 || !strings.Contains(out, "siyuan-connector pair") {
		t.Errorf("unpair before pairing: %d %s", code, out)
	}
	if code, out := h.try("", "pair", "https://127.0.0.1:1"); code != 1 || !strings.Contains(out, "nothing listens there") {
		t.Errorf("pair with a wrong address: %d %s", code, out)
	}

	// Pair: the page and the terminal show the same fingerprint.
	p := h.pair(h.url)
	b.open(h.url + "/pair")
	b.send(h.url+"/pair", url.Values{"code": {strings.ToLower(p.code)}})
	b.shows(p.fingerprint, "127.0.0.1", "siyuan-connector ")
	place := regexp.MustCompile(`value="([^"]+/new)" checked`).FindStringSubmatch(b.html)
	if place == nil {
		t.Fatalf("a new instance is not suggested:\n%s", b.html)
	}
	b.send(h.url+b.path, url.Values{"do": {"approve"}, "place": {place[1]}, "name": {"Study"}})
	b.shows("Approved.", "Never connected")
	if code := p.end(t); code != 0 {
		t.Fatalf("pair ended with %d: %s%s", code, &p.out, &p.errOut)
	}
	for _, want := range []string{"tenant       Home", "instance     Study", "siyuan-connector run", "max_level: rw", filepath.Join(data, "policy.yaml")} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("pair does not print %q:\n%s", want, &p.out)
		}
	}
	for _, name := range []string{"connector.key", "pairing.json"} {
		if info, err := os.Stat(filepath.Join(data, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if code, out := h.try("", "pair", h.url); code != 1 || !strings.Contains(out, "paired already, with Home, Study") || !strings.Contains(out, "--again") {
		t.Errorf("pair again: %d %s", code, out)
	}
	code, s := h.status()
	if pairing, _ := s["pairing"].(map[string]any); code != 4 || s["state"] != "stopped" || s["fingerprint"] != p.fingerprint || pairing["tenant_name"] != "Home" || pairing["broker"] != h.url {
		t.Errorf("status: %d %v", code, s)
	}

	// Run without naming the broker; revoked in the console it ends.
	home := h.start(h.connector, h.homeEnv, "run")
	h.await(t, "the connector is healthy", h.healthy)
	if code, s = h.status(); code != 0 || s["state"] != "running" || s["tunnel"] != "connected" {
		t.Errorf("status: %d %v", code, s)
	}
	b.open(h.url + "/console/connectors")
	b.shows("Connected", p.fingerprint)
	b.send(h.url+regexp.MustCompile(`/console/connectors/[^"]+/revoke`).FindString(b.html), url.Values{})
	endsRevoked(t, home)
	if code, s = h.status(); code != 4 || s["state"] != "revoked" {
		t.Errorf("status: %d %v", code, s)
	}

	// A revoked home pairs anew without --again, with a new key; this time it is
	// turned down, and nothing has changed.
	again := h.pair(h.url)
	if again.fingerprint == p.fingerprint {
		t.Error("the revoked key is used again")
	}
	b.open(h.url + "/pair")
	b.send(h.url+"/pair", url.Values{"code": {again.code}})
	b.send(h.url+b.path, url.Values{"do": {"deny"}})
	if code := again.end(t); code != 3 || !strings.Contains(again.errOut.String(), "turned down") {
		t.Errorf("turned down: %d %s", code, &again.errOut)
	}
	if _, s = h.status(); s["state"] != "revoked" || s["fingerprint"] != p.fingerprint {
		t.Errorf("status: %v", s)
	}

	// Paired once more, running, and unpaired at home.
	p = h.pair(h.url)
	b.open(h.url + "/pair")
	b.send(h.url+"/pair", url.Values{"code": {p.code}})
	instance := regexp.MustCompile(`value="([^"]+)" checked`).FindStringSubmatch(b.html)[1] // it waits for a connector, so it is suggested
	b.send(h.url+b.path, url.Values{"do": {"approve"}, "place": {instance}})
	if code := p.end(t); code != 0 {
		t.Fatalf("pair ended with %d: %s", code, &p.errOut)
	}
	home = h.start(h.connector, h.homeEnv, "run")
	h.await(t, "the connector is healthy", h.healthy)
	if code, out := h.try("no\n", "unpair"); code != 5 || !strings.Contains(out, "Home, Study") || !h.healthy() {
		t.Errorf("unpair without a yes: %d %s", code, out)
	}
	if code, out := h.try("yes\n", "unpair"); code != 0 || !strings.Contains(out, "Unpaired.") {
		t.Errorf("unpair: %d %s", code, out)
	}
	endsRevoked(t, home)
	if code, s = h.status(); code != 4 || s["state"] != "stopped" || s["pairing"] != nil || s["fingerprint"] != "" {
		t.Errorf("status after unpair: %d %v", code, s)
	}
	b.open(h.url + "/console/connectors")
	if strings.Contains(b.html, "/revoke\"") {
		t.Error("the unpaired connector is listed as in force")
	}
}

// TestPairingAnewEndsTheOldPairing: --again brings a new key, and the old one,
// with whatever runs on it, is taken back. --run goes on by itself.
func TestPairingAnewEndsTheOldPairing(t *testing.T) {
	t.Parallel()
	h := newHosting(t)
	h.run(h.broker, h.env, "migrate")
	h.start(h.broker, h.env, "serve")
	h.await(t, "the broker is ready", func() bool {
		cmd := exec.Command(h.broker, "health")
		cmd.Env = h.env
		return cmd.Run() == nil
	})
	b := newBrowser(t)
	added := h.run(h.broker, h.env, "user", "add", "ann@example.org")
	b.open(added[strings.Index(added, "http"):])
	b.send(h.url+"/console/reset", url.Values{"password": {"correct horse battery staple"}})
	let := func(p *pairing, more url.Values) {
		b.open(h.url + "/pair")
		b.send(h.url+"/pair", url.Values{"code": {p.code}})
		places := regexp.MustCompile(`name="place" value="([^"]+)"`).FindStringSubmatch(b.html)
		more.Set("do", "approve")
		if !more.Has("place") {
			more.Set("place", places[1])
		}
		b.send(h.url+b.path, more)
	}
	first := h.pair()
	let(first, url.Values{"name": {"Study"}})
	if code := first.end(t); code != 0 {
		t.Fatalf("%d %s", code, &first.errOut)
	}
	old := h.start(h.connector, h.homeEnv, "run")
	h.await(t, "the connector is healthy", h.healthy)

	second := h.pair("--again", "--run")
	let(second, url.Values{})
	b.shows("has a connector already", first.fingerprint, second.fingerprint)
	b.send(h.url+b.path, url.Values{"do": {"approve"}})
	_ = old.Wait()
	if code := old.ProcessState.ExitCode(); code != 77 {
		t.Errorf("the old connector ended with %d, want 77", code)
	}
	h.await(t, "the new one is healthy", h.healthy)
	if _, s := h.status(); s["fingerprint"] != second.fingerprint || s["pairing"].(map[string]any)["revoked"] != nil {
		t.Errorf("status: %v", s)
	}
	// Whoever lost the note of the pairing, but not the key, gets it back.
	for _, s := range h.homeEnv {
		if v, ok := strings.CutPrefix(s, "CONNECTOR_DATA="); ok {
			if err := os.Remove(filepath.Join(v, "pairing.json")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if code, out := h.try("", "pair"); code != 0 || !strings.Contains(out, "instance     Study") {
		t.Errorf("pair with a key in force: %d %s", code, out)
	}
}
