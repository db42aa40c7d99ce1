package guard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Options are what a Guard needs besides the kernel. The zero value of each
// field means its default.
type Options struct {
	Now    func() time.Time // default time.Now; the first half of new ids
	Random io.Reader        // default crypto/rand; the second half of new ids
	// Sleep waits between looks at something SiYuan does in the background; default
	// a timer that ends with the context.
	Sleep func(ctx context.Context, d time.Duration) error
	// Settle is how long after it was sent SiYuan may still carry out a write whose
	// answer never came; default 10 s, at least 1.
	Settle time.Duration
	Locks  *Locks // default a table of its own; share it between guards of one kernel
	// Outside says which of SiYuan's own tools that reach into the internet may be
	// used; default none.
	Outside func(tool string) bool
	// ToolsChanged is called, from a goroutine of a call or of Discover, when
	// HomeTools has changed; default nobody is told. It must not block.
	ToolsChanged func()
	Points       Points       // default no restore points are kept, and nothing can be undone
	Logger       *slog.Logger // receives no note text; default nothing is logged
	// Secret marks the files that agents stored as theirs; default one that is new
	// with every guard.
	Secret []byte
}

// Guard owns the kernel client. It is safe for concurrent use.
type Guard struct {
	r     *siyuan.Reader
	w     *siyuan.Writer
	opt   Options
	judge judge

	bridge bridge
	lists  *listing
}

// New makes the guard of one kernel.
func New(r *siyuan.Reader, w *siyuan.Writer, opt Options) *Guard {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Random == nil {
		opt.Random = rand.Reader
	}
	if opt.Sleep == nil {
		opt.Sleep = sleep
	}
	if opt.Settle == 0 {
		opt.Settle = 10 * time.Second
	}
	if opt.Locks == nil {
		opt.Locks = NewLocks()
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if len(opt.Secret) == 0 {
		opt.Secret = make([]byte, sha256.Size)
		_, _ = rand.Read(opt.Secret) // never fails
	}
	return &Guard{r: r, w: w, opt: opt, lists: newListing()}
}

// Workspace is the notebooks of the kernel at one moment, hidden ones too. It
// is what the home policy needs to resolve names, and what a session starts
// from; it must not be shown to agents.
type Workspace struct{ list *onDemand }

// onDemand is a list that is fetched at the first look. Many reads never look,
// since the block tree says where a block stands.
type onDemand struct {
	fetch func() ([]siyuan.Notebook, error)

	mu        sync.Mutex
	looked    bool
	notebooks []siyuan.Notebook // read-only
	err       error
}

func (l *onDemand) get() ([]siyuan.Notebook, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.looked {
		l.notebooks, l.err = l.fetch()
		l.looked = true
	}
	return l.notebooks, l.err
}

// Workspace lists the notebooks. It is one kernel call, or none for a call that
// waited for that of another.
func (g *Guard) Workspace(ctx context.Context) (Workspace, error) {
	w := g.WorkspaceOnDemand(ctx)
	_, err := w.list.get()
	return w, err
}

// WorkspaceOnDemand lists them at the first look, under the context given here.
// It is for calls that only read, which ask Failed in the end.
func (g *Guard) WorkspaceOnDemand(ctx context.Context) Workspace {
	return Workspace{&onDemand{fetch: func() ([]siyuan.Notebook, error) {
		return g.lists.get(ctx, func(ctx context.Context) ([]siyuan.Notebook, error) {
			all, _, err := g.r.Notebooks(ctx)
			return all, err
		})
	}}}
}

// Infos is the list as the connector reports it to its broker and policy.
func (w Workspace) Infos() ([]contract.NotebookInfo, error) {
	notebooks, err := w.list.get()
	infos := make([]contract.NotebookInfo, len(notebooks))
	for i, n := range notebooks {
		infos[i] = contract.NotebookInfo{ID: string(n.ID), Name: n.Name, Icon: n.Icon, Closed: n.Closed}
	}
	return infos, err
}

// Failed is why the list could not be had, if somebody looked at it. A session
// then took the workspace for empty, so nothing that came of it counts.
func (w Workspace) Failed() error {
	w.list.mu.Lock()
	defer w.list.mu.Unlock()
	return w.list.err
}

// all is the list, empty where it could not be had.
func (w Workspace) all() []siyuan.Notebook {
	notebooks, _ := w.list.get() // Failed tells
	return notebooks
}

// Session is the kernel as one caller may use it during one call. It remembers
// where blocks are, so it must not outlive the call.
type Session struct {
	g       *Guard
	grant   *contract.Grant
	author  Author
	started Workspace // as it was then, hidden notebooks too
	sidebar func() sidebar

	mu      sync.Mutex
	places  map[siyuan.ID]place
	touched siyuan.ID
}

// sidebar is the notebooks that the caller may read.
type sidebar struct {
	notebooks map[siyuan.ID]Notebook
	order     []siyuan.ID
}

// Session opens the workspace for the holder of a grant, which must already be
// restricted by the home policy.
func (g *Guard) Session(w Workspace, effective *contract.Grant) *Session {
	author := Author{Scope: strings.Join([]string{effective.Tenant, effective.Instance, effective.Member, effective.Agent.ID}, "/"), Name: effective.Agent.Name}
	s := &Session{g: g, grant: effective, author: author, started: w, places: map[siyuan.ID]place{}}
	s.sidebar = sync.OnceValue(func() sidebar {
		all := w.all()
		readable := sidebar{notebooks: make(map[siyuan.ID]Notebook, len(all))}
		for _, n := range all {
			if level := s.level(n.ID); level.Allows(contract.Read) {
				readable.notebooks[n.ID] = Notebook{s: s, id: n.ID, seen: &n, level: level}
				readable.order = append(readable.order, n.ID)
			}
		}
		return readable
	})
	return s
}

// InConversation says which conversation of the agent the call is of; restore
// points are made for each.
func (s *Session) InConversation(name string) *Session {
	s.author.Conversation = name
	return s
}

// Author is whose writes this session's restore points belong to.
func (s *Session) Author() Author { return s.author }

func (s *Session) level(notebook siyuan.ID) contract.Level { return s.grant.Level(string(notebook)) }

// whole reports whether the grant hides nothing. It is decided by the grant
// alone: looking at which notebooks exist would tell about hidden ones.
func (s *Session) whole() bool {
	if s.grant.Default == contract.None {
		return false
	}
	for _, l := range s.grant.Levels {
		if l == contract.None {
			return false
		}
	}
	return true
}

// Touched is the notebook of the last target that the call named and that the
// caller may read, or "".
func (s *Session) Touched() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.touched)
}

// Meter counts the kernel calls made under a context.
type Meter struct{ c *siyuan.Counter }

// Measure returns a context whose kernel calls the Meter counts.
func Measure(ctx context.Context) (context.Context, Meter) {
	ctx, c := siyuan.WithCounter(ctx)
	return ctx, Meter{c}
}

// Calls is the number of requests sent to the kernel.
func (m Meter) Calls() int { return m.c.Calls() }

// Elapsed is the time spent waiting for the kernel.
func (m Meter) Elapsed() time.Duration { return m.c.Elapsed() }
