package recorder

import (
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestARecordTellsHowACallEnded(t *testing.T) {
	t.Parallel()
	at, home := time.Unix(1000, 0), tenants.NewID()
	sent := at.Add(30 * time.Millisecond)
	book := "20240101090000-work001"
	for name, c := range map[string]struct {
		course Course
		want   tenants.Call
	}{
		"answered": {Course{Arrived: at, Admitted: sent, Waited: 20 * time.Millisecond, Relayed: 60 * time.Millisecond, Stats: contract.Stats{TotalUS: 50_000, KernelUS: 40_000, Notebook: book}},
			tenants.Call{Outcome: tenants.OutcomeOK, ConnectorID: home, NotebookID: book, Legs: tenants.Legs{
				Total: 100 * time.Millisecond, Admission: 10 * time.Millisecond, Consent: 20 * time.Millisecond, Tunnel: 10 * time.Millisecond, Home: 10 * time.Millisecond, Kernel: 40 * time.Millisecond}}},
		"refused": {Course{Arrived: at, Err: contract.Fail(contract.RateLimited, "x")},
			tenants.Call{Outcome: tenants.OutcomeError, ErrorType: "rate_limited", ErrorCode: "rate_limited", Legs: tenants.Legs{Total: 100 * time.Millisecond, Admission: 100 * time.Millisecond}}},
		"nobody at home": {Course{Arrived: at, Admitted: sent, Err: contract.Fail(contract.ConnectorOffline, "x")},
			tenants.Call{Outcome: tenants.OutcomeError, ErrorType: "offline", ErrorCode: "connector_offline", Legs: tenants.Legs{Total: 100 * time.Millisecond, Admission: 30 * time.Millisecond}}},
		"not known": {Course{Arrived: at, Admitted: sent, Err: contract.Fail(contract.OutcomeUnknown, "x")},
			tenants.Call{Outcome: tenants.OutcomeUnknown, ErrorType: "outcome_unknown", ErrorCode: "outcome_unknown", ConnectorID: home, Legs: tenants.Legs{Total: 100 * time.Millisecond, Admission: 30 * time.Millisecond}}},
		"a home that lies": {Course{Arrived: at, Admitted: sent, Relayed: time.Millisecond, Stats: contract.Stats{TotalUS: 1 << 60, KernelUS: -5, Notebook: "<b>"}, Err: &contract.Error{Code: "my own"}},
			tenants.Call{Outcome: tenants.OutcomeError, ErrorType: "internal_error", ErrorCode: "internal_error", ConnectorID: home, Legs: tenants.Legs{
				Total: 100 * time.Millisecond, Admission: 30 * time.Millisecond, Home: time.Millisecond}}},
	} {
		var got tenants.Call
		code := c.course.Enter(&got, home, at.Add(100*time.Millisecond))
		c.want.StartedAt = at
		if got != c.want || string(code) != c.want.ErrorCode {
			t.Errorf("%s: %q\ngot  %+v\nwant %+v", name, code, got, c.want)
		}
	}
}
