package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
)

// nginx starts one that buffers nothing less than it does by default, gives up
// on a silent server after three seconds, and forwards to a node. It returns
// the URL of /mcp.
func (r *rig) nginx(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program = "/usr/sbin/nginx"; !executable(program) {
			t.Skip("nginx is missing: .ci/deps test installs it")
		}
	}
	node, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // or the workers could not reach the test's folder
	}
	err = os.WriteFile(conf, fmt.Appendf(nil, `%sdaemon off; master_process off; pid %s/pid; error_log %s/error.log;
events {}
http {
access_log off;
%sserver {
listen %s;
location / { proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Host $host; proxy_read_timeout 3s; }
}
}
`, user, dir, dir, temp, address, node.Host), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log"))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("nginx: %s\n%s", said.String(), log)
		}
	})
	await(t, "nginx", func() bool {
		select {
		case <-ended:
			t.Fatal("nginx ended")
		default:
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return "http://" + address + "/mcp"
}

func executable(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode()&0o111 != 0
}

// M07: through a proxy that buffers and gives up on silence, a slow call is
// answered and a stream stays open, because of the heartbeat and nothing else.
func TestStreamsStayOpenThroughAProxy(t *testing.T) {
	t.Parallel()
	for name, beat := range map[string]time.Duration{"with a heartbeat": time.Second, "without": time.Hour} {
		for _, era := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(name+" in "+era, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, func(c *Config) { c.Heartbeat = beat })
				finish := make(chan struct{})
				r.home.will(func(ctx context.Context, _ relayed) contract.Result {
					select {
					case <-finish:
					case <-ctx.Done():
					}
					return contract.Result{Body: json.RawMessage(`{"done":true}`)}
				})
				raw, _ := r.token(t, tenantA, agent)
				call, header := legacyCall("1"), legacyHeader(raw, r.session(t, raw))
				if era >= modernEra {
					call, header = callList, modernHeader(raw, "tools/call", "notebook")
				}
				r.url = r.nginx(t)
				if beat > time.Minute {
					began := time.Now()
					w := r.open(t, "POST", call, header)
					if w.resp.StatusCode != http.StatusGatewayTimeout || time.Since(began) < 2*time.Second {
						t.Errorf("%d after %v: this proxy does not give up", w.resp.StatusCode, time.Since(began))
					}
					close(finish)
					return
				}
				listen := (*wire)(nil)
				if era >= modernEra {
					listen = r.open(t, "POST", `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`, modernHeader(raw, "subscriptions/listen", ""))
				} else {
					listen = r.open(t, "GET", "", header)
				}
				w := r.open(t, "POST", call, header)
				for i := range 5 { // longer than the proxy waits
					if w.comment() == "" || listen.comment() == "" {
						t.Fatalf("a stream ended after %d comments", i)
					}
				}
				close(finish)
				if got := text(t, w.next(t)); !strings.Contains(got, `"done":true`) {
					t.Errorf("%s", got)
				}
				r.store.change(off(tenantA, agent, "search"))
				for {
					m := listen.next(t)
					if m == nil {
						t.Fatal("the stream ended")
					}
					if m["method"] == "notifications/tools/list_changed" {
						return
					}
				}
			})
		}
	}
}
