package broker

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/memory"
	"siyuan-broker/broker/people"
)

// newMemory wires the page about what agents remember. It needs the pages.
func (b *Broker) newMemory() (err error) {
	b.memory, err = memory.NewPage(memory.PageOptions{Pages: b.pages, Store: b.db, Viewer: memoryViewer, Log: b.log})
	return err
}

// memoryViewer is who sent a request, in the words of the page.
func memoryViewer(r *http.Request) (memory.Viewer, bool) {
	s, ok := people.Signed(r)
	if !ok {
		return memory.Viewer{}, false
	}
	v := memory.Viewer{ID: s.User.ID}
	v.Membership, v.Belongs = s.Tenant()
	return v, true
}

// memoryRoutes are the page about what agents remember, and its forms.
func (b *Broker) memoryRoutes(e *echo.Echo) {
	e.GET(memory.PagePath, b.signed(b.memory.Show))
	e.POST(memory.ClearPath, b.signed(b.memory.Clear))
	e.POST(memory.RulesPath, b.signed(b.memory.SaveRules))
}
