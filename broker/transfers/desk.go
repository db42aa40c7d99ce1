package transfers

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Path is where the one-time URLs lead; the rest of a path is a token.
const Path = "/transfer/"

// Bounds of what may be open.
const (
	life         = 5 * time.Minute // of a URL
	renewable    = time.Hour       // since the first URL of a call: so long its agreement holds
	perAgent     = 32              // unused URLs
	perTenant    = 512             // unused URLs
	storeTimeout = 10 * time.Second
	defaultMax   = 25 << 20
	defaultIdle  = time.Minute
	longest      = 6 * time.Hour // of one transfer
)

// Home reaches the homes; *cluster.Relay does.
type Home interface {
	OpenStream(ctx context.Context, tenant, instance string, t contract.Transfer, idempotent bool) (contract.Stream, error)
}

// Recorder keeps records of calls; *recorder.Recorder does. It never blocks.
type Recorder interface{ Record(c tenants.Call) }

// Config of a Desk. The first block is required.
type Config struct {
	Store     tenants.Store
	Home      Home
	Catalogue *tools.Catalogue
	Recorder  Recorder
	PublicURL string // that the URLs begin with

	Origins  []string // of pages that may use the URLs, besides the public one
	MaxBytes int64    // of an upload, where the tenant has no limit of its own; 25 MiB
	Idle     time.Duration
	Random   io.Reader // default crypto/rand
	Now      func() time.Time
	Log      *slog.Logger
}

// Desk hands one-time URLs out and serves them. It is safe for concurrent use.
type Desk struct {
	cfg     Config
	origins map[string]bool
	live    live
}

// New makes a desk.
func New(c Config) (*Desk, error) {
	if c.Store == nil || c.Home == nil || c.Catalogue == nil || c.Recorder == nil || c.PublicURL == "" {
		return nil, errors.New("transfers: Store, Home, Catalogue, Recorder and PublicURL are required")
	}
	c.MaxBytes, c.Idle = cmp.Or(c.MaxBytes, defaultMax), cmp.Or(c.Idle, defaultIdle)
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	d := &Desk{cfg: c, origins: map[string]bool{c.PublicURL: true}, live: newLive()}
	for _, o := range c.Origins {
		d.origins[o] = true
	}
	return d, nil
}

