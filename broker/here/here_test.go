package here_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"siyuan-broker/broker/here"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
)

// room answers one action with its own name.
type room struct {
	action *tools.Action
	adds   string
}

func (r room) Answer(_ context.Context, c here.Call) (json.RawMessage, *contract.Error, bool) {
	if c.Action != r.action {
		return nil, nil, false
	}
	return here.Done(c.Action.Name, nil)
}

func (r room) Complete(_ *tools.Action, _, body json.RawMessage) (json.RawMessage, *contract.Error) {
	return append(body[:len(body):len(body)], r.adds...), nil
}

func TestTheFirstPlaceThatKnowsACallAnswersIt(t *testing.T) {
	t.Parallel()
	ps := here.Places{room{tools.FSRead.Action, "a"}, room{tools.MascotShop.Action, "b"}}
	if body, err, mine := ps.Answer(t.Context(), here.Call{Action: tools.MascotShop.Action}); string(body) != `"shop"` || err != nil || !mine {
		t.Errorf("%s %v %v", body, err, mine)
	}
	if _, _, mine := ps.Answer(t.Context(), here.Call{Action: tools.FSWrite.Action}); mine {
		t.Error("a call nobody knows is kept")
	}
	if body, err := ps.Complete(tools.FSLs.Action, nil, json.RawMessage("x")); string(body) != "xab" || err != nil {
		t.Errorf("%s %v", body, err)
	}
}

func TestTheStrictProtocolIsKept(t *testing.T) {
	t.Parallel()
	guarded := func(s contract.Safety) here.Call { return here.Call{Action: tools.FSWrite.Action, Safety: s} }
	if p, err := guarded(contract.Safety{}).Strict("one"); p != nil || err != nil {
		t.Errorf("nothing was asked: %+v %v", p, err)
	}
	p, err := guarded(contract.Safety{ValidateOnly: true}).Strict("one")
	if err != nil || p == nil || p.Field != tools.FSWrite.Guarded.Field() || p.Executed || !strings.HasPrefix(p.StateHash, "sha256:v1:") {
		t.Fatalf("%+v %v", p, err)
	}
	digits := strings.TrimPrefix(p.StateHash, "sha256:v1:")
	for expect, ok := range map[string]bool{p.StateHash: true, digits[:12]: true, strings.ToUpper(digits[:8]): true, digits[:3]: false, "0000": false} {
		if digits[:4] == "0000" {
			continue
		}
		if p, err := guarded(contract.Safety{Expect: expect}).Strict("one"); p != nil || (err == nil) != ok || err != nil && contract.CodeOf(err) != contract.StateChanged {
			t.Errorf("expecting %s: %+v %v", expect, p, err)
		}
	}
	if _, err := guarded(contract.Safety{Expect: p.StateHash}).Strict("two"); contract.CodeOf(err) != contract.StateChanged {
		t.Errorf("after a change: %v", err)
	}
	if p, err := (here.Call{Action: tools.MascotBuy.Action, Safety: contract.Safety{ValidateOnly: true}}).Strict(""); err != nil || p == nil || p.Protocol != "request-id-only" || p.StateHash != "" {
		t.Errorf("without a precondition: %+v %v", p, err)
	}
}
