package activity

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// line answers every call with one body or error, and remembers.
type line struct {
	body  string
	err   *contract.Error
	calls []contract.Call
}

func (l *line) Call(_ context.Context, _, _ string, call contract.Call, _ bool, _ func(contract.Progress)) contract.Result {
	l.calls = append(l.calls, call)
	return contract.Result{Body: json.RawMessage(l.body), Err: l.err}
}

type records []tenants.Call

func (r *records) Record(c tenants.Call) { *r = append(*r, c) }

// Looking counts as a call of the person and is recorded as theirs, on the agent.
func TestALookIsCountedAndRecorded(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	facts := &tenants.Snapshot{
		TenantID: tenants.NewID(), TenantStatus: tenants.Active, Member: tenants.NewID(), Role: tenants.Owner, Limits: tenants.Limits{CallsPerMinute: 7},
		Agent:    tenants.Agent{ID: tenants.NewID(), Ceiling: contract.ReadWriteDelete},
		Instance: tenants.Instance{ID: tenants.NewID(), Enabled: true}, Connector: &tenants.SnapshotConnector{ID: tenants.NewID()},
	}
	of := subject{person: tenants.NewID(), snap: admission.Compile(facts, tools.New())}
	for name, c := range map[string]struct {
		used   string
		home   line
		code   contract.Code
		asked  int
		reach  bool
		result tenants.Outcome
	}{
		"answered":          {"", line{body: `{"sittings":[]}`}, "", 1, true, tenants.OutcomeOK},
		"nobody is at home": {"", line{err: contract.Fail(contract.ConnectorOffline, "x")}, contract.ConnectorOffline, 1, false, tenants.OutcomeError},
		"nonsense":          {"", line{body: `[`}, contract.Internal, 1, true, tenants.OutcomeError},
		"too often":         {"this tenant", line{body: `{}`}, contract.RateLimited, 0, false, tenants.OutcomeError},
	} {
		var log records
		var counted [][3]string
		d := NewDesk(Config{Relay: &c.home, Recorder: &log, Now: func() time.Time { return at }, CallTimeout: time.Minute,
			Limit: func(_ context.Context, tenant, caller, tool string, perMinute int) (string, time.Duration) {
				if perMinute != 7 {
					t.Errorf("%s: a limit of %d", name, perMinute)
				}
				counted = append(counted, [3]string{tenant, caller, tool})
				return c.used, time.Second
			}})
		_, failed := d.changes(t.Context(), of, Choice{}, 1, 1)
		if (failed == nil) != (c.code == "") || failed != nil && contract.CodeOf(failed) != c.code || len(c.home.calls) != c.asked {
			t.Errorf("%s: %v, asked %d times", name, failed, len(c.home.calls))
		}
		if want := [3]string{facts.TenantID.String(), of.person.String(), "timeline"}; len(counted) != 1 || counted[0] != want {
			t.Errorf("%s: counted %v, want %v", name, counted, want)
		}
		if len(log) != 1 {
			t.Fatalf("%s: recorded %+v", name, log)
		}
		got, home := log[0], tenants.ID{}
		if c.reach {
			home = facts.Connector.ID
		}
		if got.MemberID != of.person || got.AgentID != facts.Agent.ID || got.InstanceID != facts.Instance.ID || got.TenantID != facts.TenantID || got.ConnectorID != home ||
			got.Tool != "timeline" || got.Action != "list_changes" || got.RequestID == "" || got.Outcome != c.result || got.ErrorCode != string(c.code) || got.StartedAt != at {
			t.Errorf("%s: recorded %+v", name, got)
		}
	}
}
