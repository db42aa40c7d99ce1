package samplekernel

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"siyuan-broker/connector/siyuan/samplekernel/index"
)

// Version is the SiYuan version the kernel claims to be.
const Version = "3.7.3"

// The delays a real kernel was measured at.
const (
	DefaultIndexLag  = 2500 * time.Millisecond // a write until SQL and search see it
	DefaultDeleteLag = 50 * time.Millisecond   // deleteBlock until the tree has lost the block
	DefaultMountLag  = 3 * time.Second         // openNotebook and closeNotebook until the index follows
)

// Options configure a kernel. The zero value is a fresh, empty kernel with a
// random token in a temporary folder.
type Options struct {
	// Token is what callers must send as `Authorization: Token …`; random when empty.
	Token string
	// AuthCode is the lock screen password /api/system/loginAuth accepts.
	AuthCode string
	// Dir is the workspace folder, made if missing. Empty: a temporary one,
	// removed by Close.
	Dir string
	// Clock tells the time; time.Now when nil. All lags run on it.
	Clock func() time.Time
	// Rand feeds ids and the random attribute order; crypto/rand when nil.
	Rand io.Reader
	// Sample seeds a small bilingual workspace when Dir holds no notebook yet.
	Sample bool
	// IndexLag, DeleteLag and MountLag override the defaults; negative is none.
	IndexLag, DeleteLag, MountLag time.Duration
	// RemoveLag is how long the rows of a removed document stay in the index,
	// whatever is flushed; none by default, in SiYuan up to two seconds.
	RemoveLag time.Duration
}

// Kernel is one running stand-in. Its methods and its handler are safe for
// concurrent use; requests are served one at a time.
type Kernel struct {
	opt    Options
	dir    string
	temp   bool
	token  string
	id     string // system id, kept in conf.json
	routes map[string]route
	faults *Faults
	// toolbox has a lock of its own: the endpoint's calls are not serialised.
	toolbox *toolbox

	mu        sync.Mutex
	index     *index.Index
	notebooks map[string]*notebook
	docs      map[string]*document // of open notebooks, by root id
	blocks    map[string]place     // the block tree: where each known block stands
	stale     map[string]staleness // documents whose index rows are out of date
	deletes   []task               // deleteBlock's queue, drained by any write or flush
	renders   []task               // texts of rendered embeds on their way into the index
	mounts    []task               // index work of open and close, not drained by a flush
	removals  []task               // rows of removed documents, not drained by a flush
	boot      bootState
	undo      map[string]*undoStack
	local     map[string]any // the front end's local storage
	recents   []recentDoc
}

// task is index work that becomes visible at a time.
type task struct {
	due time.Time
	run func()
}

// New opens the workspace, seeding it when asked, and indexes it.
func New(opt Options) (*Kernel, error) {
	k := &Kernel{opt: opt, dir: opt.Dir, token: opt.Token, toolbox: newToolbox()}
	k.setDefaults()
	if err := k.openDir(); err != nil {
		return nil, err
	}
	k.routes = allRoutes()
	k.faults = newFaults()
	if err := k.load(); err != nil {
		k.Close()
		return nil, err
	}
	if opt.Sample && len(k.notebooks) == 0 {
		if err := k.seed(); err != nil {
			k.Close()
			return nil, fmt.Errorf("samplekernel: seed workspace: %w", err)
		}
	}
	return k, nil
}

func (k *Kernel) setDefaults() {
	if k.opt.Clock == nil {
		k.opt.Clock = time.Now
	}
	if k.opt.Rand == nil {
		k.opt.Rand = bufio.NewReader(rand.Reader)
	}
	for p, d := range map[*time.Duration]time.Duration{
		&k.opt.IndexLag: DefaultIndexLag, &k.opt.DeleteLag: DefaultDeleteLag, &k.opt.MountLag: DefaultMountLag,
	} {
		if *p == 0 {
			*p = d
		}
	}
	if k.token == "" {
		k.token = randomHex(k.opt.Rand, 8)
	}
}

func (k *Kernel) openDir() error {
	if k.dir == "" {
		dir, err := os.MkdirTemp("", "samplekernel-")
		if err != nil {
			return fmt.Errorf("samplekernel: make a workspace: %w", err)
		}
		k.dir, k.temp = dir, true
	}
	dir, err := filepath.Abs(k.dir)
	if err != nil {
		return fmt.Errorf("samplekernel: workspace %s: %w", k.dir, err)
	}
	k.dir = dir
	for _, sub := range []string{"conf", "data/.siyuan", "data/assets", "data/emojis", "data/plugins", "data/public", "data/storage/av",
		"data/templates", "data/widgets", "history", "repo", "temp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("samplekernel: workspace: %w", err)
		}
	}
	return k.touchFile("data", ".siyuan", "indexignore")
}

// touchFile makes an empty workspace file unless there is one.
func (k *Kernel) touchFile(elem ...string) error {
	name := k.workspace(elem...)
	if fileExists(name) {
		return nil
	}
	return os.WriteFile(name, nil, 0o644)
}

// Token is what requests must carry.
func (k *Kernel) Token() string { return k.token }

// Dir is the workspace folder.
func (k *Kernel) Dir() string { return k.dir }

// Faults controls how the kernel misbehaves.
func (k *Kernel) Faults() *Faults { return k.faults }

// Close frees the index and removes a temporary workspace. Hung requests end.
func (k *Kernel) Close() error {
	k.faults.release()
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if k.index != nil {
		errs = append(errs, k.index.Close())
		k.index = nil
	}
	if k.temp {
		errs = append(errs, os.RemoveAll(k.dir))
	}
	return errors.Join(errs...)
}

// Flush makes the index catch up with all writes, as
// /api/sqlite/flushTransaction does.
func (k *Kernel) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
}

func (k *Kernel) now() time.Time { return k.opt.Clock() }

// stamp is a time as ids and `updated` attributes spell it.
func stamp(t time.Time) string { return t.Format("20060102150405") }

const idAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// newID makes an id with the current time.
func (k *Kernel) newID() string {
	var b [7]byte
	if _, err := io.ReadFull(k.opt.Rand, b[:]); err != nil {
		panic(fmt.Sprintf("samplekernel: random source: %v", err))
	}
	for i := range b {
		b[i] = idAlphabet[int(b[i])%len(idAlphabet)]
	}
	return stamp(k.now()) + "-" + string(b[:])
}

// random is a number below n, n up to 256.
func (k *Kernel) random(n int) int {
	var b [1]byte
	if _, err := io.ReadFull(k.opt.Rand, b[:]); err != nil {
		panic(fmt.Sprintf("samplekernel: random source: %v", err))
	}
	return int(b[0]) % n
}

func randomHex(r io.Reader, n int) string {
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		panic(fmt.Sprintf("samplekernel: random source: %v", err))
	}
	return hex.EncodeToString(b)
}
