package siyuan

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// As many connections are kept idle as calls run at once by default, because
// opening one costs more than a small call; not for long, because the kernel
// comes and goes.
const (
	maxIdleConns    = 64
	idleConnTimeout = 30 * time.Second
	readBuffer      = 4 << 10
	maxHeaderBytes  = 64 << 10
	firstBody       = 1 << 20 // a larger body is allocated only as its bytes arrive
)

var (
	errTooLarge = errors.New("answer larger than allowed")
	errNoHTTP   = errors.New("answer is not HTTP/1.1")
)

// http1 speaks HTTP/1.1 with the kernel. An action makes dozens of small calls,
// which net/http takes ten times the allocations for. The rules:
//
//   - One request at a time on a connection, written whole in one Write.
//   - A read may ride a kept connection. If that turns out to have been closed
//     before the first byte of an answer came, the read is sent once more, on a
//     new connection.
//   - A write always has a connection of its own and is sent once.
//   - A connection is kept only after an answer whose end was marked, to a
//     request whose caller did not give up.
//   - Answers are bounded, and anything that is not plain HTTP/1.1 is an error.
//   - Redirects are not followed and proxies not used: the token goes to the one
//     address and nowhere else.
type http1 struct {
	dial  func(ctx context.Context) (net.Conn, error)
	limit int64 // bytes of a body

	mu   sync.Mutex
	idle []*kernelConn // the most recently used last
	reap *time.Timer   // closes what was idle for too long; nil while none is
}

// kernelConn is a connection with what was read ahead of it.
type kernelConn struct {
	net.Conn
	r     *bufio.Reader
	since time.Time // idle
}

// do sends a request and reads its answer. unsent reports that no connection
// could be had, so that the kernel has provably not seen the request.
func (h *http1) do(ctx context.Context, request []byte, write bool) (a answer, unsent bool, err error) {
	if !write {
		if c := h.take(); c != nil {
			a, stale, err := h.exchange(ctx, c, request, true)
			if !stale || ctx.Err() != nil {
				return a, false, err
			}
			h.drop() // the kernel closed them all
		}
	}
	conn, err := h.dial(ctx)
	if err != nil {
		return answer{}, true, err
	}
	a, _, err = h.exchange(ctx, &kernelConn{Conn: conn, r: bufio.NewReaderSize(conn, readBuffer)}, request, !write)
	return a, false, err
}

// exchange uses c for one request, and keeps or closes it. stale reports that
// not a byte of an answer came.
func (h *http1) exchange(ctx context.Context, c *kernelConn, request []byte, keep bool) (a answer, stale bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // wakes whoever reads or writes
	_, writeErr := c.Write(request)
	// A kernel may answer and close without having read all of a request.
	if _, err = c.r.Peek(1); err != nil {
		stale = true
		if writeErr != nil {
			err = writeErr
		}
	} else {
		var more bool
		a, more, err = readAnswer(c.r, h.limit)
		keep = keep && more && writeErr == nil && c.r.Buffered() == 0
	}
	if !stop() { // the deadline is poisoned, or about to be
		keep = false
		if err != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
	if err != nil {
		discard(c.Conn)
	}
	if err != nil || !keep {
		_ = c.Close()
		return a, stale, err
	}
	h.put(c)
	return a, false, nil
}

// discard makes the system throw away what it has not delivered yet when the
// connection is closed. Else it would go on trying, and a write could arrive
// minutes after its caller was told that nobody knows.
func discard(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if lingers, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = lingers.SetLinger(0) // a connection that is gone delivers nothing either
	}
}

// take returns the connection that was used last, if it is young enough.
func (h *http1) take() *kernelConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.idle)
	if n == 0 || time.Since(h.idle[n-1].since) > idleConnTimeout {
		return nil
	}
	c := h.idle[n-1]
	h.idle = h.idle[:n-1]
	return c
}

func (h *http1) put(c *kernelConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.idle) >= maxIdleConns {
		_ = c.Close()
		return
	}
	c.since = time.Now()
	h.idle = append(h.idle, c)
	if h.reap == nil {
		h.reap = time.AfterFunc(idleConnTimeout, h.sweep)
	}
}

// sweep closes what has been idle for too long.
func (h *http1) sweep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.idle) > 0 && time.Since(h.idle[0].since) >= idleConnTimeout {
		_ = h.idle[0].Close()
		h.idle = h.idle[1:]
	}
	if h.reap = nil; len(h.idle) > 0 {
		h.reap = time.AfterFunc(idleConnTimeout-time.Since(h.idle[0].since), h.sweep)
	}
}

// drop closes every idle connection.
func (h *http1) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.idle {
		_ = c.Close()
	}
	h.idle = nil
	if h.reap != nil {
		h.reap.Stop()
		h.reap = nil
	}
}

// head is what matters of an answer's header.
type head struct {
	status      int
	contentType string
	session     string // Mcp-Session-Id
	length      int64  // -1: not told
	chunked     bool
	more        bool // the connection stays open behind it
}

