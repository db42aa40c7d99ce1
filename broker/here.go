package broker

import (
	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/feedback"
	"siyuan-broker/broker/here"
	"siyuan-broker/broker/mascot"
	"siyuan-broker/broker/memory"
)

// here answers the calls that never leave the broker.
func (b *Broker) here() here.Place {
	return here.Places{
		&memory.Files{Store: b.db, Now: b.now}, &mascot.Cat{Store: b.db, Now: b.now}, &feedback.Box{Store: b.db, Now: b.now},
	}
}

// newFeedback wires the page about what agents said. It needs the pages.
func (b *Broker) newFeedback() (err error) {
	b.feedback, err = feedback.NewPage(feedback.PageOptions{Pages: b.pages, Store: b.db, Viewer: viewer, Log: b.log})
	return err
}

// feedbackRoutes are the page about what agents said, and its form.
func (b *Broker) feedbackRoutes(e *echo.Echo) {
	e.GET(feedback.PagePath, b.signed(b.feedback.Show))
	e.POST(feedback.DeletePath, b.signed(b.feedback.Delete))
}
