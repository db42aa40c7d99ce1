package transfers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// ServeHTTP serves the one-time URLs. It must stand behind nothing that buffers.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Accel-Buffering", "no")
	if !d.cors(w, r) {
		return
	}
	t, err := d.find(r)
	if err != nil {
		fail(w, err)
		return
	}
	switch way := methodOf(r, t); {
	case way == notAllowed:
		allow := "GET, HEAD, OPTIONS"
		if t.Upward {
			allow = "PUT, POST, OPTIONS"
		}
		h.Set("Allow", allow)
		fail(w, contract.Fail(contract.InvalidArguments, "This URL does not take %s.", r.Method).WithHint("It takes %s.", allow).WithCause(errMethod))
	case way == looking:
		t.headers(h) // and nothing is used up
		w.WriteHeader(http.StatusOK)
	case way == prefetching:
		fail(w, contract.Fail(contract.Unsupported, "A one-time URL is not fetched ahead of time; it was not used up."))
	default:
		d.serve(w, r, t)
	}
}

var errMethod = errors.New("method not allowed")

// cors answers for pages of other origins; false: the request is answered.
func (d *Desk) cors(w http.ResponseWriter, r *http.Request) bool {
	origin, h := r.Header.Get("Origin"), w.Header()
	if origin != "" && !d.origins[origin] {
		fail(w, contract.Fail(contract.PermissionDenied, "Pages of this origin may not call here.").WithHint("Whoever runs the service can add it: allowed_origins."))
		return false
	}
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Content-Disposition, Content-Length, Retry-After")
	}
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, POST, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Content-Type")
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return false
	}
	return true
}

// ways a request may use a URL.
type way int

const (
	notAllowed way = iota
	using
	looking
	prefetching
)

func methodOf(r *http.Request, t *transfer) way {
	switch {
	case t.Upward && (r.Method == http.MethodPut || r.Method == http.MethodPost):
		return using
	case t.Upward:
		return notAllowed
	case r.Method == http.MethodHead:
		return looking
	case r.Method != http.MethodGet:
		return notAllowed
	case ahead(r.Header.Get("Sec-Purpose")), ahead(r.Header.Get("Purpose")), ahead(r.Header.Get("X-Moz")), ahead(r.Header.Get("X-Purpose")):
		return prefetching
	}
	return using
}

func ahead(purpose string) bool {
	p := strings.ToLower(purpose)
	return strings.HasPrefix(p, "prefetch") || strings.HasPrefix(p, "preview") || strings.HasPrefix(p, "prerender")
}

// transfer is one use of a URL.
type transfer struct {
	tenants.Transfer
	sealed
	tenant tenants.ID
	action *tools.Action
	began  time.Time
	in     int64
	out    int64
}

// headers say what a download will be.
func (t *transfer) headers(h http.Header) {
	h.Set("Content-Type", mediaType(t.Name))
	h.Set("Content-Disposition", disposition(t.Name))
	h.Set("Accept-Ranges", "none")
}

// find looks a URL up. What is known of it is told only to who has its secret.
func (d *Desk) find(r *http.Request) (*transfer, *contract.Error) {
	none := contract.Fail(contract.NotFound, "There is no such one-time URL.").WithHint("Check that it was copied whole; a newer URL of the same call takes the place of an earlier one.")
	tenant, secret, ok := parseToken(strings.TrimPrefix(r.URL.Path, Path))
	if !ok {
		return nil, none
	}
	t := &transfer{tenant: tenant, began: d.cfg.Now()}
	err := d.in(r.Context(), tenant, func(ctx context.Context, tx tenants.Tx) (err error) {
		t.Transfer, err = tx.Transfer(ctx, hash(secret))
		return err
	})
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return nil, none
	case err != nil:
		return nil, d.away(err)
	case !t.UsedAt.IsZero():
		return nil, contract.Fail(contract.TransferUsed, "This one-time URL was used before.")
	case !t.began.Before(t.ExpiresAt):
		return nil, contract.Fail(contract.TransferExpired, "This one-time URL has expired; nothing was transferred by it.")
	}
	if err := json.Unmarshal(t.Arguments, &t.sealed); err != nil {
		return nil, contract.Internalf(err, "read transfer %s", t.ID)
	}
	if t.action, ok = d.cfg.Catalogue.Action(t.Tool, t.Action); !ok {
		return nil, none
	}
	return t, nil
}

