package siyuan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const flushPath = "sqlite/flushTransaction"

// freshKernel answers every call with something each endpoint here can read.
func freshKernel(t *testing.T) *kernel {
	return newKernel(t, func(w http.ResponseWriter, path string) {
		switch path {
		case "block/checkBlockExist":
			sendData(w, true)
		case "attr/setBlockAttrs", flushPath:
			sendData(w, nil)
		default:
			sendData(w, []any{})
		}
	})
}

func TestAnIndexReadFlushesOnceAfterAWrite(t *testing.T) {
	t.Parallel()
	k := freshKernel(t)
	w := newClient(t, k.URL).Writer()
	ctx := t.Context()
	steps := []error{
		errOf(w.SQL(ctx, "SELECT 1")), w.SetBlockAttrs(ctx, id1, nil), errOf(w.BlockExists(ctx, id1)),
		errOf(w.SQL(ctx, "SELECT 1")), errOf(w.SQL(ctx, "SELECT 1")),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	want := []string{"query/sql", "attr/setBlockAttrs", "block/checkBlockExist", flushPath, "query/sql", "query/sql"}
	if got := k.paths(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestATreeReadWaitsForADeletion(t *testing.T) {
	t.Parallel()
	k := freshKernel(t)
	w := newClient(t, k.URL).Writer()
	if err := errors.Join(w.DeleteBlock(t.Context(), id2), errOf(w.BlockExists(t.Context(), id2))); err != nil {
		t.Fatal(err)
	}
	want := []string{"block/deleteBlock", flushPath, "block/checkBlockExist"}
	if got := k.paths(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestFlushesOfConcurrentReadersAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		f.wrote(false)
		var flushes atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				err := f.ensure(t.Context(), levelIndex, func(context.Context) error {
					flushes.Add(1)
					time.Sleep(time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := flushes.Load(); n != 1 {
			t.Errorf("%d flushes for 20 readers", n)
		}
	})
}

func TestAFailedFlushFailsItsLeaderOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		f.wrote(false)
		var flushes, failed atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if f.ensure(t.Context(), levelIndex, func(context.Context) error {
					time.Sleep(time.Second)
					if flushes.Add(1) == 1 {
						return errors.New("gone")
					}
					return nil
				}) != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if failed.Load() != 1 || flushes.Load() != 2 {
			t.Errorf("%d failed of %d flushes, want 1 of 2", failed.Load(), flushes.Load())
		}
	})
}

func TestCallsAreCountedPerAction(t *testing.T) {
	t.Parallel()
	k := freshKernel(t)
	w := newClient(t, k.URL).Writer()
	outer, all := WithCounter(t.Context())
	inner, part := WithCounter(outer)
	if err := errors.Join(w.SetBlockAttrs(outer, id1, nil), errOf(w.SQL(inner, "SELECT 1"))); err != nil {
		t.Fatal(err)
	}
	// The write, then the query with its flush.
	if all.Calls() != 3 || all.Writes() != 1 || part.Calls() != 2 || part.Writes() != 0 {
		t.Errorf("all %d/%d, part %d/%d", all.Calls(), all.Writes(), part.Calls(), part.Writes())
	}
}

func TestATokenIsNeverPrinted(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://127.0.0.1:6806")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{c.cfg.Token, c.cfg, c} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, testToken) || strings.Contains(s, fmt.Sprintf("%x", testToken)) {
				t.Errorf("%s of %T shows it", verb, v)
			}
		}
	}
	if b, err := c.cfg.Token.MarshalText(); err != nil || string(b) != redacted {
		t.Errorf("marshalled to %q, %v", b, err)
	}
}

func TestIDsHaveTheKernelsForm(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"20240101090000-work001": true, "99999999999999-zzzzzzz": true,
		"": false, "not-an-id": false, "20240101090000-Work001": false, "2024010109000a-work001": false,
		"20240101090000_work001": false, "20240101090000-work0011": false, "20240101090000-wor\x0001": false,
	} {
		if _, err := ParseID(s); (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
	}
	id, err := NewID(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), strings.NewReader(strings.Repeat("\x00\x01\x24\xff", 8)))
	if err != nil || id != "20240102030405-0100100" { // bytes 0 and 36 are '0', 1 is '1', 255 is drawn again
		t.Errorf("got %q, %v", id, err)
	}
}

func TestABaseURLMustBePlain(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"http://127.0.0.1:6806": true, "https://notes.example/siyuan/": true,
		"": false, "127.0.0.1:6806": false, "ftp://x": false, "http://": false,
		"http://user:pw@x": false, "http://x?token=1": false, "http://x/#a": false, "http://%zz": false,
	} {
		if _, err := New(Config{BaseURL: url}); (err == nil) != want || err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
