package settings

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/page"
	"siyuan-broker/broker/saying"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

//go:embed pages
var files embed.FS

// Paths of the page and its forms.
const (
	PagePath      = "/console/settings"
	LevelsPath    = "/console/settings/levels"
	ToolPath      = "/console/settings/tool"
	SwitchesPath  = "/console/settings/switches"
	WorkspacePath = "/console/settings/workspace"
	SpacePath     = "/console/settings/space"
)

// Store is the part of tenants.Store that the page needs.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Options of New. Viewer reports false when nobody is signed in.
type Options struct {
	Pages     *page.Pages
	Store     Store
	Catalogue *tools.Catalogue
	Viewer    func(r *http.Request) (tenants.Viewer, bool)
	Log       *slog.Logger
}

// Page shows and takes a tenant's settings. Its handlers must stand behind
// people.RequireSignedIn.
type Page struct {
	opt  Options
	set  *page.Set
	says saying.Sayings
}

// New loads the page.
func New(o Options) (*Page, error) {
	set, err := load(o.Pages)
	if err != nil {
		return nil, err
	}
	says, err := saying.Load()
	return &Page{o, set, says}, err
}

func load(p *page.Pages) (*page.Set, error) { return p.Load(files, "pages") }

// view is the page. Home is nil while the tenant has no workspace.
type view struct {
	Belongs, Manages bool
	Tenant           string
	Homes            []choice
	Home             *home
	Space            space

	// What there is to choose from.
	Levels     []contract.Level
	Modes      []tenants.ConsentMode
	Strictness []tenants.StrictWrites
}

func newView(who tenants.Viewer) view {
	return view{
		Belongs: who.Belongs, Tenant: who.Membership.TenantName, Manages: who.Belongs && who.Membership.Role.Manages(),
		Levels: []contract.Level{contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete},
		Modes:  admission.ConsentModes(&tools.Action{}), Strictness: strictness(),
	}
}

func strictness() []tenants.StrictWrites {
	return []tenants.StrictWrites{tenants.StrictOff, tenants.StrictOffered, tenants.StrictRequired}
}

type choice struct {
	ID      tenants.ID
	Name    string
	Current bool
}

type home struct {
	ID        tenants.ID
	Name      string
	Enabled   bool
	Default   contract.Level
	Cap       string // what the home allows at most; "" is not known
	Notebooks []notebook
	Tools     []tool
	Switches  []onOff
}

type notebook struct {
	ID, Name string
	Closed   bool
	Level    string // "" is the default
	Cap      string
}

type tool struct {
	Name, Purpose string
	On            int
	Actions       []action
}

type action struct {
	ID, Name, Summary string
	Kind              tools.Kind
	On, Default       bool
	Vetoed            bool                  // by the home's policy
	Modes             []tenants.ConsentMode // how a person may agree; none where nobody is asked
	Mode              tenants.ConsentMode
}

type onOff struct {
	Name contract.Switch
	On   bool
}

// space is what holds in all workspaces of the tenant.
type space struct {
	Chars, MinChars, MaxChars, DefaultChars int  // Chars is 0 where the default holds
	Writes, MostWrites, DefaultWrites       int  // Writes is 0 where the default holds
	Minutes                                 int  // in which writes are counted
	Asks                                    bool // about more writes than that
	Strict                                  tenants.StrictWrites
	Skills                                  bool
}

// Show is the page for one workspace, by the instance in the query. Needs a
// session.
func (p *Page) Show(w http.ResponseWriter, r *http.Request) {
	who, ok := p.opt.Viewer(r)
	if !ok {
		p.opt.Pages.Error(w, r, http.StatusForbidden)
		return
	}
	v := newView(who)
	if v.Manages {
		wanted, _ := uuid.Parse(r.FormValue("instance")) // none, or one that is gone: the first
		err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) error {
			return p.fill(r.Context(), tx, &v, wanted, p.opt.Pages.LangOf(r))
		})
		if err != nil {
			p.failed(w, r, err)
			return
		}
	}
	p.set.Show(w, r, http.StatusOK, "settings", v)
}

