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
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// visitor is a person's browser as far as forms go.
type visitor struct {
	t *testing.T
	c *http.Client
}

func newVisitor(t *testing.T) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, &http.Client{Jar: jar, Timeout: 20 * time.Second}}
}

// open opens a page and gives its status, where it led and what it says.
func (v *visitor) open(at string) (int, string, string) {
	v.t.Helper()
	resp, err := v.c.Get(at)
	return v.read(resp, err)
}

func (v *visitor) read(resp *http.Response, err error) (int, string, string) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, resp.Request.URL.Path, string(b)
}

var formField = regexp.MustCompile(`name="_form" value="([^"]+)"`)

// send fills the form of a page in and sends it to the page's own address.
func (v *visitor) send(link string, fields url.Values) (int, string, string) {
	v.t.Helper()
	_, _, body := v.open(link)
	m := formField.FindStringSubmatch(body)
	if m == nil {
		v.t.Fatalf("no form at %s:\n%s", link, body)
	}
	at, err := url.Parse(link)
	if err != nil {
		v.t.Fatal(err)
	}
	fields.Set("_form", m[1])
	if secret := at.Query().Get("link"); secret != "" {
		fields.Set("link", secret)
	}
	at.RawQuery = ""
	resp, err := v.c.PostForm(at.String(), fields)
	return v.read(resp, err)
}

var anyLink = regexp.MustCompile(`https?://\S+\?link=(\S+)`)

// hosted is a running `serve` with a database of its own.
type hosted struct {
	t     *testing.T
	bin   string
	env   []string
	base  string
	cmd   *exec.Cmd
	log   *bytes.Buffer
	mu    sync.Mutex
	said  strings.Builder // on the console
	ended chan struct{}
}

func (h *hosted) start() {
	h.t.Helper()
	h.cmd = exec.CommandContext(h.t.Context(), h.bin, "serve")
	h.cmd.Env, h.cmd.Stderr = h.env, h.log
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	h.ended = ended
	go func() { // ends with the process
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			h.mu.Lock()
			h.said.WriteString(lines.Text() + "\n")
			h.mu.Unlock()
		}
	}()
	limit := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if resp, err := http.Get(h.base + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(limit) {
			h.t.Fatalf("serve is not ready:\n%s", h.log)
		}
	}
}

func (h *hosted) stop() {
	h.t.Helper()
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	<-h.ended
	if err := h.cmd.Wait(); err != nil {
		h.t.Fatalf("serve: %v\n%s", err, h.log)
	}
}

// heard is what serve said on the console so far.
func (h *hosted) heard() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.String()
}

// user runs `siyuan-broker user …`.
func (h *hosted) user(args ...string) (string, int) {
	h.t.Helper()
	return h.run(append([]string{"user"}, args...)...)
}

// run runs another command beside the broker.
func (h *hosted) run(args ...string) (string, int) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.bin, args...)
	cmd.Env = h.env
	out, _ := cmd.CombinedOutput() // the code says how it went
	return string(out), cmd.ProcessState.ExitCode()
}

// letsIn has the operator's command line put Bo into Ann's tenant and out again.
// It gives the secret of the invitation.
func (h *hosted) letsIn(password string) string {
	h.t.Helper()
	out, _ := h.run("tenant", "show", "--email", "ann@example.org")
	var memberships []struct{ TenantID string }
	if err := json.Unmarshal([]byte(out), &memberships); err != nil || len(memberships) != 1 {
		h.t.Fatalf("tenant show: %v %s", err, out)
	}
	in := func(args ...string) (string, int) {
		return h.run(append(append([]string{"tenant"}, args...), "--tenant", memberships[0].TenantID)...)
	}
	out, code := in("invite", "Bo@example.org", "--role", "admin")
	link := anyLink.FindStringSubmatch(out)
	if code != 0 || link == nil {
		h.t.Fatalf("tenant invite: %d %s", code, out)
	}
	bo := newVisitor(h.t)
	bo.send(h.base+"/console/signin", url.Values{"email": {"bo@example.org"}, "password": {password}})
	if status, at, _ := bo.send(link[0], url.Values{}); status != http.StatusOK || at != "/console" {
		h.t.Errorf("accepting led to %d %s", status, at)
	}
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"member", "list"}, 0, `"role": "admin"`},
		{[]string{"invite", "bo@example.org"}, 1, "a member already"},
		{[]string{"invite", "cy@example.org", "--role", "king"}, 2, "owner, admin or member"},
		{[]string{"member", "role", "ann@example.org", "--role", "member"}, 1, "at least one owner"},
		{[]string{"member", "role", "Bo@example.org", "--role", "member"}, 0, ""},
		{[]string{"member", "remove", "bo@example.org"}, 0, ""},
		{[]string{"member", "remove", "bo@example.org"}, 3, "member list"},
	} {
		if out, code := in(x.args...); code != x.code || !strings.Contains(out, x.says) {
			h.t.Errorf("tenant %v: %d %s", x.args, code, out)
		}
	}
	return link[1]
}

