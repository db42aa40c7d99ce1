package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"siyuan-broker/broker/admission"
	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// maxName bounds the name of a workspace, in characters.
const maxName = 60

// errForm is a form that no page of ours sends.
var errForm = errors.New("not a form of this page")

// edit is what a form changes. Forms carry what they showed in was.NAME, so that
// only what the person changed is written and somebody else's change of another
// setting stays.
type edit struct {
	ctx  context.Context
	tx   tenants.Tx
	who  tenants.Viewer
	form url.Values
}

// changed is the new value of a field that the person changed.
func (e *edit) changed(field string) (string, bool) {
	if !e.form.Has(field) || !e.form.Has("was."+field) {
		return "", false
	}
	value := e.form.Get(field)
	return value, value != e.form.Get("was."+field)
}

// ticked is the new state of one of the boxes in the field on.
func (e *edit) ticked(value string) (on, changed bool) {
	on = slices.Contains(e.form["on"], value)
	return on, on != slices.Contains(e.form["was.on"], value)
}

// note puts a change into the audit log, in the words of the command line.
func (e *edit) note(verb, object string) error {
	return e.tx.Audit(e.ctx, tenants.AuditEntry{ActorKind: "member", ActorID: e.who.ID, Verb: verb, Object: object})
}

// SaveLevels sets the levels of notebooks and the default. Needs a session.
func (p *Page) SaveLevels(w http.ResponseWriter, r *http.Request) {
	p.inWorkspace(w, r, func(e *edit, in tenants.Instance) error {
		if word, ok := e.changed("default"); ok {
			level, err := contract.ParseLevel(word)
			if err != nil {
				return errForm
			}
			if _, err := e.tx.UpdateInstance(e.ctx, in.ID, tenants.InstanceUpdate{DefaultLevel: &level}); err != nil {
				return err
			}
			if err := e.note("level.set", "notebook: "+word); err != nil {
				return err
			}
		}
		notebooks, err := e.tx.Notebooks(e.ctx, in.ID)
		for _, n := range notebooks {
			if word, ok := e.changed("level." + n.ID); ok {
				err = errors.Join(err, e.setLevel(in.ID, n.ID, word))
			}
		}
		return err
	})
}

// setLevel gives a notebook a level of its own, or the default again.
func (e *edit) setLevel(instance tenants.ID, notebook, word string) error {
	if word == "" {
		return errors.Join(e.tx.ClearLevel(e.ctx, instance, notebook), e.note("level.set", "notebook:"+notebook+" default"))
	}
	level, err := contract.ParseLevel(word)
	if err != nil {
		return errForm
	}
	return errors.Join(e.tx.SetLevel(e.ctx, instance, notebook, level), e.note("level.set", "notebook:"+notebook+" "+word))
}

