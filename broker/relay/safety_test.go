package relay

import (
	"context"
	"encoding/json"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// A connector that does not know validated writes would do them at once.
func TestAConnectorWithoutValidatedWritesNeverGetsOne(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]contract.Safety{"validateOnly": {ValidateOnly: true}, "a hash": {Expect: "1234"}} {
		for _, knows := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newFakeDirectory(t)
				s, addr := startServer(t, d, nil)
				f := dialFake(t, d, addr)
				f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil), Safety: knows})
				f.start()
				online(t, s, 1)
				answer := make(chan contract.Result, 1)
				go func() {
					answer <- s.Hub().Call(context.Background(), "tenant-1", "home", contract.Call{Grant: &contract.Grant{}, Safety: asked, Args: json.RawMessage(`{}`)}, asked.ValidateOnly, nil)
				}()
				if knows {
					st, call := f.accept()
					if call.Safety != asked {
						t.Errorf("the home was asked %+v", call.Safety)
					}
					write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
				}
				got := receive(t, answer)
				if refused := got.Err != nil && contract.CodeOf(got.Err) == contract.Unsupported; refused == knows || refused && got.Err.Hint == "" {
					t.Errorf("knows=%t: %s %v", knows, got.Body, got.Err)
				}
			})
		}
	}
}
