package transfers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
)

const (
	buffer    = 64 << 10
	maxAnswer = 64 << 10 // of the home to an upload
)

// passage is a file between its user and the home.
type passage struct {
	desk  *Desk
	t     *transfer
	w     http.ResponseWriter
	r     *http.Request
	rc    *http.ResponseController
	begun bool // of the answer something was written
}

// wake ends a Read or Write of the user's connection that is under way.
func (p *passage) wake() {
	_ = p.rc.SetReadDeadline(time.Unix(1, 0)) // not every writer has deadlines
	_ = p.rc.SetWriteDeadline(time.Unix(1, 0))
}

// waking runs f and wakes it when ctx ends. Afterwards nothing touches the
// connection any more, which may have another request by then.
func (p *passage) waking(ctx context.Context, f func() *contract.Error) *contract.Error {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		p.wake()
	})
	failed := f()
	if !stop() {
		<-woken
		_ = p.rc.SetWriteDeadline(time.Time{}) // for the words about what failed
	}
	return failed
}

// run lets the file through, and answers where that is the end of it.
func (p *passage) run(ctx context.Context, snap *admission.Snapshot) *contract.Error {
	t := p.t
	who := snap.Principal
	call := contract.Transfer{Call: contract.Call{
		Server: contract.DefaultServer, Method: contract.MethodCall, Tool: t.Tool, Action: t.Transfer.Action, RequestID: t.RequestID.String(), First: t.First,
		Grant: snap.Grant(p.desk.cfg.Now()), Args: t.Args,
	}}
	if t.Upward {
		call.Size = contract.UnknownSize
		if p.r.ContentLength >= 0 {
			call.Size = p.r.ContentLength
		}
	}
	home, err := p.desk.cfg.Home.OpenStream(ctx, who.Tenant.String(), who.Instance.String(), call, !t.Upward)
	if err != nil {
		return contract.AsError(err)
	}
	defer func() { _ = home.Close() }() // it says how it ended before
	if t.Upward {
		return p.up(ctx, home)
	}
	return p.down(ctx, home)
}

// up sends the file home and hands on what came of it.
func (p *passage) up(ctx context.Context, home contract.Stream) *contract.Error {
	sent := p.send(ctx, home)
	if sent != nil && !errors.As(sent, new(*contract.Error)) { // the user's end broke: the home is told by Close
		return p.interrupted(sent)
	}
	var answer bytes.Buffer
	_, err := io.Copy(&answer, io.LimitReader(home, maxAnswer+1))
	switch { // the home's own words before what a broken Write says
	case err != nil:
		return contract.AsError(err)
	case sent != nil:
		return contract.AsError(sent)
	case answer.Len() > maxAnswer, !json.Valid(answer.Bytes()):
		return contract.Fail(contract.OutcomeUnknown, "The home gave an answer that cannot be read; the file may be stored.")
	}
	body := withRequestID(answer.Bytes(), p.t.RequestID.String())
	p.w.Header().Set("Content-Type", "application/json")
	p.w.WriteHeader(http.StatusCreated)
	_, _ = p.w.Write(append(body, '\n')) // it is stored, whether anybody hears of it or not
	p.t.out = int64(len(body))
	return nil
}

// interrupted is the end of an upload whose sender went away, or sent too much.
func (p *passage) interrupted(why error) *contract.Error {
	var large *http.MaxBytesError
	if errors.As(why, &large) {
		return contract.Fail(contract.TooLarge, "The file has more than the %d bytes that were announced or are allowed; nothing was stored.", p.t.MaxBytes)
	}
	return contract.Fail(contract.TransferInterrupted, "The file did not come whole, after %d bytes; nothing was stored.", p.t.in).WithCause(why)
}

// send copies the request's body home. An error of the home is a *contract.Error.
func (p *passage) send(ctx context.Context, home contract.Stream) error {
	body := http.MaxBytesReader(p.w, p.r.Body, p.t.MaxBytes)
	buf := make([]byte, buffer)
	for {
		_ = p.rc.SetReadDeadline(time.Now().Add(p.desk.cfg.Idle))
		if ctx.Err() != nil { // wake may have been before
			return context.Cause(ctx)
		}
		n, err := body.Read(buf)
		p.t.in += int64(n)
		if n > 0 {
			if _, err := home.Write(buf[:n]); err != nil {
				return contract.AsError(err)
			}
		}
		switch {
		case err == io.EOF && p.t.exact() && p.t.in != p.t.MaxBytes:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			if err := home.CloseWrite(); err != nil {
				return contract.AsError(err)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// down hands on what the home sends. Its first words decide the status.
func (p *passage) down(ctx context.Context, home contract.Stream) *contract.Error {
	buf := make([]byte, buffer)
	for {
		n, err := home.Read(buf)
		if err != nil && err != io.EOF {
			return contract.AsError(err)
		}
		if !p.begun {
			p.begin(home.Size())
		}
		_ = p.rc.SetWriteDeadline(time.Now().Add(p.desk.cfg.Idle))
		if ctx.Err() != nil {
			return contract.Fail(contract.TransferInterrupted, "The download was ended.").WithCause(context.Cause(ctx))
		}
		w, gone := p.w.Write(buf[:n])
		p.t.out += int64(w)
		if gone == nil && err == nil {
			gone = p.rc.Flush()
		}
		switch {
		case gone != nil:
			return contract.Fail(contract.TransferInterrupted, "Whoever downloaded the file went away.").WithCause(gone)
		case err == io.EOF:
			return nil
		}
	}
}

func (p *passage) begin(size int64) {
	p.begun = true
	p.t.headers(p.w.Header())
	if size >= 0 {
		p.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	p.w.WriteHeader(http.StatusOK)
}

// withRequestID adds the id of the call to an object.
func withRequestID(body []byte, id string) []byte {
	rest, isObject := bytes.CutSuffix(bytes.TrimSpace(body), []byte("}"))
	if !isObject {
		return body
	}
	if !bytes.HasSuffix(bytes.TrimSpace(rest), []byte("{")) {
		rest = append(rest[:len(rest):len(rest)], ',')
	}
	return append(rest[:len(rest):len(rest)], `"requestId":"`+id+`"}`...)
}
