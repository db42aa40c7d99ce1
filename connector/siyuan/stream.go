package siyuan

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// A file on its way to or from the kernel, never whole in memory. Each has a
// connection of its own, which is closed behind it, and is sent once.

// copyBuffer is how much of a file is in memory at once.
const copyBuffer = 64 << 10

// ErrSource means that a file to be stored could not be read to its end. The
// kernel has not got all of the request then, and stores nothing.
var ErrSource = errors.New("the file could not be read to its end")

// PutFileFrom is [Writer.PutFile] of size bytes that body gives. Unless the error
// is OutcomeUnknown, nothing was stored: the kernel looks at a request only when
// all of it came. A body that ends early or goes on, or fails, is ErrSource.
func (w *Writer) PutFileFrom(ctx context.Context, path string, body io.Reader, size int64, modified time.Time) error {
	const endpoint = "file/putFile"
	if path == "" || size < 0 {
		return badArgument(endpoint, "no path, or no size")
	}
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	for _, f := range [][2]string{{"path", path}, {"isDir", "false"}, {"modTime", strconv.FormatInt(modified.UnixMilli(), 10)}} {
		if err := m.WriteField(f[0], f[1]); err != nil {
			return badArgument(endpoint, "encode: %w", err)
		}
	}
	if _, err := m.CreateFormFile("file", "file"); err != nil {
		return badArgument(endpoint, "encode: %w", err)
	}
	head := bytes.Clone(form.Bytes())
	if err := m.Close(); err != nil {
		return badArgument(endpoint, "encode: %w", err)
	}
	tail := form.Bytes()[len(head):]
	k := call{path: endpoint, flags: slow | nullable, write: true}
	a, err := w.c.stream(ctx, k, payload{contentType: m.FormDataContentType(), bytes: head, more: size + int64(len(tail))}, func(conn io.Writer) (whole bool, err error) {
		if err := copyExactly(conn, body, size); err != nil {
			return false, err
		}
		n, err := conn.Write(tail)
		return n == len(tail), err
	})
	if err != nil {
		return err
	}
	return unknownUnlessAnswered(k, a)
}

// unknownUnlessAnswered is what an answer to a streamed write says.
func unknownUnlessAnswered(k call, a answer) error {
	if err := statusError(k, a); err != nil {
		if refused(err) {
			return err
		}
		return unknown(err)
	}
	_, err := decode[any](k, a)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Status = a.status
	}
	if errors.Is(err, Malformed) {
		return unknown(err)
	}
	return err
}

// copyExactly copies size bytes and proves that there are no more.
func copyExactly(to io.Writer, from io.Reader, size int64) error {
	source := &source{r: from}
	buf := make([]byte, copyBuffer)
	n, err := io.CopyBuffer(onlyWriter{to}, io.LimitReader(source, size), buf)
	switch {
	case source.err != nil:
		return fmt.Errorf("%w: %w", ErrSource, source.err)
	case err != nil:
		return err
	case n < size:
		return fmt.Errorf("%w: %w", ErrSource, io.ErrUnexpectedEOF)
	}
	// A source may say only now that what it gave was not right.
	switch n, err := io.ReadFull(source, buf[:1]); {
	case n > 0:
		return fmt.Errorf("%w: it has more than %d bytes", ErrSource, size)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	return nil
}

// onlyWriter hides ReadFrom, which would use another buffer.
type onlyWriter struct{ io.Writer }

// source tells errors of reading from errors of writing.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// stream sends a request whose body is written by rest, and reads the answer. It
// fails with OutcomeUnknown only if the whole request may have gone out.
func (c *Client) stream(ctx context.Context, k call, p payload, rest func(io.Writer) (whole bool, err error)) (a answer, err error) {
	request, err := c.request(k, p)
	if err != nil {
		return a, err
	}
	began := c.cfg.Clock.Now()
	defer func() {
		took := c.cfg.Clock.Now().Sub(began)
		count(ctx, took, k.write)
		c.cfg.Logger.DebugContext(ctx, "kernel call", "endpoint", k.path, "status", a.status, "took", took, "failed", err != nil)
	}()
	conn, err := c.dial(ctx)
	if err != nil {
		return a, c.transportError(ctx, k, err)
	}
	defer func() { _ = conn.Close() }()
	c.fresh.wrote(k.flags&queued != 0)
	moving := &movingConn{Conn: conn, ctx: ctx, idle: c.cfg.Timeouts.Slow}
	stop := moving.watch()
	defer stop()
	whole, err := false, error(nil)
	if _, err = moving.Write(request); err == nil {
		whole, err = rest(moving)
	}
	if err != nil && !whole {
		discard(conn) // the kernel must not take it for the end
		if errors.Is(err, ErrSource) {
			return a, err
		}
		return a, c.transportError(ctx, k, err)
	}
	if a, _, err = readAnswer(bufio.NewReaderSize(moving, readBuffer), c.cfg.MaxResponseBytes); err != nil {
		discard(conn)
		return a, unknown(c.transportError(ctx, k, err))
	}
	return a, nil
}

// movingConn is a connection that ends with a context, or when nothing moved for
// so long.
type movingConn struct {
	net.Conn
	ctx  context.Context
	idle time.Duration
}

func (c *movingConn) watch() (stop func() bool) {
	return context.AfterFunc(c.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// Read waits for the other end no longer than idle.
func (c *movingConn) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.idle))
	if c.ctx.Err() != nil { // watch may have been before
		return 0, context.Cause(c.ctx)
	}
	return c.Conn.Read(p)
}