func TestTheFirstPersonComesInByALinkOnTheConsoleAndLetsOthersIn(t *testing.T) {
	t.Parallel()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	listen := freeAddr(t)
	h := &hosted{t: t, bin: bin, base: "http://" + listen, log: &bytes.Buffer{}}
	h.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "BROKER_DATA=" + dataDir(t), "BROKER_LISTEN=" + listen}
	h.start()
	const password = "four odd sheep walk"
	link := anyLink.FindStringSubmatch(h.heard())
	if link == nil {
		t.Fatalf("no link on the console: %q", h.heard())
	}
	operator := newVisitor(t)
	if status, at, body := operator.send(link[0], url.Values{"email": {"op@example.org"}, "password": {password}}); status != 200 || at != "/console" {
		t.Fatalf("the operator's link led to %d %s\n%s", status, at, body)
	}
	if status, _, _ := newVisitor(t).open(link[0]); status != http.StatusGone {
		t.Errorf("the operator's link again: %d", status)
	}

	out, code := h.user("invite", "ann@example.org")
	invitation := anyLink.FindStringSubmatch(out)
	if code != 0 || invitation == nil {
		t.Fatalf("user invite: %d %s", code, out)
	}
	if status, at, _ := newVisitor(t).send(invitation[0], url.Values{"name": {"Ann"}, "password": {password}}); status != 200 || at != "/console" {
		t.Errorf("the invitation led to %d %s", status, at)
	}
	out, code = h.user("add", "bo@example.org", "--name", "Bo")
	added := anyLink.FindStringSubmatch(out)
	if code != 0 || added == nil {
		t.Fatalf("user add: %d %s", code, out)
	}
	out, code = h.user("reset", "Bo@example.org")
	reset := anyLink.FindStringSubmatch(out)
	if code != 0 || reset == nil {
		t.Fatalf("user reset: %d %s", code, out)
	}
	if status, _, _ := newVisitor(t).open(added[0]); status != http.StatusGone {
		t.Errorf("a link whose place another took: %d", status)
	}
	if status, at, _ := newVisitor(t).send(reset[0], url.Values{"password": {password}}); status != 200 || at != "/console" {
		t.Errorf("the reset led to %d %s", status, at)
	}
	for _, wrong := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"reset", "nobody@example.org"}, 3, "user list"},
		{[]string{"invite", "ann@example.org"}, 1, "user reset"},
		{[]string{"add", "ann@example.org"}, 1, "user reset"},
		{[]string{"add", "no-address"}, 1, "no-address"},
		{[]string{"reset"}, 2, "one e-mail address"},
	} {
		if out, code := h.user(wrong.args...); code != wrong.code || !strings.Contains(out, wrong.says) {
			t.Errorf("user %v: %d %s", wrong.args, code, out)
		}
	}
	out, _ = h.user("list")
	var people []struct {
		Email    string
		Password bool
		Tenants  []string
	}
	if err := json.Unmarshal([]byte(out), &people); err != nil || len(people) != 3 || people[0].Email != "ann@example.org" || !people[1].Password || people[1].Tenants[0] != "Bo (owner)" {
		t.Errorf("user list: %v %s", err, out)
	}

	joining := h.letsIn(password)

	h.stop()
	before := h.heard()
	h.start()
	if said := h.heard(); said != before {
		t.Errorf("a broker with people prints %q", said)
	}
	if status, at, _ := operator.open(h.base + "/"); status != 200 || at != "/console" {
		t.Errorf("the session after a restart: %d at %s", status, at)
	}
	h.stop()
	for _, secret := range []string{link[1], invitation[1], reset[1], joining, password} {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log contains %s", secret)
		}
	}
}

func TestUpPrintsALinkThatSignsIn(t *testing.T) {
	t.Parallel()
	h := up(t, dataDir(t), freeAddr(t))
	v := newVisitor(t)
	status, at, body := v.send(h.ConsoleURL, url.Values{})
	if status != 200 || at != "/console" || !strings.Contains(body, "Sample workspace") {
		t.Fatalf("the link led to %d %s\n%s", status, at, body)
	}
	if status, _, _ := newVisitor(t).send(h.ConsoleURL, url.Values{}); status != http.StatusGone {
		t.Errorf("the link again: %d", status)
	}
}
