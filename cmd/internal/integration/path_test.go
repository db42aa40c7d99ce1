package integration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

type notebooks struct {
	Notebooks []struct{ ID, Name, Level string }
}

func (n notebooks) names() []string {
	var names []string
	for _, x := range n.Notebooks {
		names = append(names, x.Name)
	}
	return names
}

// allow switches workspace actions on, so that an owner's agent may create
// notebooks.
func (x *tenant) allow() {
	x.change(func(tx tenants.Tx) error {
		return tx.SetSwitch(x.w.t.Context(), x.instance, contract.SwitchWorkspace, true)
	})
}

// N01, N02, N06: everything that can be equal is equal, and nothing crosses.
func TestTwoTenantsWithEqualIDsNeverMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	instance, agent := tenants.NewID(), tenants.NewID()
	var sessions []interface {
		Close() error
	}
	var made []string
	for _, name := range []string{"Ada", "Ben"} {
		x := w.tenant(name, instance)
		x.allow()
		x.home(nil)
		_, token := x.agentToken(agent, contract.ReadWriteDelete)
		s := w.agent(token, "")
		sessions = append(sessions, s)
		type created struct{ Notebook struct{ ID string } }
		made = append(made, into[created](t, s, "notebook", map[string]any{"action": "create", "name": "of " + name}).Notebook.ID)
		if got := into[notebooks](t, s, "notebook", map[string]any{"action": "list"}).names(); !slices.Equal(got, []string{"of " + name}) {
			t.Errorf("%s sees %v", name, got)
		}
	}
	if made[0][14:] != made[1][14:] {
		t.Logf("notebook ids differ (%s, %s): the collision of notebooks was not tested", made[0], made[1])
	}
	_ = sessions
}

func TestRevokingAnAgentEndsItWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.home(nil)
	agent, token := x.agentToken(tenants.NewID(), contract.Read)
	legacy := w.agent(token, "2025-11-25") // has a GET stream open
	if a := call(t.Context(), legacy, "notebook", map[string]any{"action": "list"}); a.err != nil || a.code != "" {
		t.Fatalf("before: %+v", a)
	}
	x.change(func(tx tenants.Tx) error { return tx.RevokeAgent(t.Context(), agent) })
	within(t, 2*time.Second, "the token is refused", func() bool {
		resp, _ := w.post(token, nil, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		return resp.StatusCode == http.StatusUnauthorized
	})
	resp, _ := w.post(token, nil, `{}`)
	if h := resp.Header.Get("WWW-Authenticate"); !strings.Contains(h, `error="invalid_token"`) || !strings.Contains(h, "resource_metadata=") {
		t.Errorf("WWW-Authenticate is %q", h)
	}
	if a := call(t.Context(), legacy, "notebook", map[string]any{"action": "list"}); a.err == nil {
		t.Errorf("the old session still answers: %+v", a)
	}
}

func TestRevokingAConnectorCutsItsTunnelWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	h := x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.Read)
	s := w.agent(token, "")
	x.change(func(tx tenants.Tx) error { return tx.RevokeConnector(t.Context(), h.connector) })
	select {
	case err := <-h.ended:
		if !errors.Is(err, connector.ErrRevoked) {
			t.Errorf("the connector ended with %v", err)
		}
	case <-time.After(pushed):
		t.Fatalf("the connector is still connected after %s", pushed)
	}
	if a := call(t.Context(), s, "notebook", map[string]any{"action": "list"}); a.code != contract.ConnectorOffline {
		t.Errorf("a call is answered %+v", a)
	}
}

func TestAChangeOfLevelsIsFeltWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allow()
	x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := w.agent(token, "")
	type created struct{ Notebook struct{ ID string } }
	nb := into[created](t, s, "notebook", map[string]any{"action": "create", "name": "diary"}).Notebook.ID
	create := map[string]any{"action": "create", "notebook": nb, "path": "/day", "markdown": "text"}
	type doc struct{ ID string }
	id := into[doc](t, s, "document", create).ID

	set := func(l contract.Level) {
		x.change(func(tx tenants.Tx) error { return tx.SetLevel(t.Context(), x.instance, nb, l) })
	}
	set(contract.Read)
	within(t, 2*time.Second, "writing is refused", func() bool {
		return call(t.Context(), s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/next"}).code == contract.PermissionDenied
	})
	set(contract.None)
	within(t, 2*time.Second, "the notebook is gone", func() bool {
		return call(t.Context(), s, "document", map[string]any{"action": "get_doc", "id": id}).code == contract.NotFound
	})
	if got := into[notebooks](t, s, "notebook", map[string]any{"action": "list"}).names(); len(got) != 0 {
		t.Errorf("still listed: %v", got)
	}
}

