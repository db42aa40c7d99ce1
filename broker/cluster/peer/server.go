package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/transfer"
)

// Options are what a Server and a Client need. Node and Identity are required;
// zero values elsewhere mean the defaults.
type Options struct {
	Node     string // id of this node
	Identity *Identity
	Log      *slog.Logger
	Timing   Timing
	Limits   Limits
	Dial     func(ctx context.Context, address string) (net.Conn, error) // of a Client
	Now      func() time.Time
	// Take is asked by a Server what another node offers, see Client.Offer; nil
	// takes nothing. It answers within ctx.
	Take func(ctx context.Context, tenant, subject string, body []byte) bool
}

func (o *Options) complete() error {
	if o.Node == "" || o.Identity == nil {
		return errors.New("peer: Node and Identity are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Timing == (Timing{}) {
		o.Timing = DefaultTiming()
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Dial == nil {
		o.Dial = dialTCP
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// Server answers the other nodes' calls from this node's tunnels, and their
// offers.
type Server struct {
	o      Options
	local  cluster.Local
	tls    *tls.Config
	ctx    context.Context // ends the calls that Stop does not wait for
	cancel context.CancelFunc

	mu        sync.Mutex
	stopping  bool
	listeners []net.Listener
	conns     map[net.Conn]*yamux.Session // nil until multiplexed
	work      sync.WaitGroup              // connections
	calls     sync.WaitGroup              // running calls
}

// NewServer makes a Server over this node's tunnels.
func NewServer(local cluster.Local, o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Server{o: o, local: local, tls: o.Identity.config(), conns: map[net.Conn]*yamux.Session{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Serve accepts nodes until Stop, then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return ln.Close()
	}
	s.listeners = append(s.listeners, ln)
	s.mu.Unlock()
	for {
		conn, err := ln.Accept()
		if err != nil {
			s.mu.Lock()
			stopping := s.stopping
			s.mu.Unlock()
			if stopping {
				return nil
			}
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return fmt.Errorf("accept nodes: %w", err)
		}
		if !s.admit(conn) {
			_ = conn.Close()
		}
	}
}

// admit starts the goroutine of a connection, which Stop waits for. Twice the
// peers may connect, since a node that lost its link dials before we notice.
func (s *Server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || len(s.conns) >= 2*s.o.Limits.Peers {
		return false
	}
	s.conns[conn] = nil
	s.work.Go(func() {
		defer func() {
			_ = conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		}()
		if err := s.serve(conn); err != nil {
			s.o.Log.Warn("node not admitted", "remote", conn.RemoteAddr().String(), "error", err)
		}
	})
	return true
}

func (s *Server) serve(conn net.Conn) error {
	secure := tls.Server(conn, s.tls)
	if err := greet(s.ctx, secure, s.o.Node, s.o.Timing); err != nil {
		return err
	}
	mux, err := multiplex(secure, true, s.o.Timing, s.o.Log)
	if err != nil {
		return err
	}
	defer mux.Close()
	s.mu.Lock()
	s.conns[conn] = mux
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		return nil
	}
	slots := make(chan struct{}, 2*s.o.Limits.Calls) // streams that close count a little longer here than there
	var streams sync.WaitGroup
	defer streams.Wait()
	defer mux.Close() // before waiting
	for {
		st, err := mux.AcceptStream()
		if err != nil {
			return nil // the link ended
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = st.Close() // the other end keeps to the same limit
			continue
		}
		streams.Go(func() {
			defer func() { <-slots }()
			if err := s.serveStream(st); err != nil {
				s.o.Log.Warn("node broke the protocol", "remote", conn.RemoteAddr().String(), "error", err)
				_ = mux.Close()
			}
		})
	}
}

// running is the call on a stream.
type running struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (r *running) end() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// serveStream runs the calls of one stream, one after the other, and reads on
// meanwhile to notice a CANCEL and the end of the stream.
func (s *Server) serveStream(st *yamux.Stream) error {
	defer st.Close()
	r := wire.NewReader(bufio.NewReaderSize(st, 4096), s.o.Limits.frame())
	w := wire.NewWriter(st, s.o.Limits.frame())
	var now *running
	var served *transfer.Served // the latest transfer
	defer func() { now.end() }()
	for {
		f, err := r.Next()
		var bad *wire.ProtocolError
		switch {
		case errors.As(err, &bad):
			return err
		case err != nil:
			return nil
		}
		switch f.Type {
		case wire.FrameCall:
			if now != nil {
				<-now.done // its result was received, or this would not come
			}
			var h callHeader
			if err := r.Decode(f, &h); err != nil {
				return err
			}
			if h.Grant == nil {
				return wire.Violation("call without grant")
			}
			served = nil
			_ = st.SetWriteDeadline(time.Time{}) // of a transfer before
			now = s.start(st, w, h, f.Body)
		case wire.FrameStream:
			if now != nil {
				<-now.done
			}
			var h streamHeader
			if err := r.Decode(f, &h); err != nil {
				return err
			}
			if h.Grant == nil {
				return wire.Violation("transfer without grant")
			}
			now, served = s.startTransfer(st, w, h, f.Body)
		case wire.FrameData, wire.FrameEnd:
			if served == nil {
				return wire.Violation("%s without a transfer", f.Type)
			}
			if err := served.Take(r, f); err != nil {
				return err
			}
		case wire.FrameCancel:
			now.end()
		default:
			return wire.Violation("%s on a call stream", f.Type)
		}
	}
}

func (s *Server) start(st *yamux.Stream, w *wire.Writer, h callHeader, args []byte) *running {
	left := s.o.Timing.MaxCall
	if h.TimeLeftMS > 0 {
		left = min(left, time.Duration(min(h.TimeLeftMS, int64(left/time.Millisecond)))*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(s.ctx, left)
	r := &running{cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	stopping := s.stopping
	if !stopping {
		s.calls.Add(1)
	}
	s.mu.Unlock()
	go func() { // serveStream waits for it, and so does Stop
		defer close(r.done)
		defer cancel()
		if !stopping {
			defer s.calls.Done()
		}
		switch {
		case !stopping && h.offer() && s.o.Take != nil:
			s.take(ctx, st, w, h, args)
			return
		case stopping || h.offer() || !s.local.Has(h.Tenant, h.Instance):
			s.write(st, w, frameElsewhere, elsewhere{h.ID}, nil)
			return
		}
		res := s.local.Call(ctx, h.Tenant, h.Instance, h.Contract(args), h.Idempotent, func(p contract.Progress) {
			if !s.write(st, w, wire.FrameProgress, wire.Progress{ID: h.ID, Progress: p}, nil) {
				cancel()
			}
		})
		s.answer(st, w, h.ID, res)
	}()
	return r
}

// take answers an offer. A no that time forced is none.
func (s *Server) take(ctx context.Context, st *yamux.Stream, w *wire.Writer, h callHeader, body []byte) {
	switch {
	case s.o.Take(ctx, h.Tenant, h.Subject, body):
		s.write(st, w, wire.FrameResult, wire.Result{ID: h.ID}, nil)
	case ctx.Err() != nil:
		s.answer(st, w, h.ID, contract.Result{Err: contract.Fail(contract.Timeout, "The offer was not answered in time.")})
	default:
		s.write(st, w, frameElsewhere, elsewhere{h.ID}, nil)
	}
}

func (s *Server) answer(st *yamux.Stream, w *wire.Writer, id uint64, res contract.Result) {
	if res.Err == nil && len(res.Body) > s.o.Limits.Body {
		res.Err = contract.Fail(contract.TooLarge, "The result has %d bytes; %d are allowed.", len(res.Body), s.o.Limits.Body)
	}
	if res.Err != nil {
		s.write(st, w, wire.FrameError, wire.Error{ID: id, Error: res.Err, Stats: res.Stats}, nil)
		return
	}
	s.write(st, w, wire.FrameResult, wire.Result{ID: id, Stats: res.Stats}, res.Body)
}

// write sends a frame; a node that does not read for too long loses the stream.
func (s *Server) write(st *yamux.Stream, w *wire.Writer, t wire.Type, header any, body []byte) bool {
	_ = st.SetWriteDeadline(time.Now().Add(s.o.Timing.Write)) // fails never
	if err := w.Write(t, header, body); err != nil {
		_ = st.Close()
		return false
	}
	return true
}

// Stop takes no more calls, waits for those that run until ctx is done, and
// closes everything. It may be called twice.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	for _, ln := range s.listeners {
		_ = ln.Close()
	}
	s.mu.Unlock()
	quiet := make(chan struct{})
	go func() { // ends when the calls do, which Stop waits for
		s.calls.Wait()
		close(quiet)
	}()
	select {
	case <-quiet:
	case <-ctx.Done():
	}
	s.cancel()
	<-quiet
	s.mu.Lock()
	for conn, mux := range s.conns {
		s.work.Go(func() {
			defer conn.Close()
			if mux != nil && ctx.Err() == nil {
				giveUp := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer giveUp()
				_, _ = mux.Ping() // the last results are ahead of it
			}
		})
	}
	s.mu.Unlock()
	s.work.Wait()
}
