package samplekernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel"
)

// served is a rig behind real TCP, where connections can break.
type served struct {
	*rig
	url string
}

func newServed(t *testing.T) *served {
	t.Helper()
	r := newRig(t, samplekernel.Options{})
	s := httptest.NewServer(r.k.Handler())
	t.Cleanup(func() {
		r.k.Faults().Clear()
		s.Close()
	})
	return &served{r, s.URL}
}

func (s *served) post(ctx context.Context, path string, body any) (int, []byte, error) {
	s.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(raw))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Token "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	return resp.StatusCode, out, err
}

const versionPath = "/api/system/version"

func TestADroppedRequestIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	id := s.doc(s.notebook("Box"), "/Doc", "text")
	s.k.Faults().Set("/api/block/appendBlock", samplekernel.Fault{Kind: samplekernel.FaultDrop})
	_, _, err := s.post(t.Context(), "/api/block/appendBlock", obj{"dataType": "markdown", "data": "lost", "parentID": id})
	if err == nil {
		t.Fatal("the connection held")
	}
	if n := len(ok[[]obj](s.rig, "/api/block/getChildBlocks", obj{"id": id})); n != 1 {
		t.Fatalf("%d blocks after a dropped append", n)
	}
}

func TestDropAfterCarriesOutWhatItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	id := s.doc(s.notebook("Box"), "/Doc", "text")
	s.k.Faults().Set("/api/block/appendBlock", samplekernel.Fault{Kind: samplekernel.FaultDropAfter})
	if _, _, err := s.post(t.Context(), "/api/block/appendBlock", obj{"dataType": "markdown", "data": "kept", "parentID": id}); err == nil {
		t.Fatal("the connection held")
	}
	if n := len(ok[[]obj](s.rig, "/api/block/getChildBlocks", obj{"id": id})); n != 2 {
		t.Fatalf("%d blocks, want the appended one too", n)
	}
}

func TestAHungRequestEndsWhenTheFaultIsCleared(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	s.k.Faults().Set("", samplekernel.Fault{Kind: samplekernel.FaultHang})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := s.post(ctx, versionPath, obj{})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("hung request gave %v", err)
	}
	s.k.Faults().Clear()
	if code, _, err := s.post(t.Context(), versionPath, obj{}); err != nil || code != http.StatusOK {
		t.Fatalf("after clearing: %d %v", code, err)
	}
}

func TestAStatusFaultHitsAsManyRequestsAsItSays(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	s.k.Faults().Set(versionPath, samplekernel.Fault{Kind: samplekernel.FaultStatus, Status: http.StatusBadGateway, Times: 2})
	for i, want := range []int{http.StatusBadGateway, http.StatusBadGateway, http.StatusOK} {
		if code, _, err := s.post(t.Context(), versionPath, obj{}); err != nil || code != want {
			t.Fatalf("request %d: %d %v, want %d", i, code, err, want)
		}
	}
}

func TestHalfAnAnswerDoesNotParse(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	s.k.Faults().Set(versionPath, samplekernel.Fault{Kind: samplekernel.FaultHalf})
	_, body, err := s.post(t.Context(), versionPath, obj{})
	if err == nil || json.Valid(body) || len(body) == 0 {
		t.Fatalf("got %q and %v", body, err)
	}
}

func TestASlowAnswerIsTheRightAnswer(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	s.k.Faults().Set(versionPath, samplekernel.Fault{Kind: samplekernel.FaultSlow, Delay: time.Millisecond})
	code, body, err := s.post(t.Context(), versionPath, obj{})
	if err != nil || code != http.StatusOK || !bytes.Contains(body, []byte(`"3.7.3"`)) {
		t.Fatalf("%d %q %v", code, body, err)
	}
}

func TestNoEffectAnswersWritesAndServesReads(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	id := s.doc(s.notebook("Box"), "/Doc", "text")
	s.k.Faults().Set("", samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
	if a := s.call("/api/block/appendBlock", obj{"dataType": "markdown", "data": "x", "parentID": id}); a.Code != 0 || string(a.Data) != "null" {
		t.Fatalf("append answered %+v", a)
	}
	if n := len(ok[[]obj](s.rig, "/api/block/getChildBlocks", obj{"id": id})); n != 1 {
		t.Fatalf("%d blocks", n)
	}
}

func TestAfterARestartTheIndexComesBackBitByBit(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{Sample: true})
	const count = "select count(*) as n from blocks where type='d'"
	before := r.sql(count)[0]["n"].(float64)
	if err := r.k.Restart(10*time.Second, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	progress := func() float64 { return ok[map[string]any](r, "/api/system/bootProgress", obj{})["progress"].(float64) }
	if p := progress(); p != 0 {
		t.Fatalf("progress %v right after the restart", p)
	}
	r.clock.advance(5 * time.Second)
	if p := progress(); p != 50 {
		t.Fatalf("progress %v half-way", p)
	}
	r.clock.advance(15 * time.Second)
	half := r.sql(count)[0]["n"].(float64)
	if p := progress(); p != 100 || half == 0 || half >= before {
		t.Fatalf("progress %v, %v of %v documents indexed", p, half, before)
	}
	if a := r.call("/api/filetree/getPathByID", obj{"id": "20240199000000-missing"}); a.Msg != "indexing" {
		t.Fatalf("while indexing a missing block is %q", a.Msg)
	}
	r.clock.advance(time.Minute)
	roots := float64(3) // indexed twice when made, once when found
	if after := r.sql(count)[0]["n"].(float64); after != before-roots {
		t.Fatalf("%v documents in the end, %v before", after, before)
	}
}

func TestAStoppedServerRefusesConnectionsAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, samplekernel.Options{})
	s, err := samplekernel.Listen(r.k, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	c := &served{r, s.URL()}
	if code, _, err := c.post(t.Context(), versionPath, obj{}); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.post(t.Context(), versionPath, obj{}); err == nil {
		t.Fatal("a stopped server answered")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if code, _, err := c.post(t.Context(), versionPath, obj{}); err != nil || code != http.StatusOK {
		t.Fatalf("after the start: %d %v", code, err)
	}
}
