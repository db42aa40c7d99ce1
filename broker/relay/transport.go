package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"siyuan-broker/contract/wire/link"
)

// webSocketLink upgrades a request. On error the response has been written.
func webSocketLink(w http.ResponseWriter, r *http.Request, subprotocol string) (*link.Link, error) {
	capture := &hijackCapture{ResponseWriter: w}
	c, err := websocket.Accept(capture, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	raw := capture.conn
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if c.Subprotocol() != subprotocol {
		_ = raw.Close()
		return nil, fmt.Errorf("upgrade: client does not offer subprotocol %s", subprotocol)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	return link.New(websocket.NetConn(ctx, c, websocket.MessageBinary), raw, "wss", cancel), nil
}

// hijackCapture keeps the connection that the WebSocket library takes over.
type hijackCapture struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack takes the connection from the server and remembers it.
func (h *hijackCapture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}
