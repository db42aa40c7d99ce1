package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pglocal"
)

// hosting is the environment of somebody who hosts a broker.
type hosting struct {
	t                 *testing.T
	broker, connector string   // programs
	env               []string // of the broker's commands
	homeEnv           []string // of the connector's
	url               string
}

func newHosting(t *testing.T) *hosting {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	data, listen := dataDir(t), freeAddr(t)
	pg, err := pglocal.Start(t.Context(), pglocal.Options{DataDir: filepath.Join(data, "pg"), Logger: slog.New(slog.DiscardHandler), Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Stop(context.Background()) })
	dsn := func(role, database string) string { // with a password, as a real server wants it
		u, err := url.Parse(pg.DSN(role, database))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, "secret-"+role)
		return u.String()
	}
	kernel, err := samplekernel.New(samplekernel.Options{Token: "kernel-token", Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kernel.Close() })
	siyuan := httptest.NewServer(kernel.Handler())
	t.Cleanup(siyuan.Close)

	h := &hosting{t: t, broker: bin, connector: filepath.Join(filepath.Dir(bin), "siyuan-connector"), url: "http://" + listen}
	base := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "TMPDIR=" + os.TempDir()}
	h.env = append(base,
		"BROKER_LISTEN="+listen, "BROKER_DATA="+filepath.Join(data, "broker"),
		"BROKER_MASTER_KEY=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		"DATABASE_URL="+dsn("siyuan_service", "siyuan"), "DATABASE_RECORDER_URL="+dsn("siyuan_recorder", "siyuan"),
		"DATABASE_DIRECT_URL="+dsn("siyuan_owner", "siyuan"), "DATABASE_ADMIN_URL="+pg.DSN(pglocal.Superuser, "postgres"))
	h.homeEnv = append(base[:len(base):len(base)], "CONNECTOR_DATA="+filepath.Join(data, "home"), "CONNECTOR_BROKER="+h.url,
		"SIYUAN_API_URL="+siyuan.URL, "SIYUAN_TOKEN=kernel-token")
	return h
}

// run runs one command and returns what it prints.
func (h *hosting) run(program string, env []string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = env
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%v: %v\n%s%s", args, err, out, &errOut)
	}
	return strings.TrimSpace(string(out))
}

func (h *hosting) json(args ...string) map[string]string {
	h.t.Helper()
	var v map[string]string
	out := h.run(h.broker, h.env, args...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		h.t.Fatalf("%v printed %q", args, out)
	}
	return v
}

// start starts a command that stays, and ends it with the test.
func (h *hosting) start(program string, env []string, args ...string) *exec.Cmd {
	h.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = env
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
		if h.t.Failed() {
			h.t.Logf("%v:\n%s", args, &log)
		}
	})
	return cmd
}

func (h *hosting) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(40 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit:
			t.Fatalf("not within 20 s: %s", what)
		case <-tick.C:
		}
	}
}

