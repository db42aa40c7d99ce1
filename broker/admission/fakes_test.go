package admission

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	tenantA  = uuid.MustParse("018f0000-0000-7000-8000-00000000000a")
	tenantB  = uuid.MustParse("018f0000-0000-7000-8000-00000000000b")
	member   = uuid.MustParse("018f0000-0000-7000-8000-0000000000a1")
	agent    = uuid.MustParse("018f0000-0000-7000-8000-0000000000a2")
	instance = uuid.MustParse("018f0000-0000-7000-8000-0000000000a3")
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	catalogue = tools.New()
)

const (
	work    = "20240101090000-work001"
	private = "20240101090000-priv001"
	fresh   = "20240101090000-fresh01" // in no list
)

// facts are a tenant in which the owner's agent may do everything that does not
// need a switch or consent.
func facts() *tenants.Snapshot {
	return &tenants.Snapshot{
		TenantID: tenantA, TenantStatus: tenants.Active, PolicyVersion: 7,
		Agent:  tenants.Agent{ID: agent, MemberID: member, InstanceID: instance, Name: "agent", Ceiling: contract.ReadWriteDelete},
		Member: member, Role: tenants.Owner,
		Instance:  tenants.Instance{ID: instance, DefaultLevel: contract.Read, Enabled: true},
		Levels:    map[string]contract.Level{work: contract.ReadWriteDelete},
		Shares:    map[string]contract.Level{},
		Connector: &tenants.SnapshotConnector{Effect: &contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete}},
		LoadedAt:  noon,
	}
}

// compiled are the facts after change has been at them.
func compiled(change func(*tenants.Snapshot)) *Snapshot {
	f := facts()
	if change != nil {
		change(f)
	}
	return Compile(f, catalogue)
}

// random draws facts of every kind.
func random(r *rand.Rand) *tenants.Snapshot {
	level := func() contract.Level { return contract.Level(r.IntN(4)) }
	oneIn := func(n int) bool { return r.IntN(n) == 0 }
	f := facts()
	f.Role = []tenants.Role{tenants.Owner, tenants.Admin, tenants.Member, ""}[min(r.IntN(8), 3)]
	if f.Role == "" && !oneIn(8) {
		f.Role = tenants.Member
	}
	f.Agent.Ceiling, f.Instance.DefaultLevel = level(), level()
	f.Instance.Enabled = !oneIn(12)
	if oneIn(12) {
		f.TenantStatus = tenants.Suspended
	}
	if oneIn(12) {
		f.Agent.RevokedAt = noon
	}
	for _, notebook := range []string{work, private} {
		if oneIn(2) {
			f.Levels[notebook] = level()
		}
		if oneIn(2) {
			f.Shares[notebook] = level()
		}
	}
	effect := &contract.PolicyEffect{MaxLevel: level(), Notebooks: map[string]contract.Level{}}
	for _, t := range catalogue.Tools() {
		if oneIn(10) {
			f.Agent.Tools = append(f.Agent.Tools, t.Name)
		}
		for _, a := range t.Actions {
			if oneIn(4) {
				f.Toggles = append(f.Toggles, tenants.Toggle{Tool: t.Name, Action: a.Name, Enabled: oneIn(2)})
			}
			if oneIn(3) {
				mode := []tenants.ConsentMode{tenants.ConsentAllow, tenants.ConsentAsk, tenants.ConsentDeny, tenants.ConsentConsole, tenants.ConsentPreview}[r.IntN(5)]
				f.Consents = append(f.Consents, tenants.Consent{Tool: t.Name, Action: a.Name, Mode: mode})
			}
			if oneIn(15) {
				effect.Vetoed = append(effect.Vetoed, a.ID())
			}
		}
	}
	for _, s := range contract.Switches() {
		if oneIn(2) {
			f.Switches = append(f.Switches, s)
		}
	}
	if oneIn(2) {
		effect.Notebooks[work] = level()
	}
	f.Connector.Effect = effect
	if oneIn(6) {
		f.Connector = nil
	}
	return f
}

// memoryLoader is a Loader that answers from a map, and waits where told to.
type memoryLoader struct {
	mu    sync.Mutex
	known map[[2]tenants.ID]*tenants.Snapshot
	fail  error
	loads int
	gate  chan struct{} // when set, a load waits for it after it has read
	read  chan struct{} // tells that a load has read
}

var _ Loader = (*memoryLoader)(nil)

func newLoader(list ...*tenants.Snapshot) *memoryLoader {
	l := &memoryLoader{known: map[[2]tenants.ID]*tenants.Snapshot{}}
	for _, f := range list {
		l.put(f)
	}
	return l
}

func (l *memoryLoader) put(f *tenants.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[[2]tenants.ID{f.TenantID, f.Agent.ID}] = f
}

func (l *memoryLoader) setFail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *memoryLoader) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loads
}

func (l *memoryLoader) LoadSnapshot(ctx context.Context, tenant, agent tenants.ID) (*tenants.Snapshot, error) {
	l.mu.Lock()
	l.loads++
	f, ok, fail, gate, read := l.known[[2]tenants.ID{tenant, agent}], true, l.fail, l.gate, l.read
	ok = f != nil
	l.mu.Unlock()
	if gate != nil {
		read <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case fail != nil:
		return nil, fail
	case !ok:
		return nil, tenants.ErrNotFound
	}
	return f, nil
}
