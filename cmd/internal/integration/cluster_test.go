package integration

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/broker/pairing"
	"siyuan-broker/connector"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// N09: a limit holds over all nodes.
func TestACallLimitHoldsOverAllNodes(t *testing.T) {
	t.Parallel()
	db, redis := pgtest.New(t), redistest.New(t)
	var nodes []*world
	for _, id := range []string{"node-1", "node-2", "node-3"} {
		nodes = append(nodes, newNode(t, db, id, func(c *broker.Config) {
			c.RedisURL, c.PeerListen, c.CallsPerMinute = redis.URL, freeAddr(t), 60
			if len(nodes) > 0 {
				c.PublicURLs = []string{nodes[0].url, "http://" + c.Listen}
			}
		}))
	}
	x := nodes[0].tenant("Ada", tenants.NewID())
	_, token := x.agentToken(tenants.NewID(), contract.Read)
	refused, passed := 0, 0
	for _, w := range nodes {
		s := w.agent(token, "")
		for range 60 { // no home is connected: what passes the limit says so
			switch a := call(t.Context(), s, "notebook", map[string]any{"action": "list"}); a.code {
			case contract.ConnectorOffline:
				passed++
			case contract.RateLimited:
				refused++
			default:
				t.Fatalf("%+v", a)
			}
		}
	}
	// A node that is slow to use what it took from the common limit may lose a few.
	if passed > 60 || passed < 50 {
		t.Errorf("%d of 180 calls passed and %d were refused, want 60 and 120", passed, refused)
	}
}

func TestEveryLimitNamesWhatIsUsedUp(t *testing.T) {
	t.Parallel()
	for want, set := range map[string]func(*broker.Config){
		"this agent on this tool": func(c *broker.Config) { c.ToolPerMinute = 2 },
		"this agent for":          func(c *broker.Config) { c.CallsPerMinute = 2 },
		"this tenant":             func(c *broker.Config) { c.TenantPerMinute = 2 },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newNode(t, pgtest.New(t), "node-1", set)
			x := w.tenant("Ada", tenants.NewID())
			_, token := x.agentToken(tenants.NewID(), contract.Read)
			s := w.agent(token, "")
			list := map[string]any{"action": "list"}
			for range 2 {
				if a := call(t.Context(), s, "notebook", list); a.code != contract.ConnectorOffline {
					t.Fatalf("%+v", a)
				}
			}
			if a := call(t.Context(), s, "notebook", list); a.code != contract.RateLimited || !strings.Contains(a.body, want) {
				t.Errorf("%+v", a)
			}
			// Another tool and another agent are limited by what they share only.
			find := map[string]any{"action": "fulltext", "query": "x"}
			if a := call(t.Context(), s, "search", find); (a.code == contract.ConnectorOffline) != (want == "this agent on this tool") {
				t.Errorf("another tool: %+v", a)
			}
			_, second := x.agentToken(tenants.NewID(), contract.Read)
			if a := call(t.Context(), w.agent(second, ""), "notebook", list); (a.code == contract.RateLimited) != (want == "this tenant") {
				t.Errorf("another agent: %+v", a)
			}
		})
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// A home connected to one node serves agents at the other.
func TestAnAgentAtAnotherNodeReachesTheHome(t *testing.T) {
	t.Parallel()
	db, redis := pgtest.New(t), redistest.New(t)
	var nodes []*world
	for _, id := range []string{"node-1", "node-2"} {
		nodes = append(nodes, newNode(t, db, id, func(c *broker.Config) {
			c.RedisURL, c.PeerListen = redis.URL, freeAddr(t)
			// Tokens are issued for the first URL, whichever node gets them.
			if len(nodes) > 0 {
				c.PublicURLs = []string{nodes[0].url, "http://" + c.Listen}
			}
		}))
	}
	x := nodes[0].tenant("Ada", tenants.NewID())
	x.allow()
	home := x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	far := nodes[1].agent(token, "")
	eventually(t, "the other node finds the home", func() bool {
		return call(t.Context(), far, "notebook", map[string]any{"action": "list"}).code == ""
	})
	into[map[string]any](t, far, "notebook", map[string]any{"action": "create", "name": "from afar"})
	if got := into[notebooks](t, nodes[0].agent(token, ""), "notebook", map[string]any{"action": "list"}).names(); !slices.Equal(got, []string{"from afar"}) {
		t.Errorf("the home's own node sees %v", got)
	}
	must(t, home.stop())
	eventually(t, "the other node says that the home is away", func() bool {
		return call(t.Context(), far, "notebook", map[string]any{"action": "list"}).code == contract.ConnectorOffline
	})
}

// A connector is taken back on a page that another node serves.
func TestRevokingInTheConsoleCutsAConnectorOnAnotherNode(t *testing.T) {
	t.Parallel()
	db, redis := pgtest.New(t), redistest.New(t)
	var nodes []*world
	for _, id := range []string{"node-1", "node-2"} {
		nodes = append(nodes, newNode(t, db, id, func(c *broker.Config) {
			c.RedisURL, c.PeerListen = redis.URL, freeAddr(t)
			if len(nodes) > 0 {
				c.PublicURLs = []string{nodes[0].url, "http://" + c.Listen}
			}
		}))
	}
	x := nodes[0].tenant("Ada", tenants.NewID())
	h := x.home(nil)
	far := *x
	far.w = nodes[1]
	p := far.person()
	_, page := p.do(http.MethodGet, far.w.url+pairing.ConnectorsPath, nil)
	m := hidden.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no form on the page of connectors:\n%s", page)
	}
	resp, body := p.do(http.MethodPost, far.w.url+pairing.ConnectorsPath+"/"+x.id.String()+"/"+h.connector.String()+"/revoke", url.Values{m[1]: {m[2]}})
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("revoke: %d\n%s", resp.StatusCode, body)
	}
	select {
	case err := <-h.ended:
		if !errors.Is(err, connector.ErrRevoked) {
			t.Errorf("the connector ended with %v", err)
		}
	case <-time.After(pushed):
		t.Fatalf("the connector is still connected after %s", pushed)
	}
}
