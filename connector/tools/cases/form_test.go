package cases_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// wellFormed demands that a body is exactly a value of the action's output type.
func wellFormed(t *testing.T, a *catalogue.Action, body []byte) {
	t.Helper()
	var compact bytes.Buffer
	check(t, json.Compact(&compact, body))
	if len(body) == 0 || body[0] != '{' || !bytes.Equal(compact.Bytes(), body) {
		t.Errorf("%s: not one object in compact JSON: %s", a.ID(), body)
	}
	out := reflect.New(a.Output)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out.Interface()); err != nil {
		t.Errorf("%s: %v in %s", a.ID(), err, body)
		return
	}
	again, err := json.Marshal(out.Interface())
	check(t, err)
	if !reflect.DeepEqual(loose(t, again), loose(t, body)) {
		t.Errorf("%s: %s becomes %s", a.ID(), body, again)
	}
	if hasNull(loose(t, body)) && a.ID() != "search.query_sql" { // there null is a value of the database
		t.Errorf("%s: null in %s", a.ID(), body)
	}
}

// wellFormedError demands an error of the closed table. nil is none, and fine.
func wellFormedError(t *testing.T, e *contract.Error) {
	t.Helper()
	if e == nil {
		return
	}
	var envelope struct{ Error contract.Error }
	dec := json.NewDecoder(bytes.NewReader(e.Body()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&envelope); err != nil {
		t.Fatalf("error %s: %v", e.Body(), err)
	}
	known := slices.ContainsFunc(contract.Vocabulary(), func(row contract.Entry) bool {
		return row.Code == contract.CodeOf(&envelope.Error) && row.Type == envelope.Error.Type && (row.Retry == e.Retry || e.Retry == contract.RetryAfter)
	})
	if !known || e.Message == "" || e.Hint == "" || e.Type == contract.TypeInternal {
		t.Errorf("error %s is not one of the table, or says too little", e.Body())
	}
}

func loose(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	check(t, json.Unmarshal(raw, &v))
	return v
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case map[string]any:
		for _, w := range v {
			if hasNull(w) {
				return true
			}
		}
	}
	return false
}
