package tunneltest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// wan is a link that all connections through it share: so many bytes a second
// and so much delay each way. Connections take turns piece by piece, as behind a
// router with fair queues, and each may have a little waiting there.
type wan struct {
	ln     net.Listener
	target string
	delay  time.Duration // one way
	up     *lane
	down   *lane
	work   sync.WaitGroup
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

const (
	queued = 4    // pieces of a connection that wait at the link
	flying = 4096 // pieces of a connection under way
)

// lane is one direction.
type lane struct {
	rate  float64 // bytes a second
	turn  sync.Mutex
	ahead time.Time // when the line is free
}

// send occupies the line for n bytes and returns when the last one left. Waiting
// for a lock takes turns well enough: Go's are fair under contention.
func (l *lane) send(n int) time.Time {
	l.turn.Lock()
	defer l.turn.Unlock()
	if now := time.Now(); l.ahead.Before(now) {
		l.ahead = now
	}
	l.ahead = l.ahead.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	if wait := time.Until(l.ahead); wait > time.Millisecond { // finer than timers are
		time.Sleep(wait)
	}
	return l.ahead
}

func startWAN(t testing.TB, target string, rate float64, rtt time.Duration) *wan {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wan{ln: ln, target: target, delay: rtt / 2, up: &lane{rate: rate}, down: &lane{rate: rate}}
	w.work.Go(w.serve)
	t.Cleanup(func() {
		_ = ln.Close()
		w.mu.Lock()
		w.closed = true
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		w.work.Wait()
	})
	return w
}

func (w *wan) serve() {
	for {
		client, err := w.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		if w.closed {
			_, _ = client.Close(), server.Close()
		}
		w.mu.Unlock()
		w.pass(client, server, w.up)
		w.pass(server, client, w.down)
	}
}

type parcel struct {
	data []byte
	due  time.Time
}

// pass carries one direction of a connection.
func (w *wan) pass(from, to net.Conn, l *lane) {
	piece := int(min(64<<10, max(8<<10, l.rate/1500))) // what a connection sends in its turn, two thirds of a millisecond
	waiting, under := make(chan []byte, queued), make(chan parcel, flying)
	w.work.Go(func() {
		defer close(waiting)
		for {
			b := make([]byte, piece)
			n, err := from.Read(b)
			if n > 0 {
				waiting <- b[:n]
			}
			if err != nil {
				return
			}
		}
	})
	w.work.Go(func() {
		defer close(under)
		for b := range waiting {
			under <- parcel{b, l.send(len(b)).Add(w.delay)}
		}
	})
	w.work.Go(func() {
		defer func() { _, _ = to.Close(), from.Close() }()
		for p := range under {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				break
			}
		}
		_ = from.Close()
		for range under { // lets the others end
		}
	})
}
