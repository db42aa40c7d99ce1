package rehearsal

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/cmd/internal/browser"
	"siyuan-broker/cmd/internal/doctor"
)

// block is one nginx server: directives in place of, or beside, those of a sound
// one.
type block struct {
	fault   string // directives
	upgrade bool   // WebSockets pass
	limit   string // client_max_body_size
}

var sound = block{"", true, "5m"}

// wrongly is a sound block with one fault.
func wrongly(fault string) block { return block{fault, true, "5m"} }

// ports are free ones.
func ports(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}

// nginx runs one with a server for each block until the test ends.
func nginx(t *testing.T, upstream string, servers map[string]block) {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program = "/usr/sbin/nginx"; !exists(program) {
			t.Skip("nginx is missing: .ci/deps test installs it")
		}
	}
	dir := t.TempDir()
	var conf strings.Builder
	if os.Geteuid() == 0 {
		conf.WriteString("user root;\n") // or it could not reach the test's folder
	}
	fmt.Fprintf(&conf, "daemon off; master_process off; pid %s/pid; error_log %s/error.log;\nevents {}\nhttp {\naccess_log off;\n", dir, dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	for address, b := range servers {
		upgrade := ""
		if b.upgrade {
			upgrade = `proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";`
		}
		fmt.Fprintf(&conf, "server { listen %s; client_max_body_size %s;\nlocation / { proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Host $http_host; %s %s } }\n",
			address, b.limit, upstream, upgrade, b.fault)
	}
	conf.WriteString("}\n")
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "-c", file, "-p", dir, "-e", filepath.Join(dir, "error.log"))
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
	for address := range servers {
		open(t, address, ended)
	}
}

// open waits until somebody listens.
func open(t *testing.T, address string, ended <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatal("nginx ended")
		case <-limit:
			t.Fatal("nginx does not listen")
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestWhatNginxDoesWrongIsNamed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		does  block
		fails string // the probe that names it
		says  string
	}{
		{"nothing wrong", sound, "", ""},
		{"packs what it buffers", wrongly("proxy_ignore_headers X-Accel-Buffering; gzip on; gzip_proxied any; gzip_types text/event-stream; gzip_min_length 0;"), "stream", "holds"},
		{"gives up on silence", wrongly("proxy_read_timeout 500ms;"), "stream", "proxy_read_timeout"},
		{"takes 1 MB at most", block{"", true, "1m"}, "large request", "413"},
		{"strips Authorization", wrongly(`proxy_set_header Authorization "";`), "Cursor", "Authorization header does not reach the broker"},
		{"drops the upgrade", block{"", false, "5m"}, "tunnel", "upgrade"},
		{"strips Mcp-Method and Mcp-Name", wrongly(`proxy_set_header Mcp-Method ""; proxy_set_header Mcp-Name "";`), "headers", "Mcp-Method, Mcp-Name"},
		{"strips Mcp-Protocol-Version and Last-Event-ID", wrongly(`proxy_set_header Mcp-Protocol-Version ""; proxy_set_header Last-Event-ID "";`), "headers", "Mcp-Protocol-Version, Last-Event-ID"},
		{"strips Mcp-Session-Id", wrongly(`proxy_set_header Mcp-Session-Id "";`), "Cursor", "Mcp-Session-Id does not reach the broker"},
		{"strips the answer's Mcp-Session-Id", wrongly("proxy_hide_header Mcp-Session-Id;"), "Cursor", "has no Mcp-Session-Id"},
		{"strips WWW-Authenticate", wrongly("proxy_hide_header WWW-Authenticate;"), "challenge", "does not say where to sign in"},
		{"is at an address that is not in public_urls", sound, "resource", "public_urls"},
	}
	addresses := ports(t, len(cases))
	servers := map[string]block{}
	var public []string
	for i, c := range cases {
		servers[addresses[i]] = c.does
		if i < len(cases)-1 {
			public = append(public, "http://"+addresses[i])
		}
	}
	w := browser.Start(t, func(c *broker.Config) { c.PublicURLs = public }, broker.WithClientDocuments(published), broker.WithHeartbeat(beat))
	nginx(t, w.Broker.Addr().String(), servers)
	for i, c := range cases {
		email := fmt.Sprintf("test%d@example.org", i)
		someone(t, w, email, true)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := examine(t, &Doctor{URL: "http://" + addresses[i], Email: email, Password: browser.Password, Silence: silence}, butFor("Cursor")...)
			if c.fails == "" {
				for name, f := range found {
					if f.Status == doctor.Fail {
						t.Errorf("%s: %+v", name, f)
					}
				}
				return
			}
			if f := found[c.fails]; f.Status != doctor.Fail || !strings.Contains(f.Found+f.Next, c.says) || f.Next == "" {
				t.Errorf("%s: %+v", c.fails, f)
			}
		})
	}
}

func TestABrokerThatTakesHTTPSForHTTPIsToldSo(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewUnstartedServer(nil)
	w := browser.Start(t, func(c *broker.Config) { c.PublicURLs = []string{"http://" + proxy.Listener.Addr().String()} })
	at, err := url.Parse("http://" + w.Broker.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Config.Handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at); r.Out.Host = r.In.Host }}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	roots := x509.NewCertPool()
	roots.AddCert(proxy.Certificate())
	found := examine(t, &Doctor{URL: proxy.URL, Email: "x@example.org", Password: "x", Network: doctor.Network{Roots: roots}})
	if f := found["resource"]; f.Status != doctor.Fail || !f.Config || !strings.Contains(f.Found, "come by https, but the broker takes itself for http://") {
		t.Errorf("%+v", f)
	}
	if f := found[account]; f.Status != doctor.Skip {
		t.Errorf("%+v", f)
	}
}
