package contract_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"siyuan-broker/contract"
)

var update = flag.Bool("update", false, "write docs/errors.md anew")

const errorsIntro = `# Errors

This page is written from the table in ` + "`contract/errors.go`" + ` (` + "`go test ./contract -update`" + `); the table is closed.

Every failure has one shape, in tool results (with ` + "`isError`" + `), REST bodies, the tunnel and the CLI's ` + "`--json`" + `:

` + "```json" + `
{"error":{"type":"api_error","code":"sync_in_progress","message":"…","hint":"…","retry":"after","retry_after_s":5,"request_id":"…","detail":{}}}
` + "```" + `

| field | meaning |
|---|---|
| type | the kind of failure; programs branch on it |
| code | what exactly; left out where it equals the type |
| message | what happened, to what; never note text, tokens or paths of the home machine |
| hint | what to do next |
| retry | whether the same call may be sent again, see below |
| retry_after_s | with ` + "`retry: after`" + `: the seconds to wait |
| request_id | finds the call in the logs and the console; for a write also the key for sending it again |
| detail | facts for programs: ` + "`fields`, `valid_actions`, ids to choose from, …" + ` |

A result that was cut is no failure: it says ` + "`truncated`" + ` and how to get the rest. What a caller may not read is
` + "`not_found`" + `, exactly like what does not exist.

## May I send it again?

* ` + "`no`" + `: the same call fails the same way. Change the call, or what the message names.
* ` + "`after`" + `: nothing was changed. Send the same call after ` + "`retry_after_s`" + ` seconds.
* ` + "`same_request_id`" + `: send the same action and arguments with the ` + "`requestId`" + ` of the error. A write with a known
  request id is never done twice: the answer is the outcome of the first. With other arguments it is a ` + "`conflict`" + `.

## The table

| type | code | retry | what happened | what to do |
|---|---|---|---|---|
`

// cell keeps a sentence from being read as Markdown or HTML.
var cell = strings.NewReplacer("<", "&lt;", "|", `\|`)

func errorsPage() []byte {
	var b bytes.Buffer
	b.WriteString(errorsIntro)
	for _, e := range contract.Vocabulary() {
		code := fmt.Sprintf("`%s`", e.Code)
		if string(e.Code) == string(e.Type) {
			code = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", e.Type, code, e.Retry, cell.Replace(e.Meaning), cell.Replace(e.Next))
	}
	return b.Bytes()
}

func TestTheErrorsPageIsTheTable(t *testing.T) {
	t.Parallel()
	const page = "../docs/errors.md"
	if *update {
		if err := os.WriteFile(page, errorsPage(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, errorsPage()) {
		t.Error("docs/errors.md is not what the table says; run go test ./contract -update")
	}
}