func (p *Page) fill(ctx context.Context, tx tenants.Tx, v *view, wanted tenants.ID, lang page.Lang) error {
	t, err := tx.Tenant(ctx)
	if err != nil {
		return err
	}
	v.Space = spaceOf(t)
	instances, err := tx.Instances(ctx)
	if err != nil || len(instances) == 0 {
		return err
	}
	shown := max(0, slices.IndexFunc(instances, func(in tenants.Instance) bool { return in.ID == wanted }))
	for i, in := range instances {
		v.Homes = append(v.Homes, choice{in.ID, in.Name, i == shown})
	}
	v.Home, err = p.home(ctx, tx, instances[shown], lang)
	return err
}

func spaceOf(t tenants.Tenant) space {
	s := space{
		Chars: t.Limits.ResultChars, MinChars: tools.MinResultChars, MaxChars: tools.MaxResultChars, DefaultChars: tools.DefaultResultChars,
		Strict: t.Settings.StrictWrites, Skills: t.Settings.SkillsExtension,
	}
	s.Writes, s.MostWrites, s.DefaultWrites = max(0, t.Limits.WriteBudget), tenants.MostWriteBudget, tenants.WriteBudget
	s.Minutes, s.Asks = max(1, int(t.Limits.Window().Minutes())), t.Limits.WriteBudget != tenants.NoWriteBudget
	if s.Strict == "" {
		s.Strict = tenants.StrictOffered
	}
	return s
}

func (p *Page) home(ctx context.Context, tx tenants.Tx, in tenants.Instance, lang page.Lang) (*home, error) {
	h := &home{ID: in.ID, Name: in.Name, Enabled: in.Enabled, Default: in.DefaultLevel}
	effect, err := policyOf(ctx, tx, in.ID)
	if err != nil {
		return nil, err
	}
	if effect != nil {
		h.Cap = effect.MaxLevel.String()
	}
	notebooks, err := tx.Notebooks(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	set, err := tx.Levels(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	for _, n := range notebooks {
		row := notebook{ID: n.ID, Name: n.Name, Closed: n.Closed}
		if l, ok := set[n.ID]; ok {
			row.Level = l.String()
		}
		if effect != nil {
			if l, ok := effect.Notebooks[n.ID]; ok {
				row.Cap = l.String()
			}
		}
		h.Notebooks = append(h.Notebooks, row)
	}
	on, err := tx.Switches(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range contract.Switches() {
		h.Switches = append(h.Switches, onOff{s, slices.Contains(on, s)})
	}
	h.Tools, err = p.tools(ctx, tx, in.ID, effect, lang)
	return h, err
}

// policyOf is what the home's own policy comes to, as its active connector said
// last; nil when none did.
func policyOf(ctx context.Context, tx tenants.Tx, instance tenants.ID) (*contract.PolicyEffect, error) {
	connectors, err := tx.Connectors(ctx, instance)
	var active tenants.Connector
	for _, c := range connectors {
		if c.RevokedAt.IsZero() && c.Epoch >= active.Epoch {
			active = c
		}
	}
	return active.Effect, err
}

func (p *Page) tools(ctx context.Context, tx tenants.Tx, instance tenants.ID, effect *contract.PolicyEffect, lang page.Lang) ([]tool, error) {
	toggles, err := tx.Toggles(ctx, instance)
	if err != nil {
		return nil, err
	}
	consents, err := tx.Consents(ctx, instance)
	if err != nil {
		return nil, err
	}
	on, modes := map[string]bool{}, map[string]tenants.ConsentMode{}
	for _, x := range toggles {
		on[x.Tool+"."+x.Action] = x.Enabled
	}
	for _, x := range consents {
		modes[x.Tool+"."+x.Action] = x.Mode
	}
	var list []tool
	for _, x := range p.opt.Catalogue.Tools() {
		t := tool{Name: x.Name, Purpose: p.says.Tool(x, lang)}
		for _, a := range x.Actions {
			row := action{ID: a.ID(), Name: a.Name, Summary: p.says.Action(a, lang), Kind: a.Kind, On: !a.Off, Default: !a.Off}
			if set, ok := on[a.ID()]; ok {
				row.On = set
			}
			row.Vetoed = effect != nil && effect.Vetoes(a.Tool, a.Name)
			if a.Dangerous {
				row.Modes = admission.ConsentModes(a)
				row.Mode = admission.ConsentMode(a, modes[a.ID()])
			}
			if row.On {
				t.On++
			}
			t.Actions = append(t.Actions, row)
		}
		list = append(list, t)
	}
	return list, nil
}

func (p *Page) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.opt.Log.Error("page failed", "path", r.URL.Path, "error", err)
	p.opt.Pages.Error(w, r, http.StatusServiceUnavailable)
}