func (d *Desk) away(err error) *contract.Error {
	return contract.Fail(contract.Offline, "One-time URLs cannot be looked up right now; it was not used up.").WithCause(err).After(5)
}

// serve checks the rights anew, uses the URL up and lets the file through.
func (d *Desk) serve(w http.ResponseWriter, r *http.Request, t *transfer) {
	ctx, end := d.live.track(r.Context(), t.tenant, t.Transfer) // before the rights: a revocation meets one or the other
	defer end()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	snap, err := d.admit(ctx, t)
	if err == nil {
		err = t.fits(r)
	}
	if err == nil {
		err = d.use(ctx, t)
	}
	if err != nil {
		fail(w, err.withID(t))
		return
	}
	p := &passage{desk: d, t: t, w: w, r: r, rc: http.NewResponseController(w)}
	failed := p.waking(ctx, func() *contract.Error { return p.run(ctx, snap) })
	d.record(t, failed)
	if failed == nil {
		return
	}
	if untouched(failed) && !p.begun {
		d.free(t)
	}
	if p.begun { // the reader must not take what came for the whole
		panic(http.ErrAbortHandler)
	}
	fail(w, (*problem)(failed).withID(t))
}

// admit looks at the rights as they are in the store now.
func (d *Desk) admit(ctx context.Context, t *transfer) (*admission.Snapshot, *problem) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	facts, err := d.cfg.Store.LoadSnapshot(ctx, t.tenant, t.AgentID)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return nil, (*problem)(contract.Fail(contract.PermissionDenied, "The access of the agent this URL was made for has ended."))
	case err != nil:
		return nil, (*problem)(d.away(err))
	}
	snap := admission.Compile(facts, d.cfg.Catalogue)
	if reason := snap.InForce(d.cfg.Now()); reason != admission.Permitted {
		return nil, (*problem)(reason.Error())
	}
	if snap.Principal.Member != t.MemberID || snap.Principal.Instance != t.InstanceID {
		return nil, (*problem)(contract.Fail(contract.PermissionDenied, "The agent this URL was made for works for somebody else now."))
	}
	if decision := admission.Decide(snap, t.Tool, t.Action); !decision.Allowed() {
		return nil, (*problem)(decision.Error())
	}
	return snap, nil
}

// fits refuses a body of the wrong size before any of it was read.
func (t *transfer) fits(r *http.Request) *problem {
	switch {
	case !t.Upward, r.ContentLength < 0:
		return nil
	case r.ContentLength > t.MaxBytes && !t.exact():
		return (*problem)(tooLarge(t.MaxBytes))
	case t.exact() && r.ContentLength != t.MaxBytes:
		return (*problem)(t.wrongSize(r.ContentLength))
	}
	return nil
}

// exact says that MaxBytes is the very size that was announced and agreed to.
func (t *transfer) exact() bool {
	_, known := announced(t.Args)
	return known
}

func (t *transfer) wrongSize(got int64) *contract.Error {
	code := contract.InvalidValue
	if got > t.MaxBytes {
		code = contract.TooLarge
	}
	return contract.Fail(code, "The file has %d bytes, and %d were announced; nothing was stored and the URL was not used up.", got, t.MaxBytes).
		WithHint("Send the file that was announced, or call the action again with the right size.")
}

// use uses the URL up; of two who come at once one is refused.
func (d *Desk) use(ctx context.Context, t *transfer) *problem {
	err := d.in(ctx, t.tenant, func(ctx context.Context, tx tenants.Tx) error { return tx.UseTransfer(ctx, t.SecretHash, d.cfg.Now()) })
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return (*problem)(contract.Fail(contract.TransferUsed, "This one-time URL was used before, or has just expired."))
	case err != nil:
		return (*problem)(d.away(err))
	}
	return nil
}

