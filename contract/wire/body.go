package wire

import (
	"errors"
	"fmt"

	"siyuan-broker/contract"
)

// Inline is the size above which arguments and results travel over the bulk
// session where there is one.
const Inline = 128 << 10

// MaxData is the size of a DATA frame's body; a larger one is a protocol error.
const MaxData = 64 << 10

// Stream is the header of a STREAM frame, which begins a transfer; the body is
// the raw arguments.
type Stream struct {
	Call
	Size *int64 `json:"size,omitempty"` // bytes of the DATA to come from the broker; absent: unknown
}

// StreamOf splits a transfer into header and body. The time left is the
// caller's to fill in.
func StreamOf(id uint64, t contract.Transfer) (Stream, []byte) {
	var h Stream
	var args []byte
	h.Call, args = CallOf(id, t.Call)
	h.Size = sizeOf(t.Size)
	return h, args
}

// Transfer joins header and body again.
func (h Stream) Transfer(body []byte) contract.Transfer {
	return contract.Transfer{Call: h.Contract(body), Size: known(h.Size)}
}

// Data is the header of a direction's first DATA frame; the others have none.
type Data struct {
	Size *int64 `json:"size,omitempty"` // bytes to come; absent: unknown
}

// End is the header of an END frame: that direction is complete.
type End struct {
	ID    uint64 `json:"id"`
	Bytes int64  `json:"bytes"`           // of all its DATA
	Close bool   `json:"close,omitempty"` // from the connector: this stream takes nothing more
}

func sizeOf(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func known(n *int64) int64 {
	if n == nil || *n < 0 {
		return contract.UnknownSize
	}
	return *n
}

// ErrBodySize is returned where more or less was written than announced.
var ErrBodySize = errors.New("the body has not the announced size")

// BodyWriter sends one direction of a transfer as DATA frames.
type BodyWriter struct {
	Send func(t Type, header any, body []byte) error // writes a frame
	ID   uint64

	announce, counted bool
	size, sent        int64
}

// Expect says how many bytes will be written without telling the other end,
// which knows. UnknownSize expects nothing.
func (b *BodyWriter) Expect(size int64) { b.size, b.counted = size, size >= 0 }

// Announce tells the other end how many bytes will be written.
func (b *BodyWriter) Announce(size int64) error {
	if b.sent > 0 || b.counted || size < 0 {
		return errors.New("a body is announced once, and before it is written")
	}
	b.size, b.counted, b.announce = size, true, true
	return nil
}

// Write sends p.
func (b *BodyWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), MaxData)]
		if b.counted && b.sent+int64(len(part)) > b.size {
			return n, fmt.Errorf("%w: more than %d bytes", ErrBodySize, b.size)
		}
		var header any
		if b.announce {
			header, b.announce = Data{Size: &b.size}, false
		}
		if err := b.Send(FrameData, header, part); err != nil {
			return n, err
		}
		b.sent += int64(len(part))
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// End completes the direction; last says that the stream is closed next.
func (b *BodyWriter) End(last bool) error {
	if b.counted && b.sent != b.size {
		return fmt.Errorf("%w: %d of %d bytes", ErrBodySize, b.sent, b.size)
	}
	return b.Send(FrameEnd, End{ID: b.ID, Bytes: b.sent, Close: last}, nil)
}

// BodyReader judges the frames of one direction of a transfer.
type BodyReader struct {
	ID   uint64
	Size int64 // announced; contract.UnknownSize

	seen, got int64
	ended     bool
}

// Data takes a DATA frame.
func (b *BodyReader) Data(r *Reader, f Frame) error {
	if len(f.Header) > 0 {
		var d Data
		if err := r.Decode(f, &d); err != nil {
			return err
		}
		if b.seen == 0 && b.Size < 0 {
			b.Size = known(d.Size)
		}
	}
	b.seen++
	b.got += int64(len(f.Body))
	switch {
	case b.ended:
		return Violation("DATA after END")
	case len(f.Body) > MaxData:
		return Violation("DATA of %d bytes, allowed are %d", len(f.Body), MaxData)
	case b.Size >= 0 && b.got > b.Size:
		return Violation("DATA beyond the announced %d bytes", b.Size)
	}
	return nil
}

// End takes an END frame and checks that nothing is missing.
func (b *BodyReader) End(r *Reader, f Frame) (End, error) {
	var e End
	if err := r.Decode(f, &e); err != nil {
		return e, err
	}
	switch {
	case b.ended:
		return e, Violation("END after END")
	case e.ID != b.ID:
		return e, Violation("END of transfer %d while %d runs", e.ID, b.ID)
	case e.Bytes != b.got, b.Size >= 0 && b.got != b.Size:
		return e, Violation("END after %d bytes; it says %d, announced were %d", b.got, e.Bytes, b.Size)
	}
	b.ended = true
	return e, nil
}
