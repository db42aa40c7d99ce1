package peer

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/cluster"
)

// offered starts node n2, which takes what the function says, and returns n1's
// client.
func offered(t *testing.T, take func(ctx context.Context, tenant, subject string, body []byte) bool) (*Client, cluster.Node, cluster.Route) {
	t.Helper()
	o := options(t, "n2", masterKey)
	o.Take = take
	_, route := serve(t, &home{echo}, o)
	return client(t, options(t, "n1", masterKey)), cluster.Node{ID: route.Node, Address: route.Address}, route
}

func TestANodeTakesWhatIsForIt(t *testing.T) {
	t.Parallel()
	c, n2, home := offered(t, func(ctx context.Context, tenant, subject string, body []byte) bool {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
			t.Error("the other node may take longer than we wait")
		}
		return tenant == "t1" && subject == "s1" && string(body) == `{"a":"<1>"}`
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, x := range []struct {
		tenant, subject, body string
		want                  bool
	}{
		{"t1", "s1", `{"a":"<1>"}`, true},
		{"t2", "s1", `{"a":"<1>"}`, false},
		{"t1", "s2", `{"a":"<1>"}`, false},
		{"t1", "s1", `{}`, false},
		{"t1", "s1", `{"a":"<1>"}`, true},
	} {
		if taken, err := c.Offer(ctx, n2, x.tenant, x.subject, []byte(x.body)); err != nil || taken != x.want {
			t.Errorf("%+v: %v, %v", x, taken, err)
		}
	}
	if res, err := c.Call(ctx, home, aCall(`{"b":1}`), true, nil); err != nil || string(res.Body) != `{"b":1}` {
		t.Errorf("a call on the same link: %s, %v", res.Body, err)
	}
}

func TestANodeThatTakesNothingSaysNo(t *testing.T) {
	t.Parallel()
	c, n2, _ := offered(t, nil)
	if taken, err := c.Offer(t.Context(), n2, "t1", "s1", []byte(`{}`)); err != nil || taken {
		t.Errorf("%v, %v", taken, err)
	}
}

// A call is never taken for an offer, whatever names it has.
func TestACallIsNoOffer(t *testing.T) {
	t.Parallel()
	c, _, route := offered(t, func(context.Context, string, string, []byte) bool {
		t.Error("a call was offered")
		return true
	})
	call := aCall(`{"c":1}`)
	call.Server, call.Method = offerServer, offerMethod
	if res, err := c.Call(t.Context(), route, call, true, nil); err != nil || string(res.Body) != `{"c":1}` {
		t.Errorf("%s, %v", res.Body, err)
	}
}

func TestAnOfferThatWasNotHeardIsNoAnswer(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	c := client(t, options(t, "n1", masterKey))
	if _, err := c.Offer(t.Context(), cluster.Node{ID: "n3", Address: gone}, "t1", "s1", nil); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	c, n2, _ := offered(t, func(ctx context.Context, _, _ string, _ []byte) bool {
		<-ctx.Done()
		return false
	})
	if _, err := c.Offer(t.Context(), n2, "t1", "s1", []byte(strings.Repeat(" ", 9<<20))); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("too large: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Offer(ctx, n2, "t1", "s1", []byte(`{}`)); !errors.Is(err, cluster.ErrBroken) {
		t.Errorf("no answer: %v", err)
	}
}

func TestAStrangerOffersNothing(t *testing.T) {
	t.Parallel()
	_, n2, _ := offered(t, func(context.Context, string, string, []byte) bool {
		t.Error("a stranger was heard")
		return true
	})
	stranger := client(t, options(t, "n1", []byte(strings.Repeat("x", 32))))
	if taken, err := stranger.Offer(t.Context(), n2, "t1", "s1", nil); taken || !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("%v, %v", taken, err)
	}
}
