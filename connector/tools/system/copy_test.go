package system

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "copy CHANGELOG.md")

func TestTheChangelogIsTheModules(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("changelog.md", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if ours != string(want) {
		t.Error("changelog.md is not CHANGELOG.md: go test ./connector/tools/system -update")
	}
}
