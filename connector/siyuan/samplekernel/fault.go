package samplekernel

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// FaultKind is a way to misbehave.
type FaultKind int

// The ways. Where a request would be carried out first, the kind says so.
const (
	FaultNone      FaultKind = iota
	FaultDrop                // the connection is closed without an answer, nothing is done
	FaultDropAfter           // the request is carried out, then the connection is closed without an answer
	FaultSlow                // answered rightly, after Delay
	FaultHang                // never answered: held until the client gives up or the fault is cleared
	FaultStatus              // HTTP status Status, 500 when zero, nothing is done
	FaultHalf                // carried out, but only half of the answer is sent before the connection closes
	FaultNoEffect            // writes answer code 0 with data null and do nothing; reads are served rightly
)

// Fault is one misbehaviour. Times bounds how many requests it hits; 0 is all.
type Fault struct {
	Kind   FaultKind
	Delay  time.Duration
	Status int
	Times  int
}

// Faults is the switchboard of a kernel's misbehaviour. It is safe for
// concurrent use and has no effect until something is set.
type Faults struct {
	mu     sync.Mutex
	byPath map[string]*Fault
	writes map[string]bool
	synced map[string]bool // documents said to be about to change by sync
	freed  chan struct{}   // closed to let hung requests go
}

func newFaults() *Faults {
	f := &Faults{byPath: map[string]*Fault{}, writes: map[string]bool{}, freed: make(chan struct{})}
	for p, r := range allRoutes() {
		f.writes[p] = r.write
	}
	return f
}

// Set makes requests for an API path misbehave; the empty path stands for all
// paths without a fault of their own.
func (f *Faults) Set(path string, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byPath[path] = &fault
}

// Clear ends all misbehaviour and lets hung requests go.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byPath = map[string]*Fault{}
	close(f.freed)
	f.freed = make(chan struct{})
}

// Sync makes getDoc say of documents, and of no others, that sync is about to
// change them.
func (f *Faults) Sync(docs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = map[string]bool{}
	for _, id := range docs {
		f.synced[id] = true
	}
}

func (f *Faults) syncing(doc string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced[doc]
}

// IsWrite reports whether an API path changes the workspace, which is what
// FaultNoEffect goes by.
func (f *Faults) IsWrite(path string) bool { return f.writes[path] }

func (f *Faults) release() { f.Clear() }

// next takes the fault for one request.
func (f *Faults) next(path string) (fault Fault, isWrite bool, freed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := path
	set, ok := f.byPath[key]
	if !ok {
		key = ""
		set, ok = f.byPath[key]
	}
	if !ok {
		return Fault{}, false, f.freed
	}
	fault = *set
	if set.Times > 0 {
		if set.Times--; set.Times == 0 {
			delete(f.byPath, key)
		}
	}
	return fault, f.writes[path], f.freed
}

func (f *Faults) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, isWrite, freed := f.next(r.URL.Path)
		switch fault.Kind {
		case FaultDrop:
			panic(http.ErrAbortHandler)
		case FaultDropAfter:
			h.ServeHTTP(newHeld(), r)
			panic(http.ErrAbortHandler)
		case FaultSlow:
			if wait(r, time.After(fault.Delay), freed) {
				h.ServeHTTP(w, r)
			}
		case FaultHang:
			wait(r, nil, freed)
			panic(http.ErrAbortHandler)
		case FaultStatus:
			http.Error(w, "fault", orStatus(fault.Status))
		case FaultHalf:
			half(w, r, h)
		case FaultNoEffect:
			if isWrite {
				reply(w, http.StatusOK, nil, nil)
				return
			}
			h.ServeHTTP(w, r)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func orStatus(status int) int {
	if status == 0 {
		return http.StatusInternalServerError
	}
	return status
}

// wait is false when the client gave up first.
func wait(r *http.Request, due <-chan time.Time, freed <-chan struct{}) bool {
	select {
	case <-due:
	case <-freed:
	case <-r.Context().Done():
		return false
	}
	return true
}

// held is an answer that is kept instead of sent.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newHeld() *held { return &held{header: http.Header{}, status: http.StatusOK} }

func (a *held) Header() http.Header         { return a.header }
func (a *held) WriteHeader(status int)      { a.status = status }
func (a *held) Write(b []byte) (int, error) { return a.body.Write(b) }

// half sends one half of the answer.
func half(w http.ResponseWriter, r *http.Request, h http.Handler) {
	answer := newHeld()
	h.ServeHTTP(answer, r)
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.status)
	w.Write(answer.body.Bytes()[:answer.body.Len()/2])
	if fl, ok := w.(http.Flusher); ok {
		fl.Flush()
	}
	panic(http.ErrAbortHandler)
}

// Restart does what a kernel does that went away and came back: memory is
// read from disk again, bootProgress climbs to 100 over boot, and then rows
// come back to the index document by document over indexing. What was not on
// disk is lost; writes are, so nothing is.
func (k *Kernel) Restart(boot, indexing time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.index
	k.index = nil
	if err := old.Close(); err != nil {
		return err
	}
	if err := k.load(); err != nil {
		return err
	}
	ids := sortedKeys(k.docs)
	for _, id := range ids {
		if err := k.index.Delete(id); err != nil {
			return err
		}
	}
	now := k.now()
	k.boot = bootState{began: now, ready: now.Add(boot)}
	for i, id := range ids {
		due := k.boot.ready.Add(indexing * time.Duration(i+1) / time.Duration(len(ids)))
		k.mounts = append(k.mounts, task{due: due, run: func() { k.reindex(id, staleness{copies: 1}) }})
	}
	k.settle()
	return nil
}
