package proof

import (
	"strings"
	"testing"
)

// missingIngredients are links into the hidden notebook that the sample kernel
// cannot imitate yet.
var missingIngredients = []string{}

// finding is a failure of a proof that is known and not mended yet.
type finding struct {
	action string // tool.action, "" for any
	sign   string // is in the report
	reason string
}

// findings is a debt: it is empty in a release.
var findings = []finding{
	{"document.get_doc", `<div></div>`, "the element of a reference count is emptied, not removed: it says that something hidden refers to the block"},
	{"", "There is no database", "a database that a hidden notebook shows too may not be shown; without that notebook it may"},
	{"block.update", "SiYuan would drop the reference", "a reference to a hidden block may stay in an updated text, one to a missing block may not"},
	{"search.fulltext", "Nothing found", "the notebook a call is recorded with depends on hits that are dropped again"},
	{"", onlyEffort, "what a text pulls in is looked up further when it exists: titles for bare references, owners of a database"},
	{"block.move", "needed rw; want", "the refusal names the level of the action where leaving the notebook needs rwd"},
	{"document.move", "needed rw; want", "as for block.move"},
}

// known reports whether a failure is on the list, and logs it.
func known(t *testing.T, action, report string) bool {
	t.Helper()
	for _, f := range findings {
		if (f.action == "" || f.action == action) && strings.Contains(report, f.sign) {
			t.Logf("known: %s: %s", f.reason, report)
			return true
		}
	}
	return false
}
