package tools_test

import (
	"testing"

	"siyuan-broker/contract/tools"
)

// What a person has to agree to, as was decided for it: the catalogue's dangerous
// actions and those that take away as much. One that is not offered yet is held to
// it as soon as it is.
func TestWhatTakesAwayOrLeadsOutNeedsConsent(t *testing.T) {
	t.Parallel()
	offered := 0
	for _, id := range [][2]string{
		{"fs", "rm"}, {"fs", "mv"}, {"notebook", "remove"}, {"notebook", "set_permission"},
		{"document", "remove"}, {"document", "move"}, {"document", "doc_to_heading"}, {"block", "delete"}, {"block", "move"},
		{"search", "find_replace"}, {"av", "remove_rows"}, {"av", "remove_column"}, {"tag", "remove"}, {"tag", "rename"},
		{"file", "extract_doc"}, {"file", "rename_asset"}, {"file", "remove_unused_assets"}, {"extension", "call"},
	} {
		a, ok := tools.New().Action(id[0], id[1])
		if !ok {
			continue
		}
		offered++
		if !a.Dangerous {
			t.Errorf("%s runs without anybody's consent", a.ID())
		}
	}
	if offered < 13 {
		t.Errorf("only %d of them are known here: a name changed", offered)
	}
}

// Whatever is written to a path that the caller names leads out of the notes. An
// action that has such a parameter needs consent wherever it is offered.
func TestWhatWritesToAPathAtHomeNeedsConsent(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.New().Tools() {
		for _, a := range tool.Actions {
			for _, name := range []string{"outputPath", "outputDir"} {
				if _, ok := a.Param(name); ok && !a.Dangerous {
					t.Errorf("%s writes to %s without anybody's consent", a.ID(), name)
				}
			}
		}
	}
}
