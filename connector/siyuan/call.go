package siyuan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// flags say what is special about an endpoint.
type flags uint16

const (
	slow     flags = 1 << iota // may take long
	indexed                    // a read that answers from the SQL index
	queued                     // a write that even tree reads do not see at once
	public                     // needs no token
	nullable                   // null is a documented answer: the zero value
	direct                     // a read that no write of ours can be behind of
	raw                        // answers bytes with status 200, errors with 202
	download                   // a GET of a file, outside of /api
	outside                    // a POST outside of /api
)

// call is one use of an endpoint.
type call struct {
	path    string // without /api/
	body    any    // nil for {}
	flags   flags
	write   bool
	session string // of SiYuan's MCP endpoint
}

// args is a JSON request body. Every value of type ID in it must be valid; an
// optional one goes through [optional].
type args map[string]any

// optional lets an empty ID pass as the empty string.
func optional(id ID) any {
	if id == "" {
		return ""
	}
	return id
}

// with adds an id that must be absent, not empty, when it is not given.
func (a args) with(key string, id ID) args {
	if id != "" {
		a[key] = id
	}
	return a
}

// list keeps an empty array from being sent as null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func read[T any](ctx context.Context, r *Reader, path string, body any, f flags) (T, error) {
	return send[T](ctx, r.c, call{path: path, body: body, flags: f})
}

func write[T any](ctx context.Context, w *Writer, path string, body any, f flags) (T, error) {
	return send[T](ctx, w.c, call{path: path, body: body, flags: f, write: true})
}

// exec is a write whose documented answer is null.
func exec(ctx context.Context, w *Writer, path string, body any, f flags) error {
	_, err := write[json.RawMessage](ctx, w, path, body, f|nullable)
	return err
}

// readAt is a read about one block. When the kernel refuses, it is asked
// whether the block exists at all: its refusals look alike.
func readAt[T any](ctx context.Context, r *Reader, path string, id ID, body any, f flags) (T, error) {
	data, err := read[T](ctx, r, path, body, f)
	if errors.Is(err, Rejected) {
		exists, probeErr := r.BlockExists(ctx, id)
		if errors.Is(probeErr, Status) {
			return data, probeErr // cannot be asked: the refusal alone would say less
		}
		if probeErr == nil && !exists {
			var e *Error
			errors.As(err, &e)
			return data, &Error{Kind: Missing, Endpoint: path, Code: e.Code, Msg: e.Msg}
		}
	}
	return data, err
}

// send makes the call and decodes its data into T.
func send[T any](ctx context.Context, c *Client, k call) (T, error) {
	var data T
	a, err := c.do(ctx, k)
	if err != nil {
		return data, err
	}
	data, err = decode[T](k, a)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Status = a.status // says that there was an answer, however odd
	}
	if k.write && errors.Is(err, Malformed) {
		err = unknown(err)
	}
	return data, err
}

// do checks the arguments, waits for our own writes where the answer depends on
// them, and makes as many attempts as the policy allows.
func (c *Client) do(ctx context.Context, k call) (answer, error) {
	p, err := encode(k)
	if err != nil {
		return answer{}, err
	}
	if err := c.catchUp(ctx, k); err != nil {
		return answer{}, err
	}
	for attempt := 1; ; attempt++ {
		a, unsent, err := c.roundTrip(ctx, k, p)
		if err == nil {
			err = statusError(k, a)
		}
		if k.write && !unsent {
			c.fresh.wrote(k.flags&queued != 0)
		}
		switch {
		case err == nil:
			return a, nil
		case k.write && !unsent:
			if refused(err) {
				return answer{}, err
			}
			return answer{}, unknown(err)
		case attempt >= c.cfg.Retry.Attempts, !retryable(err):
			return answer{}, err
		}
		if c.cfg.Clock.Sleep(ctx, c.backoff(attempt)) != nil {
			return answer{}, err
		}
	}
}

// catchUp flushes the kernel's queues if a write of ours may be in one that the
// call's answer depends on.
func (c *Client) catchUp(ctx context.Context, k call) error {
	l := levelTree
	switch {
	case k.write, k.flags&(direct|public|download) != 0:
		l = levelNone
	case k.flags&indexed != 0:
		l = levelIndex
	}
	err := c.fresh.ensure(ctx, l, func(ctx context.Context) error {
		_, err := send[json.RawMessage](ctx, c, call{path: "sqlite/flushTransaction", flags: direct | nullable})
		return err
	})
	if err != nil && ctx.Err() != nil && KindOf(err) == Internal {
		return c.transportError(ctx, k, err)
	}
	return err
}

