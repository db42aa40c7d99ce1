package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// maxBytes bounds the policy file; a real one has a few hundred bytes.
const maxBytes = 1 << 20

// Policy is a policy file in force. It is safe for concurrent use.
type Policy struct {
	path      string // "" for a policy without a file
	catalogue *tools.Catalogue

	mu   sync.Mutex
	now  *rules
	seen stamp
	bad  error // why the file as it is now was not taken
}

// stamp is what tells one state of the file from another without reading it.
type stamp struct {
	exists bool
	mtime  time.Time
	size   int64
}

// Load reads the policy file. A file that does not exist is the policy "read
// only"; one that cannot be read or understood is an error, so that a broken
// veto never starts as none. The error names the file and the line or key.
func Load(path string) (*Policy, error) {
	p := &Policy{path: path, catalogue: tools.New()}
	s, err := p.stat()
	if err != nil {
		return nil, err
	}
	r, err := p.read(s)
	if err != nil {
		return nil, err
	}
	p.now, p.seen = r, s
	return p, nil
}

// Fixed is a policy without a file: one cap for every notebook. The sample
// workspace and `up --allow` use it.
func Fixed(max contract.Level) *Policy {
	return &Policy{now: (&rules{MaxLevel: max}).seal()}
}

// Refresh looks at the file and takes it over if it changed. It costs one stat
// when nothing did, so callers ask before every use. An invalid file leaves the
// last good rules in force and gives the same error until it is corrected;
// a removed file is the policy "read only".
func (p *Policy) Refresh() (changed bool, err error) {
	if p.path == "" {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.stat()
	if err != nil {
		return false, fmt.Errorf("%w; the rules read before stay in force", err)
	}
	if s == p.seen {
		return false, p.bad
	}
	r, err := p.read(s)
	p.seen = s
	if err != nil {
		p.bad = fmt.Errorf("%w; the rules read before stay in force", err)
		return false, p.bad
	}
	changed = r.digest != p.now.digest
	p.now, p.bad = r, nil
	return changed, nil
}

func (p *Policy) stat() (stamp, error) {
	info, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stamp{}, nil
	case err != nil:
		return stamp{}, fmt.Errorf("home policy %s: %w", p.path, err)
	}
	return stamp{exists: true, mtime: info.ModTime(), size: info.Size()}, nil
}

func (p *Policy) read(s stamp) (*rules, error) {
	if !s.exists {
		return readOnly(), nil
	}
	f, err := os.Open(p.path)
	if err != nil {
		return nil, fmt.Errorf("home policy %s: %w", p.path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("home policy %s: %w", p.path, err)
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("home policy %s: larger than %d bytes", p.path, maxBytes)
	}
	r, err := parse(text, p.catalogue)
	if err != nil {
		return nil, fmt.Errorf("home policy %s: %w", p.path, err)
	}
	return r, nil
}

func (p *Policy) rules() *rules {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Effect is what the connector reports to the broker: caps by notebook id and
// vetoed actions. Entries by name need the notebooks that exist now.
func (p *Policy) Effect(notebooks []contract.NotebookInfo) contract.PolicyEffect {
	return p.rules().effect(notebooks)
}

// Vetoes reports whether the owner refuses an action altogether.
func (p *Policy) Vetoes(tool, action string) bool {
	return slices.Contains(p.rules().Vetoed, tool+"."+action)
}

// MaxLevel is the cap for notebooks that have none of their own, and for
// actions on the workspace as a whole.
func (p *Policy) MaxLevel() contract.Level { return p.rules().MaxLevel }

// Outside reports whether the owner lets agents use a tool of SiYuan's own that
// reaches into the internet from the home.
func (p *Policy) Outside(tool string) bool { return slices.Contains(p.rules().Outside, tool) }

// Uploads lists the folders of this machine from which agents may store files, as
// whole paths; none unless the owner says so.
func (p *Policy) Uploads() []string { return slices.Clone(p.rules().Upload) }

// Exports lists the folders of this machine to which agents may write, as whole
// paths; none unless the owner says so.
func (p *Policy) Exports() []string { return slices.Clone(p.rules().Export) }

// Confirm lists the kinds of action the owner wants to agree to at home.
func (p *Policy) Confirm() []Confirm { return slices.Clone(p.rules().Confirm) }

// Confirms reports whether the owner wants to agree to a call of an action with
// settled arguments at home.
func (p *Policy) Confirms(a *tools.Action, settled json.RawMessage) bool {
	return slices.ContainsFunc(p.rules().Confirm, func(c Confirm) bool {
		switch c {
		case ConfirmWrite:
			return a.Kind.Mutates()
		case ConfirmDelete:
			return a.Kind == tools.Delete
		}
		return a.Asks(settled)
	})
}

// Restrict is the grant with every level capped by the policy. The grant given
// is not changed. The list of notebooks is asked for where there are rules of
// single ones, which may name them; its error is returned as it is.
func (p *Policy) Restrict(g *contract.Grant, list func() ([]contract.NotebookInfo, error)) (*contract.Grant, error) {
	r := p.rules()
	var caps map[string]contract.Level
	if len(r.Notebooks) > 0 {
		notebooks, err := list()
		if err != nil {
			return nil, err
		}
		caps = r.caps(notebooks)
	}
	capped := *g
	capped.Default = contract.Min(g.Default, r.MaxLevel)
	capped.Levels = make(map[string]contract.Level, len(g.Levels)+len(caps))
	for id, l := range g.Levels {
		capped.Levels[id] = contract.Min(l, r.MaxLevel)
	}
	for id, l := range caps {
		capped.Levels[id] = contract.Min(g.Level(id), l)
	}
	return &capped, nil
}
