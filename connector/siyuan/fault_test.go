package siyuan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func short(c *Config) {
	const d = 50 * time.Millisecond
	c.Timeouts = Timeouts{Read: d, Write: d, Slow: d}
}

// hijack takes the connection and writes raw bytes before closing it.
func hijack(w http.ResponseWriter, bytes string) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = buf.WriteString(bytes)
	_ = buf.Flush()
	_ = conn.Close()
}

const halfAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"code\":0,"

func TestFaultsOfReadsAndWrites(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		answer       func(w http.ResponseWriter, path string)
		read, write  Kind
		readAttempts int
	}{
		{"half an answer", func(w http.ResponseWriter, _ string) { hijack(w, halfAnswer) }, Offline, OutcomeUnknown, 3},
		{"reset", func(w http.ResponseWriter, _ string) { hijack(w, "") }, Offline, OutcomeUnknown, 3},
		{"hang", func(http.ResponseWriter, string) { panic(errHang) }, Timeout, OutcomeUnknown, 1},
		{"500", func(w http.ResponseWriter, _ string) { w.WriteHeader(500) }, Status, OutcomeUnknown, 3},
		{"404", func(w http.ResponseWriter, _ string) { w.WriteHeader(404) }, Status, Status, 1},
		{"401", func(w http.ResponseWriter, _ string) { w.WriteHeader(401) }, Unauthorized, Unauthorized, 1},
		{"redirect", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(307)
		}, Status, OutcomeUnknown, 1},
		{"null data", func(w http.ResponseWriter, _ string) { sendData(w, nil) }, Malformed, OutcomeUnknown, 1},
		{"no envelope", func(w http.ResponseWriter, _ string) { sendJSON(w, 200, []int{1}) }, Malformed, OutcomeUnknown, 1},
		{"no code", func(w http.ResponseWriter, _ string) { sendJSON(w, 200, map[string]any{"data": 1}) }, Malformed, OutcomeUnknown, 1},
		{"a page instead of JSON", func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, "<html>") }, Malformed, OutcomeUnknown, 1},
		{"wrong type", func(w http.ResponseWriter, _ string) { sendData(w, "text") }, Malformed, OutcomeUnknown, 1},
		{"empty object", func(w http.ResponseWriter, _ string) { sendData(w, map[string]any{}) }, Malformed, OutcomeUnknown, 1},
		{"code 3", func(w http.ResponseWriter, _ string) { sendJSON(w, 200, map[string]any{"code": 3}) }, Indexing, Indexing, 1},
		{"code -1", func(w http.ResponseWriter, _ string) { sendJSON(w, 200, map[string]any{"code": -1}) }, Rejected, Rejected, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// Only the case that must run into a timeout gets a short one; a loaded
			// machine would run into it elsewhere too.
			patience := func(*Config) {}
			if tc.name == "hang" {
				patience = short
			}
			k := newKernel(t, tc.answer)
			_, err := newClient(t, k.URL, patience).Reader().WorkspaceInfo(t.Context())
			if KindOf(err) != tc.read {
				t.Errorf("read: got %v, want %v", err, tc.read)
			}
			if n := len(k.requests()); n != tc.readAttempts {
				t.Errorf("read: %d attempts, want %d", n, tc.readAttempts)
			}
			k = newKernel(t, tc.answer)
			_, err = newClient(t, k.URL, patience).Writer().DuplicateDoc(t.Context(), id1)
			if KindOf(err) != tc.write {
				t.Errorf("write: got %v, want %v", err, tc.write)
			}
			if n := len(k.requests()); n != 1 {
				t.Errorf("write: sent %d times", n)
			}
		})
	}
}

func TestAnUnknownOutcomeIsNothingElse(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, _ string) { hijack(w, "") })
	err := newClient(t, k.URL).Writer().RemoveDoc(t.Context(), id1)
	if !errors.Is(err, OutcomeUnknown) || errors.Is(err, Offline) {
		t.Errorf("got %v: a write that may have happened must not look like one that did not", err)
	}
}

func TestARefusedConnectionIsOfflineAtOnceAndProvesNothingWasWritten(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	clock := &noWait{}
	c := newClient(t, "http://127.0.0.1:1", func(cfg *Config) {
		cfg.Clock = clock
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("connection refused")
		}
	})
	if _, _, err := c.Reader().Notebooks(t.Context()); KindOf(err) != Offline {
		t.Errorf("read: %v", err)
	}
	if err := c.Writer().RemoveDoc(t.Context(), id1); KindOf(err) != Offline {
		t.Errorf("write: %v", err)
	}
	if n := dials.Load(); n != 6 {
		t.Errorf("%d dials, want 3 each", n)
	}
	// Base 100 ms, doubled, with the jitter at its greatest.
	want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}
	if !slices.Equal(clock.slept, want) {
		t.Errorf("slept %v, want %v", clock.slept, want)
	}
}

