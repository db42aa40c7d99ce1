package tunnel

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/transfer"
)

// StreamHandler carries out transfers: uploads, downloads and exports. It is
// called concurrently, at most Config.MaxTransfers times, reads what is sent
// until io.EOF, writes the answer and returns soon after ctx is done. A
// *contract.Error reaches the caller as it is, another error as internal_error.
type StreamHandler interface {
	HandleStream(ctx context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) error
}

// StreamHandlerFunc makes a function a StreamHandler.
type StreamHandlerFunc func(ctx context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) error

// HandleStream calls f.
func (f StreamHandlerFunc) HandleStream(ctx context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) error {
	return f(ctx, t, in, out)
}

// beginTransfer starts a transfer. What the broker sends of one that was refused
// is dropped; it closes the stream.
func (c *callStream) beginTransfer(f wire.Frame) error {
	var h wire.Stream
	if err := c.r.Decode(f, &h); err != nil {
		return err
	}
	switch {
	case h.ID == 0 || h.Grant == nil:
		return wire.Violation("STREAM without id or grant")
	case c.busy():
		return wire.Violation("STREAM %d while another call runs", h.ID)
	}
	c.served, c.refused = nil, true
	client := c.s.client
	if client.cfg.Streams == nil {
		return c.refuse(h.ID, contract.Fail(contract.Unsupported, "This connector carries out no uploads, downloads and exports."))
	}
	if err := wire.CheckJSON(f.Body, maxDepth); err != nil {
		return c.refuse(h.ID, contract.Fail(contract.InvalidArguments, "The arguments are not usable: %v.", err))
	}
	select {
	case client.transfers <- struct{}{}:
	default:
		return c.refuse(h.ID, contract.Fail(contract.RateLimited, "The connector is running as many transfers as it may.").After(5))
	}
	t := h.Transfer(f.Body)
	left := maxTransfer
	if h.TimeLeftMS > 0 {
		left = time.Duration(min(h.TimeLeftMS, maxTransfer.Milliseconds())) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(c.s.ctx, left)
	served := transfer.Serve(ctx, transfer.Serving{ID: h.ID, Size: t.Size, Idle: client.cfg.Timing.StreamIdle,
		Send: func(typ wire.Type, header any, body []byte) error {
			if typ != wire.FrameData {
				c.finish(h.ID) // before the last frame: the next call may follow it at once
			}
			_ = c.st.SetWriteDeadline(time.Now().Add(client.cfg.Timing.StreamIdle)) // fails never
			defer func() { _ = c.st.SetWriteDeadline(time.Time{}) }()
			return c.write(typ, header, body)
		}})
	c.served = served
	c.mu.Lock()
	c.running, c.cancel = h.ID, served.Cancel
	c.mu.Unlock()
	client.sessions.Go(func() {
		defer cancel()
		err := served.Run(func(ctx context.Context, in io.Reader, out contract.BodyWriter) error {
			defer func() { <-client.transfers }()
			return c.handleTransfer(ctx, t, in, out)
		})
		c.finish(h.ID)
		if err != nil {
			_ = c.st.Close() // the broker must not wait for an end that cannot come
		}
	})
	return nil
}

// maxTransfer bounds the time of a transfer.
const maxTransfer = 24 * time.Hour

// piece takes a DATA or END frame.
func (c *callStream) piece(f wire.Frame) error {
	switch {
	case c.served != nil:
		return c.served.Take(c.r, f)
	case c.refused:
		return nil
	}
	return wire.Violation("%s without a transfer", f.Type)
}

// handleTransfer calls the handler; a panic costs only this transfer.
func (c *callStream) handleTransfer(ctx context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.client.cfg.Logger.Error("handler panicked", "tool", t.Tool, "action", t.Action,
				"request_id", t.RequestID, "panic", p, "stack", string(debug.Stack()))
			err = contract.Internalf(fmt.Errorf("panic: %v", p), "%s.%s", t.Tool, t.Action)
		}
	}()
	return c.s.client.cfg.Streams.HandleStream(ctx, t, in, out)
}
