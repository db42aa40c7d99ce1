package tools

import (
	"context"
	"io"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// carried is the content that travels beside a call.
type carried struct {
	in   io.Reader
	size int64
	out  contract.BodyWriter
}

func (c *carried) onto(r *Request, a *catalogue.Action) {
	switch {
	case c == nil:
	case a.Passage == catalogue.Upwards:
		r.Body, r.Size = c.in, c.size
	default:
		r.Out = c.out
	}
}

// HandleStream runs a call whose content travels beside it, as Handle does. What
// an upload came to is written to out as JSON; a download writes the file.
func (e *Executor) HandleStream(ctx context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) error {
	run := &running{e: e, call: t.Call, progress: func(contract.Progress) {}, carried: &carried{in, t.Size, out}}
	r := e.handle(ctx, run)
	if r.Err != nil {
		return r.Err
	}
	if r.Body == nil {
		return nil
	}
	if err := out.Announce(int64(len(r.Body))); err != nil {
		return err
	}
	_, err := out.Write(r.Body)
	return err
}
