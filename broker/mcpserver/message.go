package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"
)

// messages are the JSON-RPC messages of one POST. They are read with the SDK's
// own decoder, so that nothing here can understand a message differently from
// what will answer it: names that repeat, or differ only in case.
type messages struct {
	raw   []json.RawMessage
	all   []jsonrpc.Message
	batch bool
}

var (
	errNotJSON    = errors.New("not one JSON value")
	errEmptyBatch = errors.New("an empty batch")
)

func parseMessages(body []byte) (messages, error) {
	if !json.Valid(body) { // the SDK's decoder stops after the first value
		return messages{}, errNotJSON
	}
	m := messages{raw: []json.RawMessage{body}}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		m.batch = true
		if err := json.Unmarshal(body, &m.raw); err != nil {
			return messages{}, err
		}
		if len(m.raw) == 0 {
			return messages{}, errEmptyBatch
		}
	}
	for _, raw := range m.raw {
		msg, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			return messages{}, err
		}
		m.all = append(m.all, msg)
	}
	return m, nil
}

// single is the request of a POST that is exactly one.
func (m *messages) single() *jsonrpc.Request {
	if m.batch || len(m.all) != 1 {
		return nil
	}
	r, _ := m.all[0].(*jsonrpc.Request)
	return r
}

// hasCall reports whether any message wants an answer.
func (m *messages) hasCall() bool {
	for _, msg := range m.all {
		if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
			return true
		}
	}
	return false
}

// split separates the messages that concern a request in flight, which one node
// alone can take, from those that any node can.
func (m *messages) split() (directed, others messages) {
	directed.batch, others.batch = m.batch, m.batch
	for i, msg := range m.all {
		to := &others
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			to = &directed
		case *jsonrpc.Request:
			if msg.Method == methodCancelled && !msg.IsCall() {
				to = &directed
			}
		}
		to.raw, to.all = append(to.raw, m.raw[i]), append(to.all, msg)
	}
	return directed, others
}

// body is what is sent to say these messages.
func (m *messages) body() []byte {
	if !m.batch {
		return m.raw[0]
	}
	return append(append([]byte("["), bytes.Join(asBytes(m.raw), []byte(","))...), ']')
}

func asBytes(raw []json.RawMessage) [][]byte {
	all := make([][]byte, len(raw))
	for i := range raw {
		all[i] = raw[i]
	}
	return all
}

// rpcID is the id of a call, numbers and strings apart; "" for a notification.
func rpcID(r *jsonrpc.Request) string {
	switch id := r.ID.Raw().(type) {
	case string:
		return strconv.Quote(id)
	case int64:
		return strconv.FormatInt(id, 10)
	}
	return ""
}

// hasMeta reports whether a request speaks the protocol without sessions.
func hasMeta(r *jsonrpc.Request) bool {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	return json.Unmarshal(r.Params, &params) == nil && params.Meta["io.modelcontextprotocol/protocolVersion"] != nil
}
