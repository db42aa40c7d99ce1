package main_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/connector/siyuan/samplekernel"
)

// steps is a stepper before a kernel that answers code 0 once let through.
func steps(t *testing.T, enter chan<- struct{}, through <-chan struct{}) (s *stepper, ask func() error) {
	t.Helper()
	writes, err := samplekernel.New(samplekernel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writes.Close() })
	kernel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if enter != nil {
			enter <- struct{}{}
			<-through
		}
		_, _ = w.Write([]byte(`{"code":0}`))
	}))
	t.Cleanup(kernel.Close)
	s = &stepper{kernel: strings.TrimPrefix(kernel.URL, "http://"), writes: writes.Faults()}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, func() error {
		resp, err := http.Post(front.URL+"/api/block/appendBlock", "application/json", strings.NewReader("{}"))
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
}

// A busy machine: the caller gives up before the call comes to its moment. What
// would be killed then, nobody would start again.
func TestNothingHappensAfterACallWasGivenUp(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		s, ask := steps(t, nil, nil)
		var blows atomic.Int32
		s.arm(moment{n: 2, after: after, happen: func() { blows.Add(1) }, lose: true})
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		writes, struck := s.disarm()
		if struck || writes["block/appendBlock"] != 1 {
			t.Errorf("after=%t: struck %t, writes %v", after, struck, writes)
		}
		if err := ask(); err != nil || blows.Load() != 0 {
			t.Errorf("after=%t: the second request: %v, %d blows", after, err, blows.Load())
		}
	}
}

// The caller gives up while the kernel is at work on the very request: the blow
// falls all the same, and is known before things are put right.
func TestABlowThatIsAboutToFallIsWaitedFor(t *testing.T) {
	t.Parallel()
	enter, through := make(chan struct{}), make(chan struct{})
	s, ask := steps(t, enter, through)
	var blows atomic.Int32
	s.arm(moment{n: 1, after: true, happen: func() { blows.Add(1) }, lose: true})
	asked := make(chan error, 1)
	go func() { asked <- ask() }()
	<-enter
	seen := make(chan int32, 1)
	go func() {
		if _, struck := s.disarm(); !struck {
			t.Error("it is said not to have happened")
		}
		seen <- blows.Load()
	}()
	close(through)
	if err := <-asked; err == nil {
		t.Error("the answer was not lost")
	}
	if n := <-seen; n != 1 {
		t.Errorf("%d blows had fallen when it was told", n)
	}
	if _, writes := s.seen(); writes["block/appendBlock"] != 1 {
		t.Errorf("writes in the end: %v", writes)
	}
}

// A kernel that is gone before it answers the request is not killed again.
func TestAMomentThatNeverComesIsSaid(t *testing.T) {
	t.Parallel()
	s, ask := steps(t, nil, nil)
	s.kernel = freeAddr(t)
	s.arm(moment{n: 1, after: true, happen: func() { t.Error("it happened") }})
	if err := ask(); err == nil {
		t.Error("an answer came from nowhere")
	}
	if _, struck := s.disarm(); struck {
		t.Error("it is said to have happened")
	}
}