// readAnswer reads one answer with at most limit bytes of body, else errTooLarge
// comes with its status. more says that another answer may follow on r.
func readAnswer(r *bufio.Reader, limit int64) (a answer, more bool, err error) {
	budget := maxHeaderBytes
	h, err := readHead(r, &budget)
	for err == nil && h.status < 200 { // 100 Continue and its like
		if h.status == 101 {
			return a, false, errNoHTTP
		}
		h, err = readHead(r, &budget)
	}
	if err != nil {
		return a, false, cut(err)
	}
	a = answer{status: h.status, contentType: h.contentType, session: h.session}
	switch {
	case h.status == 204 || h.status == 304:
	case h.chunked:
		a.body, err = readChunks(r, limit, &budget)
	case h.length > limit:
		err = errTooLarge
	case h.length >= 0:
		a.body, err = readN(r, nil, h.length)
	default:
		h.more = false
		if a.body, err = io.ReadAll(io.LimitReader(r, limit+1)); err == nil && int64(len(a.body)) > limit {
			err = errTooLarge
		}
	}
	if err != nil {
		a.body = nil
	}
	return a, h.more && err == nil, cut(err)
}

// cut is what an end in the middle is called.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readHead reads a status line and the header behind it.
func readHead(r *bufio.Reader, budget *int) (head, error) {
	h := head{length: -1}
	line, err := readLine(r, budget)
	if err != nil {
		return h, err
	}
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] < '0' || line[7] > '1' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return h, errNoHTTP
	}
	for _, d := range line[9:12] {
		if d < '0' || d > '9' {
			return h, errNoHTTP
		}
		h.status = 10*h.status + int(d-'0')
	}
	if h.status < 100 {
		return h, errNoHTTP
	}
	old := line[7] == '0'
	h.more = !old
	for {
		line, err := readLine(r, budget)
		if err == nil && len(line) == 0 && old && h.chunked { // RFC 9112, 6.1
			return h, fmt.Errorf("%w: chunks in an answer of HTTP/1.0", errNoHTTP)
		}
		if err != nil || len(line) == 0 {
			return h, err
		}
		if err := h.field(line); err != nil {
			return h, err
		}
	}
}

// field takes one line of a header.
func (h *head) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") { // a folded line among them
		return fmt.Errorf("%w: malformed header", errNoHTTP)
	}
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || value[0] == '+' || h.length >= 0 && h.length != int64(n) {
			return fmt.Errorf("%w: content length %q", errNoHTTP, value)
		}
		h.length = int64(n)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		if !bytes.EqualFold(value, []byte("chunked")) || h.chunked {
			return fmt.Errorf("%w: transfer encoding %q", errNoHTTP, value)
		}
		h.chunked = true
	case bytes.EqualFold(name, []byte("Content-Type")):
		if h.contentType == "" {
			h.contentType = string(value)
		}
	case bytes.EqualFold(name, []byte("Mcp-Session-Id")):
		h.session = string(value)
	case bytes.EqualFold(name, []byte("Connection")):
		for token := range strings.SplitSeq(string(value), ",") {
			if strings.EqualFold(strings.TrimSpace(token), "close") {
				h.more = false
			}
		}
	}
	return nil
}

// readLine returns a line without its end, valid until the next read, and takes
// its size from the budget.
func readLine(r *bufio.Reader, budget *int) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) { // a long one is copied together
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= *budget {
			line, err = r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if *budget -= len(line); *budget < 0 {
		return nil, fmt.Errorf("%w: header larger than %d bytes", errNoHTTP, maxHeaderBytes)
	}
	if err != nil {
		return nil, cut(err)
	}
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, nil
}

// readChunks reads a chunked body and what trails it.
func readChunks(r *bufio.Reader, limit int64, budget *int) ([]byte, error) {
	var body []byte
	for {
		framing := maxHeaderBytes // per chunk: a long body has many
		line, err := readLine(r, &framing)
		if err != nil {
			return nil, err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, 62)
		if err != nil || digits[0] == '+' {
			return nil, fmt.Errorf("%w: chunk size %q", errNoHTTP, line)
		}
		if n == 0 {
			break
		}
		if int64(len(body))+int64(n) > limit {
			return nil, errTooLarge
		}
		if body, err = readN(r, body, int64(n)); err != nil {
			return nil, err
		}
		if line, err = readLine(r, &framing); err != nil || len(line) > 0 {
			return nil, cmp.Or(err, fmt.Errorf("%w: chunk without end", errNoHTTP))
		}
	}
	for {
		if line, err := readLine(r, budget); err != nil || len(line) == 0 {
			return body, err
		}
	}
}

// readN appends n bytes to b.
func readN(r io.Reader, b []byte, n int64) ([]byte, error) {
	for n > 0 {
		part := int(min(n, max(firstBody, int64(len(b)))))
		from := len(b)
		if cap(b)-from < part {
			b = append(make([]byte, 0, from+part), b...)
		}
		b = b[:from+part]
		if _, err := io.ReadFull(r, b[from:]); err != nil {
			return nil, cut(err)
		}
		n -= int64(part)
	}
	return b, nil
}
