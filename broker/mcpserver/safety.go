package mcpserver

import (
	"encoding/json"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// safetyOf takes what a call says about the strict write protocol out of its
// arguments, and holds it against what the tenant chose.
func safetyOf(a *tools.Action, mode tenants.StrictWrites, raw json.RawMessage) (contract.Safety, json.RawMessage, *contract.Error) {
	if !a.Kind.Mutates() {
		return contract.Safety{}, raw, nil
	}
	safety, field, rest, err := takeSafety(raw)
	if err != nil {
		return safety, raw, err
	}
	own := a.Guarded.Field()
	switch {
	case safety.Asked() && mode == tenants.StrictOff:
		return safety, raw, contract.Fail(contract.StrictModeDisabled, "This tenant has switched validating writes off.")
	case field != "" && own == "":
		return safety, raw, contract.InvalidFields(contract.Field{Path: field, Message: a.ID() + " needs no hash"})
	case field != "" && field != own && !(field == disclosure.HashParam && own == tools.OnState.Field()):
		return safety, raw, contract.InvalidFields(contract.Field{Path: field, Message: a.ID() + " takes " + own})
	case mode == tenants.StrictRequired && own != "" && !safety.Asked():
		return safety, raw, contract.Fail(contract.PreconditionRequired, "This tenant wants %s validated first.", a.ID()).
			WithDetail(map[string]any{"precondition_field": own})
	}
	if safety.ValidateOnly {
		safety.Expect = ""
	}
	return safety, rest, nil
}

// takeSafety reads the parameters of the protocol; field is the name under which
// a hash was given.
func takeSafety(raw json.RawMessage) (safety contract.Safety, field string, rest json.RawMessage, err *contract.Error) {
	only := named{name: disclosure.ValidateParam}
	params := disclosure.HashParams()
	var hashes [len(params)]named
	for i, name := range params {
		hashes[i].name = name
	}
	s := scanner{text: raw}
	for key, more := s.enter(); more; key, more = s.next() {
		key, value := unescape(key), s.value()
		only.see(key, value)
		for i := range hashes {
			hashes[i].see(key, value)
		}
	}
	rest = raw
	if only.key != nil {
		switch string(only.value) {
		case "true":
			safety.ValidateOnly = true
		case "false", "null":
		default:
			return safety, "", raw, contract.InvalidFields(contract.Field{Path: only.name, Message: "must be true or false"})
		}
		rest = without(rest, only.key, nil)
	}
	for i := range hashes {
		if hashes[i].key == nil {
			continue
		}
		given, err := hashes[i].word()
		if err != nil {
			return safety, "", raw, err
		}
		rest = without(rest, hashes[i].key, nil)
		if given == "" {
			continue
		}
		if field != "" {
			return safety, "", raw, contract.InvalidFields(contract.Field{Path: hashes[i].name, Message: "give one hash, not two"})
		}
		field, safety.Expect = hashes[i].name, given
	}
	return safety, field, rest, nil
}
