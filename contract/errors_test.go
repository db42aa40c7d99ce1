package contract_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"siyuan-broker/contract"
)

// constants are the values of the constants of a type in errors.go, so that one
// without a row cannot be forgotten.
func constants(t *testing.T, typ string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, isNamed := spec.Type.(*ast.Ident)
		text, isText := spec.Values[0].(*ast.BasicLit)
		if isNamed && isText && name.Name == typ {
			value, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[0].Name] = value
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("errors.go has no constants of type %s", typ)
	}
	return found
}

func TestEveryCodeHasARow(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	for _, e := range contract.Vocabulary() {
		rows[string(e.Code)]++
	}
	for name, code := range constants(t, "Code") {
		if rows[code] != 1 {
			t.Errorf("%s has %d rows, want one", name, rows[code])
		}
		delete(rows, code)
	}
	for code := range rows {
		t.Errorf("the row %s has no constant", code)
	}
}

// The types are the closed list of the error shape, in its order.
const closedTypes = "validation_error api_error permission_denied disabled_error internal_error not_found ambiguous conflict " +
	"confirmation_required offline timeout outcome_unknown write_failed unsupported rate_limited too_large"

func TestTheTypesAreTheClosedList(t *testing.T) {
	t.Parallel()
	want := strings.Fields(closedTypes)
	declared := []string{}
	for _, typ := range constants(t, "ErrorType") {
		declared = append(declared, typ)
	}
	slices.Sort(declared)
	if got := slices.Sorted(slices.Values(want)); !slices.Equal(got, declared) {
		t.Errorf("declared %v, want %v", declared, got)
	}
	used := map[contract.ErrorType]bool{}
	for _, e := range contract.Vocabulary() {
		used[e.Type] = true
		if !slices.Contains(want, string(e.Type)) {
			t.Errorf("%s has type %s", e.Code, e.Type)
		}
	}
	if len(used) != len(want) {
		t.Errorf("%d types have a code, want %d", len(used), len(want))
	}
}

func TestRowsSayWhatHappenedAndWhatToDo(t *testing.T) {
	t.Parallel()
	retries := []contract.Retry{contract.RetryNo, contract.RetrySame, contract.RetryAfter}
	for _, e := range contract.Vocabulary() {
		if !strings.HasSuffix(e.Meaning, ".") || !strings.HasSuffix(e.Next, ".") {
			t.Errorf("%s: %q / %q are not sentences", e.Code, e.Meaning, e.Next)
		}
		if !slices.Contains(retries, e.Retry) {
			t.Errorf("%s: retry %q", e.Code, e.Retry)
		}
	}
}

func TestTheTableCannotBeChangedFromOutside(t *testing.T) {
	t.Parallel()
	contract.Vocabulary()[0].Next = "changed"
	if contract.Vocabulary()[0].Next == "changed" {
		t.Error("Vocabulary hands out its own table")
	}
}

func TestBodiesOnTheWire(t *testing.T) {
	t.Parallel()
	withID := contract.Fail(contract.NotFound, "No block %s.", "20240131120000-abc1234")
	withID.RequestID = "0190b0b0-0000-7000-8000-000000000001"
	for name, c := range map[string]struct {
		err  *contract.Error
		want string
	}{
		"a code equal to its type is left out": {
			withID,
			`{"error":{"type":"not_found","message":"No block 20240131120000-abc1234.","hint":"Look it up again: it may have been moved or deleted.","retry":"no","request_id":"0190b0b0-0000-7000-8000-000000000001"}}`,
		},
		"a finer code, and a wait": {
			contract.Fail(contract.SyncInProgress, "Syncing.").WithHint("Wait."),
			`{"error":{"type":"api_error","code":"sync_in_progress","message":"Syncing.","hint":"Wait.","retry":"after","retry_after_s":5}}`,
		},
		"the same request id again": {
			contract.Fail(contract.OutcomeUnknown, "Lost.").WithHint("Repeat.").WithDetail(map[string]string{"block": "20240131120000-abc1234"}),
			`{"error":{"type":"outcome_unknown","message":"Lost.","hint":"Repeat.","retry":"same_request_id","detail":{"block":"20240131120000-abc1234"}}}`,
		},
		"wrong fields": {
			contract.InvalidFields(contract.Field{Path: "id", Message: "is required"}, contract.Field{Path: "x", Message: "is not a parameter of this action"}).WithHint("See help."),
			`{"error":{"type":"validation_error","message":"id: is required","hint":"See help.","retry":"no","detail":{"fields":[{"path":"id","message":"is required"},{"path":"x","message":"is not a parameter of this action"}]}}}`,
		},
		"wrong arguments without a field": {
			contract.InvalidFields().WithHint("See help."),
			`{"error":{"type":"validation_error","message":"The arguments are not valid.","hint":"See help.","retry":"no","detail":{"fields":[]}}}`,
		},
		"another wait": {
			contract.Fail(contract.RateLimited, "Slow down.").WithHint("Wait.").After(60),
			`{"error":{"type":"rate_limited","message":"Slow down.","hint":"Wait.","retry":"after","retry_after_s":60}}`,
		},
		"a detail that has no JSON form": {
			contract.Fail(contract.TooLarge, "Large.").WithHint("Less.").WithDetail(func() {}),
			`{"error":{"type":"too_large","message":"Large.","hint":"Less.","retry":"no"}}`,
		},
	} {
		if got := string(c.err.Body()); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

func TestAnUnexpectedErrorKeepsItsTextToTheLog(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("open /home/person/notes: %w", io.ErrUnexpectedEOF)
	for name, e := range map[string]*contract.Error{
		"wrapped":  contract.Internalf(cause, "read notes of %s", "alice"),
		"anything": contract.AsError(cause),
	} {
		body := string(e.Body())
		if strings.Contains(body, "person") || strings.Contains(body, "alice") || !strings.Contains(body, `"internal_error"`) {
			t.Errorf("%s: body %s", name, body)
		}
		if !errors.Is(e, io.ErrUnexpectedEOF) || !strings.Contains(e.Error(), "/home/person/notes") {
			t.Errorf("%s: the log loses the cause: %v", name, e)
		}
	}
	known := contract.Fail(contract.NotFound, "No.").WithCause(cause)
	if contract.AsError(fmt.Errorf("look up: %w", known)) != known {
		t.Error("an error of the table does not stay itself")
	}
	if strings.Contains(string(known.Body()), "person") {
		t.Error("a cause reaches the wire")
	}
}

func TestCodesAreComparedByTypeAndCode(t *testing.T) {
	t.Parallel()
	offline := contract.Fail(contract.SiYuanOffline, "No answer.")
	if !errors.Is(fmt.Errorf("call: %w", offline), contract.Fail(contract.SiYuanOffline, "")) {
		t.Error("the same code is not recognised")
	}
	if errors.Is(offline, contract.Fail(contract.ConnectorOffline, "")) || errors.Is(offline, contract.Fail(contract.Offline, "")) {
		t.Error("another code of the type is taken for it")
	}
	for want, err := range map[contract.Code]error{
		contract.SiYuanOffline: offline,
		contract.NotFound:      contract.Fail(contract.NotFound, "No."),
		contract.Internal:      io.EOF,
		"":                     nil,
	} {
		if got := contract.CodeOf(err); got != want {
			t.Errorf("CodeOf(%v) = %s, want %s", err, got, want)
		}
	}
	if e := contract.Fail("no_such_code", "Odd."); e.Type != contract.TypeInternal {
		t.Errorf("a code outside the table becomes %s", e.Type)
	}
}
