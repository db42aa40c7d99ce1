package activity

import (
	"context"
	"encoding/json"
	"math"

	"siyuan-broker/broker/recorder"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// visit is one call of a person in an agent's place. It counts as a call of theirs
// and is recorded as one on the agent.
type visit struct {
	d      *Desk
	of     subject
	call   contract.Call
	course recorder.Course
	out    int // bytes of the last answer
}

func (d *Desk) visit(of subject, call contract.Call) *visit {
	call.Server, call.Tool, call.ResultChars = contract.DefaultServer, tools.TimelineUndo.Tool, of.snap.Limits.ResultChars
	if call.RequestID == "" {
		call.RequestID = tenants.NewID().String()
	}
	return &visit{d: d, of: of, call: call, course: recorder.Course{Arrived: d.cfg.Now()}}
}

// count takes the call from what the person may ask for in a minute. An agent that
// used its own up keeps nobody from looking.
func (v *visit) count(ctx context.Context) *contract.Error {
	if v.d.cfg.Limit == nil {
		return nil
	}
	what, after := v.d.cfg.Limit(ctx, v.of.snap.Principal.Tenant.String(), v.of.person.String(), v.call.Tool, v.of.snap.Limits.CallsPerMinute)
	if what == "" {
		return nil
	}
	return contract.Fail(contract.RateLimited, "The calls of %s for this minute are used up.", what).After(int(math.Ceil(after.Seconds())))
}

// home asks the home, with as much as the subject has. A preview goes before the
// call and is no call of its own.
func (v *visit) home(ctx context.Context, method string, idempotent bool, out any) *contract.Error {
	ctx, cancel := context.WithTimeout(ctx, v.d.cfg.CallTimeout)
	defer cancel()
	now, p, call := v.d.cfg.Now(), v.of.snap.Principal, v.call
	call.Method, call.Grant = method, v.of.snap.Grant(now)
	r := v.d.cfg.Relay.Call(ctx, p.Tenant.String(), p.Instance.String(), call, idempotent, nil)
	v.course.Admitted, v.course.Relayed, v.course.Stats, v.out = now, v.d.cfg.Now().Sub(now), r.Stats, len(r.Body)
	if r.Err != nil {
		return r.Err
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return contract.Internalf(err, "read the answer of %s", call.Action)
	}
	return nil
}

// end hands the record over.
func (v *visit) end(err *contract.Error) {
	p := v.of.snap.Principal
	rec := tenants.Call{
		TenantID: p.Tenant, ID: tenants.NewID(), InstanceID: p.Instance, MemberID: v.of.person, AgentID: p.Agent,
		Tool: v.call.Tool, Action: v.call.Action, RequestID: v.call.RequestID, BytesIn: int64(len(v.call.Args)), BytesOut: int64(v.out),
	}
	v.course.Err = err
	v.course.Enter(&rec, v.of.snap.Connector, v.d.cfg.Now())
	v.d.cfg.Recorder.Record(rec)
}