// SaveTool switches the actions of one tool, and says how a person agrees to the
// dangerous ones. Needs a session.
func (p *Page) SaveTool(w http.ResponseWriter, r *http.Request) {
	p.inWorkspace(w, r, func(e *edit, in tenants.Instance) error {
		t, ok := p.opt.Catalogue.Tool(e.form.Get("tool"))
		if !ok {
			return errForm
		}
		for _, a := range t.Actions {
			if on, ok := e.ticked(a.Name); ok {
				if err := e.setToggle(in.ID, a, on); err != nil {
					return err
				}
			}
			if word, ok := e.changed("consent." + a.Name); ok {
				mode := tenants.ConsentMode(word)
				if !a.Dangerous || !slices.Contains(admission.ConsentModes(a), mode) {
					return errForm
				}
				if err := errors.Join(e.tx.SetConsent(e.ctx, in.ID, tenants.Consent{Tool: a.Tool, Action: a.Name, Mode: mode}), e.note("consent.set", a.ID()+" "+word)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// setToggle leaves no entry where the catalogue says the same, so that a later
// default of the catalogue holds.
func (e *edit) setToggle(instance tenants.ID, a *tools.Action, on bool) error {
	var err error
	if on == !a.Off {
		err = e.tx.ClearToggle(e.ctx, instance, a.Tool, a.Name)
	} else {
		err = e.tx.SetToggle(e.ctx, instance, tenants.Toggle{Tool: a.Tool, Action: a.Name, Enabled: on})
	}
	return errors.Join(err, e.note("toggle.set", fmt.Sprintf("action:%s %v", a.ID(), on)))
}

// SaveSwitches sets what owners' and admins' agents may do to the workspace as a
// whole. Needs a session.
func (p *Page) SaveSwitches(w http.ResponseWriter, r *http.Request) {
	p.inWorkspace(w, r, func(e *edit, in tenants.Instance) (err error) {
		for _, s := range contract.Switches() {
			if on, ok := e.ticked(string(s)); ok {
				err = errors.Join(err, e.tx.SetSwitch(e.ctx, in.ID, s, on), e.note("switch.set", fmt.Sprintf("switch:%s %v", s, on)))
			}
		}
		return err
	})
}

// SaveWorkspace names a workspace, and lets agents into it or not. Needs a session.
func (p *Page) SaveWorkspace(w http.ResponseWriter, r *http.Request) {
	p.inWorkspace(w, r, func(e *edit, in tenants.Instance) error {
		var up tenants.InstanceUpdate
		if name, ok := e.changed("name"); ok {
			name = strings.TrimSpace(name)
			if name == "" || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, isControl) {
				return errForm
			}
			up.Name = &name
		}
		on, ok := e.ticked("enabled")
		if ok {
			up.Enabled = &on
		}
		if up == (tenants.InstanceUpdate{}) {
			return nil
		}
		after, err := e.tx.UpdateInstance(e.ctx, in.ID, up)
		return errors.Join(err, e.note("instance.set", fmt.Sprintf("instance:%s %q enabled %v", in.ID, after.Name, after.Enabled)))
	})
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// SaveSpace sets what holds in all workspaces of the tenant. Needs a session.
func (p *Page) SaveSpace(w http.ResponseWriter, r *http.Request) {
	p.save(w, r, page.Path(PagePath), func(e *edit) error {
		t, err := e.tx.Tenant(e.ctx)
		if err != nil {
			return err
		}
		var said []string
		limits, settings := t.Limits, t.Settings
		if word, ok := e.changed("chars"); ok {
			if limits.ResultChars, err = number(word, tools.MinResultChars, tools.MaxResultChars); err != nil {
				return err
			}
			said = append(said, fmt.Sprintf("result_chars %d", limits.ResultChars))
		}
		budget, err := e.budget(limits.WriteBudget)
		if err != nil {
			return err
		}
		if budget != limits.WriteBudget {
			limits.WriteBudget, said = budget, append(said, fmt.Sprintf("write_budget %d", budget))
		}
		if word, ok := e.changed("strict"); ok {
			settings.StrictWrites = tenants.StrictWrites(word)
			if !slices.Contains(strictness(), settings.StrictWrites) {
				return errForm
			}
			said = append(said, "strict_writes "+word)
		}
		if on, ok := e.ticked("skills"); ok {
			settings.SkillsExtension, said = on, append(said, fmt.Sprintf("skills_extension %v", on))
		}
		if said == nil {
			return nil
		}
		_, err = e.tx.UpdateTenant(e.ctx, tenants.TenantUpdate{Limits: &limits, Settings: &settings})
		return errors.Join(err, e.note("settings.set", strings.Join(said, ", ")))
	})
}

// budget is the tenant's budget of writes after the form.
func (e *edit) budget(now int) (int, error) {
	if word, ok := e.changed("writes"); ok {
		n, err := number(word, 1, tenants.MostWriteBudget)
		if err != nil {
			return 0, err
		}
		if now != tenants.NoWriteBudget {
			now = n
		}
	}
	switch on, ok := e.ticked("budget"); {
	case ok && !on:
		return tenants.NoWriteBudget, nil
	case ok:
		return number(e.form.Get("writes"), 1, tenants.MostWriteBudget)
	}
	return now, nil
}

// number reads one from least to most; nothing is 0, the default.
func number(word string, least, most int) (int, error) {
	if word = strings.TrimSpace(word); word == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		return 0, errForm
	}
	return n, nil
}

// inWorkspace runs what a form changes in the workspace it names.
func (p *Page) inWorkspace(w http.ResponseWriter, r *http.Request, fn func(*edit, tenants.Instance) error) {
	instance, err := uuid.Parse(r.PostFormValue("instance"))
	if err != nil {
		p.opt.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	p.save(w, r, page.Path(PagePath).With("instance", instance.String()), func(e *edit) error {
		in, err := e.tx.Instance(e.ctx, instance)
		if err != nil {
			return err
		}
		return fn(e, in)
	})
}

// save runs what a form changes, all of it or nothing, and goes back to the page.
func (p *Page) save(w http.ResponseWriter, r *http.Request, back page.Local, fn func(*edit) error) {
	who, ok := p.opt.Viewer(r)
	if !ok || !who.Belongs {
		p.opt.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	if err := r.ParseForm(); err != nil {
		p.opt.Pages.Error(w, r, http.StatusBadRequest)
		return
	}
	err := p.opt.Store.In(r.Context(), who.Membership.TenantID, func(tx tenants.Tx) error {
		m, err := tx.Member(r.Context(), who.ID) // the role is read here, where it decides
		if err != nil {
			return err
		}
		if !m.Role.Manages() {
			return tenants.ErrNotFound
		}
		return fn(&edit{ctx: r.Context(), tx: tx, who: who, form: r.PostForm})
	})
	switch {
	case errors.Is(err, errForm):
		p.opt.Pages.Say(w, r, page.Bad, "settings.wrong")
		page.Redirect(w, r, back)
	case errors.Is(err, tenants.ErrNotFound):
		p.opt.Pages.Error(w, r, http.StatusNotFound)
	case err != nil:
		p.failed(w, r, err)
	default:
		p.opt.Pages.Say(w, r, page.Good, "settings.saved")
		page.Redirect(w, r, back)
	}
}
