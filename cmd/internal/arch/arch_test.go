// Package arch holds the tests of the project's shape.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "siyuan-broker/"

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// in reports whether a package is the room or below it.
func in(path, room string) bool {
	return path == module+room || strings.HasPrefix(path, module+room+"/")
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			switch {
			case in(p.ImportPath, "contract") && strings.HasPrefix(i, module) && !in(i, "contract"):
				t.Errorf("%s imports %s: contract knows nothing of the project", p.ImportPath, i)
			case in(p.ImportPath, "broker") && in(i, "connector"), in(p.ImportPath, "connector") && in(i, "broker"):
				t.Errorf("%s imports %s: broker and connector never import each other", p.ImportPath, i)
			case in(p.ImportPath, "connector/tools") && in(i, "connector/siyuan"):
				t.Errorf("%s imports %s: handlers reach the kernel through the guard only", p.ImportPath, i)
			case in(p.ImportPath, "tenants") && (in(i, "broker") || in(i, "connector")):
				t.Errorf("%s imports %s: the domain knows neither half", p.ImportPath, i)
			case !in(p.ImportPath, "cmd") && in(i, "cmd"):
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

func TestContractDoesNoIO(t *testing.T) {
	forbidden := []string{"net", "net/http", "os", "os/exec", "database/sql", "syscall", "log", "log/slog"}
	for _, p := range packages(t) {
		if !in(p.ImportPath, "contract") {
			continue
		}
		for _, i := range p.Imports {
			if slices.Contains(forbidden, i) {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

func TestTheConnectorBinaryCarriesNeitherSampleKernelNorBroker(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"cmd/siyuan-connector" {
			continue
		}
		for _, d := range p.Deps {
			if in(d, "connector/siyuan/samplekernel") || in(d, "broker") || in(d, "tenants") || strings.Contains(d, "88250/lute") {
				t.Errorf("the connector links %s", d)
			}
		}
	}
}
