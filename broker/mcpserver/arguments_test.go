package mcpserver

import (
	"encoding/json"
	"testing"

	"siyuan-broker/contract"
)

func TestOpenSeparatesTheEnvelope(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]envelope{
		``:                                {rest: json.RawMessage(`{}`)},
		`null`:                            {rest: json.RawMessage(`{}`)},
		` {"action":"list"} `:             {action: "list", rest: json.RawMessage(`{}`)},
		`{"action":null,"a":1}`:           {rest: json.RawMessage(`{"a":1}`)},
		`{"ACTION":"list"}`:               {action: "list", rest: json.RawMessage(`{}`)},
		`{"action":"help","topic":"x"}`:   {action: "help", topic: "x", rest: json.RawMessage(`{"topic":"x"}`)},
		`{"action":"a","topic":7}`:        {action: "a", rest: json.RawMessage(`{"topic":7}`)},
		`{"action":"a","request-id":"r"}`: {action: "a", requestID: "r", rest: json.RawMessage(`{}`)},
		`{"action":"a","requestID":"r","id":"x"}`: {action: "a", requestID: "r", rest: json.RawMessage(`{"id":"x"}`)},
		`{"\u0061ction":"l\u0069st","x\n":1}`:     {action: "list", rest: json.RawMessage(`{"x\n":1}`)},
		`{"action":"a","action":"b","x":[1, 2]}`:  {action: "b", rest: json.RawMessage(`{"x":[1, 2]}`)},
		`{"Action":"a","action":"b","ACTION":1}`:  {action: "b", rest: json.RawMessage(`{"Action":"a","ACTION":1}`)},
		`{"x":1,"a_c-tion":"b","actions":2}`:      {action: "b", rest: json.RawMessage(`{"x":1,"actions":2}`)},
	} {
		got, err := open(json.RawMessage(in))
		if err != nil || got.action != want.action || got.topic != want.topic || got.requestID != want.requestID || string(got.rest) != string(want.rest) {
			t.Errorf("%s: %+v (%s), %v", in, got, got.rest, err)
		}
	}
	for _, in := range []string{`[]`, `"x"`, `7`, `{`, `{"action":1}`, `{"requestId":{}}`} {
		if _, err := open(json.RawMessage(in)); contract.CodeOf(err) != contract.InvalidArguments {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func FuzzOpenLeavesAnObject(f *testing.F) {
	for _, in := range []string{`{"action":"list","requestId":"r","topic":"t","a":[1,{"b":null}]}`, `null`, `[`, `{"ACTION":"x","action":"y"}`} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		e, err := open(json.RawMessage(in))
		if err != nil {
			return
		}
		var rest map[string]json.RawMessage
		if json.Unmarshal(e.rest, &rest) != nil || rest == nil {
			t.Fatalf("%q leaves %q", in, e.rest)
		}
		if _, ok := rest["action"]; ok {
			t.Errorf("%q leaves the action in %q", in, e.rest)
		}
		if with := withRequestID(e.rest, "i"); !json.Valid(with) {
			t.Errorf("%q becomes %q", e.rest, with)
		}
	})
}
