package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"

	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/transfers"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// sendOff answers a call whose file comes by itself: with the URL to send it to,
// or with what came of it. A person agrees before there is a URL; the same request
// is not asked about again.
func (s *Server) sendOff(ctx context.Context, c *invocation, a *tools.Action, e envelope, progress func(contract.Progress)) (json.RawMessage, *contract.Error) {
	if s.cfg.Transfers == nil {
		return nil, noTransfers(a)
	}
	o := transfers.Order{Snapshot: c.who.Snapshot, Action: a, Args: c.args, RequestID: c.requestID}
	standing, renew, err := s.cfg.Transfers.Standing(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case standing == transfers.Mismatch:
		return nil, contract.Fail(contract.Conflict, "The request id was used before with other arguments.")
	case standing == transfers.Unknown:
		if err := s.agree(ctx, c, a, e, c.args, progress); err != nil || c.question != nil {
			return nil, err
		}
		o.RequestID, o.First = c.requestID, c.first && c.agreed == nil
		if c.replay {
			return s.relay(ctx, c, a, progress)
		}
	case standing == transfers.Used:
		c.replay = true
		body, err := s.relay(ctx, c, a, progress)
		if err == nil || contract.CodeOf(err) != contract.ConfirmationUsed || !renew {
			return body, err
		}
	}
	// The home looks at the rights, and at whether it can be reached at all.
	p := c.who.Snapshot.Principal
	if _, err := s.preview(ctx, c, a, consent.Question{Tenant: p.Tenant, Instance: p.Instance}); err != nil {
		return nil, err
	}
	url, err := s.cfg.Transfers.Issue(ctx, o)
	if err != nil {
		return nil, err
	}
	body, err := withURL([]byte("{}"), url)
	if err != nil {
		return nil, err
	}
	return withRequestID(body, c.requestID), nil
}

// fetch adds to what the home says of a file the URL to get it from.
func (s *Server) fetch(ctx context.Context, c *invocation, a *tools.Action, body json.RawMessage) (json.RawMessage, *contract.Error) {
	if s.cfg.Transfers == nil {
		return nil, noTransfers(a)
	}
	var file struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(body, &file); err != nil {
		return nil, contract.Internalf(err, "read the answer of %s", a.ID())
	}
	url, err := s.cfg.Transfers.Issue(ctx, transfers.Order{
		Snapshot: c.who.Snapshot, Action: a, Args: c.args, RequestID: tenants.NewID().String(), Name: file.Name,
	})
	if err != nil {
		return nil, err
	}
	return withURL(body, url)
}

func noTransfers(a *tools.Action) *contract.Error {
	return contract.Fail(contract.Unsupported, "%s needs one-time URLs, which this service does not give out.", a.ID())
}

// withURL adds a URL to an answer.
func withURL(body json.RawMessage, url tools.OneTimeURL) (json.RawMessage, *contract.Error) {
	var more bytes.Buffer
	enc := json.NewEncoder(&more)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(url); err != nil {
		return nil, contract.Internalf(err, "write a one-time URL")
	}
	head, isObject := bytes.CutSuffix(bytes.TrimSpace(body), []byte("}"))
	if !isObject {
		return body, nil // the catalogue has no such answer
	}
	out := append(make([]byte, 0, len(body)+more.Len()), head...)
	if !bytes.HasSuffix(bytes.TrimSpace(head), []byte("{")) {
		out = append(out, ',')
	}
	return append(out, bytes.TrimPrefix(bytes.TrimSpace(more.Bytes()), []byte("{"))...), nil
}