func TestAHomeThatIsAwayIsSaidSoAtOnceAndRecovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	_, token := x.agentToken(tenants.NewID(), contract.Read)
	s := w.agent(token, "")
	list := map[string]any{"action": "list"}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if a := call(ctx, s, "notebook", list); a.code != contract.ConnectorOffline {
		t.Errorf("without a connector: %+v", a)
	}
	h := x.home(nil)
	if a := call(t.Context(), s, "notebook", list); a.code != "" || a.err != nil {
		t.Errorf("with a connector: %+v", a)
	}
	h.server.CloseClientConnections()
	h.server.Close()
	eventually(t, "SiYuan is said to be offline", func() bool {
		return call(t.Context(), s, "notebook", list).code == contract.SiYuanOffline
	})
	must(t, h.stop())
	eventually(t, "the connector is said to be offline", func() bool {
		return call(t.Context(), s, "notebook", list).code == contract.ConnectorOffline
	})
	a := call(t.Context(), s, "notebook", list)
	if !strings.Contains(a.body, "last_seen") {
		t.Errorf("no word about when it was last here: %s", a.body)
	}
}

// M27: what the client gives up is given up at home too.
func TestCancellingACallReachesTheKernelRequestInBothEras(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			x := w.tenant("Ada", tenants.NewID())
			entered, left := make(chan struct{}, 1), make(chan struct{}, 1)
			x.home(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/api/search/fullTextSearchBlock" {
						next.ServeHTTP(rw, r)
						return
					}
					buf := make([]byte, 1<<16)
					for {
						if _, err := r.Body.Read(buf); err != nil {
							break // the body must be read for the server to notice that the client left
						}
					}
					entered <- struct{}{}
					<-r.Context().Done()
					left <- struct{}{}
				})
			})
			x.allow()
			_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
			s := w.agent(token, era)
			// Without a readable notebook there is nothing to search.
			into[struct{}](t, s, "notebook", map[string]any{"action": "create", "name": "n"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan answer, 1)
			go func() { done <- call(ctx, s, "search", map[string]any{"action": "fulltext", "query": "x"}) }()
			select {
			case <-entered:
			case a := <-done:
				t.Fatalf("the search ended early: %+v", a)
			}
			cancel()
			select {
			case <-left:
			case <-time.After(5 * time.Second):
				t.Error("the kernel request goes on")
			}
			if a := <-done; a.err == nil {
				t.Errorf("the cancelled call answered %+v", a)
			}
		})
	}
}

func TestCallsAreRecordedWithoutContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	x.allow()
	x.home(nil)
	agent, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := w.agent(token, "")
	const secret = "quetzalcoatl"
	type created struct{ Notebook struct{ ID string } }
	nb := into[created](t, s, "notebook", map[string]any{"action": "create", "name": secret}).Notebook.ID
	type doc struct{ ID string }
	into[doc](t, s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/" + secret, "markdown": secret})
	call(t.Context(), s, "search", map[string]any{"action": "fulltext", "query": secret})
	call(t.Context(), s, "block", map[string]any{"action": "get_kramdown", "id": "20240199000000-missing"})

	var calls []tenants.Call
	eventually(t, "four calls are recorded", func() bool {
		x.change(func(tx tenants.Tx) (err error) {
			calls, err = tx.Calls(t.Context(), tenants.CallFilter{})
			return err
		})
		return len(calls) == 4
	})
	slices.SortFunc(calls, func(a, b tenants.Call) int { return a.StartedAt.Compare(b.StartedAt) })
	var got []string
	for _, c := range calls {
		got = append(got, c.Tool+"."+c.Action+" "+string(c.Outcome)+" "+c.ErrorType)
		if c.AgentID != agent || c.MemberID != x.owner || c.InstanceID != x.instance || c.Legs.Total <= 0 || c.BytesOut <= 0 {
			t.Errorf("record is incomplete: %+v", c)
		}
	}
	want := []string{"notebook.create ok ", "document.create ok ", "search.fulltext ok ", "block.get_kramdown error not_found"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if calls[1].NotebookID != nb || calls[1].Legs.Kernel <= 0 {
		t.Errorf("document.create is recorded in notebook %q with %v in SiYuan", calls[1].NotebookID, calls[1].Legs.Kernel)
	}
	if strings.Contains(w.log.String(), secret) {
		t.Errorf("note text is in the log")
	}
	if strings.Contains(w.log.String(), "kernel-token") || strings.Contains(w.log.String(), token) {
		t.Errorf("a credential is in the log")
	}
}

func TestOperatorsAndConnectorsFindTheirEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]string{
		"/healthz":                                  `{"status":"ok"}`,
		"/readyz":                                   `{"database":"ok","revocations":"ok"}`,
		"/.well-known/siyuan-broker":                "ws://" + strings.TrimPrefix(w.url, "http://") + "/tunnel",
		"/.well-known/oauth-protected-resource":     `"resource":"` + w.url + `/mcp"`,
		"/.well-known/oauth-protected-resource/mcp": `"resource":"` + w.url + `/mcp"`,
		"/oauth/jwks":                               `"crv":"Ed25519"`,
		"/":                                         w.url + "/mcp",
		"/nowhere":                                  `"type":"not_found"`,
	} {
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: transport}).Get(w.url + path)
		must(t, err)
		var b strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				break
			}
		}
		_ = resp.Body.Close()
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s answers %d %s, want %s in it", path, resp.StatusCode, b.String(), want)
		}
	}
}