// backoff is the jittered wait after the given attempt.
func (c *Client) backoff(attempt int) time.Duration {
	d := c.cfg.Retry.Base
	for range attempt - 1 {
		d = min(2*d, c.cfg.Retry.Max)
	}
	return d/2 + time.Duration(c.cfg.Random()*float64(d/2))
}

// retryable: the kernel was not there or broke down. Refusals, slow answers and
// 4xx would only repeat themselves.
func retryable(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	var network net.Error
	switch {
	case errors.As(e.Err, &network) && network.Timeout():
		return false // nobody opened the door within Timeouts.Connect
	case e.Kind == Offline:
		return true
	}
	return e.Kind == Status && e.Status >= http.StatusInternalServerError
}

// refused: the HTTP status says that no handler ran.
func refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status >= http.StatusBadRequest && e.Status < http.StatusInternalServerError
}

// unknown turns the failure of a write that was sent into OutcomeUnknown. The
// kind it replaces is dropped from the chain: errors.Is(err, Offline) must not
// hold for something that may have happened.
func unknown(err error) error {
	u := &Error{Kind: OutcomeUnknown, Err: err}
	var e *Error
	if errors.As(err, &e) {
		u.Endpoint, u.Status, u.Code, u.Msg = e.Endpoint, e.Status, e.Code, e.Msg
		u.Err = fmt.Errorf("%s: %w", e.Kind.String(), cmp.Or(e.Err, errNoCause))
	}
	return u
}

var errNoCause = errors.New("no further cause")

func encode(k call) (payload, error) {
	if p, ok := k.body.(payload); ok {
		return p, nil
	}
	if k.body == nil {
		k.body = args{}
	}
	if err := checkIDs(k.body); err != nil {
		return payload{}, badArgument(k.path, "%w", err)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(k.body); err != nil {
		return payload{}, badArgument(k.path, "encode: %w", err)
	}
	return payload{contentType: "application/json", bytes: buf.Bytes()}, nil
}

// accepted is the HTTP status that getFile uses for every error.
const accepted = http.StatusAccepted

func statusError(k call, a answer) error {
	switch s := a.status; {
	case s == http.StatusOK, s == accepted && k.flags&raw != 0:
		return nil
	case s == http.StatusUnauthorized:
		return &Error{Kind: Unauthorized, Endpoint: k.path, Status: s}
	case s == http.StatusNotFound && k.flags&download != 0:
		return &Error{Kind: Missing, Endpoint: k.path, Status: s}
	default:
		return &Error{Kind: Status, Endpoint: k.path, Status: s}
	}
}

// codeIndexing and codeNotFound are the kernel's codes with a meaning of their
// own; -1 and 1 only say no.
const (
	codeIndexing = 3
	codeNotFound = http.StatusNotFound // the file endpoints
)

// decode opens the envelope {code, msg, data} and checks the data's shape. The
// data of a refusal is of no type that is known here, and not looked at.
func decode[T any](k call, a answer) (data T, err error) {
	var env struct {
		Code *int   `json:"code"`
		Msg  string `json:"msg"`
		Data *T     `json:"data"`
	}
	if !strings.HasPrefix(a.contentType, "application/json") {
		return data, malformed(k.path, "content type %q", a.contentType)
	}
	err = json.Unmarshal(a.body, &env)
	mistyped, odd := errors.AsType[*json.UnmarshalTypeError](err)
	inData := odd && strings.HasPrefix(mistyped.Field, "data")
	switch {
	case err != nil && !inData:
		return data, malformed(k.path, "envelope: %w", err)
	case env.Code == nil:
		return data, malformed(k.path, "envelope without a code")
	case *env.Code != 0:
		kind := Rejected
		switch *env.Code {
		case codeIndexing:
			kind = Indexing
		case codeNotFound:
			kind = Missing
		}
		return data, &Error{Kind: kind, Endpoint: k.path, Code: *env.Code, Status: a.status, Msg: env.Msg}
	case err != nil:
		return data, malformed(k.path, "data: %w", err)
	case env.Data == nil:
		if k.flags&nullable != 0 {
			return data, nil
		}
		return data, malformed(k.path, "null data")
	}
	if err := checkShape(env.Data); err != nil {
		return data, malformed(k.path, "data: %w", err)
	}
	return *env.Data, nil
}
