package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Type is the kind of a frame; the high half groups them by place: 0x0_ before
// the multiplexer, 0x1_ on the control stream, 0x2_ on call streams.
type Type byte

// The frame types of protocol version 1.
const (
	FrameChallenge Type = 0x01 // broker: versions and nonce
	FrameAuth      Type = 0x02 // connector: chosen version and signed token
	FrameWelcome   Type = 0x03 // broker: node, epoch, limits
	FrameReject    Type = 0x04 // broker: why not, or why no longer (also on the control stream)

	FramePing   Type = 0x10 // both
	FramePong   Type = 0x11 // both
	FrameStatus Type = 0x12 // connector: contract.HomeStatus in the body
	FrameDrain  Type = 0x13 // broker: connect again, this session will end
	FrameBulk   Type = 0x14 // broker: open a bulk session

	FrameCall         Type = 0x20 // broker: raw arguments in the body
	FrameProgress     Type = 0x21 // connector
	FrameResult       Type = 0x22 // connector: raw result in the body
	FrameError        Type = 0x23 // connector
	FrameCancel       Type = 0x24 // broker: stop; the stream closes next
	FrameGrantUnknown Type = 0x25 // connector: send the call again with its full grant

	FrameStream Type = 0x26 // broker: raw arguments in the body; bodies of any length follow
	FrameData   Type = 0x27 // both: a piece of one
	FrameEnd    Type = 0x28 // both: that was all
)

var typeNames = map[Type]string{
	FrameChallenge: "CHALLENGE", FrameAuth: "AUTH", FrameWelcome: "WELCOME", FrameReject: "REJECT",
	FramePing: "PING", FramePong: "PONG", FrameStatus: "STATUS", FrameDrain: "DRAIN",
	FrameCall: "CALL", FrameProgress: "PROGRESS", FrameResult: "RESULT", FrameError: "ERROR",
	FrameCancel: "CANCEL", FrameGrantUnknown: "GRANT_UNKNOWN",
	FrameBulk: "BULK", FrameStream: "STREAM", FrameData: "DATA", FrameEnd: "END",
}

// String is the name used in docs/PROTOCOL.md.
func (t Type) String() string {
	if s, ok := typeNames[t]; ok {
		return s
	}
	return fmt.Sprintf("0x%02x", byte(t))
}

const (
	prefixSize = 8         // u32 length, u8 type, u24 header length
	maxHeader  = 1<<24 - 1 // what u24 can say
	keep       = 64 << 10  // larger buffers are not kept between frames
	chunk      = 16 << 10  // written at once, so that other streams get their turn on a slow link
	firstRead  = 1 << 20   // a larger body is allocated only as its bytes arrive
)

// Limits bound what a Reader accepts and a Writer sends.
type Limits struct {
	Frame  int // bytes after the length field
	Header int // bytes of header JSON
	Depth  int // nesting of header JSON
}

// HandshakeLimits are for the frames exchanged before the peer is known.
func HandshakeLimits() Limits { return Limits{Frame: 16 << 10, Header: 16 << 10, Depth: 8} }

// DefaultLimits are for an established session: a result of 8 MiB and its header.
func DefaultLimits() Limits { return Limits{Frame: 8<<20 + 512<<10, Header: 256 << 10, Depth: 32} }

// ErrTooLarge is returned by a Writer for a frame above its limits; nothing was
// written and the stream is still usable.
var ErrTooLarge = errors.New("frame larger than allowed")

// ProtocolError is what a peer did against the format. The connection it came
// from cannot be trusted any further and is dropped.
type ProtocolError struct{ Reason string }

// Error says what the peer did.
func (e *ProtocolError) Error() string { return "tunnel protocol: " + e.Reason }

// Violation makes a ProtocolError.
func Violation(format string, args ...any) error {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}

// Frame is one message. Header is JSON (empty means {}), Body raw bytes.
type Frame struct {
	Type   Type
	Header []byte
	Body   []byte
}

// Reader takes frames from a stream. It reads exactly what a frame occupies
// and no byte more, so the stream can be handed on between two frames; give it
// a bufio.Reader where that does not matter. Not safe for concurrent use.
type Reader struct {
	r      io.Reader
	limits Limits
	prefix [prefixSize]byte
	header []byte
}

// NewReader reads frames from r within the limits.
func NewReader(r io.Reader, l Limits) *Reader { return &Reader{r: r, limits: l} }

