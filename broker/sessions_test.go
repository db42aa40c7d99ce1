package broker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/broker/mcpserver"
	"siyuan-broker/broker/relay"
	"siyuan-broker/tenants"
)

// startNeighbour is a node without homes that takes what the function says.
func startNeighbour(t *testing.T, id, redisURL string, take func(ctx context.Context, tenant, subject string, body []byte) bool) *ensemble {
	t.Helper()
	tunnel, err := relay.New(relay.Config{Node: id, Audiences: []string{"siyuan-tunnel:test"}, Directory: &shelf{}, Timing: relay.DefaultTiming()})
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEnsemble(ensembleOptions{Node: id, RedisURL: redisURL, PeerListen: freeAddr(t), MasterKey: bytes.Repeat([]byte{7}, 32),
		MaxResult: 8 << 20, Hub: tunnel.Hub(), Log: slog.New(slog.DiscardHandler), Take: take})
	if err != nil {
		t.Fatal(err)
	}
	serve, err := e.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		e.stop(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestAMessageFindsTheNodeThatWaitsForIt(t *testing.T) {
	t.Parallel()
	redis := redistest.New(t)
	tenant := tenants.NewID()
	never := func(context.Context, string, string, []byte) bool { return false }
	first := startNeighbour(t, "n1", redis.URL, func(context.Context, string, string, []byte) bool {
		t.Error("a node offered a message to itself")
		return true
	})
	startNeighbour(t, "n2", redis.URL, never)
	startNeighbour(t, "n3", redis.URL, func(_ context.Context, of, session string, message []byte) bool {
		return of == tenant.String() && session == "mine" && string(message) == `{"id":"q-1"}`
	})
	deadline := time.Now().Add(10 * time.Second)
	for len(first.net.Nodes()) < 3 {
		if time.Now().After(deadline) {
			t.Fatalf("n1 knows only %v", first.net.Nodes())
		}
		time.Sleep(time.Millisecond)
	}
	peers := first.peers()
	for d, want := range map[*mcpserver.Directed]bool{
		{Tenant: tenant, Session: "mine", Message: []byte(`{"id":"q-1"}`)}:            true,
		{Tenant: tenant, Session: "other", Message: []byte(`{"id":"q-1"}`)}:           false,
		{Tenant: tenants.NewID(), Session: "mine", Message: []byte(`{"id":"q-1"}`)}:   false,
		{Tenant: tenant, Session: "mine", Message: []byte(`{"id":"nobody's"}`)}:       false,
		{Tenant: tenant, Session: "mine", Message: []byte(`{"id":"q-1","big":true}`)}: false,
	} {
		if taken, err := peers.Deliver(t.Context(), *d); err != nil || taken != want {
			t.Errorf("%s %s: %v, %v", d.Session, d.Message, taken, err)
		}
	}
}

// crowd are the other nodes, each with what it says to an offer.
type crowd map[string]func(ctx context.Context) (bool, error)

func (c crowd) Nodes() (all []cluster.Node) {
	for id := range c {
		all = append(all, cluster.Node{ID: id})
	}
	return append(all, cluster.Node{ID: "self"})
}

func (c crowd) Offer(ctx context.Context, to cluster.Node, _, _ string, _ []byte) (bool, error) {
	return c[to.ID](ctx)
}

func TestAMessageIsRefusedOnlyByAllNodes(t *testing.T) {
	t.Parallel()
	yes := func(context.Context) (bool, error) { return true, nil }
	no := func(context.Context) (bool, error) { return false, nil }
	down := func(context.Context) (bool, error) { return false, cluster.ErrUnreachable }
	hangs := func(ctx context.Context) (bool, error) {
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
			t.Error("the others were waited for after one had taken the message")
		}
		return false, ctx.Err()
	}
	for name, x := range map[string]struct {
		crowd crowd
		taken bool
		err   error
	}{
		"alone":                   {crowd{}, false, nil},
		"nobody has it":           {crowd{"a": no, "b": no}, false, nil},
		"one has it":              {crowd{"a": no, "b": yes}, true, nil},
		"one has it, one is down": {crowd{"a": down, "b": yes}, true, nil},
		"one has it, one hangs":   {crowd{"a": hangs, "b": yes}, true, nil},
		"the one may be down":     {crowd{"a": no, "b": down}, false, cluster.ErrUnreachable},
	} {
		o := &offers{self: "self", nodes: x.crowd, link: x.crowd, slots: make(chan struct{}, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if taken, err := o.Deliver(ctx, mcpserver.Directed{}); taken != x.taken || !errors.Is(err, x.err) {
			t.Errorf("%s: %v, %v", name, taken, err)
		}
		if len(o.slots) != 0 {
			t.Errorf("%s: a slot is still taken", name)
		}
	}
	full := &offers{self: "self", nodes: crowd{"a": yes}, link: crowd{"a": yes}, slots: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if taken, err := full.Deliver(ctx, mcpserver.Directed{}); taken || !errors.Is(err, context.Canceled) {
		t.Errorf("with too many on offer: %v, %v", taken, err)
	}
}

func TestASingleNodeOffersNothing(t *testing.T) {
	t.Parallel()
	e, err := newEnsemble(ensembleOptions{Node: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if p := e.peers(); p != nil {
		t.Errorf("%v", p)
	}
}

// endings is the part of the store that endedSessions needs.
type endings struct {
	tenants.Store
	list []tenants.EndedSession
	err  error
}

func (s *endings) EndSession(_ context.Context, e tenants.EndedSession) error {
	if s.err != nil {
		return s.err
	}
	e.Seq = int64(10 * (len(s.list) + 1)) // with gaps, as real ones have
	s.list = append(s.list, e)
	return nil
}

func (s *endings) EndedSessions(_ context.Context, after int64, limit int) (page []tenants.EndedSession, err error) {
	for _, e := range s.list {
		if e.Seq > after && len(page) < limit {
			page = append(page, e)
		}
	}
	return page, s.err
}

func TestTheListOfEndedSessionsIsTheStores(t *testing.T) {
	t.Parallel()
	store, net := &endings{}, cluster.NewMemory(nil).Node("n1", "")
	net.Start(t.Context())
	defer net.Stop()
	told := make(chan cluster.Event, 8)
	defer net.Subscribe(func(e cluster.Event) { told <- e }, cluster.SessionEnded)()
	list := endedSessions{store, net, slog.New(slog.DiscardHandler)}
	var want []mcpserver.Ended
	for range 3 {
		e := mcpserver.Ended{Tenant: tenants.NewID(), Agent: tenants.NewID(), Session: uuid.UUID(tenants.NewID()), Expires: time.Unix(2e9, 0).UTC()}
		want = append(want, e)
		if err := list.End(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if ev := <-told; ev.Tenant != e.Tenant.String() || ev.Subject != e.Session.String() {
			t.Errorf("told %+v", ev)
		}
	}
	var got []mcpserver.Ended
	cursor, pages := "", 0
	for ; ; pages++ {
		page, next, err := list.After(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got, cursor = append(got, page...), next; len(page) == 0 {
			break
		}
	}
	if !slices.Equal(got, want) || pages != 2 || cursor != strconv.Itoa(30) {
		t.Errorf("got %v in %d pages up to %s", got, pages, cursor)
	}
	if _, _, err := list.After(t.Context(), "x", 2); err == nil {
		t.Error("a cursor that is none was accepted")
	}
	store.err = errors.New("away")
	if err := list.End(t.Context(), want[0]); !errors.Is(err, store.err) {
		t.Errorf("%v", err)
	}
	if len(told) != 0 {
		t.Error("nodes were told of an end that is not in the list")
	}
}

func TestAnEventThatCannotBeReadEndsNothing(t *testing.T) {
	t.Parallel()
	b := &Broker{log: slog.New(slog.DiscardHandler)} // without a server that could end anything
	id := tenants.NewID().String()
	for _, ev := range []cluster.Event{
		{Kind: cluster.Lost},
		{Kind: cluster.SessionEnded, Node: "n2", Tenant: "x", Subject: id, Data: []byte(`{}`)},
		{Kind: cluster.SessionEnded, Node: "n2", Tenant: id, Subject: "x", Data: []byte(`{}`)},
		{Kind: cluster.SessionEnded, Node: "n2", Tenant: id, Subject: id},
		{Kind: cluster.SessionEnded, Node: "n2", Tenant: id, Subject: id, Data: []byte(`{"agent":"x"}`)},
	} {
		b.sessionEnded(ev)
	}
}
