package guard_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const kernelClient = "siyuan-broker/connector/siyuan"

// mayHoldTheClient are the packages that may import the kernel client, by
// folder below connector: the client itself, the guard, the doctor, and what
// wires and watches the connection (the connector and its home package).
func mayHoldTheClient(folder string) bool {
	return folder == "." || folder == "guard" || strings.HasPrefix(folder, "guard/") || folder == "siyuan" ||
		strings.HasPrefix(folder, "siyuan/") || folder == "doctor" || folder == "home"
}

func TestOnlyTheGuardReachesTheKernel(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range file.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if name != kernelClient {
				continue
			}
			seen++
			if !mayHoldTheClient(filepath.ToSlash(folder)) {
				t.Errorf("%s imports %s; go through guard.Session", path, kernelClient)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("no file imports the client: the test looks in the wrong place")
	}
}

// writerUse finds the guard's writing client in use. It may be named in New,
// which stores it, in Tx.step, which logs the intent first, and in Guard.version,
// which has a document kept before that and changes no note.
var writerUse = regexp.MustCompile(`\.g\.w\b|\bw:\s*w\b|\.w\.[A-Z]`)

func TestTheWritingClientIsUsedByTheSeamAlone(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]int{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(writerUse.FindAll(text, -1)); n > 0 {
			uses[name] = n
		}
	}
	if len(uses) != 3 || uses["guard.go"] != 1 || uses["write.go"] != 1 || uses["points.go"] != 1 {
		t.Errorf("uses of the writing client: %v, want one in guard.go (New), write.go (Tx.step) and points.go (Guard.version)", uses)
	}
}

// cellWriter finds the methods of the writing client that set cells or make rows.
// Each stands beside a mark that names the cells or rows, or their number: what is
// kept for undo follows from it (Tx.keepCells).
var cellWriter = regexp.MustCompile(`w\.(SetCells?|AddRows|AddDetachedRows|ReplaceRows|CreateItem)\(|"(duplicateAttrViewRow|insertAttrViewBlock|updateAttrViewCell)"`)

func TestCellsAndRowsAreWrittenWhereTheirMarksAreMade(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range cellWriter.FindAllString(string(text), -1) {
			uses[name] += use
		}
	}
	want := map[string]string{
		"tx_cells.go": "w.SetCells(", "tx_database.go": "w.AddRows(", "tx_preset.go": "w.CreateItem(", "tx_shape.go": `"duplicateAttrViewRow"`,
	}
	if !maps.Equal(uses, want) {
		t.Errorf("cells and rows are written in %v, want %v; a new place needs marks of LookCell or LookRow, and a line here", uses, want)
	}
}