// free gives a URL back that nothing came of.
func (d *Desk) free(t *transfer) {
	err := d.in(context.Background(), t.tenant, func(ctx context.Context, tx tenants.Tx) error { return tx.FreeTransfer(ctx, t.SecretHash) })
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		d.cfg.Log.Warn("a one-time URL stays used although nothing came of it", "tenant", t.tenant, "error", err)
	}
}

// untouched reports whether the home did nothing and may be asked again.
func untouched(err *contract.Error) bool {
	switch err.Type {
	case contract.TypeOffline, contract.TypeConfirmation, contract.TypeRateLimited:
		return true
	}
	return contract.CodeOf(err) == contract.SyncInProgress
}

// problem is an error on its way to the user of a URL.
type problem contract.Error

func (p *problem) withID(t *transfer) *contract.Error {
	e := *(*contract.Error)(p)
	e.RequestID = t.RequestID.String()
	return &e
}

// fail answers with an error in the public form.
func fail(w http.ResponseWriter, e *contract.Error) {
	h := w.Header()
	if e.RetryAfterS > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfterS))
	}
	h.Set("Content-Type", "application/json")
	h.Del("Content-Disposition")
	status := statusOf(e)
	if status == http.StatusRequestEntityTooLarge || status == http.StatusServiceUnavailable {
		h.Set("Connection", "close") // the rest of a body is not waited for
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(e.Body(), '\n')) // a client that went away is no concern of ours
}

// statusOf is the HTTP status of an error.
func statusOf(e *contract.Error) int {
	switch contract.CodeOf(e) {
	case contract.TransferUsed, contract.TransferExpired:
		return http.StatusGone
	case contract.TransferInterrupted:
		return http.StatusBadRequest
	}
	if errors.Is(e, errMethod) {
		return http.StatusMethodNotAllowed
	}
	switch e.Type {
	case contract.TypeValidation:
		return http.StatusBadRequest
	case contract.TypePermission, contract.TypeDisabled:
		return http.StatusForbidden
	case contract.TypeNotFound:
		return http.StatusNotFound
	case contract.TypeConflict, contract.TypeConfirmation, contract.TypeAmbiguous:
		return http.StatusConflict
	case contract.TypeOffline:
		return http.StatusServiceUnavailable
	case contract.TypeTimeout:
		return http.StatusGatewayTimeout
	case contract.TypeRateLimited:
		return http.StatusTooManyRequests
	case contract.TypeTooLarge:
		return http.StatusRequestEntityTooLarge
	case contract.TypeUnsupported:
		return http.StatusNotImplemented
	case contract.TypeInternal:
		return http.StatusInternalServerError
	}
	return http.StatusBadGateway // SiYuan said no, or nobody knows
}

// record keeps ids, sizes and times, never contents.
func (d *Desk) record(t *transfer, failed *contract.Error) {
	rec := tenants.Call{
		TenantID: t.tenant, ID: tenants.NewID(), StartedAt: t.began, InstanceID: t.InstanceID, MemberID: t.MemberID, AgentID: t.AgentID,
		Tool: t.Tool, Action: t.Action, RequestID: t.RequestID.String(), Outcome: tenants.OutcomeOK, BytesIn: t.in, BytesOut: t.out,
		Legs: tenants.Legs{Total: d.cfg.Now().Sub(t.began)},
	}
	rec.Legs.Tunnel = rec.Legs.Total
	if failed != nil {
		rec.Outcome, rec.ErrorType, rec.ErrorCode = tenants.OutcomeError, string(failed.Type), string(contract.CodeOf(failed))
		if failed.Type == contract.TypeUnknown {
			rec.Outcome = tenants.OutcomeUnknown
		}
		level := d.cfg.Log.Info
		if failed.Type == contract.TypeInternal {
			level = d.cfg.Log.Error
		}
		level("transfer failed", "tenant", t.tenant, "agent", t.AgentID, "action", t.action.ID(), "request_id", rec.RequestID, "error", failed.Error())
	}
	d.cfg.Recorder.Record(rec)
}

// String keeps a URL's token out of logs.
func (t *transfer) String() string { return fmt.Sprintf("transfer %s of tenant %s", t.ID, t.tenant) }
