package pairing

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
)

// PagePath is where people type the code.
const PagePath = "/pair"

// exchange is one request of a connector: what it sends is read into a Q, what
// answer returns is sent as JSON, a *refusal with its status.
func exchange[Q any](s *Service, answer func(r *http.Request, q Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Type", "application/json")
		var q Q
		v, err := any(nil), decode(r, &q)
		if err == nil {
			v, err = answer(r, q)
		}
		status := http.StatusOK
		var no *refusal
		switch {
		case errors.As(err, &no):
			status, v = no.status, no.PairError
			if no.retryAfter > 0 {
				h.Set("Retry-After", strconv.Itoa(int(math.Ceil(no.retryAfter.Seconds()))))
			}
		case err != nil:
			s.Log.Error("pairing request failed", "path", r.URL.Path, "error", err)
			status, v = http.StatusInternalServerError, wire.PairError{Code: wire.PairInternalError, Description: "The broker cannot do this now; try again in a moment."}
		}
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			s.Log.Debug("answer not written", "error", err)
		}
	}
}

// decode reads a bounded JSON body. Other content types are refused: a browser
// sends those across sites without asking.
func decode(r *http.Request, v any) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, wire.PairInvalid, "Content-Type must be application/json.")
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, wire.PairBodyMax+1))
	if err != nil || len(b) > wire.PairBodyMax || json.Unmarshal(b, v) != nil {
		return refuse(http.StatusBadRequest, wire.PairInvalid, "The body must be one JSON object of at most %d bytes.", wire.PairBodyMax)
	}
	return nil
}

// allow counts a request against its origin, or against all when that is empty.
func (s *Service) allow(ctx context.Context, what, who string, limit int, window time.Duration) error {
	ok, after := s.Allow(ctx, "pairing/"+what+"/"+who, limit, window)
	if ok {
		return nil
	}
	no := refuse(http.StatusTooManyRequests, wire.PairUnavailable, "Too many requests; try again in %d s.", int(math.Ceil(after.Seconds())))
	no.retryAfter = max(after, time.Second)
	return no
}

// Pair begins a pairing.
func (s *Service) Pair() http.HandlerFunc {
	return exchange(s, func(r *http.Request, q wire.PairRequest) (any, error) {
		ctx, address := r.Context(), s.Address(r)
		if err := s.allow(ctx, "begin", origin(address), s.Limits.Pair, time.Minute); err != nil {
			return nil, err
		}
		if err := s.allow(ctx, "begin", "", s.Limits.PairAll, time.Minute); err != nil {
			return nil, err
		}
		key, err := q.PublicKey.Key()
		if err != nil {
			return nil, refuse(http.StatusBadRequest, wire.PairInvalid, "public_key: %v.", err)
		}
		if _, err := s.prove(q.Proof, wire.ActPair, func(wire.Proof) (ed25519.PublicKey, error) { return key, nil }); err != nil {
			return nil, err
		}
		base := s.Base(r)
		place, err := s.placeOf(ctx, key, base)
		if err == nil {
			no := refuse(http.StatusConflict, wire.PairAlready, "This key is paired with %s, %s.", place.TenantName, place.InstanceName)
			no.Paired = &place
			return nil, no
		}
		if !errors.Is(err, tenants.ErrNotFound) {
			return nil, err
		}
		clean(&q)
		return s.open(ctx, q, key, address, base)
	})
}

// codeTries is how often another user code is drawn when one is taken.
const codeTries = 3

func (s *Service) open(ctx context.Context, q wire.PairRequest, key ed25519.PublicKey, address, base string) (wire.PairAnswer, error) {
	now := s.Now()
	device, err := newDeviceCode(s.Rand)
	if err != nil {
		return wire.PairAnswer{}, err
	}
	p := tenants.Pairing{ID: tenants.NewID(), Key: key, Name: q.Name, OS: q.OS, Version: q.Version, Address: shown(address, 60), Origin: origin(address),
		Interval: s.Interval, CreatedAt: now, ExpiresAt: now.Add(s.Life)}
	for try := 1; ; try++ {
		code, err := newUserCode(s.Rand)
		if err != nil {
			return wire.PairAnswer{}, err
		}
		err = s.Store.OpenPairing(ctx, p, device, code, s.Limits.Open)
		switch {
		case errors.Is(err, tenants.ErrConflict) && try < codeTries:
			continue
		case errors.Is(err, tenants.ErrTooMany):
			no := refuse(http.StatusTooManyRequests, wire.PairUnavailable, "Too many machines are waiting to be paired; try again in %d minutes.", int(s.Life.Minutes()))
			no.retryAfter = s.Life
			return wire.PairAnswer{}, no
		case err != nil:
			return wire.PairAnswer{}, err
		}
		s.Log.Info("pairing begun", "pairing", p.ID, "address", p.Address, "fingerprint", tenants.Fingerprint(key))
		page := base + PagePath
		return wire.PairAnswer{DeviceCode: device, UserCode: showCode(code), VerificationURI: page, VerificationURIComplete: page,
			ExpiresIn: int(s.Life.Seconds()), Interval: int(s.Interval.Seconds())}, nil
	}
}

