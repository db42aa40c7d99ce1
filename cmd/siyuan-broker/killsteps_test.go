package main_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel"
)

// serveKernel is this test program as a kernel of its own, which can be killed.
func serveKernel(dir, listen string) {
	k, err := samplekernel.New(samplekernel.Options{Dir: dir, Token: "kernel-token", IndexLag: -1, DeleteLag: -1, MountLag: -1})
	if err == nil {
		_, err = samplekernel.Listen(k, listen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {} // until it is killed
}

// moment is one point of a call: the nth request to the kernel, before the
// kernel has it, or after it carried it out and before anybody knows.
type moment struct {
	n      int
	after  bool
	happen func()
	hold   bool // the request is lost, which shows only when the stepper is released
	lose   bool // the request is lost at once
}

// stepper stands between connector and kernel. It counts what the kernel carries
// out and makes something happen at one moment of a call.
type stepper struct {
	kernel string               // host:port
	writes *samplekernel.Faults // tells writes from reads

	mu       sync.Mutex
	n        int // requests since arm
	at       moment
	done     map[string]int // writes carried out since arm, by path
	hits     chan bool      // of the request at the moment: whether it happened; nil before that request
	released chan struct{}
}

// arm begins a call.
func (s *stepper) arm(m moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.at, s.done, s.hits, s.released = 0, m, map[string]int{}, nil, make(chan struct{})
}

// disarm ends the time in which it may happen: a call that its caller gave up
// early goes on unharmed, because nobody would put things right any more. It
// returns what was carried out until now, and whether it happened; a blow that is
// about to fall is waited for.
func (s *stepper) disarm() (writes map[string]int, struck bool) {
	s.mu.Lock()
	writes, s.at = maps.Clone(s.done), moment{}
	hits := s.hits
	s.mu.Unlock()
	return writes, hits != nil && <-hits
}

// release lets held requests go, without an answer.
func (s *stepper) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.released:
	default:
		close(s.released)
	}
}

// seen are the requests and the writes carried out since arm.
func (s *stepper) seen() (requests int, writes map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, maps.Clone(s.done)
}

func (s *stepper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	s.n++
	at, released := s.at, s.released
	var hits chan bool
	if s.n == at.n { // once: n only grows
		hits = make(chan bool, 1)
		s.hits = hits
	}
	s.mu.Unlock()
	if hits != nil && !at.after {
		strike(at, hits, released)
	}
	status, header, answer, err := s.forward(r, body)
	if err != nil {
		if hits != nil && at.after {
			hits <- false
		}
		panic(http.ErrAbortHandler)
	}
	if hits != nil && at.after {
		strike(at, hits, released)
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// strike makes it happen and says so. What the fault leaves alone goes on, unless the request
// is to be lost.
func strike(at moment, hits chan<- bool, released <-chan struct{}) {
	at.happen()
	hits <- true
	if at.hold {
		<-released
	}
	if at.hold || at.lose {
		panic(http.ErrAbortHandler)
	}
}

func (s *stepper) forward(r *http.Request, body []byte) (int, http.Header, []byte, error) {
	out, err := http.NewRequest(r.Method, "http://"+s.kernel+r.URL.RequestURI(), bytes.NewReader(body)) // not with r's context: the kernel goes on without its client
	if err != nil {
		return 0, nil, nil, err
	}
	out.Header = r.Header.Clone()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := client.Do(out)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	// A restore point changes no note.
	if err == nil && s.writes.IsWrite(r.URL.Path) && r.URL.Path != "/api/history/createDocHistory" && bytes.HasPrefix(answer, []byte(`{"code":0`)) {
		s.mu.Lock()
		s.done[strings.TrimPrefix(r.URL.Path, "/api/")]++
		s.mu.Unlock()
	}
	return resp.StatusCode, resp.Header, answer, err
}