// Write waits for the other end no longer than idle.
func (c *movingConn) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.idle))
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.Conn.Write(p)
}

// FileStream is a file of the workspace as it arrives. Reading gives io.EOF only
// after all of it.
type FileStream struct {
	Size        int64 // -1: the kernel did not tell
	ContentType string

	body io.Reader
	left int64 // of Size
	conn *movingConn
	stop func() bool
	done func()
}

// OpenFile begins to read a file of the workspace; see [Reader.GetFile]. The
// caller closes it. It ends with ctx.
func (r *Reader) OpenFile(ctx context.Context, path string) (*FileStream, error) {
	k := call{path: "file/getFile", flags: slow | raw | direct}
	p, err := encode(call{path: k.path, body: args{"path": path}})
	if err != nil {
		return nil, err
	}
	request, err := r.c.request(k, p)
	if err != nil {
		return nil, err
	}
	began := r.c.cfg.Clock.Now()
	conn, err := r.c.dial(ctx)
	if err != nil {
		return nil, r.c.transportError(ctx, k, err)
	}
	s := &FileStream{conn: &movingConn{Conn: conn, ctx: ctx, idle: r.c.cfg.Timeouts.Slow}}
	s.stop = s.conn.watch()
	s.done = func() { count(ctx, r.c.cfg.Clock.Now().Sub(began), false) }
	if err := r.c.begin(s, k, request); err != nil {
		_ = s.Close()
		return nil, r.c.begun(ctx, k, err)
	}
	return s, nil
}

// begun keeps errors of the kernel and names those of the connection.
func (c *Client) begun(ctx context.Context, k call, err error) error {
	if _, told := errors.AsType[*Error](err); told {
		return err
	}
	return c.transportError(ctx, k, err)
}

// begin sends the request and reads the answer up to its body.
func (c *Client) begin(s *FileStream, k call, request []byte) error {
	if _, err := s.conn.Write(request); err != nil {
		return err
	}
	b := bufio.NewReaderSize(s.conn, copyBuffer)
	budget := maxHeaderBytes
	h, err := readHead(b, &budget)
	if err != nil {
		return cut(err)
	}
	s.Size, s.ContentType, s.left, s.body = h.length, h.contentType, h.length, b
	if h.chunked {
		s.Size, s.left, s.body = -1, -1, httputil.NewChunkedReader(b)
	}
	a := answer{status: h.status, contentType: h.contentType}
	if h.status == http.StatusOK {
		return nil
	}
	if err := statusError(k, a); err != nil {
		return err
	}
	if a.body, err = io.ReadAll(io.LimitReader(s, firstBody)); err != nil {
		return err
	}
	if _, err := decode[any](call{path: k.path, flags: nullable}, a); err != nil {
		return err
	}
	return malformed(k.path, "status %d without an error", a.status)
}

// Read gives the next part. An end before Size is io.ErrUnexpectedEOF.
func (s *FileStream) Read(p []byte) (int, error) {
	if s.left == 0 && s.Size >= 0 {
		return 0, io.EOF
	}
	if s.Size >= 0 && int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.body.Read(p)
	if s.Size >= 0 {
		if s.left -= int64(n); err == io.EOF && s.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// Close ends the reading, at any point.
func (s *FileStream) Close() error {
	if s.done == nil {
		return nil
	}
	s.stop()
	s.done()
	s.done = nil
	return s.conn.Close()
}
