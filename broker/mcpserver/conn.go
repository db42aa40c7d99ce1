package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// questionsMax bounds the questions of one session that wait for an answer.
const questionsMax = 64

var errTooManyQuestions = errors.New("too many questions to the client are open")

// sessionTransport is the SDK's transport with a sessionConn in between.
type sessionTransport struct {
	*mcp.StreamableServerTransport
	conn *sessionConn
}

// Connect implements mcp.Transport.
func (t *sessionTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.StreamableServerTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.conn.Connection = inner
	return t.conn, nil
}

// sessionConn knows which calls of a session run on this node and which
// questions it asked the client. The SDK numbers questions from 1 on every
// node, so an answer could be taken for the answer to another node's question;
// here they get ids that no other connection uses.
type sessionConn struct {
	mcp.Connection
	tag    string
	closed atomic.Bool

	mu       sync.Mutex
	asked    map[string]jsonrpc.ID             // the SDK's ids of open questions, by the ids the client sees
	answered map[string]jsonrpc.ID             // those whose answer is on its way to the SDK
	running  map[jsonrpc.ID]context.CancelFunc // nil: the SDK ends it when told
}

func newSessionConn() *sessionConn {
	return &sessionConn{
		tag: rand.Text()[:13], asked: map[string]jsonrpc.ID{}, answered: map[string]jsonrpc.ID{}, running: map[jsonrpc.ID]context.CancelFunc{},
	}
}

// claim takes the right to answer a question, which only one answer gets.
func (c *sessionConn) claim(id jsonrpc.ID) bool {
	key, ok := id.Raw().(string)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inner, ok := c.asked[key]
	if ok {
		delete(c.asked, key)
		c.answered[key] = inner
	}
	return ok
}

// begin notes a call that runs past the SDK, and how to cancel it. It refuses an
// id that is in use.
func (c *sessionConn) begin(id jsonrpc.ID, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, runs := c.running[id]; runs {
		return false
	}
	c.running[id] = cancel
	return true
}

func (c *sessionConn) finish(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

// cancels reports whether a call runs here that is to be cancelled. It does so
// where the SDK will not.
func (c *sessionConn) cancels(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel, runs := c.running[id]
	if cancel != nil {
		cancel()
	}
	return runs
}

// busy reports whether a call runs, with or without a request that waits for
// its answer.
func (c *sessionConn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) > 0
}

// Read implements mcp.Connection.
func (c *sessionConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			inner, ok := c.take(m.ID)
			if !ok {
				continue // nobody waits for it
			}
			answer := *m
			answer.ID = inner
			return &answer, nil
		case *jsonrpc.Request:
			if m.IsCall() {
				c.mu.Lock()
				c.running[m.ID] = nil
				c.mu.Unlock()
			}
		}
		return m, nil
	}
}

func (c *sessionConn) take(id jsonrpc.ID) (jsonrpc.ID, bool) {
	key, _ := id.Raw().(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	inner, ok := c.answered[key]
	delete(c.answered, key)
	return inner, ok
}

// Write implements mcp.Connection.
func (c *sessionConn) Write(ctx context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Response:
		err := c.Connection.Write(ctx, m)
		c.finish(m.ID)
		return err
	case *jsonrpc.Request:
		if m.IsCall() {
			return c.ask(ctx, m)
		}
		if m.Method == methodCancelled {
			return c.withdraw(ctx, m)
		}
	}
	return c.Connection.Write(ctx, m)
}

// ask sends a question under an id of our own.
func (c *sessionConn) ask(ctx context.Context, m *jsonrpc.Request) error {
	key := c.outer(m.ID)
	question := *m
	var err error
	if question.ID, err = jsonrpc.MakeID(key); err != nil {
		return err
	}
	c.mu.Lock()
	full := len(c.asked) >= questionsMax
	if !full {
		c.asked[key] = m.ID
	}
	c.mu.Unlock()
	if full {
		return errTooManyQuestions
	}
	if err := c.Connection.Write(ctx, &question); err != nil {
		c.forget(key)
		return err
	}
	return nil
}

// withdraw tells the client that a question is not asked any more.
func (c *sessionConn) withdraw(ctx context.Context, m *jsonrpc.Request) error {
	params := map[string]json.RawMessage{}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return fmt.Errorf("withdraw a question: %w", err)
	}
	id, ok := idOf(params["requestId"])
	if !ok {
		return c.Connection.Write(ctx, m)
	}
	key := c.outer(id)
	c.forget(key)
	params["requestId"] = json.RawMessage(strconv.Quote(key))
	raw, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("withdraw a question: %w", err)
	}
	notice := *m
	notice.Params = raw
	return c.Connection.Write(ctx, &notice)
}

func (c *sessionConn) outer(id jsonrpc.ID) string { return fmt.Sprintf("%s-%v", c.tag, id.Raw()) }

func (c *sessionConn) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, key)
	delete(c.answered, key)
}

// Close implements mcp.Connection.
func (c *sessionConn) Close() error {
	c.closed.Store(true)
	c.mu.Lock()
	maps.DeleteFunc(c.asked, func(string, jsonrpc.ID) bool { return true })
	c.mu.Unlock()
	return c.Connection.Close()
}

// idOf reads a JSON-RPC id as the SDK does.
func idOf(raw json.RawMessage) (jsonrpc.ID, bool) {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(v)
	return id, err == nil && id.IsValid()
}
