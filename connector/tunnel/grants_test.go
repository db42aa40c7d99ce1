package tunnel

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// whoseGrant answers with the member of the call's grant.
var whoseGrant = HandlerFunc(func(_ context.Context, c contract.Call, _ func(contract.Progress)) contract.Result {
	return contract.Result{Body: json.RawMessage(fmt.Sprintf("%q", c.Grant.Member))}
})

func TestACallMayNameAGrantThatCameBefore(t *testing.T) {
	t.Parallel()
	p, _, b := connected(t, whoseGrant, nil)
	c := p.open()
	ask := func(c *caller, h wire.Call, want string) {
		t.Helper()
		c.send(h, `{}`)
		if f := c.expect(wire.FrameResult, &wire.Result{}); string(f.Body) != want {
			t.Errorf("call %d ran with the grant of %s, want %s", h.ID, f.Body, want)
		}
	}
	ask(c, wire.Call{ID: 1, Grant: &contract.Grant{Member: "one"}, GrantDigest: "d1"}, `"one"`)
	ask(c, wire.Call{ID: 2, Grant: &contract.Grant{Member: "two"}, GrantDigest: "d2"}, `"two"`)
	ask(c, wire.Call{ID: 3, GrantDigest: "d1"}, `"one"`)
	ask(p.open(), wire.Call{ID: 1, GrantDigest: "d2"}, `"two"`) // on any stream of the session
	c.send(wire.Call{ID: 4, GrantDigest: "d3"}, `{}`)
	c.expect(wire.FrameGrantUnknown, &wire.GrantUnknown{})

	_ = p.mux.Close()
	other := b.session().open() // what one session was told, another does not know
	other.send(wire.Call{ID: 1, GrantDigest: "d1"}, `{}`)
	other.expect(wire.FrameGrantUnknown, &wire.GrantUnknown{})
}

func TestGrantsAreForgottenWhenThereAreTooMany(t *testing.T) {
	t.Parallel()
	var g grants
	keep := func(i, size int) {
		g.resolve(&wire.Call{Grant: &contract.Grant{}, GrantDigest: fmt.Sprint(i)}, size)
	}
	known := func(i int) bool { return g.resolve(&wire.Call{GrantDigest: fmt.Sprint(i)}, 0) }
	for i := range 2 * maxGrants {
		keep(i, 500)
	}
	kept := 0
	for i := range 2 * maxGrants {
		if known(i) {
			kept++
		}
	}
	if kept < maxGrants/2 || kept > maxGrants {
		t.Errorf("%d small grants are kept, want at most %d", kept, maxGrants)
	}
	const large = 200 << 10
	for i := range 100 {
		keep(1000+i, large)
	}
	kept = 0
	for i := range 100 {
		if known(1000 + i) {
			kept++
		}
	}
	if kept*large > maxGrantBytes || kept == 0 {
		t.Errorf("%d large grants are kept", kept)
	}
	if !g.resolve(&wire.Call{Grant: &contract.Grant{}}, 0) || g.resolve(&wire.Call{}, 0) {
		t.Error("a call without a digest counts by its grant")
	}
}
