package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// connected is a client and a server with a proxy between them.
func connected(t *testing.T, change func(*Proxy)) (p *Proxy, client, server *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	p, err = Start(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if change != nil {
		change(p)
	}
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []net.Conn{c, s} {
		t.Cleanup(func() { _ = end.Close() })
		_ = end.SetDeadline(time.Now().Add(patience))
	}
	return p, c.(*net.TCPConn), s.(*net.TCPConn)
}

func expect(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func say(t *testing.T, to io.Writer, what string) {
	t.Helper()
	if _, err := io.WriteString(to, what); err != nil {
		t.Fatal(err)
	}
}

// silent fails if anything, a close included, arrives within a moment.
func silent(t *testing.T, c *net.TCPConn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	n, err := c.Read(make([]byte, 1))
	var late net.Error
	if n != 0 || !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("heard %d bytes, %v", n, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

func TestAnOrdinaryNetworkPassesBytesAndClosings(t *testing.T) {
	t.Parallel()
	p, client, server := connected(t, nil)
	say(t, client, "hello")
	expect(t, server, "hello")
	say(t, server, "world!")
	expect(t, client, "world!")
	_ = client.CloseWrite()
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after a half close: %v", err)
	}
	say(t, server, "still")
	expect(t, client, "still")
	conn := p.Conns()[0]
	counted := func() bool { return conn.Passed(Up) == 5 && conn.Passed(Down) == 11 }
	for limit := time.Now().Add(patience); !counted() && time.Now().Before(limit); { // just after they are let through
		runtime.Gosched()
	}
	if !counted() {
		t.Errorf("counted %d up, %d down", conn.Passed(Up), conn.Passed(Down))
	}
	<-conn.Gone(Up)
}

func TestABlackHoleSwallowsOneDirectionAndItsClosing(t *testing.T) {
	t.Parallel()
	p, client, server := connected(t, nil)
	p.Set(Rules{Up: Rule{Effect: Drop, After: 2}})
	say(t, client, "abcd")
	expect(t, server, "ab")
	say(t, server, "down")
	expect(t, client, "down")
	_ = client.Close()
	silent(t, server)
}

func TestAHeldDirectionGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	p, client, server := connected(t, func(p *Proxy) { p.SetNew(Rules{Down: Rule{Effect: Hold, After: 3}}) })
	say(t, server, "abcdef")
	expect(t, client, "abc")
	silent(t, client)
	p.Set(Rules{})
	expect(t, client, "def")
}

func TestAHeldDirectionPushesBack(t *testing.T) {
	t.Parallel()
	_, client, server := connected(t, func(p *Proxy) { p.SetNew(Rules{Up: Rule{Effect: Hold}}) })
	_ = client.SetWriteBuffer(64 << 10)
	_ = server.SetReadBuffer(64 << 10)
	_ = client.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	n, err := client.Write(make([]byte, 64<<20))
	if err == nil {
		t.Fatal("64 MiB vanished")
	}
	if n > 16<<20 {
		t.Errorf("%d bytes are under way", n)
	}
}

func TestAResetAndATruncationLookDifferent(t *testing.T) {
	t.Parallel()
	for effect, want := range map[Effect]error{Reset: syscall.ECONNRESET, Truncate: io.EOF} {
		p, client, server := connected(t, nil)
		p.Set(Rules{Up: Rule{Effect: effect, After: 3}})
		say(t, client, "abcdef")
		got := make([]byte, 3)
		if _, err := io.ReadFull(server, got); effect == Truncate && (err != nil || string(got) != "abc") {
			t.Errorf("before the truncation: %q, %v", got, err)
		}
		for _, end := range []*net.TCPConn{client, server} {
			if _, err := end.Read(make([]byte, 1)); !errors.Is(err, want) {
				t.Errorf("effect %d: %v, want %v", effect, err, want)
			}
		}
		p.Set(Rules{})
	}
}

func TestAHiddenCloseLeavesTheOtherEndHalfOpen(t *testing.T) {
	t.Parallel()
	p, client, server := connected(t, func(p *Proxy) { p.SetNew(Both(Rule{Hide: true})) })
	say(t, client, "x")
	expect(t, server, "x")
	_ = client.Close()
	<-p.Conns()[0].Gone(Up)
	silent(t, server)
	say(t, server, "anybody there")
	silent(t, server)
}

func TestDelayAddsLatencyAndDoesNotCostThroughput(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	_, client, server := connected(t, func(p *Proxy) { p.SetNew(Rules{Up: Rule{Delay: delay}}) })
	began := time.Now()
	go func() { // ends with the connection at the latest
		for range 10 {
			_, _ = client.Write(bytes.Repeat([]byte("x"), 1000))
			time.Sleep(time.Millisecond) // separate chunks
		}
	}()
	expect(t, server, "x")
	if d := time.Since(began); d < delay {
		t.Errorf("the first byte took %v", d)
	}
	if _, err := io.ReadFull(server, make([]byte, 9999)); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 10*delay-1 {
		t.Errorf("ten chunks took %v: one after the other", d)
	}
}

func TestAThrottledDirectionKeepsItsRate(t *testing.T) {
	t.Parallel()
	_, client, server := connected(t, func(p *Proxy) { p.SetNew(Rules{Up: Rule{Rate: 100_000}}) })
	began := time.Now()
	say(t, client, string(make([]byte, 20_000)))
	if _, err := io.ReadFull(server, make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	// 20,000 bytes at 100,000 a second, less the last slice.
	if d := time.Since(began); d < 180*time.Millisecond {
		t.Errorf("took %v", d)
	}
}

func TestAnIdleConnectionIsForgotten(t *testing.T) {
	t.Parallel()
	_, client, server := connected(t, func(p *Proxy) { p.ForgetIdle(20 * time.Millisecond) })
	say(t, client, "a")
	expect(t, server, "a")
	silent(t, server) // 30 ms
	say(t, client, "b")
	silent(t, server)
	_ = client.Close()
	silent(t, server)
}

func TestADuplicateSaysTheSameTwice(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p, err := Start(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Duplicate(true)
	client, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var servers []net.Conn
	for range 2 {
		s, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
	}
	say(t, client, "same")
	for _, s := range servers {
		expect(t, s, "same")
	}
}

func TestRefusedAndUnreachableTargetsResetTheClient(t *testing.T) {
	t.Parallel()
	p, err := Start("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, refuse := range []bool{true, false} {
		p.Refuse(refuse)
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			continue // reset before Dial returned
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("refuse %v: %v", refuse, err)
		}
		_ = c.Close()
	}
}

func TestCloseEndsEverythingWhateverTheRules(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for _, r := range []Rule{{}, {Effect: Drop}, {Effect: Hold}, {Hide: true}, {Delay: time.Hour}, {Rate: 1}} {
		p, client, _ := connected(t, func(p *Proxy) { p.SetNew(Both(r)) })
		say(t, client, "under way")
		wg.Go(func() { _ = p.Close() }) // hangs the test if something stays
	}
	wg.Wait()
}