func TestADialThatHangsIsOfflineAfterTheConnectTimeoutWithoutARetry(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	c := newClient(t, "http://127.0.0.1:1", func(cfg *Config) {
		cfg.Timeouts.Connect = 20 * time.Millisecond
		cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	if _, _, err := c.Reader().Notebooks(t.Context()); KindOf(err) != Offline || dials.Load() != 1 {
		t.Errorf("got %v after %d dials", err, dials.Load())
	}
}

func TestACallerWhoGivesUpGetsCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	k := newKernel(t, func(http.ResponseWriter, string) { cancel(); panic(errHang) })
	_, _, err := newClient(t, k.URL).Reader().Notebooks(ctx)
	if !errors.Is(err, Canceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAHugeAnswerIsTooLarge(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, strings.Repeat("x", 4096)) })
	small := func(c *Config) { c.MaxResponseBytes = 1024 }
	if _, err := newClient(t, k.URL, small).Version(t.Context()); KindOf(err) != TooLarge {
		t.Errorf("read: %v", err)
	}
	if err := newClient(t, k.URL, small).Writer().RemoveDoc(t.Context(), id1); KindOf(err) != OutcomeUnknown {
		t.Errorf("write: %v", err)
	}
}

func TestAKernelThatComesBackIsFoundAgain(t *testing.T) {
	t.Parallel()
	serve := func(l net.Listener) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sendData(w, "3.7.3") }))
		_ = s.Listener.Close()
		s.Listener = l
		s.Start()
		return s
	}
	listen := func(addr string) net.Listener {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Skipf("port taken meanwhile: %v", err)
		}
		return l
	}
	first := serve(listen("127.0.0.1:0"))
	addr := first.Listener.Addr().String()
	c := newClient(t, first.URL)
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.CloseClientConnections()
	first.Close()
	if _, err := c.Version(t.Context()); KindOf(err) != Offline {
		t.Errorf("gone kernel: %v", err)
	}
	second := serve(listen(addr))
	t.Cleanup(second.Close)
	if _, err := c.Version(t.Context()); err != nil {
		t.Errorf("returned kernel: %v", err)
	}
}

func TestWritesNeverRideAKeptConnection(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, []any{}) })
	c := newClient(t, k.URL, func(cfg *Config) {
		cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			opened.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	})
	for range 3 {
		if err := c.Writer().ReloadTags(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 3 {
		t.Errorf("3 writes used %d connections", n)
	}
	for range 3 {
		if _, err := c.Reader().Templates(t.Context(), ""); KindOf(err) != Malformed {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 4 {
		t.Errorf("3 reads used %d connections, want one", n-3)
	}
}

func TestMalformedIDsNeverReachTheKernel(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, nil) })
	w := newClient(t, k.URL).Writer()
	const bad ID = "not-an-id"
	for name, err := range map[string]error{
		"plain":    w.RemoveDoc(t.Context(), bad),
		"empty":    w.RemoveDoc(t.Context(), ""),
		"list":     w.MoveDocs(t.Context(), []ID{id1, bad}, box),
		"optional": w.AddKey(t.Context(), av1, id1, "n", "text", "", bad),
		"struct":   w.AddRows(t.Context(), av1, RowsAt{}, []AvSource{{ID: bad}}),
		"map key":  w.ReplaceRows(t.Context(), av1, false, []map[ID]ID{{bad: id1}}),
		"anchor":   w.MoveBlock(t.Context(), id1, Anchor{Parent: bad}),
		"op":       errOf(w.Transactions(t.Context(), []Tx{{Do: []Op{{Action: "delete", ID: bad}}}})),
	} {
		if !errors.Is(err, BadArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sent := k.paths(); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestDangerousArgumentsAreRefusedHere(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, nil) })
	w := newClient(t, k.URL).Writer()
	ctx := t.Context()
	for name, err := range map[string]error{
		"insert nowhere":      errOf(w.InsertBlock(ctx, Markdown, "x", Anchor{})),
		"move before":         w.MoveBlock(ctx, id1, Anchor{Next: id2}),
		"replace everywhere":  w.FindReplace(ctx, Replacement{Kinds: map[string]bool{"text": true}}),
		"replace nothing":     w.FindReplace(ctx, Replacement{IDs: []ID{id1}}),
		"remove workspace":    w.RemoveFile(ctx, "/"),
		"empty message":       errOf(w.PushMessage(ctx, "", time.Second)),
		"download of an API":  errOf(w.Download(ctx, "/api/system/getConf")),
		"download of a climb": errOf(w.Download(ctx, "/export/../conf/conf.json")),
		"unknown section":     w.SetSection(ctx, "AccessAuthCode", nil),
		"unknown packages":    errOf(w.InstalledPackages(ctx, "x", "")),
	} {
		if !errors.Is(err, BadArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sent := k.paths(); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

func TestKernelMessagesStayInTheLogOfTheHomeMachine(t *testing.T) {
	t.Parallel()
	const msg = "open /home/someone/notes/x.sy: no such file"
	k := newKernel(t, func(w http.ResponseWriter, path string) {
		if path == "block/checkBlockExist" {
			sendData(w, true)
			return
		}
		sendJSON(w, 200, map[string]any{"code": -1, "msg": msg})
	})
	_, err := newClient(t, k.URL).Reader().BlockInfo(t.Context(), id1)
	if s := fmt.Errorf("find block: %w", err).Error(); strings.Contains(s, "someone") {
		t.Errorf("the error shows it: %s", s)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Error("x", "err", err)
	if !strings.Contains(log.String(), "someone") {
		t.Errorf("the log does not: %s", log.String())
	}
}
