package relay

import (
	"context"
	"encoding/json"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// sampleGrant and its digest, which was computed with sha256sum over the
// canonical bytes written out by hand.
func sampleGrant() (*contract.Grant, string) {
	return &contract.Grant{}, "ddba580b1ef8083fff83d69d5ef00bddb75b155565cd5bd21b1f52f13e739524"
}

// remembering connects a home that keeps n grants.
func remembering(t *testing.T, n int) (*Server, *fake) {
	t.Helper()
	d := newFakeDirectory(t)
	s, addr := startServer(t, d, nil)
	f := dialFake(t, d, addr)
	f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", nil), Grants: n})
	f.start()
	online(t, s, 1)
	return s, f
}

func callWith(s *Server, g *contract.Grant) <-chan contract.Result {
	answer := make(chan contract.Result, 1)
	go func() {
		answer <- s.Hub().Call(context.Background(), "tenant-1", "home", contract.Call{Grant: g, Args: json.RawMessage(`{}`)}, false, nil)
	}()
	return answer
}

func TestAGrantGoesOnceAndIsNamedAfterwards(t *testing.T) {
	t.Parallel()
	s, f := remembering(t, 8)
	g, digest := sampleGrant()
	answer := callWith(s, g)
	st, call := f.accept()
	if call.Grant == nil || call.GrantDigest != digest {
		t.Errorf("first: grant %v, digest %q", call.Grant, call.GrantDigest)
	}
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
	receive(t, answer)
	for _, same := range []*contract.Grant{g, {}} { // an equal one of another address too
		answer = callWith(s, same)
		call = f.next(st)
		if call.Grant != nil || call.GrantDigest != digest {
			t.Errorf("afterwards: grant %v, digest %q", call.Grant, call.GrantDigest)
		}
		write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
		if res := receive(t, answer); res.Err != nil {
			t.Error(res.Err)
		}
	}
}

func TestAForgottenGrantIsSentAgainOnTheSameStream(t *testing.T) {
	t.Parallel()
	s, f := remembering(t, 8)
	g, digest := sampleGrant()
	answer := callWith(s, g)
	st, call := f.accept()
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
	receive(t, answer)

	answer = callWith(s, g)
	named := f.next(st)
	write(st, wire.FrameGrantUnknown, wire.GrantUnknown{ID: named.ID, Digest: digest}, "")
	whole := f.next(st)
	if named.Grant != nil || whole.Grant == nil || whole.ID != named.ID+1 || whole.GrantDigest != digest {
		t.Errorf("named %+v, again %+v", named, whole)
	}
	write(st, wire.FrameResult, wire.Result{ID: whole.ID}, `"once"`)
	if res := receive(t, answer); string(res.Body) != `"once"` {
		t.Errorf("%s %v", res.Body, res.Err)
	}
	answer = callWith(s, g)
	if call = f.next(st); call.Grant != nil {
		t.Error("the grant was not remembered again")
	}
	write(st, wire.FrameGrantUnknown, wire.GrantUnknown{ID: call.ID, Digest: digest}, "")
	call = f.next(st)
	write(st, wire.FrameGrantUnknown, wire.GrantUnknown{ID: call.ID, Digest: digest}, "") // to a whole one
	if code := contract.CodeOf(receive(t, answer).Err); code != contract.OutcomeUnknown {
		t.Errorf("code is %s", code)
	}
	await(t, s, "the liar is gone", func(st Stats) bool { return st.ProtocolErrors == 1 && st.Sessions == 0 })
}

func TestAHomeThatKeepsNoGrantsGetsThemWhole(t *testing.T) {
	t.Parallel()
	s, f := remembering(t, 0)
	g, _ := sampleGrant()
	answer := callWith(s, g)
	st, call := f.accept()
	for range 2 {
		if call.Grant == nil || call.GrantDigest != "" {
			t.Errorf("grant %v, digest %q", call.Grant, call.GrantDigest)
		}
		write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
		receive(t, answer)
		answer = callWith(s, g)
		call = f.next(st)
	}
	write(st, wire.FrameResult, wire.Result{ID: call.ID}, `1`)
	receive(t, answer)
}

func TestNamingAKnownGrantComputesNothing(t *testing.T) {
	var g grants
	g.offer(8)
	grant, digest := sampleGrant()
	g.name(grant)
	g.has(digest)
	allocs := testing.AllocsPerRun(100, func() {
		if d, has := g.name(grant); d != digest || !has {
			t.Fatal(d, has)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per call", allocs)
	}
}
