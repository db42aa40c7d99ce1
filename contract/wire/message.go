package wire

import "siyuan-broker/contract"

// Call is the header of a CALL frame; the body is the raw arguments, an object.
type Call struct {
	ID           uint64          `json:"id"`                     // counts up per stream
	Server       string          `json:"server,omitempty"`       // absent: siyuan
	Method       string          `json:"method,omitempty"`       // absent: tools/call
	TimeLeftMS   int64           `json:"time_left_ms,omitempty"` // absent: the connector's own maximum
	Trace        string          `json:"trace,omitempty"`        // W3C traceparent
	Tool         string          `json:"tool,omitempty"`
	Action       string          `json:"action,omitempty"`
	RequestID    string          `json:"request_id,omitempty"`
	First        bool            `json:"first,omitempty"`  // the request id was sent to no connector before; for the nodes of a broker
	Safety       contract.Safety `json:"safety,omitzero"`  // of a write
	Replay       bool            `json:"replay,omitempty"` // answer from what is remembered of the request, never execute
	Grant        *contract.Grant `json:"grant,omitempty"`
	ResultChars  int             `json:"result_chars,omitempty"` // about how many characters a read may answer with; absent: the connector's own number
	Conversation string          `json:"conversation,omitempty"` // for restore points
	GrantDigest  string          `json:"grant_digest,omitempty"` // beside grant: its name; alone: the grant of that name, sent before
	Bulk         uint64          `json:"bulk,omitempty"`         // number under which a large result may come over the bulk session
}

// CallOf splits a call into header and body. The time left is the caller's to
// fill in.
func CallOf(id uint64, c contract.Call) (Call, []byte) {
	h := Call{ID: id, Trace: c.Trace, Tool: c.Tool, Action: c.Action, RequestID: c.RequestID, First: c.First, Replay: c.Replay, ResultChars: c.ResultChars, Grant: c.Grant, Safety: c.Safety, Conversation: c.Conversation}
	if c.Server != contract.DefaultServer {
		h.Server = c.Server
	}
	if c.Method != contract.MethodCall {
		h.Method = c.Method
	}
	return h, c.Args
}

// Contract joins header and body again; the defaults are spelled out.
func (h Call) Contract(body []byte) contract.Call {
	c := contract.Call{Server: h.Server, Method: h.Method, Tool: h.Tool, Action: h.Action,
		RequestID: h.RequestID, First: h.First, Replay: h.Replay, Trace: h.Trace, ResultChars: h.ResultChars, Grant: h.Grant, Safety: h.Safety, Conversation: h.Conversation, Args: body}
	if c.Server == "" {
		c.Server = contract.DefaultServer
	}
	if c.Method == "" {
		c.Method = contract.MethodCall
	}
	return c
}

// Progress is the header of a PROGRESS frame.
type Progress struct {
	ID uint64 `json:"id"`
	contract.Progress
}

// Result is the header of a RESULT frame; the body is the action's output.
type Result struct {
	ID    uint64         `json:"id"`
	Stats contract.Stats `json:"stats"`
	Bulk  bool           `json:"bulk,omitempty"` // the body comes over the bulk session, under the number of the CALL
}

// Error is the header of an ERROR frame, which ends a call like RESULT does.
type Error struct {
	ID    uint64          `json:"id"`
	Error *contract.Error `json:"error"`
	Stats contract.Stats  `json:"stats"`
}

// Cancel is the header of a CANCEL frame.
type Cancel struct {
	ID uint64 `json:"id"`
}

// GrantUnknown is the header of a GRANT_UNKNOWN frame. The call was not
// started; the broker sends it again on the same stream with the full grant.
type GrantUnknown struct {
	ID     uint64 `json:"id"`
	Digest string `json:"digest"`
}

// Ping is the header of PING and PONG; a PONG repeats the number.
type Ping struct {
	N uint64 `json:"n"`
}

// Drain is the header of a DRAIN frame: connect again, anywhere, then let this
// session end.
type Drain struct {
	WithinMS int64 `json:"within_ms"` // the broker closes the session after that
}