// TestHostingAsTheREADMESays does what somebody does who hosts a broker for
// others, with the programs as they are released.
func TestHostingAsTheREADMESays(t *testing.T) {
	t.Parallel()
	h := newHosting(t)
	if out := h.run(h.broker, h.env, "migrate"); !strings.HasPrefix(out, "schema version ") {
		t.Errorf("migrate printed %q", out)
	}
	h.run(h.broker, h.env, "migrate") // again changes nothing
	h.start(h.broker, h.env, "serve")
	h.await(t, "the broker is ready", func() bool {
		cmd := exec.Command(h.broker, "health")
		cmd.Env = h.env
		return cmd.Run() == nil
	})

	made := h.json("tenant", "create", "--name", "Home", "--email", "you@example.org")
	key := h.run(h.connector, h.homeEnv, "key")
	if again := h.run(h.connector, h.homeEnv, "key"); again != key {
		t.Errorf("the key changed from %s to %s", key, again)
	}
	ids := []string{"--tenant", made["tenant"], "--instance", made["instance"]}
	added := h.json(append([]string{"connector", "add", "--key", key}, ids...)...)
	agent := h.json(append([]string{"token", "create", "--name", "laptop", "--level", "rw"}, ids...)...)
	home := h.start(h.connector, h.homeEnv, "run")
	h.await(t, "the connector is healthy", func() bool {
		cmd := exec.Command(h.connector, "status", "--check")
		cmd.Env = h.homeEnv
		return cmd.Run() == nil
	})

	a := (&client{url: agent["mcp_url"], token: agent["token"]}).connect(t)
	var list struct{ Notebooks []notebook }
	call(t, a, "notebook", map[string]any{"action": "list"}, &list)
	if len(list.Notebooks) == 0 {
		t.Fatal("no notebooks")
	}
	for _, n := range list.Notebooks {
		if n.Level != "r" {
			t.Errorf("without a policy file %s has level %s, want r", n.Name, n.Level)
		}
	}
	var shown []struct{ Notebooks []struct{ Name string } }
	if err := json.Unmarshal([]byte(h.run(h.broker, h.env, "tenant", "show", "--tenant", made["tenant"])), &shown); err != nil || len(shown) != 1 {
		t.Fatalf("tenant show: %v, %+v", err, shown)
	}
	if len(shown[0].Notebooks) != len(list.Notebooks) {
		t.Errorf("the operator sees %d notebooks, the agent %d", len(shown[0].Notebooks), len(list.Notebooks))
	}

	h.run(h.broker, h.env, "tenant", "results", "--tenant", made["tenant"], "--chars", "2000")
	h.await(t, "answers are smaller", func() bool {
		var rows struct{ Hint string }
		call(t, a, "search", map[string]any{"action": "query_sql", "stmt": "SELECT a.* FROM blocks AS a, blocks AS b"}, &rows)
		return strings.Contains(rows.Hint, "2000 characters")
	})

	skills := func() bool {
		fresh := (&client{url: agent["mcp_url"], token: agent["token"]}).connect(t)
		_, declared := fresh.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/skills"]
		return declared
	}
	if skills() {
		t.Error("the Skills extension is on before anybody switched it on")
	}
	h.run(h.broker, h.env, "tenant", "skills", "--tenant", made["tenant"])
	h.await(t, "the Skills extension is on", skills)

	feedbackIsPrinted(t, h, a, made["tenant"])
	toolsOfPluginsAreToggled(t, h, ids)

	h.run(h.broker, h.env, "token", "revoke", "--tenant", made["tenant"], "--agent", agent["agent"])
	h.await(t, "the token is refused", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, agent["mcp_url"], strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+agent["token"])
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusUnauthorized
	})
	h.run(h.broker, h.env, "connector", "revoke", "--tenant", made["tenant"], "--connector", added["connector"])
	_ = home.Wait()
	if code := home.ProcessState.ExitCode(); code != 77 {
		t.Errorf("the revoked connector ended with exit code %d, want 77", code)
	}
}

func TestWrongSettingsAreNamedAndExitWith78(t *testing.T) {
	t.Parallel()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"unknown variable":       {[]string{"BROKER_LISTE=x"}, []string{"serve"}, "did you mean BROKER_LISTEN?"},
		"public without TLS":     {[]string{"BROKER_LISTEN=0.0.0.0:1"}, []string{"serve"}, "tokens would travel in the clear"},
		"up without a token":     {nil, []string{"up", "--url", "http://127.0.0.1:1"}, "SIYUAN_TOKEN"},
		"database without owner": {[]string{"DATABASE_URL=postgres://a@b/c", "DATABASE_RECORDER_URL=postgres://a@b/c", "BROKER_MASTER_KEY=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}, []string{"migrate"}, "DATABASE_DIRECT_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(bin, c.args...)
			cmd.Env = append(c.env, "HOME="+t.TempDir())
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 78 || !strings.Contains(string(out), c.want) {
				t.Errorf("exit code %d, %s; want 78 and %q", code, out, c.want)
			}
		})
	}
}

