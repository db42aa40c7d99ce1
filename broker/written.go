package broker

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"siyuan-broker/broker/activity"
	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
)

// newActivity wires the pages on what agents wrote. It needs the pages and the
// consent desk.
func (b *Broker) newActivity() (err error) {
	desk := activity.NewDesk(activity.Config{
		Store: b.db, Snapshots: b.snapshots, Relay: b.cluster.relay, Consent: b.consent, Recorder: b.recorder, Limit: activity.Limit(b.callLimit()),
		CallTimeout: b.cfg.CallTimeout, Now: b.now, Log: b.log,
	})
	b.activity, err = activity.NewPages(desk, b.pages, tenantPerson)
	return err
}

// tenantPerson is who sent a request and the tenant they look at.
func tenantPerson(r *http.Request) (person, tenant tenants.ID, ok bool) {
	s, _ := people.Signed(r) // the pages stand behind RequireSignedIn
	m, ok := s.Tenant()
	return s.User.ID, m.TenantID, ok
}

// activityRoutes are the pages on what agents wrote. The handler has the same
// patterns once more, for what is in the path.
func (b *Broker) activityRoutes(e *echo.Echo) {
	written := b.signed(b.activity.Handler().ServeHTTP)
	e.GET("/console/agents/:agent/activity", written)
	e.GET("/console/agents/:agent/undo", written)
	e.POST("/console/agents/:agent/undo", written)
}
