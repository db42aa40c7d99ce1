package samplekernel

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server listens for a kernel on a TCP address it keeps over Stop and Start, so
// that a client can see connections refused and then work again.
type Server struct {
	kernel *Kernel
	mu     sync.Mutex
	addr   string
	http   *http.Server
	done   chan struct{} // closed when the serving goroutine has ended
}

// Listen serves a kernel on an address such as 127.0.0.1:0.
func Listen(k *Kernel, addr string) (*Server, error) {
	s := &Server{kernel: k, addr: addr}
	return s, s.Start()
}

// Start listens again after Stop; it does nothing while the server is up.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("samplekernel: listen: %w", err)
	}
	s.addr = l.Addr().String()
	server := &http.Server{Handler: s.kernel.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	s.http, s.done = server, done
	go func() {
		defer close(done)
		_ = server.Serve(l) // always ErrServerClosed: Stop is the only way out
	}()
	return nil
}

// URL is the base address, without a slash at the end.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Stop closes the listener and all connections at once; new ones are refused.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		return nil
	}
	err := s.http.Close()
	<-s.done
	s.http = nil
	return err
}

// Shutdown is Stop that lets running requests end until ctx does.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	<-s.done
	s.http = nil
	return err
}