// feedbackIsPrinted holds what the command prints to what the agent sent: each
// tenant's apart, or everybody's.
func feedbackIsPrinted(t *testing.T, h *hosting, agent *mcp.ClientSession, tenant string) {
	t.Helper()
	const text = "The list 列表 \"is\" long."
	var sent struct{ ID string }
	call(t, agent, "feedback", map[string]any{"action": "submit", "description": text, "impact": "slow"}, &sent)
	other := h.json("tenant", "create", "--name", "Other", "--email", "else@example.org")["tenant"]
	type line struct {
		Tenant      string `json:"tenant_id"`
		ID          string `json:"id"`
		Description string `json:"description"`
		Impact      string `json:"impact"`
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true}, {[]string{"--days", "1"}, true}, {[]string{"--tenant", tenant}, true}, {[]string{"--tenant", other}, false},
	} {
		out := h.run(h.broker, h.env, append([]string{"feedback"}, c.args...)...)
		if !c.want {
			if out != "" {
				t.Errorf("feedback %v printed %s", c.args, out)
			}
			continue
		}
		var got line
		if err := json.Unmarshal([]byte(out), &got); err != nil { // one value and no more
			t.Fatalf("feedback %v: %v\n%s", c.args, err, out)
		}
		if want := (line{tenant, sent.ID, text, "slow"}); got != want {
			t.Errorf("feedback %v: %+v, want %+v", c.args, got, want)
		}
	}
	for _, args := range [][]string{{"--days", "0"}, {"--tenant", "nobody"}, {"more"}} {
		if code := h.fails(append([]string{"feedback"}, args...)...); code != 2 {
			t.Errorf("feedback %v ended with exit code %d, want 2", args, code)
		}
	}
}

// toolsOfPluginsAreToggled switches one off and on again. No home has to offer it.
func toolsOfPluginsAreToggled(t *testing.T, h *hosting, ids []string) {
	t.Helper()
	toggle := func(tool, action, on string) []string {
		return append([]string{"tenant", "toggle", "--tool", tool, "--action", action, "--on=" + on}, ids...)
	}
	off := func() bool {
		var shown []struct{ Toggles []tenants.Toggle }
		if err := json.Unmarshal([]byte(h.run(h.broker, h.env, "tenant", "show", "--tenant", ids[1])), &shown); err != nil {
			t.Fatal(err)
		}
		return len(shown) == 1 && slices.ContainsFunc(shown[0].Toggles, func(x tenants.Toggle) bool { return x.Action == "plugin__desk_tools__ring" })
	}
	h.run(h.broker, h.env, toggle("extension", "plugin__desk_tools__ring", "false")...)
	if !off() {
		t.Error("the tool of a plugin was not switched off")
	}
	h.run(h.broker, h.env, toggle("extension", "plugin__desk_tools__ring", "true")...)
	if off() {
		t.Error("switching the tool of a plugin on leaves an entry, though the action behind it decides")
	}
	for _, wrong := range [][2]string{{"extension", "ring the bell"}, {"extension", "help"}, {"document", "plugin__desk_tools__ring"}} {
		if code := h.fails(toggle(wrong[0], wrong[1], "false")...); code != 2 {
			t.Errorf("toggle %v ended with exit code %d, want 2", wrong, code)
		}
	}
}

// fails runs a command of the broker that must not succeed, and gives its exit code.
func (h *hosting) fails(args ...string) int {
	h.t.Helper()
	cmd := exec.Command(h.broker, args...)
	cmd.Env = h.env
	if out, err := cmd.CombinedOutput(); err == nil {
		h.t.Errorf("%v succeeded: %s", args, out)
	}
	return cmd.ProcessState.ExitCode()
}
