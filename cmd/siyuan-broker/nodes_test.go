package main_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/cluster/clustertest/redistest"
)

// balancer is what stands in front of a cluster: it passes a connection to the
// first node that takes it.
type balancer struct {
	listener net.Listener
	nodes    []string
	work     sync.WaitGroup
}

func newBalancer(t *testing.T, nodes ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: l, nodes: nodes}
	b.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.work.Go(func() { b.pass(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return b
}

func (b *balancer) pass(c net.Conn) {
	defer c.Close()
	for _, addr := range b.nodes {
		up, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			continue
		}
		done := make(chan struct{}, 2)
		go func() { _, _ = io.Copy(up, c); done <- struct{}{} }()
		go func() { _, _ = io.Copy(c, up); done <- struct{}{} }()
		<-done
		_ = up.Close()
		return
	}
}

// with returns the environment with settings replaced.
func with(env []string, settings ...string) []string {
	out := make([]string, 0, len(env)+len(settings))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		replaced := false
		for _, s := range settings {
			replaced = replaced || strings.HasPrefix(s, name+"=")
		}
		if !replaced {
			out = append(out, kv)
		}
	}
	return append(out, settings...)
}

// listNotebooks is one read; an answer that is an error counts as one.
func listNotebooks(ctx context.Context, s *mcp.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "notebook", Arguments: map[string]any{"action": "list"}})
	if err == nil && r.IsError {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// TestTwoNodesActAsOne runs two broker processes on one PostgreSQL and one
// Redis, with a connector and agents that come through a balancer.
func TestTwoNodesActAsOne(t *testing.T) {
	t.Parallel()
	h := newHosting(t)
	redis := redistest.New(t)
	addr := []string{freeAddr(t), freeAddr(t)}
	front := newBalancer(t, addr...) // everything goes to node 1 while it lives
	public := "http://" + front.listener.Addr().String()
	h.env = with(h.env, "BROKER_PUBLIC_URLS="+public+",http://"+addr[0]+",http://"+addr[1], "REDIS_URL="+redis.URL, "BROKER_PEER_LISTEN="+freeAddr(t),
		"BROKER_CALLS_PER_MINUTE=0") // the load below is far above the default limit
	h.homeEnv = with(h.homeEnv, "CONNECTOR_BROKER="+public)
	h.run(h.broker, h.env, "migrate")
	var nodes []*exec.Cmd
	for i, listen := range addr {
		env := with(h.env, "BROKER_LISTEN="+listen, "BROKER_NODE_ID=node-"+string(rune('1'+i)), "BROKER_PEER_LISTEN="+freeAddr(t))
		nodes = append(nodes, h.start(h.broker, env, "serve"))
		h.await(t, "node is ready", func() bool {
			cmd := exec.Command(h.broker, "health")
			cmd.Env = env
			return cmd.Run() == nil
		})
	}
	made := h.json("tenant", "create", "--name", "Home", "--email", "you@example.org")
	ids := []string{"--tenant", made["tenant"], "--instance", made["instance"]}
	key := h.run(h.connector, h.homeEnv, "key")
	h.json(append([]string{"connector", "add", "--key", key}, ids...)...)
	agent := h.json(append([]string{"token", "create", "--name", "laptop"}, ids...)...)
	other := h.json(append([]string{"token", "create", "--name", "other"}, ids...)...)
	h.start(h.connector, h.homeEnv, "run")

	far := (&client{url: "http://" + addr[1] + "/mcp", token: agent["token"]}).connect(t)
	h.await(t, "node 2 reaches the home at node 1", func() bool { return listNotebooks(t.Context(), far) == nil })

	t.Run("revoked on one node is refused on the other by the push or the feed", func(t *testing.T) {
		stream := (&client{url: "http://" + addr[1] + "/mcp", token: other["token"], era: "2025-11-25"}).connect(t)
		if err := listNotebooks(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
		h.run(h.broker, h.env, "token", "revoke", "--tenant", made["tenant"], "--agent", other["agent"])
		limit := time.After(pushed)
		for {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr[1]+"/mcp", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+other["token"])
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusUnauthorized {
				break
			}
			select {
			case <-limit:
				t.Fatalf("still answered %d after %s", resp.StatusCode, pushed)
			case <-time.After(20 * time.Millisecond):
			}
		}
		if err := listNotebooks(t.Context(), stream); err == nil {
			t.Error("its session still works")
		}
	})

	t.Run("without Redis the home's own node goes on, and the other recovers", func(t *testing.T) {
		near := (&client{url: "http://" + addr[0] + "/mcp", token: agent["token"]}).connect(t)
		redis.Freeze()
		for range 20 {
			if err := listNotebooks(t.Context(), near); err != nil {
				t.Errorf("at the home's own node: %v", err)
			}
		}
		redis.Thaw()
		h.await(t, "node 2 reaches the home again", func() bool { return listNotebooks(t.Context(), far) == nil })
	})

	t.Run("when a node is killed its home comes back and reads go on", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var good, bad atomic.Int64
		var load sync.WaitGroup
		for range 4 {
			load.Go(func() {
				for ctx.Err() == nil {
					if listNotebooks(ctx, far) == nil {
						good.Add(1)
					} else if ctx.Err() == nil {
						bad.Add(1)
					}
				}
			})
		}
		h.await(t, "there is load", func() bool { return good.Load() > 20 })
		_ = nodes[0].Process.Signal(syscall.SIGKILL)
		_ = nodes[0].Wait()
		h.await(t, "the first call fails or the home is back", func() bool { return listNotebooks(t.Context(), far) == nil })
		before := good.Load()
		h.await(t, "reads go on", func() bool { return good.Load() > before+20 })
		stop()
		load.Wait()
		t.Logf("%d reads answered, %d refused while the home moved", good.Load(), bad.Load())
	})
}
