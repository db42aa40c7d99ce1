package contract

import "io"

// UnknownSize stands for a number of bytes that is not known beforehand.
const UnknownSize int64 = -1

// Transfer is a Call with a body of any length beside its arguments, and an
// answer of any length: an upload, a download, an export. Neither is ever held
// in memory as a whole.
type Transfer struct {
	Call
	Size int64 // bytes sent home; 0: none, UnknownSize: as many as there will be
}

// Stream is a running Transfer, seen from the end that asked for it. Reading and
// writing may go on at the same time; each waits for the other end, so that
// nothing piles up.
type Stream interface {
	// Read gives what the home sends. io.EOF means that all of it came and the
	// home is done; another error is an *Error.
	io.Reader
	// Write sends part of the body home. Its error is the stream's: an *Error.
	io.Writer
	// CloseWrite ends the body that goes home; a Transfer of Size 0 is ended
	// already.
	CloseWrite() error
	// Size is how much the home said that it will send, UnknownSize if it did
	// not; it is settled once the first Read has returned.
	Size() int64
	// Close gives up a Stream that is not at its end, and must be called in any
	// case.
	Close() error
}

// BodyWriter is where the home puts its answer to a Transfer.
type BodyWriter interface {
	io.Writer
	// Announce says how many bytes will be written; it comes before the first of
	// them. Another number is an error of the stream then.
	Announce(size int64) error
}
