package members

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// Bounds of what people type and do.
const (
	maxName        = 60 // of a team, in characters
	invitesPerHour = 60 // of one tenant
)

var (
	// errForm is a form that no page of ours sends.
	errForm = errors.New("not a form of this page")
	// errAbove is a change above the role of who asks for it.
	errAbove = errors.New("above the role of who asks")
	// errEmail is an address that is none, errMember one of somebody who is there.
	errEmail  = errors.New("not an e-mail address")
	errMember = errors.New("a member already")
)

// edit is what a form changes.
type edit struct {
	ctx  context.Context
	tx   tenants.Tx
	who  tenants.Viewer // with the role that the store has now
	form url.Values
}

// id is an id that a form names.
func (e *edit) id(field string) (tenants.ID, error) {
	id, err := uuid.Parse(e.form.Get(field))
	if err != nil {
		return id, errForm
	}
	return id, nil
}

// note puts a change into the audit log.
func (e *edit) note(verb, object string) error {
	return e.tx.Audit(e.ctx, tenants.AuditEntry{ActorKind: "member", ActorID: e.who.ID, Verb: verb, Object: object})
}

// other is the member that a form names, whom the viewer may change.
func (e *edit) other() (tenants.Membership, error) {
	id, err := e.id("member")
	if err != nil {
		return tenants.Membership{}, err
	}
	m, err := e.tx.Member(e.ctx, id)
	if err == nil && !e.who.Membership.Role.MayGrant(m.Role) {
		err = errAbove
	}
	return m, err
}

// role is the role that a form gives, which the viewer may give.
func (e *edit) role() (tenants.Role, error) {
	role := tenants.Role(e.form.Get("role"))
	if !role.Valid() {
		return role, errForm
	}
	if !e.who.Membership.Role.MayGrant(role) {
		return role, errAbove
	}
	return role, nil
}

// name is what a form calls a team.
func (e *edit) name() (string, error) {
	name := strings.TrimSpace(e.form.Get("name"))
	if name == "" || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, isControl) {
		return "", errForm
	}
	return name, nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// SaveRole gives a member another role. Needs a session.
func (p *Page) SaveRole(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "people.saved", func(e *edit) error {
		m, err := e.other()
		if err != nil {
			return err
		}
		role, err := e.role()
		if err != nil || role == m.Role {
			return err
		}
		return errors.Join(e.tx.SetRole(e.ctx, m.User.ID, role), e.note("member.role", "user:"+m.User.ID.String()+" "+string(role)))
	})
}

// Remove ends somebody's membership, and with it their agents. Needs a session.
func (p *Page) Remove(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "people.removed", func(e *edit) error {
		m, err := e.other()
		if err != nil {
			return err
		}
		return errors.Join(e.tx.RemoveMember(e.ctx, m.User.ID), e.note("member.remove", "user:"+m.User.ID.String()))
	})
}

// Leave ends the viewer's own membership, whatever their role. Needs a session.
func (p *Page) Leave(w http.ResponseWriter, r *http.Request) {
	p.save(w, r, outcome{to: p.opt.Home, say: "people.left"}, func(e *edit) error {
		return errors.Join(e.tx.RemoveMember(e.ctx, e.who.ID), e.note("member.leave", "user:"+e.who.ID.String()))
	})
}

// Withdraw ends an invitation. Needs a session.
func (p *Page) Withdraw(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "people.withdrawn", func(e *edit) error {
		id, err := e.id("invitation")
		if err != nil {
			return err
		}
		return errors.Join(e.tx.Withdraw(e.ctx, id), e.note("invitation.withdraw", "invitation:"+id.String()))
	})
}

// MakeTeam makes a team without members. Needs a session.
func (p *Page) MakeTeam(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "people.saved", func(e *edit) error {
		name, err := e.name()
		if err != nil {
			return err
		}
		team, err := e.tx.CreateTeam(e.ctx, name)
		if err != nil {
			return err
		}
		return e.note("team.create", "team:"+team.ID.String())
	})
}

