package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// broken is a call whose session failed under it.
type broken struct {
	sent bool // it may have reached the home
	why  error
}

// public is what the caller learns.
func (b *broken) public(idempotent bool) *contract.Error {
	var bye *wire.Reject
	replaced := errors.As(b.why, &bye) && bye.Code == wire.RejectReplaced
	switch {
	case b.sent && !idempotent:
		return contract.Fail(contract.OutcomeUnknown, "The connection to the home broke while the write was under way; it may or may not have happened.").WithCause(b.why)
	case replaced:
		return contract.Fail(contract.TunnelReplaced, "A newer connection of the same connector took over.").After(1).WithCause(b.why)
	}
	return contract.Fail(contract.ConnectorOffline, "The connection to the home broke.").WithCause(b.why)
}

// call runs one call on this session. Either the result counts, or the session
// failed and broken says how far it got.
func (n *session) call(ctx context.Context, c contract.Call, idempotent bool, progress func(contract.Progress)) (contract.Result, *broken) {
	if !n.enter() {
		return contract.Result{}, &broken{why: n.lost(errPoolClosed)}
	}
	defer n.leave()
	if c.Safety.Asked() && !n.safety { // it would not see that, and write
		return failed(contract.Fail(contract.Unsupported, "The connector of this home is too old to validate writes; nothing was done.").
			WithHint("Ask the owner to update siyuan-connector, or send the call without a hash and without validateOnly.")), nil
	}
	if !idempotent && !c.Replay && n.others.before(c) {
		if !n.safety { // it would not see that it is only asked
			return failed(n.others.unknown()), nil
		}
		c.Replay = true
		res, broken := n.carry(ctx, c, idempotent, progress)
		if res.Err != nil && contract.CodeOf(res.Err) == contract.ConfirmationUsed {
			res.Err = n.others.unknown()
		}
		return res, broken
	}
	return n.carry(ctx, c, idempotent, progress)
}

// carry runs a call that was let in.
func (n *session) carry(ctx context.Context, c contract.Call, idempotent bool, progress func(contract.Progress)) (contract.Result, *broken) {
	s, err := n.streamFor(ctx, len(c.Args))
	switch {
	case errors.Is(err, errPoolClosed):
		return contract.Result{}, &broken{why: n.lost(err)}
	case errors.Is(err, errQueueFull):
		n.hub.n.overloaded.Add(1)
		return failed(overloaded()), nil
	case err != nil:
		return failed(expired(ctx, false)), nil
	}
	return n.exchange(ctx, s, c, idempotent, progress)
}

func overloaded() *contract.Error {
	return contract.Fail(contract.RateLimited, "Too many calls are waiting for this home.").After(1)
}

// streamFor takes a stream for a body of the given size: one of the bulk session
// if it is large.
func (n *session) streamFor(ctx context.Context, size int) (*stream, error) {
	if size > wire.Inline {
		if b := n.bulk(ctx); b != nil {
			if s, err := b.pool.get(ctx); !errors.Is(err, errPoolClosed) {
				return s, err
			}
		}
	}
	return n.pool.get(ctx)
}

func failed(e *contract.Error) contract.Result { return contract.Result{Err: e} }

// expired is the answer to a caller whose context is done.
func expired(ctx context.Context, unknown bool) *contract.Error {
	if unknown {
		return contract.Fail(contract.OutcomeUnknown, "The write took longer than the call may; it may or may not have happened.").WithCause(ctx.Err())
	}
	return contract.Fail(contract.Timeout, "The home did not answer within the time of the call; nothing was changed.").WithCause(ctx.Err())
}

// exchange sends the call on a stream and waits for its end. The stream goes
// back to the pool only after a complete answer.
func (n *session) exchange(ctx context.Context, s *stream, c contract.Call, idempotent bool, progress func(contract.Progress)) (contract.Result, *broken) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = s.st.SetDeadline(time.Unix(1, 0)) // wakes the blocked read or write
	})
	digest, known := n.grants.name(c.Grant)
	res, whole, err := n.ask(ctx, s, c, digest, known, progress)
	if errors.Is(err, errGrantUnknown) {
		n.grants.forgot(digest)
		res, whole, err = n.ask(ctx, s, c, digest, false, progress)
	}
	if !stop() { // the deadline is poisoned, or about to be
		<-interrupted
		if err == nil {
			n.discard(s, false)
			return res, nil
		}
	}
	switch {
	case err == nil:
		if len(res.Body) > 64<<10 {
			s.st.Shrink()
		}
		s.pool.put(s)
		return res, nil
	case ctx.Err() != nil && !s.st.Session().IsClosed():
		n.discard(s, whole)
		return failed(expired(ctx, !idempotent)), nil
	}
	var bad *wire.ProtocolError
	if errors.As(err, &bad) {
		n.end(err)
	}
	n.discard(s, false)
	return contract.Result{}, &broken{sent: true, why: n.lost(err)}
}

