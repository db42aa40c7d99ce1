package mcpserver

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	writeTimeout = 30 * time.Second // for a client to take what is written
	cutTimeout   = time.Second      // the same once its request is over
)

// serveStream answers a request whose answer is a stream of events, and keeps
// the stream alive with comments: proxies and clients give up on silent ones.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, serve http.Handler) {
	sw := &streamWriter{w: w, rc: http.NewResponseController(w), header: http.Header{}, every: s.cfg.Heartbeat}
	sw.mu.Lock()
	sw.timer = time.AfterFunc(sw.every, sw.beat)
	sw.mu.Unlock()
	// A client that reads nothing would hold a write, and with it a request that
	// was cut.
	hooked := make(chan struct{})
	unhook := context.AfterFunc(r.Context(), func() {
		defer close(hooked)
		_ = sw.rc.SetWriteDeadline(time.Now().Add(cutTimeout))
	})
	defer func() {
		sw.end()
		if !unhook() { // cut; the router reuses its writer once we return
			<-hooked
			return
		}
		_ = sw.rc.SetWriteDeadline(time.Time{}) // the connection may serve other requests
	}()
	serve.ServeHTTP(sw, r)
}

// streamWriter writes a stream for the SDK and comments for itself, one at a
// time. Until the response begins, the SDK's headers are its own, because the
// SDK may still set them while a comment begins the response.
type streamWriter struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	header http.Header
	every  time.Duration

	mu     sync.Mutex
	timer  *time.Timer
	begun  bool // status and headers are out
	events bool // and they promise events
	framed bool // what follows is no event by itself: an error after a comment
	over   bool
}

// Header implements http.ResponseWriter.
func (s *streamWriter) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *streamWriter) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(status)
}

func (s *streamWriter) begin(status int) {
	if s.begun {
		s.framed = status != http.StatusOK
		return
	}
	maps.Copy(s.w.Header(), s.header)
	s.begun = true
	s.events = status == http.StatusOK && strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream")
	s.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *streamWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begin(http.StatusOK)
	}
	s.timer.Reset(s.every)
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
	if !s.framed {
		return s.w.Write(b)
	}
	if _, err := s.w.Write([]byte("event: message\ndata: " + strings.TrimRight(string(b), "\n") + "\n\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// FlushError implements what http.ResponseController looks for.
func (s *streamWriter) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begin(http.StatusOK)
	}
	return s.rc.Flush()
}

// Flush implements http.Flusher.
func (s *streamWriter) Flush() { _ = s.FlushError() }

// Unwrap gives http.ResponseController what is not here.
func (s *streamWriter) Unwrap() http.ResponseWriter { return s.w }

// beat writes a comment. It begins the response where nothing has been said
// yet: a call may take longer than a proxy waits.
func (s *streamWriter) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.begun && !s.events {
		return
	}
	if !s.begun {
		s.begun, s.events = true, true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		s.w.WriteHeader(http.StatusOK)
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write([]byte(": ping\n\n")); err != nil {
		return // the client is gone; the request's context tells
	}
	_ = s.rc.Flush()
	s.timer.Reset(s.every)
}

func (s *streamWriter) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