// Token tells a connector what became of its pairing.
func (s *Service) Token() http.HandlerFunc {
	return exchange(s, func(r *http.Request, q wire.ProofRequest) (any, error) {
		ctx := r.Context()
		if err := s.allow(ctx, "poll", origin(s.Address(r)), s.Limits.Poll, time.Minute); err != nil {
			return nil, err
		}
		var p tenants.Pairing
		var soon bool
		_, err := s.prove(q.Proof, wire.ActToken, func(proof wire.Proof) (_ ed25519.PublicKey, err error) {
			p, soon, err = s.Store.PollPairing(ctx, proof.DeviceCode, s.Now(), wire.PairSlowDown)
			if errors.Is(err, tenants.ErrNotFound) {
				return nil, refuse(http.StatusBadRequest, wire.PairExpired, "The broker does not know this pairing any more; begin anew.")
			}
			return p.Key, err
		})
		switch {
		case err != nil:
			return nil, err
		case p.State == tenants.PairingDenied:
			return nil, refuse(http.StatusBadRequest, wire.PairDenied, "The request was turned down in the browser.")
		case !s.Now().Before(p.ExpiresAt):
			return nil, refuse(http.StatusBadRequest, wire.PairExpired, "The code has expired; begin anew.")
		case p.State == tenants.PairingApproved:
			place, err := s.placeOf(ctx, p.Key, s.Base(r))
			if errors.Is(err, tenants.ErrNotFound) {
				return nil, refuse(http.StatusBadRequest, wire.PairDenied, "The approval was taken back.")
			}
			return place, err
		case soon:
			return nil, refuse(http.StatusBadRequest, wire.PairSlow, "Ask less often.")
		}
		return nil, refuse(http.StatusBadRequest, wire.PairPending, "Nobody has decided yet.")
	})
}

// placeOf is where the connector of a key belongs; ErrNotFound when the key is
// not in force.
func (s *Service) placeOf(ctx context.Context, key ed25519.PublicKey, base string) (wire.Paired, error) {
	c, err := s.Store.ConnectorByFingerprint(ctx, tenants.Fingerprint(key))
	if err == nil && !c.RevokedAt.IsZero() {
		err = fmt.Errorf("connector %s is revoked: %w", c.ID, tenants.ErrNotFound)
	}
	if err != nil {
		return wire.Paired{}, err
	}
	place := wire.Paired{ConnectorID: c.ID.String(), TenantID: c.TenantID.String(), InstanceID: c.InstanceID.String(), Tunnel: s.Tunnel(base)}
	err = s.Store.In(ctx, c.TenantID, func(tx tenants.Tx) error {
		tenant, err := tx.Tenant(ctx)
		if err != nil {
			return err
		}
		in, err := tx.Instance(ctx, c.InstanceID)
		place.TenantName, place.InstanceName = tenant.Name, in.Name
		return err
	})
	return place, err
}

// Unpair lets a connector revoke itself. A second time changes nothing.
func (s *Service) Unpair() http.HandlerFunc {
	return exchange(s, func(r *http.Request, q wire.ProofRequest) (any, error) {
		ctx := r.Context()
		if err := s.allow(ctx, "poll", origin(s.Address(r)), s.Limits.Poll, time.Minute); err != nil {
			return nil, err
		}
		var c tenants.Connector
		_, err := s.prove(q.Proof, wire.ActUnpair, func(p wire.Proof) (_ ed25519.PublicKey, err error) {
			c, err = s.Store.ConnectorByFingerprint(ctx, p.Subject)
			if errors.Is(err, tenants.ErrNotFound) {
				return nil, refuse(http.StatusNotFound, wire.PairUnknown, "The broker knows no connector with this key.")
			}
			return c.PublicKey, err
		})
		if err != nil || !c.RevokedAt.IsZero() {
			return struct{}{}, err
		}
		return struct{}{}, s.Store.In(ctx, c.TenantID, func(tx tenants.Tx) error {
			return revoke(ctx, tx, c, tenants.AuditEntry{ActorKind: "connector", ActorID: c.ID, Verb: "connector.unpair"})
		})
	})
}
