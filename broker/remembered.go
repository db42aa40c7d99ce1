package broker

import (
	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/memory"
)

// newMemory wires the page about what agents remember. It needs the pages.
func (b *Broker) newMemory() (err error) {
	b.memory, err = memory.NewPage(memory.PageOptions{Pages: b.pages, Store: b.db, Viewer: viewer, Log: b.log})
	return err
}

// memoryRoutes are the page about what agents remember, and its forms.
func (b *Broker) memoryRoutes(e *echo.Echo) {
	e.GET(memory.PagePath, b.signed(b.memory.Show))
	e.POST(memory.ClearPath, b.signed(b.memory.Clear))
	e.POST(memory.RulesPath, b.signed(b.memory.SaveRules))
}
