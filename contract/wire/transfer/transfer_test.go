package transfer

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// asked is a Caller whose other end is in the hands of the test.
type asked struct {
	*Caller
	conn     net.Conn
	r        *wire.Reader
	w        *wire.Writer
	released chan [2]bool // clean, cancel
	why      chan error
}

func ask(t *testing.T, size int64) *asked {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	_ = theirs.SetDeadline(time.Now().Add(10 * time.Second))
	l := wire.DefaultLimits()
	a := &asked{conn: theirs, r: wire.NewReader(theirs, l), w: wire.NewWriter(theirs, l), released: make(chan [2]bool, 1), why: make(chan error, 10)}
	a.Caller = Open(t.Context(), Opening{Conn: ours, Reader: wire.NewReader(ours, l), Writer: wire.NewWriter(ours, l), ID: 7, Size: size, Idle: time.Minute,
		Explain: func(err error) *contract.Error {
			a.why <- err
			return contract.Fail(contract.OutcomeUnknown, "broken")
		},
		Release: func(clean, cancel bool) { a.released <- [2]bool{clean, cancel} }})
	go a.Run()
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestOnlyACompleteBodyEndsWithEOF(t *testing.T) {
	t.Parallel()
	size := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		send func(a *asked)
		want bool
	}{
		"complete":           {func(a *asked) { _ = a.w.Write(wire.FrameEnd, wire.End{ID: 7, Bytes: 3}, nil) }, true},
		"the link broke":     {func(a *asked) { _ = a.conn.Close() }, false},
		"bytes are missing":  {func(a *asked) { _ = a.w.Write(wire.FrameEnd, wire.End{ID: 7, Bytes: 4}, nil) }, false},
		"another transfer's": {func(a *asked) { _ = a.w.Write(wire.FrameEnd, wire.End{ID: 8, Bytes: 3}, nil) }, false},
		"half a frame":       {func(a *asked) { _, _ = a.conn.Write([]byte{0, 0, 0, 9, 0x27, 0, 0, 0, 'x'}); _ = a.conn.Close() }, false},
		"a large piece":      {func(a *asked) { _ = a.w.Write(wire.FrameData, nil, make([]byte, wire.MaxData+1)) }, false},
		"a result":           {func(a *asked) { _ = a.w.Write(wire.FrameResult, wire.Result{ID: 7}, nil) }, false},
		"an empty error":     {func(a *asked) { _ = a.w.Write(wire.FrameError, wire.Error{ID: 7}, nil) }, false},
		"more than announced": {func(a *asked) {
			_ = a.w.Write(wire.FrameData, nil, make([]byte, 3)) // together 6 of 5
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, 0)
			go func() {
				var head any
				if name == "more than announced" {
					head = wire.Data{Size: size(5)}
				}
				_ = a.w.Write(wire.FrameData, head, []byte("abc"))
				c.send(a)
			}()
			got, err := io.ReadAll(a)
			if (err == nil) != c.want {
				t.Errorf("after %d bytes: %v", len(got), err)
			}
			var e *contract.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%v is none of the vocabulary", err)
			}
			if released := <-a.released; released[0] { // we have not ended
				t.Error("the stream would be used again")
			}
		})
	}
}

func TestACleanEndLeavesTheStreamForTheNextCall(t *testing.T) {
	t.Parallel()
	a := ask(t, 3)
	go func() {
		_, _ = a.Write([]byte("abc"))
		_ = a.CloseWrite()
	}()
	f, err := a.r.Next()
	if err != nil || f.Type != wire.FrameData || string(f.Body) != "abc" || len(f.Header) != 0 {
		t.Fatalf("%s %s %v", f.Type, f.Body, err)
	}
	var end wire.End
	if f, err = a.r.Next(); err != nil || f.Type != wire.FrameEnd || a.r.Decode(f, &end) != nil || end != (wire.End{ID: 7, Bytes: 3}) {
		t.Fatalf("%s %+v %v", f.Type, end, err)
	}
	go func() { _ = a.w.Write(wire.FrameEnd, wire.End{ID: 7}, nil) }()
	if got, err := io.ReadAll(a); len(got) != 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if released := <-a.released; released != [2]bool{true, false} {
		t.Errorf("clean and cancel are %v", released)
	}
	if _, err := a.Write([]byte("x")); err == nil {
		t.Error("written after the end")
	}
}

func TestGivingUpWakesWhoeverWaits(t *testing.T) {
	t.Parallel()
	a := ask(t, contract.UnknownSize)
	wrote := make(chan error, 1)
	go func() { // nobody reads at the other end
		_, err := a.Write(make([]byte, 1<<20))
		wrote <- err
	}()
	if _, err := a.conn.Read(make([]byte, 1)); err != nil { // it is under way
		t.Fatal(err)
	}
	_ = a.Close()
	if err := <-wrote; err == nil {
		t.Error("the write succeeded")
	}
	if why := <-a.why; !errors.Is(why, ErrClosed) {
		t.Errorf("explained %v", why)
	}
	if released := <-a.released; released != [2]bool{false, false} {
		t.Errorf("a CANCEL would follow half a frame: %v", released)
	}
}

func TestAHandlerThatIsStuckIsToldWhenNothingMoves(t *testing.T) {
	t.Parallel()
	sent := make(chan wire.Error, 1)
	s := Serve(t.Context(), Serving{ID: 1, Size: contract.UnknownSize, Idle: 20 * time.Millisecond,
		Send: func(_ wire.Type, header any, _ []byte) error { sent <- header.(wire.Error); return nil }})
	err := s.Run(func(ctx context.Context, in io.Reader, _ contract.BodyWriter) error {
		_, err := in.Read(make([]byte, 1))
		if !errors.Is(context.Cause(ctx), ErrIdle) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return err
	})
	if e := <-sent; err != nil || contract.CodeOf(e.Error) != contract.Timeout || e.ID != 1 {
		t.Errorf("sent %+v, %v", e, err)
	}
}

// A broker takes no word of a home about whether the home can be reached.
func TestAHomeThatStopsLeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var said wire.Error
	s := Serve(ctx, Serving{ID: 7, Idle: time.Hour, Send: func(_ wire.Type, header any, _ []byte) error {
		said, _ = header.(wire.Error)
		return nil
	}})
	err := s.Run(func(ctx context.Context, _ io.Reader, _ contract.BodyWriter) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil || said.ID != 7 || contract.CodeOf(said.Error) != contract.OutcomeUnknown {
		t.Errorf("said %+v, %v", said, err)
	}
}
