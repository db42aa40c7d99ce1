package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/broker"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// node is one broker among several on one database. stop ends it and waits.
type node struct {
	*world
	stop func()
}

// startNode starts a broker that agents know by the given URL, its own if empty.
func startNode(t *testing.T, db pgtest.DB, id, publicURL string, change ...func(*broker.Config)) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	if publicURL == "" {
		publicURL = "http://" + addr
	}
	n := &node{world: &world{t: t, url: "http://" + addr, log: &syncBuffer{}}}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := broker.Config{
		Listen: addr, PublicURLs: []string{publicURL}, DatabaseURL: db.ServiceDSN, DatabaseRecord: db.RecorderDSN, DatabaseDirect: db.ListenDSN,
		MasterKey: base64.StdEncoding.EncodeToString(make([]byte, 32)), Data: t.TempDir(), NodeID: id,
		LogLevel: "debug", LogFormat: "text", CallTimeout: 20 * time.Second, ShutdownTimeout: 5 * time.Second,
		MaxRequestBytes: 4 << 20, MaxResultBytes: 8 << 20, HotLane: true,
	}
	for _, fn := range change {
		fn(&c)
	}
	must(t, c.Validate())
	n.db, err = broker.OpenDatabase(t.Context(), &c, log)
	must(t, err)
	n.b, err = broker.New(c, n.db, "test", log)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.b.Run(ctx) }()
	stopped := false
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("broker %s: %v", id, err)
		}
		if err := n.db.Close(context.Background()); err != nil {
			t.Errorf("close the database of %s: %v", id, err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", id, n.log)
		}
	}
	t.Cleanup(n.stop)
	select {
	case <-n.b.Ready():
	case err := <-ended:
		ended <- err
		t.Fatalf("broker ended: %v", err)
	}
	return n
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	listCall   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"notebook","arguments":{"action":"list"}}}`
)

func (w *world) session(token string) string {
	w.t.Helper()
	resp, body := w.post(token, nil, initialize)
	id := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != http.StatusOK || id == "" {
		w.t.Fatalf("initialize: %d %s", resp.StatusCode, body)
	}
	return id
}

func inSession(id string) map[string]string {
	return map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25"}
}

// M01 with everything real: after the broker is replaced, the agent neither
// signs in nor initializes again, and is told of changes.
func TestAnAgentGoesOnAfterTheBrokerIsReplaced(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first := startNode(t, db, "node-1", "")
	x := first.tenant("Ada", tenants.NewID())
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	id := first.session(token)
	if resp, body := first.post(token, inSession(id), listCall); resp.StatusCode != http.StatusOK {
		t.Fatalf("before: %d %s", resp.StatusCode, body)
	}
	public := first.url
	first.stop()

	second := startNode(t, db, "node-2", public)
	x.w = second.world
	resp, body := second.post(token, inSession(id), listCall)
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "connector_offline") {
		t.Fatalf("after: %d %s", resp.StatusCode, body)
	}
	stream := second.stream(token, id)
	x.change(func(tx tenants.Tx) error {
		agent, err := tx.Agents(t.Context(), tenants.AgentFilter{})
		if err != nil {
			return err
		}
		none := contract.None
		_, err = tx.UpdateAgent(t.Context(), agent[0].ID, tenants.AgentUpdate{Ceiling: &none})
		return err
	})
	told := make(chan bool, 1)
	go func() { told <- strings.Contains(stream(), "list_changed") }()
	select {
	case ok := <-told:
		if !ok {
			t.Error("the stream said something else")
		}
	case <-time.After(pushed):
		t.Errorf("the restored session was not told of the change within %s", pushed)
	}
	// An ended session is ended.
	second.endSession(token, id)
	if resp, _ := second.post(token, inSession(id), listCall); resp.StatusCode != http.StatusNotFound {
		t.Errorf("after DELETE: %d", resp.StatusCode)
	}
}

// endSession ends a session as its client does.
func (w *world) endSession(token, id string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodDelete, w.url+"/mcp", nil)
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Mcp-Session-Id", id)
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	must(w.t, err)
	must(w.t, resp.Body.Close())
	if resp.StatusCode != http.StatusNoContent {
		w.t.Errorf("DELETE: %d", resp.StatusCode)
	}
}

// stream opens a session's stream; the returned function waits for its next
// data.
func (w *world) stream(token, session string) (next func() string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/mcp", nil)
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range inSession(session) {
		req.Header.Set(k, v)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	must(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("GET: %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan() // the comment that opens the stream: from here on everything is told
	return func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
}

// M20 down to the table: both tenants find it in their audit logs.
func TestUsingSomebodyElsesSessionIsInTheAuditLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, ben := w.tenant("Ada", tenants.NewID()), w.tenant("Ben", tenants.NewID())
	_, hers := ada.agentToken(tenants.NewID(), contract.Read)
	benAgent, his := ben.agentToken(tenants.NewID(), contract.Read)
	id := w.session(hers)
	if resp, _ := w.post(his, inSession(id), listCall); resp.StatusCode != http.StatusNotFound {
		t.Errorf("Ben in Ada's session: %d", resp.StatusCode)
	}
	find := func(x *tenant) (found []tenants.AuditEntry) {
		x.change(func(tx tenants.Tx) error {
			all, err := tx.AuditLog(t.Context(), time.Time{}, 100)
			for _, e := range all {
				if e.Verb == "session.foreign" {
					found = append(found, e)
				}
			}
			return err
		})
		return found
	}
	eventually(t, "both logs have it", func() bool { return len(find(ada)) == 1 && len(find(ben)) == 1 })
	if e := find(ben)[0]; e.ActorKind != "agent" || e.ActorID != benAgent {
		t.Errorf("in Ben's log: %+v", e)
	}
	if e := find(ada)[0]; e.ActorKind != "system" || strings.Contains(string(e.Detail)+e.Object, ben.id.String()) || strings.Contains(string(e.Detail)+e.Object, benAgent.String()) {
		t.Errorf("Ada's log tells about Ben: %+v", e)
	}
	if resp, _ := w.post(hers, inSession(id), listCall); resp.StatusCode != http.StatusOK {
		t.Errorf("Ada: %d", resp.StatusCode)
	}
}

func TestTheLastUseOfAnAgentIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	id, token := x.agentToken(tenants.NewID(), contract.Read)
	used := func() (at time.Time) {
		x.change(func(tx tenants.Tx) error {
			a, err := tx.Agent(t.Context(), id)
			at = a.LastUsedAt
			return err
		})
		return at
	}
	if !used().IsZero() {
		t.Fatal("used before its first request")
	}
	w.session(token)
	eventually(t, "the use is noted", func() bool { return time.Since(used()) < time.Minute })
}

// A09 with what anybody can get from a running broker: its public keys, and
// tokens it made for something else.
func TestWhatABrokerPublishesForgesNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	_, token := x.agentToken(tenants.NewID(), contract.Read)
	resp, err := http.Get(w.url + "/oauth/jwks")
	must(t, err)
	jwks, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	var set struct{ Keys []struct{ Kid, X string } }
	must(t, json.Unmarshal(jwks, &set))
	if len(set.Keys) != 1 {
		t.Fatalf("%s: want the access key alone", jwks)
	}
	public, err := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
	must(t, err)

	claims := jwt.MapClaims{}
	_, _, err = jwt.NewParser().ParseUnverified(token, claims)
	must(t, err)
	forge := func(method jwt.SigningMethod, secret any) string {
		tok := jwt.NewWithClaims(method, claims)
		tok.Header["typ"], tok.Header["kid"] = "at+jwt", set.Keys[0].Kid
		raw, err := tok.SignedString(secret)
		must(t, err)
		return raw
	}
	for name, raw := range map[string]string{
		"none":                    forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"HS256 over the key":      forge(jwt.SigningMethodHS256, public),
		"HS512 over the key":      forge(jwt.SigningMethodHS512, public),
		"HS256 over x":            forge(jwt.SigningMethodHS256, []byte(set.Keys[0].X)),
		"HS256 over the document": forge(jwt.SigningMethodHS256, bytes.TrimSpace(jwks)),
	} {
		if resp, _ := w.post(raw, nil, initialize); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp, _ := w.post(strings.Repeat("A", 2<<20), nil, initialize); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("2 MiB of token: %d", resp.StatusCode)
	}
	if resp, _ := w.post(token, nil, initialize); resp.StatusCode != http.StatusOK {
		t.Errorf("the real one: %d", resp.StatusCode)
	}
}
