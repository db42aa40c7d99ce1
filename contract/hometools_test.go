package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/contract"
)

func TestAListOfAHomesToolsIsCleanedWhoeverSentIt(t *testing.T) {
	t.Parallel()
	got := contract.CleanHomeTools([]contract.HomeTool{
		{Name: "plugin__a__b", Summary: "One\n\u202e" + strings.Repeat("字", 200)}, {Name: "PLUGIN__A__B"}, {Name: "List"}, {Name: "help"}, {Name: "plugin_call"},
		{Name: ""}, {Name: "a b"}, {Name: "a/b"}, {Name: strings.Repeat("a", 101)}, {Name: strings.Repeat("a", 100), Native: true, ReadOnly: true},
	})
	if len(got) != 2 || got[0].Name != "plugin__a__b" || got[0].Summary != "One "+strings.Repeat("字", contract.HomeToolPhrase-5)+"…" || !got[1].Native || !got[1].ReadOnly {
		t.Errorf("%+v", got)
	}
	var many []contract.HomeTool
	for i := range 100 {
		many = append(many, contract.HomeTool{Name: fmt.Sprintf("t%d", i)})
	}
	if got := contract.CleanHomeTools(many); len(got) != contract.MaxHomeTools || got[contract.MaxHomeTools-1].Name != "t39" {
		t.Errorf("%d kept", len(got))
	}
}
