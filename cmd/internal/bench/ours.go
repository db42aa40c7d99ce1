package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"siyuan-broker/connector"
	"siyuan-broker/contract"
)

// bench is one run: its folder, its certificate and everything it started.
type bench struct {
	settings
	bin         string
	dir         string
	certificate *certificateFolder
	roots       *x509.CertPool
	note        io.Writer
	running     []*process
}

// newBench makes the folder of a run. Its PostgreSQL may run under an account of
// its own, which has to pass through.
func newBench(bin string, s settings, note io.Writer) (*bench, error) {
	dir, err := os.MkdirTemp("", "siyuan-broker-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, dir: dir, certificate: &certificateFolder{dir}, note: note}
	if b.bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	if err := b.certificate.make(); err != nil {
		return nil, err
	}
	b.roots, err = b.certificate.roots()
	return b, err
}

// close ends everything in the order opposite to its start.
func (b *bench) close() {
	for i := len(b.running) - 1; i >= 0; i-- {
		b.running[i].stop()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.note, format+"\n", args...) }

// folder makes one for a process.
func (b *bench) folder(name string) (string, error) {
	path := filepath.Join(b.dir, name)
	if err := os.Mkdir(path, 0o711); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o711) // whatever the umask
}

func (b *bench) keep(p *process, err error) (*process, error) {
	if err == nil {
		b.running = append(b.running, p)
	}
	return p, err
}

// role starts this program in a role and waits until it is ready.
func (b *bench) role(ctx context.Context, name string, args ...string) (*process, error) {
	p, err := b.keep(self(name, args...))
	if err != nil {
		return nil, err
	}
	_, err = p.line(ctx)
	return p, err
}

// end stops a process before the others.
func (b *bench) end(p *process) {
	p.stop()
	for i := range b.running {
		if b.running[i] == p {
			b.running = append(b.running[:i], b.running[i+1:]...)
			return
		}
	}
}

// testedBroker is a running released broker.
type testedBroker struct {
	b       *bench
	process *process
	program string
	env     []string // for its commands
	url     string
}

// startBroker starts a released broker with its own PostgreSQL.
func (b *bench) startBroker(ctx context.Context, name string, hot bool) (*testedBroker, error) {
	data, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	listen := freeAddress()
	n := &testedBroker{b: b, program: filepath.Join(b.bin, "siyuan-broker"), url: "https://" + listen}
	const anyNumber = "1000000000" // the limits are asked, and never reached
	n.env = []string{
		"BROKER_LISTEN=" + listen, "BROKER_TUNNEL_LISTEN=" + freeAddress(), "BROKER_DATA=" + filepath.Join(data, "db"),
		"BROKER_TLS_CERT=" + b.certificate.cert(), "BROKER_TLS_KEY=" + b.certificate.key(), "BROKER_NODE_ID=" + name,
		fmt.Sprintf("BROKER_HOT_LANE=%v", hot), "BROKER_LOG_LEVEL=warn", "DATABASE_URL=",
		"BROKER_CALLS_PER_MINUTE=" + anyNumber, "BROKER_CALLS_PER_MINUTE_TOOL=" + anyNumber, "BROKER_CALLS_PER_MINUTE_TENANT=" + anyNumber,
	}
	if n.process, err = b.keep(start(name, n.program, n.env, "serve")); err != nil {
		return nil, err
	}
	return n, b.await(ctx, n.process, n.url+"/readyz")
}

// await asks a URL until it answers well.
func (b *bench) await(ctx context.Context, p *process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsOf(b.roots), DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := p.failure(); err != nil {
			return err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, err, p.log)
		}
	}
}

// command runs a command of the broker and decodes what it prints.
func (n *testedBroker) command(ctx context.Context, into any, args ...string) error {
	out, err := once(ctx, n.program, n.env, args...)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("siyuan-broker %s prints %q: %w", strings.Join(args, " "), out, err)
	}
	return nil
}

