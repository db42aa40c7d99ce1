package relay

import (
	"context"
	"errors"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
	"siyuan-broker/contract/wire/transfer"
)

// OpenStream starts a transfer to or from the connector of an instance, over its
// bulk session where there is one. It ends with ctx at the latest, and when
// nothing moved for Timing.StreamIdle. Errors are *contract.Error;
// connector_offline and tunnel_replaced mean that nothing reached the home.
//
// idempotent says that the transfer only reads; it decides what a broken one is
// called. A transfer is never repeated here.
func (h *Hub) OpenStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (contract.Stream, error) {
	s, err := h.openStream(ctx, tenant, instance, t, idempotent)
	if err != nil {
		return nil, named(contract.Result{Err: err}, t.RequestID).Err
	}
	return s, nil
}

func (h *Hub) openStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (*transfer.Caller, *contract.Error) {
	if t.Grant == nil {
		return nil, contract.Internalf(errNoGrant, "%s.%s", t.Tool, t.Action)
	}
	n := h.session(tenant, instance)
	switch {
	case n == nil:
		return nil, h.offline(ctx, tenant, instance)
	case !n.door.offered:
		return nil, contract.Fail(contract.Unsupported, "The connector at home is too old for uploads, downloads and exports.").WithHint("Ask the owner to update siyuan-connector.")
	case !idempotent && n.others.before(t.Call): // a transfer is not remembered
		return nil, n.others.unknown()
	case !h.transferring(n, 1):
		h.n.overloaded.Add(1)
		return nil, contract.Fail(contract.RateLimited, "Too many transfers with this home are running.").After(5)
	}
	c, err := n.transfer(ctx, t, idempotent)
	if err != nil {
		h.transferring(n, -1)
	}
	return c, err
}

// transferring counts the transfers of a session and of its tenant; it reports
// whether one more is allowed.
func (h *Hub) transferring(n *session, by int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if by > 0 && (n.transfers >= h.cfg.Limits.Transfers || h.transfers[n.rec.Tenant] >= h.cfg.Limits.TenantTransfers) {
		return false
	}
	n.transfers += by
	if h.transfers[n.rec.Tenant] += by; h.transfers[n.rec.Tenant] == 0 {
		delete(h.transfers, n.rec.Tenant)
	}
	return true
}

// transfer starts one on this session, which counts as a call until it is over.
func (n *session) transfer(ctx context.Context, t contract.Transfer, idempotent bool) (*transfer.Caller, *contract.Error) {
	if !n.enter() {
		return nil, (&broken{why: n.lost(errPoolClosed)}).public(idempotent)
	}
	s, err := n.streamFor(ctx, wire.Inline+1)
	if err != nil {
		n.leave()
		switch {
		case errors.Is(err, errPoolClosed):
			return nil, (&broken{why: n.lost(err)}).public(idempotent)
		case errors.Is(err, errQueueFull):
			return nil, overloaded()
		}
		return nil, expired(ctx, false)
	}
	s.last++
	head, args := wire.StreamOf(s.last, t)
	head.TimeLeftMS = timeLeft(ctx, n.cfg.Timing.ReplyMargin)
	_ = s.st.SetWriteDeadline(time.Now().Add(n.cfg.Timing.Write)) // fails never
	if err := s.w.Write(wire.FrameStream, head, args); err != nil {
		n.discard(s, false)
		n.leave()
		if errors.Is(err, wire.ErrTooLarge) {
			return nil, contract.Fail(contract.TooLarge, "The arguments are larger than %d bytes.", n.cfg.Limits.Result).WithCause(err)
		}
		return nil, (&broken{sent: true, why: n.lost(err)}).public(idempotent)
	}
	_ = s.st.SetDeadline(time.Time{})
	c := transfer.Open(ctx, transfer.Opening{
		Conn: s.st, Reader: s.r, Writer: s.w, ID: s.last, Size: t.Size, Idle: n.cfg.Timing.StreamIdle, Check: checkError,
		Explain: func(err error) *contract.Error { return n.explain(ctx, err, idempotent) },
		Release: func(clean, cancel bool) { n.release(s, clean, cancel) },
	})
	if !n.task(c.Run) {
		c.Run() // the session is over, and so is this
	}
	if t.Size == 0 {
		_ = c.CloseWrite() // if it fails, so does the first Read
	}
	return c, nil
}

func (n *session) release(s *stream, clean, cancel bool) {
	if clean {
		s.st.Shrink()
		s.pool.put(s)
	} else {
		n.discard(s, cancel)
	}
	n.hub.transferring(n, -1)
	n.leave()
}

// explain is what the caller learns about a transfer that did not end well.
func (n *session) explain(ctx context.Context, err error, idempotent bool) *contract.Error {
	var bad *wire.ProtocolError
	switch {
	case ctx.Err() != nil:
		return expired(ctx, !idempotent)
	case errors.Is(err, transfer.ErrClosed):
		return contract.Fail(contract.Timeout, "The transfer was given up.").WithHint("Start it again.").WithCause(err)
	case errors.Is(err, wire.ErrBodySize):
		return contract.Fail(contract.InvalidValue, "The body has not the announced size.").WithCause(err)
	case errors.Is(err, transfer.ErrIdle) && idempotent:
		return contract.Fail(contract.Timeout, "The transfer stood still for too long; nothing was changed.").WithCause(err)
	case errors.As(err, &bad):
		n.end(err)
	}
	return (&broken{sent: true, why: n.lost(err)}).public(idempotent)
}
