package recorder

import (
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// Course is how one call went, as whoever made it saw it.
type Course struct {
	Arrived  time.Time
	Admitted time.Time     // when it was sent home; zero: refused before
	Waited   time.Duration // for a person, before that
	Relayed  time.Duration // from there to its answer
	Stats    contract.Stats
	Err      *contract.Error // nil: it succeeded
}

// Enter puts the course into a call's record: how it ended, where the time went,
// and what a home said besides, as far as it can be true. It returns the code of the
// error as recorded, "" for none.
func (c Course) Enter(rec *tenants.Call, connector tenants.ID, now time.Time) contract.Code {
	rec.StartedAt, rec.Outcome, rec.Legs = c.Arrived, tenants.OutcomeOK, c.legs(now)
	if contract.IsID(c.Stats.Notebook) {
		rec.NotebookID = c.Stats.Notebook
	}
	code := contract.Code("")
	if c.Err != nil {
		if code = contract.CodeOf(c.Err); !contract.Known(code) {
			code = contract.Internal
		}
		rec.Outcome, rec.ErrorType, rec.ErrorCode = tenants.OutcomeError, string(contract.Fail(code, "").Type), string(code)
		if code == contract.OutcomeUnknown {
			rec.Outcome = tenants.OutcomeUnknown
		}
	}
	if !c.Admitted.IsZero() && code != contract.ConnectorOffline {
		rec.ConnectorID = connector
	}
	return code
}

// legs splits the time of a call. What the connector measured is believed only
// as far as it fits into the time waited for it.
func (c Course) legs(now time.Time) tenants.Legs {
	l := tenants.Legs{Total: now.Sub(c.Arrived)}
	if c.Admitted.IsZero() {
		l.Admission = l.Total
		return l
	}
	l.Consent = clamp(c.Waited, c.Admitted.Sub(c.Arrived))
	l.Admission = c.Admitted.Sub(c.Arrived) - l.Consent
	home := clamp(micros(c.Stats.TotalUS), c.Relayed)
	l.Kernel = clamp(micros(c.Stats.KernelUS), home)
	l.Home, l.Tunnel = home-l.Kernel, c.Relayed-home
	return l
}

func micros(us int64) time.Duration {
	const hour = int64(time.Hour / time.Microsecond)
	return time.Duration(min(us, hour)) * time.Microsecond
}

func clamp(d, limit time.Duration) time.Duration { return max(0, min(d, limit)) }
