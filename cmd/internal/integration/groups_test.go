package integration

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// M10: a client that goes by yesterday's list is refused by name, with the way out,
// and goes on when the action is back.
func TestM10AClientWithYesterdaysListIsToldWhatChanged(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	doc := x.doc(t)
	rename := func(title string) answer {
		return call(t.Context(), x.plain, "document", map[string]any{"action": "rename", "id": doc, "title": title})
	}
	if a := rename("One"); a.code != "" {
		t.Fatalf("before: %+v", a)
	}
	x.change(func(tx tenants.Tx) error {
		return tx.SetToggle(t.Context(), x.instance, tenants.Toggle{Tool: "document", Action: "rename", Enabled: false})
	})
	eventually(t, "the action is off", func() bool { return rename("One").code == contract.ActionDisabled })
	if a := rename("Two"); !strings.Contains(a.body, "document.rename is switched off") || !strings.Contains(a.body, `"hint":"`) {
		t.Errorf("%s", a.body)
	}
	x.on("document", "rename")
	eventually(t, "the action is on again, for the same client", func() bool { return rename("Three").code == "" })
}

// M23: SiYuan restarts under seven agents. All go on with the sessions they have,
// and the home connected once.
func TestM23SevenAgentsRecoverTogetherWhenSiYuanRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.tenant("Ada", tenants.NewID())
	var away atomic.Bool
	h := x.home(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if away.Load() {
				panic(http.ErrAbortHandler) // as a connection to a process that ended
			}
			next.ServeHTTP(rw, r)
		})
	})
	var agents []*mcp.ClientSession
	for i := range 7 {
		_, token := x.agentToken(tenants.NewID(), contract.Read)
		agents = append(agents, w.agent(token, eras[i%len(eras)]))
	}
	all := func(what string, code contract.Code) {
		t.Helper()
		var wg sync.WaitGroup
		for _, s := range agents {
			wg.Go(func() {
				eventually(t, what, func() bool { return call(t.Context(), s, "notebook", map[string]any{"action": "list"}).code == code })
			})
		}
		wg.Wait()
	}
	all("served", "")
	away.Store(true)
	all("told that SiYuan is away", contract.SiYuanOffline)
	away.Store(false)
	all("served again", "")
	x.change(func(tx tenants.Tx) error {
		c, err := tx.Connector(t.Context(), h.connector)
		if c.Epoch != 1 {
			t.Errorf("the home connected %d times", c.Epoch)
		}
		return err
	})
}
