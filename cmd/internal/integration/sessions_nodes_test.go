package integration

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// neighbours starts two nodes with one public URL that know each other.
func neighbours(t *testing.T, db pgtest.DB, redisURL, publicURL string) (one, two *node) {
	t.Helper()
	shared := func(c *broker.Config) { c.RedisURL, c.PeerListen = redisURL, freeAddr(t) }
	if redisURL == "" { // they have the database in common and nothing else
		shared = func(*broker.Config) {}
	}
	one = startNode(t, db, "node-1", publicURL, shared)
	if publicURL == "" {
		publicURL = one.url
	}
	return one, startNode(t, db, "node-2", publicURL, shared)
}

// status is what a session answers to a call, or to another message.
func (w *world) status(token, session, body string) int {
	w.t.Helper()
	resp, _ := w.post(token, inSession(session), body)
	return resp.StatusCode
}

func TestASessionThatEndedOnOneNodeHasEndedOnAllForGood(t *testing.T) {
	t.Parallel()
	for name, redisURL := range map[string]string{"told at once": redistest.New(t).URL, "read from the database": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			one, two := neighbours(t, db, redisURL, "")
			public := one.url
			_, token := one.tenant("Ada", tenants.NewID()).agentToken(tenants.NewID(), contract.Read)
			ended, kept := one.session(token), one.session(token)
			for _, n := range []*node{one, two} {
				if got := n.status(token, ended, listCall); got != http.StatusOK {
					t.Fatalf("before: %d", got)
				}
			}
			one.endSession(token, ended)
			if got := one.status(token, ended, listCall); got != http.StatusNotFound {
				t.Errorf("where it ended: %d", got)
			}
			within(t, 2*time.Second, "the other node knows", func() bool {
				return two.status(token, ended, listCall) == http.StatusNotFound
			})
			one.stop()
			two.stop()
			one, two = neighbours(t, db, redisURL, public)
			for _, n := range []*node{one, two} {
				if got := n.status(token, ended, listCall); got != http.StatusNotFound {
					t.Errorf("after a restart: %d", got)
				}
				if got := n.status(token, kept, listCall); got != http.StatusOK {
					t.Errorf("the other session after a restart: %d", got)
				}
			}
		})
	}
}

// A cancelling goes the way an answer to a question goes: to the node whose call
// it is for.
func TestACallIsCancelledThroughAnotherNode(t *testing.T) {
	t.Parallel()
	one, two := neighbours(t, pgtest.New(t), redistest.New(t).URL, "")
	x := one.tenant("Ada", tenants.NewID())
	var hold atomic.Bool
	ended := make(chan struct{}, 16)
	x.home(func(kernel http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hold.Load() && strings.HasSuffix(r.URL.Path, "/lsNotebooks") {
				_, _ = io.Copy(io.Discard, r.Body) // before that a server does not notice that its client is gone
				select {
				case <-r.Context().Done():
					ended <- struct{}{}
				case <-t.Context().Done():
				}
				return
			}
			kernel.ServeHTTP(w, r)
		})
	})
	_, token := x.agentToken(tenants.NewID(), contract.Read)
	id := one.session(token)
	if got := two.status(token, id, listCall); got != http.StatusOK { // the session lives on both
		t.Fatal(got)
	}
	hold.Store(true)
	answered := make(chan string, 1)
	go func() {
		_, body := one.post(token, inSession(id), strings.Replace(listCall, `"id":2`, `"id":77`, 1))
		answered <- body
	}()
	cancelling := func(n *node, call string) int {
		return n.status(token, id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+call+`}}`)
	}
	within(t, 5*time.Second, "the call ends at home", func() bool {
		if got := cancelling(two, "77"); got != http.StatusAccepted { // too early or too late is no error where the session lives
			t.Errorf("cancelling: %d", got)
		}
		return len(ended) > 0
	})
	select {
	case <-answered:
	case <-time.After(5 * time.Second):
		t.Error("the call goes on")
	}
}

func TestAnAnswerNobodyWaitsForIsRefusedOnEveryNode(t *testing.T) {
	t.Parallel()
	one, two := neighbours(t, pgtest.New(t), redistest.New(t).URL, "")
	_, token := one.tenant("Ada", tenants.NewID()).agentToken(tenants.NewID(), contract.Read)
	id := one.session(token) // on the first node only
	cancelling := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
	for name, n := range map[string]*node{"its node": one, "the other": two} {
		for _, answer := range []string{
			`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":"ABC-1","result":{"action":"accept"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`,
		} {
			if got := n.status(token, id, answer); got != http.StatusNotFound {
				t.Errorf("%s, %s: %d", name, answer, got)
			}
		}
	}
	if got := two.status(token, id, cancelling); got != http.StatusNotFound {
		t.Errorf("cancelling nothing where the session is not: %d", got)
	}
	if got := one.status(token, id, cancelling); got != http.StatusAccepted {
		t.Errorf("cancelling too late: %d", got)
	}
}
