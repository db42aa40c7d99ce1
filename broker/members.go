package broker

import (
	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/console"
	"siyuan-broker/broker/members"
	"siyuan-broker/broker/people"
	"siyuan-broker/contract/tools"
)

// newMembers wires the page about who belongs to a tenant. It needs the pages.
func (b *Broker) newMembers(catalogue *tools.Catalogue) (err error) {
	b.members, err = members.New(members.Options{
		Pages: b.pages, Store: b.db, Catalogue: catalogue, Viewer: viewer, Invite: people.InviteInto, Limit: b.tries,
		Closed: people.SignUpMode(b.cfg.SignUp) == people.SignUpClosed, Home: console.HomePath, Now: b.now, Log: b.log,
	})
	return err
}

// membersRoutes are the page about who belongs to a tenant, and its forms.
func (b *Broker) membersRoutes(e *echo.Echo) {
	m := b.members
	e.GET(members.PagePath, b.signed(m.Show))
	e.POST(members.RolePath, b.signed(m.SaveRole))
	e.POST(members.RemovePath, b.signed(m.Remove))
	e.POST(members.LeavePath, b.signed(m.Leave))
	e.POST(members.InvitePath, b.signed(m.Invite))
	e.POST(members.WithdrawPath, b.signed(m.Withdraw))
	e.POST(members.TeamPath, b.signed(m.MakeTeam))
	e.POST(members.TeamSavePath, b.signed(m.SaveTeam))
	e.POST(members.TeamDeletePath, b.signed(m.DeleteTeam))
	e.POST(members.SharePath, b.signed(m.Share))
	e.POST(members.UnsharePath, b.signed(m.Unshare))
}
