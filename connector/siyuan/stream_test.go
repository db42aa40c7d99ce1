package siyuan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

func TestAFileIsStoredAsItCame(t *testing.T) {
	t.Parallel()
	k := newKernel(t, func(w http.ResponseWriter, _ string) { sendData(w, nil) })
	w := newClient(t, k.URL).Writer()
	text := strings.Repeat("0123456789abcdef", 20_000) // several buffers
	if err := w.PutFileFrom(t.Context(), "/data/assets/a.txt", iotest.OneByteReader(strings.NewReader(text)), int64(len(text)), time.UnixMilli(5)); err != nil {
		t.Fatal(err)
	}
	got := k.requests()[0]
	if want := `"` + text + `"`; got.path != "file/putFile" || string(got.fields["file"]) != want || string(got.fields["path"]) != `"/data/assets/a.txt"` || string(got.fields["modTime"]) != `"5"` || string(got.fields["isDir"]) != `"false"` {
		t.Errorf("%s got %d bytes of file, %s %s", got.path, len(got.fields["file"]), got.fields["path"], got.fields["modTime"])
	}
	if got.auth != "Token "+testToken {
		t.Error("no token")
	}
}

// What the kernel has not got all of it does not store, so the error is a
// definite one.
func TestAFileThatEndsEarlyIsNotStored(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		body io.Reader
		size int64
	}{
		"too short":          {strings.NewReader("abc"), 4},
		"too long":           {strings.NewReader("abc"), 2},
		"broken":             {io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 10},
		"refused at its end": {io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 3},
		"empty but longer":   {strings.NewReader("a"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var whole atomic.Int32
			done := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				if err := r.ParseMultipartForm(1 << 20); err == nil {
					whole.Add(1)
				}
			}))
			defer server.Close()
			err := newClient(t, server.URL).Writer().PutFileFrom(t.Context(), "/data/assets/a", c.body, c.size, time.Now())
			if !errors.Is(err, ErrSource) || errors.Is(err, OutcomeUnknown) {
				t.Errorf("%v", err)
			}
			<-done
			if whole.Load() != 0 {
				t.Error("the kernel got a whole form")
			}
		})
	}
}

func TestWhatBecameOfAStreamedWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   Kind
	}{
		"half an answer": {func(w http.ResponseWriter) { hijack(w, halfAnswer) }, OutcomeUnknown},
		"no answer":      {func(w http.ResponseWriter) { hijack(w, "") }, OutcomeUnknown},
		"500":            {func(w http.ResponseWriter) { w.WriteHeader(500) }, OutcomeUnknown},
		"a page":         {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, OutcomeUnknown},
		"401":            {func(w http.ResponseWriter) { w.WriteHeader(401) }, Unauthorized},
		"refused":        {func(w http.ResponseWriter) { sendJSON(w, 200, map[string]any{"code": 400, "msg": "x"}) }, Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t, func(w http.ResponseWriter, _ string) { c.answer(w) })
			err := newClient(t, k.URL).Writer().PutFileFrom(t.Context(), "/data/a", strings.NewReader("abc"), 3, time.Now())
			if KindOf(err) != c.want || len(k.paths()) != 1 {
				t.Errorf("%v after %d requests, want %v after one", err, len(k.paths()), c.want)
			}
		})
	}
	k := newKernel(t, nil)
	k.Close()
	if err := newClient(t, k.URL).Writer().PutFileFrom(t.Context(), "/data/a", strings.NewReader("abc"), 3, time.Now()); KindOf(err) != Offline {
		t.Errorf("nobody home: %v", err)
	}
}

func TestAFileIsReadAsItArrives(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	for name, chunked := range map[string]bool{"told": false, "chunked": true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			if chunked {
				w.(http.Flusher).Flush()
			} else {
				w.Header().Set("Content-Length", "160000")
			}
			_, _ = w.Write(text)
		}))
		f, err := newClient(t, server.URL).Reader().OpenFile(t.Context(), "/data/assets/a.png")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(f)
		if want := map[bool]int64{false: int64(len(text)), true: -1}[chunked]; err != nil || !bytes.Equal(got, text) || f.Size != want || f.ContentType != "image/png" {
			t.Errorf("%s: %d bytes of %d, %s, %v", name, len(got), f.Size, f.ContentType, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}

func TestAFileThatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   Kind
	}{
		"missing":       {func(w http.ResponseWriter) { sendJSON(w, 202, map[string]any{"code": 404, "msg": "no"}) }, Missing},
		"a folder":      {func(w http.ResponseWriter) { sendJSON(w, 202, map[string]any{"code": 409, "msg": "no"}) }, Rejected},
		"401":           {func(w http.ResponseWriter) { w.WriteHeader(401) }, Unauthorized},
		"closed":        {func(w http.ResponseWriter) { hijack(w, "") }, Offline},
		"odd":           {func(w http.ResponseWriter) { hijack(w, "SSH-2.0\r\n\r\n") }, Offline},
		"202, no error": {func(w http.ResponseWriter) { sendJSON(w, 202, map[string]any{"code": 0, "data": nil}) }, Malformed},
	} {
		k := newKernel(t, func(w http.ResponseWriter, _ string) { c.answer(w) })
		if _, err := newClient(t, k.URL).Reader().OpenFile(t.Context(), "/data/a"); KindOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	k := newKernel(t, func(w http.ResponseWriter, _ string) {
		hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
	})
	f, err := newClient(t, k.URL).Reader().OpenFile(t.Context(), "/data/a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that was cut passes for whole: %q, %v", got, err)
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "abc")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	f, err := newClient(t, server.URL).Reader().OpenFile(ctx, "/data/a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.Read(make([]byte, 1)); err == nil {
		t.Error("read on after the end of the context")
	}
}
