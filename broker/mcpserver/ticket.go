package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/tenants"
)

// SessionPurpose is the purpose under which the store keeps the keys that sign
// session ids.
const SessionPurpose = "session"

// legacyEras are the protocol versions with sessions, newest first. Ids name
// them by their place counted from the end, so a new one goes first.
var legacyEras = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// lastBatchEra is the newest protocol version that knows batches.
const lastBatchEra = "2025-03-26"

// sessionLife is how long a session id is good for.
const sessionLife = 24 * time.Hour

// ticket is what the id of a legacy session says, so that any node can go on
// with the session at any time, without asking anybody.
type ticket struct {
	id      uuid.UUID // version 7: names the session and says when it began
	tenant  tenants.ID
	member  tenants.ID
	agent   tenants.ID
	era     string
	form    bool // the client can show its user a form
	url     bool // or open a page
	expires time.Time
}

func (t *ticket) owner() agentKey { return agentKey{t.tenant, t.agent} }

func (t *ticket) began() time.Time { return time.Unix(t.id.Time().UnixTime()) }

// The layout of a session id before base64: version, key, payload, MAC over all
// of it before.
const (
	ticketVersion = 1
	keyIDLen      = 8
	ticketBody    = 1 + keyIDLen + 4*16 + 1 + 1 + 8
	ticketLen     = ticketBody + sha256.Size
)

const (
	flagForm = 1 << iota
	flagURL
)

func (t *ticket) body(kid [keyIDLen]byte) []byte {
	b := append(make([]byte, 0, ticketLen), ticketVersion)
	b = append(b, kid[:]...)
	for _, id := range []uuid.UUID{t.id, t.tenant, t.member, t.agent} {
		b = append(b, id[:]...)
	}
	flags := byte(0)
	if t.form {
		flags |= flagForm
	}
	if t.url {
		flags |= flagURL
	}
	era := byte(len(legacyEras) - slices.Index(legacyEras, t.era))
	return binary.BigEndian.AppendUint64(append(b, era, flags), uint64(t.expires.Unix()))
}

// parseTicket reads the body of an id whose MAC was checked.
func parseTicket(b []byte) (ticket, error) {
	ids := b[1+keyIDLen:]
	rest := ids[4*16:]
	era := len(legacyEras) - int(rest[0])
	if era < 0 || era >= len(legacyEras) {
		return ticket{}, errNoSession
	}
	t := ticket{
		id: uuid.UUID(ids[:16]), tenant: uuid.UUID(ids[16:32]), member: uuid.UUID(ids[32:48]), agent: uuid.UUID(ids[48:64]),
		era: legacyEras[era], form: rest[1]&flagForm != 0, url: rest[1]&flagURL != 0,
		expires: time.Unix(int64(binary.BigEndian.Uint64(rest[2:])), 0),
	}
	if t.id.Version() != 7 {
		return ticket{}, errNoSession
	}
	return t, nil
}

// KeyStore is the part of tenants.Store that keeps the keys of session ids.
type KeyStore interface {
	SigningKeys(ctx context.Context) ([]tenants.SigningKey, error)
	PutSigningKey(ctx context.Context, k tenants.SigningKey) error
	RetireSigningKey(ctx context.Context, kid string, retires, expires time.Time) error
	DeleteSigningKey(ctx context.Context, kid string) error
}

// errNoSession means that an id names no session that the caller may go on
// with, whatever the reason.
var errNoSession = errors.New("no such session")

const (
	rotateTickets = 30 * 24 * time.Hour // a key signs so long
	rotateLead    = time.Minute         // and is known so long before
	reloadEvery   = time.Second         // bounds what unknown key ids cost
)

// ticketKeys seal and open session ids. Nodes that start at once may each make
// a key; each knows the other's, so that is harmless.
type ticketKeys struct {
	store KeyStore
	now   func() time.Time
	rand  io.Reader

	ring     atomic.Pointer[[]ticketKey] // newest first
	mu       sync.Mutex                  // held while loading
	loadedAt time.Time
	loadErr  error
}

type ticketKey struct {
	name                        string // in the store
	kid                         [keyIDLen]byte
	secret                      []byte
	notBefore, retires, expires time.Time // zero retires and expires: no end
}

func newTicketKeys(store KeyStore, now func() time.Time) *ticketKeys {
	k := &ticketKeys{store: store, now: now, rand: rand.Reader}
	k.ring.Store(&[]ticketKey{})
	return k
}

// seal makes the id of a session. Errors are the store's.
func (k *ticketKeys) seal(ctx context.Context, t ticket) (string, error) {
	key, err := k.signing(ctx)
	if err != nil {
		return "", err
	}
	b := t.body(key.kid)
	return base64.RawURLEncoding.EncodeToString(append(b, key.mac(b)...)), nil
}