// Next returns the next frame. Its Header is valid until the following call of
// Next; its Body belongs to the caller. The error is io.EOF only at a frame
// boundary, a *ProtocolError for a malformed frame, else the stream's own.
func (r *Reader) Next() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.prefix[:]); err != nil {
		return Frame{}, err
	}
	length := int64(binary.BigEndian.Uint32(r.prefix[:4]))
	head := int64(binary.BigEndian.Uint32(r.prefix[4:])) & maxHeader
	f := Frame{Type: Type(r.prefix[4])}
	switch {
	case length < prefixSize-4:
		return Frame{}, Violation("%s frame of %d bytes has no room for its prefix", f.Type, length)
	case length > int64(r.limits.Frame):
		return Frame{}, Violation("%s frame of %d bytes, allowed are %d", f.Type, length, r.limits.Frame)
	case head > length-(prefixSize-4):
		return Frame{}, Violation("%s frame whose header of %d bytes exceeds it", f.Type, head)
	case head > int64(r.limits.Header):
		return Frame{}, Violation("%s header of %d bytes, allowed are %d", f.Type, head, r.limits.Header)
	}
	if int64(cap(r.header)) < head || cap(r.header) > keep {
		r.header = make([]byte, head)
	}
	f.Header = r.header[:head]
	if _, err := io.ReadFull(r.r, f.Header); err != nil {
		return Frame{}, cut(err)
	}
	var err error
	if f.Body, err = readBody(r.r, int(length-(prefixSize-4)-head)); err != nil {
		return Frame{}, cut(err)
	}
	return f, nil
}

// Decode checks the header of f and unmarshals it into v; unknown fields are
// ignored.
func (r *Reader) Decode(f Frame, v any) error {
	if len(f.Header) == 0 {
		return nil
	}
	if err := CheckJSON(f.Header, r.limits.Depth); err != nil {
		return Violation("%s header: %v", f.Type, err)
	}
	if err := json.Unmarshal(f.Header, v); err != nil {
		return Violation("%s header: %v", f.Type, err)
	}
	return nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBody reads n bytes into a slice of exactly that size. A peer that only
// announces a large body does not make us allocate it.
func readBody(r io.Reader, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b := make([]byte, min(n, firstRead))
	for got := 0; ; {
		if _, err := io.ReadFull(r, b[got:]); err != nil {
			return nil, err
		}
		if got = len(b); got == n {
			return b, nil
		}
		grown := make([]byte, min(n, 4*got))
		copy(grown, b)
		b = grown
	}
}

// Writer puts frames on a stream, a small frame in one Write so that it becomes
// one multiplexer frame, a large one in pieces. Not safe for concurrent use.
type Writer struct {
	w      io.Writer
	limits Limits
	buf    []byte
}

// NewWriter writes frames to w within the limits.
func NewWriter(w io.Writer, l Limits) *Writer { return &Writer{w: w, limits: l} }

// Write sends one frame; header is marshalled to JSON, nil sends none. It
// returns ErrTooLarge (wrapped) when the frame exceeds the limits.
func (w *Writer) Write(t Type, header any, body []byte) error {
	b := append(w.buf[:0], make([]byte, prefixSize)...)
	if header != nil {
		h, err := json.Marshal(header)
		if err != nil {
			return fmt.Errorf("encode %s header: %w", t, err)
		}
		b = append(b, h...)
	}
	head := len(b) - prefixSize
	length := len(b) - 4 + len(body)
	if head > min(w.limits.Header, maxHeader) || length > w.limits.Frame {
		return fmt.Errorf("%s of %d bytes, header %d: %w", t, length, head, ErrTooLarge)
	}
	binary.BigEndian.PutUint32(b, uint32(length))
	binary.BigEndian.PutUint32(b[4:], uint32(t)<<24|uint32(head))
	first := min(len(body), max(0, chunk-len(b)))
	b = append(b, body[:first]...)
	if cap(b) <= keep {
		w.buf = b
	}
	if _, err := w.w.Write(b); err != nil {
		return fmt.Errorf("write %s: %w", t, err)
	}
	for rest := body[first:]; len(rest) > 0; {
		n := min(len(rest), chunk)
		if _, err := w.w.Write(rest[:n]); err != nil {
			return fmt.Errorf("write %s body: %w", t, err)
		}
		rest = rest[n:]
	}
	return nil
}
