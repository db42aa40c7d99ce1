package link

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
)

// pair is both ends of one connection.
func pair(t *testing.T) (a, b *Link) {
	t.Helper()
	x, y := net.Pipe()
	t.Cleanup(func() { _ = x.Close(); _ = y.Close() })
	return New(x, x, "tls", nil), New(y, y, "tls", nil)
}

func timing() Timing {
	return Timing{Ping: time.Minute, Write: time.Minute, StreamOpen: time.Minute, StreamClose: time.Minute}
}

func TestALinkIsSilentUntilBytesArrive(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	began := time.Now()
	if !a.SilentSince(began) {
		t.Error("a link that heard nothing is not silent")
	}
	go func() { _, _ = b.Write([]byte("x")) }()
	if _, err := io.ReadFull(a, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if a.SilentSince(began) {
		t.Error("a link that heard a byte is silent since before")
	}
	if !a.SilentSince(time.Now().Add(time.Hour)) {
		t.Error("a link is not silent since the future")
	}
}

// goodbye is a connection whose Close waits for its peer, as TLS does.
type goodbye struct{ net.Conn }

func (goodbye) Close() error { select {} }

func TestClosingALinkWaitsForNobody(t *testing.T) {
	t.Parallel()
	x, y := net.Pipe()
	defer y.Close()
	canceled := false
	l := New(goodbye{x}, x, "wss", func() { canceled = true })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the peer reads %v, want the end", err)
	}
	if !canceled {
		t.Error("what the connection ran in was not canceled")
	}
}

func TestHangingUpEndsBothSessions(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	log := slog.New(slog.DiscardHandler)
	ours, theirs := Mux(a), Mux(b)
	client, err := yamux.Client(ours, Config(Window, timing(), log.Debug))
	if err != nil {
		t.Fatal(err)
	}
	server, err := yamux.Server(theirs, Config(Window, timing(), log.Debug))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Open()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := stream.Read(make([]byte, 1))
		ended <- err
	}()
	if _, err := server.Accept(); err != nil {
		t.Fatal(err)
	}
	ours.HangUp(client)
	if err := <-ended; err == nil {
		t.Error("a reader of a stream reads on after its session was hung up")
	}
	<-server.CloseChan() // it finds its connection gone
	theirs.HangUp(server)
}

func TestYamuxSpeaksInDebugRecords(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := Config(BulkWindow, timing(), slog.New(slog.NewTextHandler(&out, nil)).Debug)
	if err := yamux.VerifyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.LogOutput.Write([]byte("a line\n")); err != nil || out.Len() > 0 {
		t.Errorf("at info level: %q, %v", out.String(), err)
	}
	cfg = Config(BulkWindow, timing(), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})).Debug)
	if _, err := cfg.LogOutput.Write([]byte("a line\n")); err != nil || !bytes.Contains(out.Bytes(), []byte(`line="a line"`)) {
		t.Errorf("at debug level: %q, %v", out.String(), err)
	}
}
