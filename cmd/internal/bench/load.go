package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// The protocol versions of the two eras.
const (
	modernVersion = "2026-07-28"
	legacyVersion = "2025-11-25"
)

// mode is how a call is made.
type mode int

const (
	modern mode = iota // tools/call without sessions
	legacy             // tools/call in a session
	plain              // POST of the arguments
)

// target is what a load goes to.
type target struct {
	url       string
	token     string
	scheme    string // of Authorization; "" is Bearer
	mode      mode
	tool      string
	arguments string // JSON
	roots     *x509.CertPool
}

// worker calls a target, one call after the other on a kept connection. It
// writes each request at once and allocates little: it shares the processors
// with what is measured.
type worker struct {
	*target
	addr    string
	secure  bool
	conn    net.Conn
	r       *bufio.Reader
	head    []byte // of every request, up to the length
	tail    []byte // of every body, after the id
	session string
	id      int64
	out, in []byte
}

func newWorker(ctx context.Context, t *target) (*worker, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	w := &worker{target: t, addr: u.Host, secure: u.Scheme == "https", id: 10}
	w.head = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n", u.RequestURI(), u.Host)
	if t.token != "" {
		w.head = fmt.Appendf(w.head, "Authorization: %s %s\r\n", cmp.Or(t.scheme, "Bearer"), t.token)
	}
	switch t.mode {
	case modern:
		w.head = fmt.Appendf(w.head, "Mcp-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n", modernVersion, t.tool)
		w.tail = fmt.Appendf(nil, `,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
			`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, t.tool, t.arguments, modernVersion)
	case legacy:
		w.tail = fmt.Appendf(nil, `,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, t.tool, t.arguments)
		if err := w.initialize(ctx); err != nil {
			w.close()
			return nil, err
		}
	case plain:
		w.tail = []byte(t.arguments)
	}
	return w, nil
}

// initialize opens a session.
func (w *worker) initialize(ctx context.Context) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, legacyVersion)
	head, _, err := w.post(ctx, []byte(body))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if w.session = head.Get("Mcp-Session-Id"); w.session == "" {
		return errors.New("initialize: the server gave no session id")
	}
	w.head = fmt.Appendf(w.head, "Mcp-Protocol-Version: %s\r\nMcp-Session-Id: %s\r\n", legacyVersion, w.session)
	if _, _, err := w.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return fmt.Errorf("initialized: %w", err)
	}
	return nil
}

// call makes one call and returns the answer, which is valid until the next.
func (w *worker) call(ctx context.Context) ([]byte, error) {
	if w.mode == plain {
		_, body, err := w.post(ctx, w.tail)
		return body, err
	}
	w.id++
	var id [48]byte
	_, body, err := w.post(ctx, strconv.AppendInt(append(id[:0], `{"jsonrpc":"2.0","id":`...), w.id, 10), w.tail)
	switch {
	case err != nil:
		return nil, err
	case !bytes.Contains(body[:min(len(body), 4<<10)], []byte(`"result"`)), bytes.Contains(body[max(0, len(body)-300):], []byte(`"isError":true`)):
		return nil, fmt.Errorf("the call failed: %.300s", body)
	}
	return body, nil
}

// post writes a request of which the body comes in parts.
func (w *worker) post(ctx context.Context, parts ...[]byte) (http.Header, []byte, error) {
	if err := w.dial(ctx); err != nil {
		return nil, nil, err
	}
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	w.out = append(append(w.out[:0], w.head...), "Content-Length: "...)
	w.out = append(strconv.AppendInt(w.out, int64(length), 10), "\r\n\r\n"...)
	for _, p := range parts {
		w.out = append(w.out, p...)
	}
	if _, err := w.conn.Write(w.out); err != nil {
		w.close()
		return nil, nil, err
	}
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		w.close()
		return nil, nil, err
	}
	in := bytes.NewBuffer(w.in[:0])
	_, err = io.Copy(in, resp.Body)
	_ = resp.Body.Close()
	w.in = in.Bytes()
	if err != nil || resp.Close {
		w.close()
	}
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %.300s", resp.Status, w.in)
	}
	return resp.Header, w.in, err
}

func (w *worker) dial(ctx context.Context) (err error) {
	if w.conn != nil {
		return nil
	}
	var d net.Dialer
	if w.secure {
		w.conn, err = (&tls.Dialer{NetDialer: &d, Config: tlsOf(w.roots)}).DialContext(ctx, "tcp", w.addr)
	} else {
		w.conn, err = d.DialContext(ctx, "tcp", w.addr)
	}
	if err != nil {
		w.conn = nil
		return err
	}
	if w.r == nil {
		w.r = bufio.NewReaderSize(nil, 32<<10)
	}
	w.r.Reset(w.conn)
	return nil
}

func (w *worker) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// end ends the session, if there is one, and closes.
func (w *worker) end() {
	if w.session != "" && w.conn != nil {
		head := append([]byte("DELETE"), w.head[len("POST"):]...)
		_, _ = w.conn.Write(append(head, "\r\n"...)) // best effort: it ends by itself too
		_, _ = http.ReadResponse(w.r, nil)
	}
	w.close()
}

// load runs a closed loop of workers for a time and measures it. pids are those
// whose CPU is charged to the calls.
func load(ctx context.Context, t *target, workers int, warm, measured time.Duration, pids map[string]int) sample {
	all := make([]*worker, 0, workers)
	defer func() {
		for _, w := range all {
			w.end()
		}
	}()
	for range workers {
		w, err := newWorker(ctx, t)
		if err != nil {
			return sample{failed: 1, failure: err}
		}
		all = append(all, w)
	}
	if s := together(ctx, all, warm); s.calls == 0 && s.failed > 0 {
		return s
	}
	before := map[string]time.Duration{}
	for name, pid := range pids {
		before[name], _ = cpu(pid)
	}
	s := together(ctx, all, measured)
	s.cpu = map[string]time.Duration{}
	for name, pid := range pids {
		if now, ok := cpu(pid); ok && s.calls > 0 {
			s.cpu[name] = (now - before[name]) / time.Duration(s.calls)
		}
	}
	return s
}

// failuresMax ends a worker that only fails.
const failuresMax = 20

func together(ctx context.Context, all []*worker, d time.Duration) sample {
	var mu sync.Mutex
	var took []time.Duration
	var failed int
	var first error
	var wg sync.WaitGroup
	began := time.Now()
	end := began.Add(d)
	for _, w := range all {
		wg.Go(func() {
			mine := make([]time.Duration, 0, 4<<10)
			var bad int
			var why error
			for at := time.Now(); at.Before(end) && ctx.Err() == nil && bad < failuresMax; {
				_, err := w.call(ctx)
				now := time.Now()
				if err == nil {
					mine = append(mine, now.Sub(at))
				} else if bad++; why == nil {
					why = err
				}
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, mine...), failed+bad
			if first == nil {
				first = why
			}
		})
	}
	wg.Wait()
	s := summarise(took, time.Since(began))
	s.failed, s.failure = failed, first
	return s
}
