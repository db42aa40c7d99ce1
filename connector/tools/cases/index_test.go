package cases_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cases are the ids of the list this package answers to.
var cases = strings.Fields(`K01 K03 K04 K06 K07 K08 K10 K11 K12 K13 K14 K15 K18 K19 K21 K22 K24 K25 K26 K28 K29 K30 K32 K33 K35 K36 K37 K38 K39 K40 K41 K43`)

// TestEveryCaseHasATestOrAReason looks through the tests of the whole module,
// and the table of this package.
func TestEveryCaseHasATestOrAReason(t *testing.T) {
	t.Parallel()
	answered := map[string]bool{}
	named := regexp.MustCompile(`(?m)^func Test(K\d\d)`)
	root := filepath.Join("..", "..", "..")
	check(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			answered[m[1]] = true
		}
		return err
	}))
	if !answered["K01"] || !answered["K22"] {
		t.Fatal("no tests found: the module is somewhere else")
	}
	table, err := os.ReadFile("doc.go")
	check(t, err)
	for _, id := range cases {
		if !answered[id] && !strings.Contains(string(table), "\n//\t"+id+"  ") {
			t.Errorf("%s has neither a test nor a reason", id)
		}
	}
}
