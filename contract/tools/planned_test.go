package tools_test

import (
	"testing"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

// TestFieldsMeanOneThingInATool holds for the planned tools what an agent needs
// of a merged schema: a field has one type, and one sentence that is true for
// every action.
func TestFieldsMeanOneThingInATool(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.Planned().Tools() {
		first, differs := map[string]tools.Param{}, map[string]bool{}
		for _, a := range tool.Actions {
			for _, p := range a.Params {
				known, ok := first[p.Name]
				switch {
				case p.Legacy:
				case !ok:
					first[p.Name] = p
				case known.Type != p.Type:
					t.Errorf("%s.%s is %s here, %s elsewhere", a.ID(), p.Name, p.Type, known.Type)
				case known.Doc != p.Doc:
					differs[p.Name] = true
					if tool.Fields[p.Name] == "" {
						t.Errorf("%s.%s: %q here, %q elsewhere, and the tool has no sentence for both", a.ID(), p.Name, p.Doc, known.Doc)
					}
				}
			}
		}
		for name := range tool.Fields {
			if !differs[name] {
				t.Errorf("%s: the sentence for %s is not needed", tool.Name, name)
			}
		}
	}
}

func TestThePlannedToolsFitTheBudget(t *testing.T) {
	t.Parallel()
	p := disclosure.Measure(tools.Planned(), func(a *tools.Action) bool { return !a.Off }, true, disclosure.Preface{})
	t.Logf("payload %+v", p)
	for name, n := range p.Tools {
		if n > 4_250 { // these are the largest; the other ten tools are smaller
			t.Errorf("%s takes %d characters", name, n)
		}
	}
}