// ask sends the call and reads its answer. Where the connector is known to have
// the grant, only its digest goes; errGrantUnknown says that it has not, and that
// the call was not started. whole reports whether the CALL went out completely.
func (n *session) ask(ctx context.Context, s *stream, c contract.Call, digest string, known bool, progress func(contract.Progress)) (res contract.Result, whole bool, err error) {
	s.last++
	head, args := wire.CallOf(s.last, c)
	head.TimeLeftMS, head.GrantDigest = timeLeft(ctx, n.cfg.Timing.ReplyMargin), digest
	if known {
		head.Grant = nil
	}
	if head.Bulk = n.door.expect(s); head.Bulk != 0 {
		defer n.door.forget(head.Bulk)
	}
	switch err := s.w.Write(wire.FrameCall, head, args); {
	case errors.Is(err, wire.ErrTooLarge):
		return failed(contract.Fail(contract.TooLarge, "The arguments are larger than %d bytes.", n.cfg.Limits.Result).WithCause(err)), false, nil
	case err != nil:
		return res, false, err
	}
	res, err = n.answer(ctx, s, progress)
	switch {
	case errors.Is(err, errGrantUnknown) && !known:
		err = wire.Violation("%s in answer to a call with its grant", wire.FrameGrantUnknown)
	case err == nil && !known && digest != "":
		n.grants.has(digest)
	}
	return res, true, err
}

// timeLeft is what the home may use of the caller's time: a little less, so
// that its own answer arrives rather than our timeout.
func timeLeft(ctx context.Context, margin time.Duration) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline)
	return max(1, (left - min(margin, left/4)).Milliseconds())
}

// answer reads frames until one ends the call.
func (n *session) answer(ctx context.Context, s *stream, progress func(contract.Progress)) (contract.Result, error) {
	for {
		f, err := s.r.Next()
		if err != nil {
			return contract.Result{}, err
		}
		switch f.Type {
		case wire.FrameProgress:
			var p wire.Progress
			if err := s.decode(f, &p, &p.ID); err != nil {
				return contract.Result{}, err
			}
			if progress != nil {
				p.Message = clip(p.Message, maxMessage)
				progress(p.Progress)
			}
		case wire.FrameResult:
			var r wire.Result
			if err := s.decode(f, &r, &r.ID); err != nil {
				return contract.Result{}, err
			}
			res := contract.Result{Body: f.Body, Stats: checkStats(r.Stats)}
			if r.Bulk {
				if res.Body, err = n.bulkResult(ctx, s, f); err != nil {
					return contract.Result{}, err
				}
			}
			if len(res.Body) > n.cfg.Limits.Result {
				return contract.Result{}, wire.Violation("result of %d bytes, allowed are %d", len(res.Body), n.cfg.Limits.Result)
			}
			if err := wire.CheckJSON(res.Body, n.cfg.Limits.Depth); err != nil {
				res.Body, res.Err = nil, contract.Internalf(err, "result of connector %s", n.rec.ID)
			}
			return res, nil
		case wire.FrameError:
			var e wire.Error
			if err := s.decode(f, &e, &e.ID); err != nil {
				return contract.Result{}, err
			}
			return contract.Result{Err: checkError(e.Error), Stats: checkStats(e.Stats)}, nil
		case wire.FrameGrantUnknown:
			var g wire.GrantUnknown
			if err := s.decode(f, &g, &g.ID); err != nil {
				return contract.Result{}, err
			}
			return contract.Result{}, errGrantUnknown
		default:
			return contract.Result{}, wire.Violation("%s in answer to a call", f.Type)
		}
	}
}

// bulkResult is the body of a RESULT that says to be on the bulk session.
func (n *session) bulkResult(ctx context.Context, s *stream, f wire.Frame) ([]byte, error) {
	if s.result == nil || s.bulk || len(f.Body) > 0 {
		return nil, wire.Violation("result in two places")
	}
	return n.door.await(ctx, s)
}

// decode reads a header and checks that it answers the current call.
func (s *stream) decode(f wire.Frame, v any, id *uint64) error {
	if err := s.r.Decode(f, v); err != nil {
		return err
	}
	if *id != s.last {
		return wire.Violation("%s for call %d while call %d runs", f.Type, *id, s.last)
	}
	return nil
}

// discard closes a stream that must not be used again, after a CANCEL where the
// call was sent whole. Writing may block, the caller does not wait for it.
func (n *session) discard(s *stream, cancel bool) {
	n.task(func() {
		if cancel {
			_ = s.st.SetWriteDeadline(time.Now().Add(n.cfg.Timing.Write))
			_ = s.w.Write(wire.FrameCancel, wire.Cancel{ID: s.last}, nil) // closing says the same, only less clearly
		}
		_ = s.st.Close()
		s.pool.drop()
	})
}

// lost is why the session ended. A call may notice that the link is dead before
// the session does.
func (n *session) lost(err error) error {
	if n.mux.IsClosed() {
		n.end(fmt.Errorf("%w: %w", errLinkLost, err))
	}
	if why := n.reason(); why != nil {
		return why
	}
	return err
}
