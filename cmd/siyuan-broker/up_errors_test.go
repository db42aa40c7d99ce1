package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/tenants/postgres/pglocal"
)

// refused runs `up` that must not start, and checks exit code and what a person
// reads.
func refused(t *testing.T, code int, env []string, args []string, words ...string) {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, append([]string{"up", "--json"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code || out.Len() != 0 {
		t.Errorf("exit code %d, want %d; printed %q", got, code, &out)
	}
	_, last, _ := strings.Cut("\n"+errOut.String(), "\nsiyuan-broker: ")
	for _, w := range words {
		if !strings.Contains(last, w) {
			t.Errorf("%q is missing in the error: %s", w, &errOut)
		}
	}
}

func TestUpSaysWhatIsInItsWay(t *testing.T) {
	t.Parallel()
	t.Run("no PostgreSQL", func(t *testing.T) {
		t.Parallel()
		if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); err == nil && len(found) > 0 {
			t.Skip("this machine's PostgreSQL is found without PATH; TestCheckSaysWhatStartWouldSay covers the message")
		}
		refused(t, 1, []string{"PATH="}, []string{"--data", dataDir(t)}, "no PostgreSQL", "DATABASE_URL")
	})
	t.Run("the port is in use", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refused(t, 1, nil, []string{"--data", dataDir(t), "--listen", l.Addr().String()}, l.Addr().String(), "in use", "--listen")
	})
	t.Run("the data folder cannot be passed", func(t *testing.T) {
		t.Parallel()
		if os.Geteuid() != 0 {
			t.Skip("only as root does PostgreSQL run as another user")
		}
		closed := t.TempDir()
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		refused(t, 1, nil, []string{"--data", filepath.Join(closed, "data"), "--listen", freeAddr(t)}, "may not pass through", "chmod o+x")
	})
	t.Run("the policy file is broken", func(t *testing.T) {
		t.Parallel()
		data := dataDir(t)
		file := filepath.Join(data, "sample", "policy.yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("max_levl: rw\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, 78, nil, []string{"--data", data, "--listen", freeAddr(t)}, file, "max_levl")
	})
	t.Run("DATABASE_URL leads nowhere", func(t *testing.T) {
		t.Parallel()
		refused(t, 1, []string{"DATABASE_URL=postgres://postgres:hunter2@" + freeAddr(t) + "/postgres?sslmode=disable"},
			[]string{"--data", dataDir(t), "--listen", freeAddr(t)}, "DATABASE_URL", "refused")
	})
}

func TestUpWithASiYuanThatIsNotUsableStaysAndSaysWhy(t *testing.T) {
	t.Parallel()
	kernel, err := samplekernel.New(samplekernel.Options{Token: "right", Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kernel.Close() })
	siyuan := httptest.NewServer(kernel.Handler())
	t.Cleanup(siyuan.Close)
	for name, c := range map[string]struct{ url, code, words string }{
		"SiYuan is down":     {"http://" + freeAddr(t), "siyuan_offline", "does not answer"},
		"the token is wrong": {siyuan.URL, "siyuan_unauthorized", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := up(t, dataDir(t), freeAddr(t), "--url", c.url, "--token", "wrong")
			text, isError := try(t, h.agent(t, ""), "notebook", map[string]any{"action": "list"})
			if !isError || !strings.Contains(text, c.code) {
				t.Errorf("an agent reads %s", text)
			}
			h.stop(t)
			if !strings.Contains(h.log.String(), c.words) {
				t.Errorf("the owner does not read %q", c.words)
			}
		})
	}
}

func TestUpOnAnAdministratorsDatabaseFindsEverythingAgain(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	pg, err := pglocal.Start(t.Context(), pglocal.Options{DataDir: filepath.Join(data, "pg"), Logger: slog.New(slog.DiscardHandler), Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Stop(context.Background()) })
	u, err := url.Parse(pg.DSN(pglocal.Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	listen := freeAddr(t)
	start := func() *home {
		return upWith(t, []string{"DATABASE_URL=" + u.String()}, filepath.Join(data, "broker"), listen)
	}
	first := start()
	work(t, first.agent(t, ""), "adopted")
	first.stop(t)
	second := start()
	if second.AgentToken != first.AgentToken {
		t.Error("the second start made another token")
	}
	var list struct{ Notebooks []notebook }
	call(t, second.agent(t, ""), "notebook", map[string]any{"action": "list"}, &list)
	if len(list.Notebooks) == 0 {
		t.Error("no notebooks")
	}
}

func TestCommandsWorkBesideARunningUp(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	h := up(t, data, freeAddr(t))
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	run := func(into any, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "BROKER_DATA=" + data}
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out, &errOut)
		}
		if err := json.Unmarshal(out, into); err != nil {
			t.Fatalf("%v printed %q", args, out)
		}
	}
	var ids struct{ Tenant, Sample_instance string }
	b, err := os.ReadFile(filepath.Join(data, "up.json"))
	if err == nil {
		err = json.Unmarshal(b, &ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Agent, Token, MCP_URL string }
	run(&made, "token", "create", "--tenant", ids.Tenant, "--instance", ids.Sample_instance, "--name", "beside", "--level", "r")
	if made.MCP_URL != h.MCPURL {
		t.Errorf("the token is for %s, the broker is at %s", made.MCP_URL, h.MCPURL)
	}
	var list struct{ Notebooks []notebook }
	call(t, (&client{url: made.MCP_URL, token: made.Token}).connect(t), "notebook", map[string]any{"action": "list"}, &list)
	if len(list.Notebooks) == 0 {
		t.Error("no notebooks")
	}
	var shown []any
	run(&shown, "tenant", "show", "--tenant", ids.Tenant)
	if len(shown) != 2 {
		t.Errorf("tenant show lists %d instances, want the sample and SiYuan", len(shown))
	}
	var report struct {
		Status   string
		Findings []struct{ Name, Status, Found string }
	}
	base, _, _ := strings.Cut(h.MCPURL, "/mcp")
	cmd := exec.CommandContext(t.Context(), bin, "doctor", "--json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "BROKER_DATA=" + data, "BROKER_PUBLIC_URLS=" + base, "BROKER_LISTEN=" + strings.TrimPrefix(base, "http://")}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("doctor: %v", err)
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Findings) < 12 {
		t.Errorf("doctor printed %s", out)
	}
	for _, f := range report.Findings {
		if f.Status != "ok" && f.Name != "redis" && f.Name != "certificate" {
			t.Errorf("doctor beside up: %+v", f)
		}
	}
}
