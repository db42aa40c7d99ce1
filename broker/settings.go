package broker

import (
	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/settings"
	"siyuan-broker/contract/tools"
)

// newSettings wires the page on what agents may do. It needs the pages.
func (b *Broker) newSettings(catalogue *tools.Catalogue) (err error) {
	b.settings, err = settings.New(settings.Options{Pages: b.pages, Store: b.db, Catalogue: catalogue, Viewer: viewer, Log: b.log})
	return err
}

// settingsRoutes are the page on what agents may do, and its forms.
func (b *Broker) settingsRoutes(e *echo.Echo) {
	e.GET(settings.PagePath, b.signed(b.settings.Show))
	e.POST(settings.LevelsPath, b.signed(b.settings.SaveLevels))
	e.POST(settings.ToolPath, b.signed(b.settings.SaveTool))
	e.POST(settings.SwitchesPath, b.signed(b.settings.SaveSwitches))
	e.POST(settings.WorkspacePath, b.signed(b.settings.SaveWorkspace))
	e.POST(settings.SpacePath, b.signed(b.settings.SaveSpace))
}