// tenant makes a tenant for a connector's key, and an agent that may do
// everything; it returns the agent's token.
func (n *testedBroker) tenant(ctx context.Context, name, key string) (token string, err error) {
	var made struct{ Tenant, Instance string }
	if err := n.command(ctx, &made, "tenant", "create", "--name", name, "--email", name+"@example.org"); err != nil {
		return "", err
	}
	if err := n.command(ctx, nil, "tenant", "writes", "--tenant", made.Tenant, "--off"); err != nil {
		return "", err
	}
	of := []string{"--tenant", made.Tenant, "--instance", made.Instance}
	var agent struct{ Token string }
	for _, c := range []struct {
		into any
		args []string
	}{
		{nil, []string{"tenant", "level", "--level", "rwd"}},
		{nil, []string{"tenant", "switch", "--name", string(contract.SwitchWorkspace)}},
		{nil, []string{"connector", "add", "--key", key}},
		{&agent, []string{"token", "create", "--name", "bench", "--level", "rwd"}},
	} {
		if err := n.command(ctx, c.into, append(c.args, of...)...); err != nil {
			return "", err
		}
	}
	return agent.Token, nil
}

// home is a connector that is in.
type home struct {
	process *process
	token   string // of an agent
}

// releasedHome starts the released connector beside a kernel.
func (n *testedBroker) releasedHome(ctx context.Context, name, kernel, kernelToken string) (*home, error) {
	data, err := n.b.folder("home-" + name)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(data, "policy.yaml"), []byte("max_level: rwd\n"), 0o600); err != nil {
		return nil, err
	}
	program := filepath.Join(n.b.bin, "siyuan-connector")
	env := []string{"CONNECTOR_DATA=" + data, "CONNECTOR_BROKER=" + n.url, "SIYUAN_API_URL=" + kernel, "SIYUAN_TOKEN=" + kernelToken,
		"SSL_CERT_FILE=" + n.b.certificate.cert(), "CONNECTOR_LOG_LEVEL=warn"}
	key, err := once(ctx, program, env, "key")
	if err != nil {
		return nil, err
	}
	h := &home{}
	if h.token, err = n.tenant(ctx, name, strings.TrimSpace(string(key))); err != nil {
		return nil, err
	}
	if h.process, err = n.b.keep(start("connector", program, env, "run")); err != nil {
		return nil, err
	}
	return h, n.answers(ctx, h)
}

// oneCallHome starts a home whose handler is one call to a kernel.
func (n *testedBroker) oneCallHome(ctx context.Context, kernel string) (*home, error) {
	const seed = "one call"
	h := &home{}
	var err error
	if h.token, err = n.tenant(ctx, "one-call", connector.EncodePublic(publicOf(keyOf(seed, 0)))); err != nil {
		return nil, err
	}
	h.process, err = n.b.role(ctx, "homes", "-broker", n.url, "-tls", n.b.certificate.path, "-seed", seed, "-kernel", kernel)
	if err != nil {
		return nil, err
	}
	return h, n.answers(ctx, h)
}

// answers waits until a call reaches the home.
func (n *testedBroker) answers(ctx context.Context, h *home) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := n.call(ctx, h, "notebook", `{"action":"list"}`)
		if err == nil {
			return nil
		}
		if failure := h.process.failure(); failure != nil {
			return failure
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("the home of %s does not answer: %w\n%s", n.url, err, h.process.log)
		}
	}
}

// call makes one call and returns the text of its answer.
func (n *testedBroker) call(ctx context.Context, h *home, tool, arguments string) (string, error) {
	w, err := newWorker(ctx, n.target(h, modern, tool, arguments))
	if err != nil {
		return "", err
	}
	defer w.close()
	body, err := w.call(ctx)
	if err != nil {
		return "", err
	}
	var answer struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(body[strings.Index(string(body), "{"):], &answer); err != nil { // an event before it
		return "", fmt.Errorf("%q: %w", body, err)
	}
	return answer.Result.Content[0].Text, nil
}

func (n *testedBroker) target(h *home, m mode, tool, arguments string) *target {
	return &target{url: n.url + "/mcp", token: h.token, mode: m, tool: tool, arguments: arguments, roots: n.b.roots}
}

// document makes a notebook with one document of a text, and returns both ids.
func (n *testedBroker) document(ctx context.Context, h *home, text string) (notebook, id string, err error) {
	var made struct{ Notebook struct{ ID string } }
	answer, err := n.call(ctx, h, "notebook", fmt.Sprintf(`{"action":"create","name":"bench %d"}`, time.Now().UnixNano()))
	if err != nil {
		return "", "", err
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		return "", "", err
	}
	var doc struct{ ID string }
	answer, err = n.call(ctx, h, "document", fmt.Sprintf(`{"action":"create","notebook":%q,"path":"/bench","markdown":%q}`, made.Notebook.ID, text))
	if err != nil {
		return made.Notebook.ID, "", err
	}
	return made.Notebook.ID, doc.ID, json.Unmarshal([]byte(answer), &doc)
}
