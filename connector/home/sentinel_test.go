package home

import (
	"net"
	"sync"
	"testing"
	"time"
)

func TestASentinelStandsUntilItsConnectionEnds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := post(t.Context(), (&net.Dialer{}).DialContext, l.Addr().String())
	there, err := l.Accept()
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	var many sync.WaitGroup
	for range 8 {
		many.Go(func() {
			for range 5 {
				if !s.stands() {
					t.Error("a sentinel fell while its connection was up")
				}
			}
		})
	}
	many.Wait()
	select {
	case <-s.ended():
		t.Fatal("asking ended the sentinel")
	default:
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(30 * time.Second); s.stands(); { // the end is on its way for a moment
		if time.Now().After(limit) {
			t.Fatal("a sentinel stands though its connection ended")
		}
	}
	<-s.ended()
	s.dismiss()
	if s.stands() {
		t.Error("a sentinel that was dismissed stands")
	}
}

func TestWithoutASentinelThereIsNothingToGoBy(t *testing.T) {
	t.Parallel()
	var none *sentinel
	if !none.stands() || none.ended() != nil {
		t.Error("no sentinel does not stand, or ends")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	if s := post(t.Context(), (&net.Dialer{}).DialContext, addr); s != nil {
		t.Error("a sentinel stands where nobody answers")
	}
}