// SaveTeam renames a team and says who is in it. Boxes come with what they showed
// in was.on, so that only what the person changed is written. Needs a session.
func (p *Page) SaveTeam(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "people.saved", func(e *edit) error {
		team, err := e.id("team")
		if err != nil {
			return err
		}
		name, err := e.name()
		if err != nil {
			return err
		}
		if name != e.form.Get("was.name") {
			if err := errors.Join(e.tx.RenameTeam(e.ctx, team, name), e.note("team.rename", "team:"+team.String())); err != nil {
				return err
			}
		}
		return e.saveTeamMembers(team)
	})
}

func (e *edit) saveTeamMembers(team tenants.ID) error {
	members, err := e.tx.Members(e.ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		id := m.User.ID.String()
		on, was := slices.Contains(e.form["on"], id), slices.Contains(e.form["was.on"], id)
		object := "team:" + team.String() + " user:" + id
		switch {
		case on && !was:
			err = errors.Join(e.tx.AddTeamMember(e.ctx, team, m.User.ID), e.note("team.add", object))
		case was && !on:
			err = e.tx.RemoveTeamMember(e.ctx, team, m.User.ID)
			if errors.Is(err, tenants.ErrNotFound) { // somebody else was faster
				err = nil
			}
			err = errors.Join(err, e.note("team.remove", object))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DeleteTeam ends a team with what was shared with it. Needs a session.
func (p *Page) DeleteTeam(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, "people.removed", func(e *edit) error {
		team, err := e.id("team")
		if err != nil {
			return err
		}
		return errors.Join(e.tx.DeleteTeam(e.ctx, team), e.note("team.delete", "team:"+team.String()))
	})
}

// Share shares a notebook with a member or a team, or changes how much of it.
// Needs a session.
func (p *Page) Share(w http.ResponseWriter, r *http.Request) {
	p.ofWorkspace(w, r, func(e *edit, instance tenants.ID) error {
		s := tenants.Share{InstanceID: instance, NotebookID: e.form.Get("notebook"), CreatedBy: e.who.ID}
		level, err := contract.ParseLevel(e.form.Get("level"))
		if err != nil || !slices.Contains(shareLevels(), level) {
			return errForm
		}
		s.Level = level
		kind, text, _ := strings.Cut(e.form.Get("with"), ":")
		id, err := uuid.Parse(text)
		switch {
		case err != nil:
			return errForm
		case kind == "member":
			s.MemberID = id
		case kind == "team":
			s.TeamID = id
		default:
			return errForm
		}
		notebooks, err := e.tx.Notebooks(e.ctx, instance)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(notebooks, func(n tenants.Notebook) bool { return n.ID == s.NotebookID }) {
			return errForm
		}
		if _, err := e.tx.Share(e.ctx, s); err != nil {
			return err
		}
		return e.note("share.set", "notebook:"+s.NotebookID+" "+kind+":"+text+" "+level.String())
	})
}

// Unshare ends a share. Needs a session.
func (p *Page) Unshare(w http.ResponseWriter, r *http.Request) {
	p.ofWorkspace(w, r, func(e *edit, _ tenants.ID) error {
		id, err := e.id("share")
		if err != nil {
			return err
		}
		return errors.Join(e.tx.Unshare(e.ctx, id), e.note("share.remove", "share:"+id.String()))
	})
}

// invited is the page that shows an invitation's link, once.
type invited struct {
	Link, Email string
	Role        tenants.Role
	Until       time.Time
	Closed      bool
}

// Invite makes an invitation and shows its link. Needs a session.
func (p *Page) Invite(w http.ResponseWriter, r *http.Request) {
	var made tenants.Invitation
	var link string
	done := func() {
		p.set.Show(w, r, http.StatusOK, "invited", invited{link, made.Email, made.Role, made.ExpiresAt, p.opt.Closed})
	}
	p.save(w, r, outcome{to: page.Path(PagePath), manages: true, done: done}, func(e *edit) error {
		tenant := e.who.Membership.TenantID
		if ok, _ := p.opt.Limit(e.ctx, "invite "+tenant.String(), invitesPerHour, time.Hour); !ok {
			return tenants.ErrTooMany
		}
		role, err := e.role()
		if err != nil {
			return err
		}
		made, link = p.opt.Invite(p.opt.Pages.Base(r), tenant, e.form.Get("email"), role, e.who.ID, p.opt.Now())
		switch made, err = e.tx.Invite(e.ctx, made); {
		case errors.Is(err, tenants.ErrInvalid):
			return errEmail
		case errors.Is(err, tenants.ErrConflict):
			return errMember
		case err != nil:
			return err
		}
		return e.note("invitation.create", "invitation:"+made.ID.String()+" "+string(role))
	})
}

// outcome is what a form that was taken leads to.
type outcome struct {
	to      page.Local
	say     string // key of the message on the page that it leads to
	manages bool   // only who manages may send the form
	done    func() // answers in place of to and say
}

// change runs what a form of those who manage changes.
func (p *Page) change(w http.ResponseWriter, r *http.Request, say string, fn func(*edit) error) {
	p.save(w, r, outcome{to: page.Path(PagePath), say: say, manages: true}, fn)
}

// ofWorkspace is change for a form about the workspace that it names.
func (p *Page) ofWorkspace(w http.ResponseWriter, r *http.Request, fn func(*edit, tenants.ID) error) {
	instance, err := uuid.Parse(r.PostFormValue("instance"))
	if err != nil {
		p.opt.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	o := outcome{to: page.Path(PagePath).With("instance", instance.String()), say: "people.saved", manages: true}
	p.save(w, r, o, func(e *edit) error {
		if _, err := e.tx.Instance(e.ctx, instance); err != nil {
			return err
		}
		return fn(e, instance)
	})
}

// save runs what a form changes, all of it or nothing, while roles stay as they
// are read here.
func (p *Page) save(w http.ResponseWriter, r *http.Request, o outcome, fn func(*edit) error) {
	who, ok := p.opt.Viewer(r)
	if !ok || !who.Belongs {
		p.opt.Pages.Error(w, r, http.StatusNotFound)
		return
	}
	if err := r.ParseForm(); err != nil {
		p.opt.Pages.Error(w, r, http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	err := p.opt.Store.In(ctx, who.Membership.TenantID, func(tx tenants.Tx) error {
		if err := tx.HoldMembers(ctx); err != nil {
			return err
		}
		m, err := tx.Member(ctx, who.ID)
		if err != nil {
			return err
		}
		if o.manages && !m.Role.Manages() {
			return tenants.ErrNotFound
		}
		who.Membership = m
		return fn(&edit{ctx: ctx, tx: tx, who: who, form: r.PostForm})
	})
	switch key := refusal(err); {
	case err == nil && o.done != nil:
		o.done()
	case err == nil:
		p.opt.Pages.Say(w, r, page.Good, o.say)
		page.Redirect(w, r, o.to)
	case key != "":
		p.opt.Pages.Say(w, r, page.Bad, key)
		page.Redirect(w, r, page.Path(PagePath))
	case errors.Is(err, tenants.ErrNotFound):
		p.opt.Pages.Error(w, r, http.StatusNotFound)
	default:
		p.failed(w, r, err)
	}
}

// refusal is the message for what a person can mend; empty for everything else.
func refusal(err error) string {
	for _, x := range []struct {
		is  error
		key string
	}{
		{errForm, "people.wrong"}, {errAbove, "people.above"}, {errEmail, "people.email"}, {errMember, "people.already"},
		{tenants.ErrLastOwner, "people.lastowner"}, {tenants.ErrConflict, "people.taken"}, {tenants.ErrTooMany, "people.toomany"},
	} {
		if errors.Is(err, x.is) {
			return x.key
		}
	}
	return ""
}
