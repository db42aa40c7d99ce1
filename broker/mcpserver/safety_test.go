package mcpserver

import (
	"encoding/json"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

func TestWhatACallSaysAboutItsSafety(t *testing.T) {
	t.Parallel()
	guarded := &tools.Action{Tool: "block", Name: "update", Kind: tools.Write, Guarded: tools.OnState}
	order := &tools.Action{Tool: "block", Name: "move", Kind: tools.Write, Guarded: tools.OnStructure}
	plain := &tools.Action{Tool: "block", Name: "append", Kind: tools.Write}
	read := &tools.Action{Tool: "block", Name: "info", Kind: tools.Read}
	validate, expect := contract.Safety{ValidateOnly: true}, contract.Safety{Expect: "ab12"}
	for _, c := range []struct {
		action *tools.Action
		mode   tenants.StrictWrites
		in     string
		safety contract.Safety
		rest   string
		code   contract.Code
	}{
		{guarded, "", `{"id":"x"}`, contract.Safety{}, `{"id":"x"}`, ""},
		{guarded, "", `{"id":"x","validateOnly":true}`, validate, `{"id":"x"}`, ""},
		{guarded, "", `{"validate_only":true,"id":"x","expectedStateHash":"ab12"}`, validate, `{"id":"x"}`, ""},
		{guarded, tenants.StrictRequired, `{"id":"x","expected-state-hash":"ab12"}`, expect, `{"id":"x"}`, ""},
		{guarded, tenants.StrictOffered, `{"expectedHash":"ab12"}`, expect, `{}`, ""},
		{guarded, "", `{"expectedHash":"","validateOnly":false}`, contract.Safety{}, `{}`, ""},
		{order, "", `{"expectedStructureHash":"ab12"}`, expect, `{}`, ""},
		{plain, "", `{"validateOnly":true}`, validate, `{}`, ""},
		{plain, tenants.StrictRequired, `{}`, contract.Safety{}, `{}`, ""},
		{read, tenants.StrictRequired, `{"validateOnly":true}`, contract.Safety{}, `{"validateOnly":true}`, ""},
		{guarded, tenants.StrictOff, `{}`, contract.Safety{}, `{}`, ""},

		{guarded, tenants.StrictOff, `{"validateOnly":true}`, contract.Safety{}, "", contract.StrictModeDisabled},
		{guarded, tenants.StrictOff, `{"expectedStateHash":"ab12"}`, contract.Safety{}, "", contract.StrictModeDisabled},
		{guarded, tenants.StrictRequired, `{}`, contract.Safety{}, "", contract.PreconditionRequired},
		{guarded, "", `{"expectedStructureHash":"ab12"}`, contract.Safety{}, "", contract.InvalidArguments},
		{order, "", `{"expectedHash":"ab12"}`, contract.Safety{}, "", contract.InvalidArguments},
		{plain, "", `{"expectedStateHash":"ab12"}`, contract.Safety{}, "", contract.InvalidArguments},
		{guarded, "", `{"validateOnly":"yes"}`, contract.Safety{}, "", contract.InvalidArguments},
		{guarded, "", `{"expectedStateHash":7}`, contract.Safety{}, "", contract.InvalidArguments},
		{guarded, "", `{"expectedStateHash":"ab12","expectedHash":"cd34"}`, contract.Safety{}, "", contract.InvalidArguments},
	} {
		safety, rest, err := safetyOf(c.action, c.mode, json.RawMessage(c.in))
		if code := contract.Code(""); err != nil {
			code = contract.CodeOf(err)
			if code != c.code {
				t.Errorf("%s %q %s: %v, want %q", c.action.Name, c.mode, c.in, err, c.code)
			}
			continue
		}
		if c.code != "" || safety != c.safety || string(rest) != c.rest {
			t.Errorf("%s %q %s: %+v, %s, want %+v, %s (%s)", c.action.Name, c.mode, c.in, safety, rest, c.safety, c.rest, c.code)
		}
	}
}