// in is a transaction that cannot hang.
func (d *Desk) in(ctx context.Context, tenant tenants.ID, fn func(ctx context.Context, tx tenants.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return d.cfg.Store.In(ctx, tenant, func(tx tenants.Tx) error { return fn(ctx, tx) })
}

// Order is a call whose content travels by itself.
type Order struct {
	Snapshot  *admission.Snapshot
	Action    *tools.Action
	Args      json.RawMessage // settled
	RequestID string          // a UUID; of an upload also what the home remembers it by
	First     bool            // RequestID is known to have been sent to no home before
	Name      string          // of the file, where the answer of the home names it
}

// sealed is what is kept of an Order.
type sealed struct {
	Args  json.RawMessage `json:"args"`
	First bool            `json:"first,omitempty"`
	Name  string          `json:"name,omitempty"`
}

// Standing is how an order stands.
type Standing int

// The standings.
const (
	Unknown  Standing = iota // no URL was given out for it
	Unused                   // its URL was not used
	Used                     // its URL was used; the home knows what came of it
	Mismatch                 // the request id had a URL for another call
)

// Standing looks whether an order had a URL before. A person agreed to it then,
// where one had to, so for an hour it is not asked about again: renew says that it
// may have another.
func (d *Desk) Standing(ctx context.Context, o Order) (st Standing, renew bool, err *contract.Error) {
	st, made, err := d.standing(ctx, o)
	renew = (st == Unused || st == Used) && d.cfg.Now().Sub(made) <= renewable
	if st == Unused && !renew {
		st = Unknown
	}
	return st, renew, err
}

func (d *Desk) standing(ctx context.Context, o Order) (Standing, time.Time, *contract.Error) {
	p := o.Snapshot.Principal
	id, ok := parseID(o.RequestID)
	var t tenants.Transfer
	if !ok {
		return Unknown, t.CreatedAt, nil
	}
	err := d.in(ctx, p.Tenant, func(ctx context.Context, tx tenants.Tx) (err error) {
		t, err = tx.TransferOf(ctx, p.Agent, id)
		return err
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return Unknown, t.CreatedAt, nil
	case err != nil:
		return Unknown, t.CreatedAt, contract.Fail(contract.Offline, "Earlier one-time URLs cannot be looked up right now; nothing was done.").WithCause(err).After(2)
	}
	var kept sealed
	if err := json.Unmarshal(t.Arguments, &kept); err != nil {
		return Unknown, t.CreatedAt, contract.Internalf(err, "read transfer %s", t.ID)
	}
	switch {
	case t.Tool != o.Action.Tool, t.Action != o.Action.Name, t.InstanceID != p.Instance, string(kept.Args) != string(o.Args):
		return Mismatch, t.CreatedAt, nil
	case !t.UsedAt.IsZero():
		return Used, t.CreatedAt, nil
	}
	return Unused, t.CreatedAt, nil
}

// Issue gives a URL out for an order, which a person has agreed to where one has
// to. An earlier one of the same request is good no more.
func (d *Desk) Issue(ctx context.Context, o Order) (tools.OneTimeURL, *contract.Error) {
	p, now := o.Snapshot.Principal, d.cfg.Now()
	request, ok := parseID(o.RequestID)
	if !ok {
		return tools.OneTimeURL{}, contract.InvalidFields(contract.Field{Path: "requestId", Message: "must be a UUIDv7"})
	}
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(d.cfg.Random, secret); err != nil {
		return tools.OneTimeURL{}, contract.Internalf(err, "make a one-time URL")
	}
	kept, err := json.Marshal(sealed{o.Args, o.First, o.Name})
	if err != nil {
		return tools.OneTimeURL{}, contract.Internalf(err, "keep %s", o.Action.ID())
	}
	t := tenants.Transfer{
		ID: tenants.NewID(), SecretHash: hash(secret), InstanceID: p.Instance, MemberID: p.Member, AgentID: p.Agent, RequestID: request,
		Tool: o.Action.Tool, Action: o.Action.Name, Upward: o.Action.Passage == tools.Upwards, Arguments: kept,
		CreatedAt: now, ExpiresAt: now.Add(life),
	}
	if t.Upward {
		t.MaxBytes = cmp.Or(o.Snapshot.Limits.UploadBytes, d.cfg.MaxBytes)
		if size, known := announced(o.Args); known {
			if size > t.MaxBytes {
				return tools.OneTimeURL{}, tooLarge(t.MaxBytes)
			}
			t.MaxBytes = size
		}
	}
	err = d.in(ctx, p.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		return tx.PutTransfer(ctx, t, tenants.TransferBounds{PerAgent: perAgent, InAll: perTenant})
	})
	switch {
	case errors.Is(err, tenants.ErrTooMany):
		return tools.OneTimeURL{}, contract.Fail(contract.RateLimited, "Too many one-time URLs wait to be used already.").
			WithHint("Use those first, or wait until they expire.").After(60)
	case err != nil:
		return tools.OneTimeURL{}, contract.Fail(contract.Offline, "A one-time URL cannot be made right now; nothing was done.").WithCause(err).After(2)
	}
	return d.describe(p.Tenant, secret, t, o), nil
}

func (d *Desk) describe(tenant tenants.ID, secret []byte, t tenants.Transfer, o Order) tools.OneTimeURL {
	url := d.cfg.PublicURL + Path + token(tenant, secret)
	u := tools.OneTimeURL{ExpiresAt: t.ExpiresAt.UTC().Format(time.RFC3339)}
	if t.Upward {
		u.UploadURL, u.Method, u.MaxBytes = url, "PUT", t.MaxBytes
		u.Curl = fmt.Sprintf("curl --fail-with-body -T '%s' '%s'", contract.FileName(fileName(o.Args)), url)
		return u
	}
	u.DownloadURL, u.Method = url, "GET"
	u.Curl = fmt.Sprintf("curl --fail-with-body -o '%s' '%s'", contract.FileName(o.Name), url)
	return u
}

func tooLarge(max int64) *contract.Error {
	return contract.Fail(contract.TooLarge, "A file may have %d bytes here.", max).WithHint("Whoever runs the service can allow more: max_upload_bytes, or upload_bytes of the tenant.")
}

// announced is the size that an upload announced.
func announced(args json.RawMessage) (int64, bool) {
	var in struct {
		Size *int64 `json:"size"`
	}
	if json.Unmarshal(args, &in) != nil || in.Size == nil {
		return 0, false
	}
	return *in.Size, true
}

func fileName(args json.RawMessage) string {
	var in struct {
		Name string `json:"fileName"`
	}
	_ = json.Unmarshal(args, &in) // an action without that field has a file without name
	return in.Name
}

// A token names the tenant, under which alone a row can be found, and a secret.
const (
	secretBytes = 32
	tenantBytes = 16
)

func token(tenant tenants.ID, secret []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(tenant[:], secret...))
}

func parseToken(s string) (tenant tenants.ID, secret []byte, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != tenantBytes+secretBytes {
		return tenant, nil, false
	}
	copy(tenant[:], raw)
	return tenant, raw[tenantBytes:], true
}

func hash(secret []byte) tenants.SecretHash { return tenants.HashSecret(string(secret)) }

func parseID(s string) (tenants.ID, bool) {
	var id tenants.ID
	err := id.UnmarshalText([]byte(s))
	return id, err == nil
}