// open reads an id that seal made on some node; errNoSession for anything else,
// or the store's error when that cannot be told.
func (k *ticketKeys) open(ctx context.Context, id string) (ticket, error) {
	if len(id) != base64.RawURLEncoding.EncodedLen(ticketLen) {
		return ticket{}, errNoSession
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || raw[0] != ticketVersion {
		return ticket{}, errNoSession
	}
	body, sum := raw[:ticketBody], raw[ticketBody:]
	key, err := k.verifying(ctx, [keyIDLen]byte(body[1:]))
	if err != nil {
		return ticket{}, err
	}
	if !hmac.Equal(sum, key.mac(body)) {
		return ticket{}, errNoSession
	}
	return parseTicket(body)
}

func (k *ticketKey) mac(body []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write(body) // never fails
	return h.Sum(nil)
}

// signing is the newest key in force; the first is made when it is needed.
func (k *ticketKeys) signing(ctx context.Context) (*ticketKey, error) {
	if key := k.inForce(); key != nil {
		return key, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.inForce(); key != nil {
		return key, nil
	}
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	if key := k.inForce(); key != nil {
		return key, nil
	}
	if err := k.create(ctx, k.now()); err != nil {
		return nil, err
	}
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	if key := k.inForce(); key != nil {
		return key, nil
	}
	return nil, errors.New("no key for session ids is in force") // the clock went backwards
}

func (k *ticketKeys) inForce() *ticketKey {
	now := k.now()
	for _, key := range *k.ring.Load() {
		if !now.Before(key.notBefore) && (key.retires.IsZero() || now.Before(key.retires)) {
			return &key
		}
	}
	return nil
}

// verifying finds a key by its id. An unknown one may be another node's new
// key, so the store is asked again, at most once a second.
func (k *ticketKeys) verifying(ctx context.Context, kid [keyIDLen]byte) (*ticketKey, error) {
	if key := k.find(kid); key != nil {
		return key, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.find(kid) == nil && k.now().Sub(k.loadedAt) >= reloadEvery {
		k.loadErr = k.load(ctx)
		k.loadedAt = k.now()
	}
	if key := k.find(kid); key != nil {
		return key, nil
	}
	if k.loadErr != nil {
		return nil, k.loadErr
	}
	return nil, errNoSession
}

func (k *ticketKeys) find(kid [keyIDLen]byte) *ticketKey {
	now := k.now()
	for _, key := range *k.ring.Load() {
		if key.kid == kid && (key.expires.IsZero() || now.Before(key.expires)) {
			return &key
		}
	}
	return nil
}

// keyPrefix begins the names of session keys in the store.
const keyPrefix = "session-"

func (k *ticketKeys) load(ctx context.Context) error {
	stored, err := k.store.SigningKeys(ctx)
	if err != nil {
		return fmt.Errorf("load keys of session ids: %w", err)
	}
	ring := []ticketKey{}
	for _, s := range stored {
		if s.Purpose != SessionPurpose || s.Alg != "HS256" {
			continue
		}
		kid, err := hex.DecodeString(strings.TrimPrefix(s.KID, keyPrefix))
		if err != nil || len(kid) != keyIDLen || len(s.Private) < sha256.Size {
			return fmt.Errorf("key of session ids %s: not one of this version", s.KID)
		}
		ring = append(ring, ticketKey{s.KID, [keyIDLen]byte(kid), s.Private, s.NotBefore, s.RetiresAt, s.ExpiresAt})
	}
	slices.SortFunc(ring, func(a, b ticketKey) int {
		if c := b.notBefore.Compare(a.notBefore); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	k.ring.Store(&ring)
	k.loadedAt = k.now()
	return nil
}

func (k *ticketKeys) create(ctx context.Context, notBefore time.Time) error {
	fresh := make([]byte, keyIDLen+sha256.Size)
	if _, err := io.ReadFull(k.rand, fresh); err != nil {
		return fmt.Errorf("make a key of session ids: %w", err)
	}
	err := k.store.PutSigningKey(ctx, tenants.SigningKey{
		KID: keyPrefix + hex.EncodeToString(fresh[:keyIDLen]), Alg: "HS256", Purpose: SessionPurpose,
		Private: fresh[keyIDLen:], NotBefore: notBefore, CreatedAt: k.now(),
	})
	if err != nil {
		return fmt.Errorf("store a key of session ids: %w", err)
	}
	return nil
}

// rotate replaces a signing key that is old, and drops keys whose last session
// has expired. Before the first session it does nothing.
func (k *ticketKeys) rotate(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(ctx); err != nil {
		return err
	}
	ring, now := *k.ring.Load(), k.now()
	if len(ring) == 0 {
		return nil
	}
	takesOver := now.Add(rotateLead)
	due := now.Sub(ring[0].notBefore) >= rotateTickets
	if due {
		if err := k.create(ctx, takesOver); err != nil {
			return err
		}
	}
	for _, key := range ring {
		switch {
		case !key.expires.IsZero() && now.After(key.expires):
			if err := k.store.DeleteSigningKey(ctx, key.name); err != nil && !errors.Is(err, tenants.ErrNotFound) {
				return fmt.Errorf("delete expired key %s: %w", key.name, err)
			}
		case due && key.retires.IsZero():
			if err := k.store.RetireSigningKey(ctx, key.name, takesOver, takesOver.Add(sessionLife)); err != nil {
				return fmt.Errorf("retire key %s: %w", key.name, err)
			}
		}
	}
	return k.load(ctx)
}

// memoryKeys are a KeyStore for a process whose sessions end with it.
type memoryKeys struct {
	mu   sync.Mutex
	keys []tenants.SigningKey
}

func (m *memoryKeys) SigningKeys(context.Context) ([]tenants.SigningKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.keys), nil
}

func (m *memoryKeys) PutSigningKey(_ context.Context, k tenants.SigningKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys = append(m.keys, k)
	return nil
}

func (m *memoryKeys) RetireSigningKey(_ context.Context, kid string, retires, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.keys {
		if m.keys[i].KID == kid {
			m.keys[i].RetiresAt, m.keys[i].ExpiresAt = retires, expires
			return nil
		}
	}
	return tenants.ErrNotFound
}

func (m *memoryKeys) DeleteSigningKey(_ context.Context, kid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys = slices.DeleteFunc(m.keys, func(k tenants.SigningKey) bool { return k.KID == kid })
	return nil
}
