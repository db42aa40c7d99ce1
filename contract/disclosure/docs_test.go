package disclosure_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

// cell keeps a sentence from being read as Markdown or HTML.
var cell = strings.NewReplacer("<", "&lt;", "|", `\|`)

// page is the documentation of a tool for people: what help says, as Markdown.
func page(t *testing.T, tool *tools.Tool) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\nThis page is written from `contract/tools` (`go test ./contract/disclosure -update`).\n\n%s\n", tool.Name, tool.Purpose)
	for _, note := range tool.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	for _, a := range tool.Actions {
		if a.ByName {
			continue // it has the tools' own names
		}
		answer, err := disclosure.Help(tool, a.Name, func(*tools.Action) bool { return true }, true)
		if err != nil {
			t.Fatal(err)
		}
		section(&b, a, answer.(disclosure.Topic))
	}
	return b.Bytes()
}

func section(b *bytes.Buffer, a *tools.Action, topic disclosure.Topic) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n`%s`\n\nNeeds %s.", a.Name, a.Summary, topic.Signature, topic.Needs)
	if a.Dangerous {
		b.WriteString(" A person has to agree to each call.")
	}
	if a.Off {
		b.WriteString(" Off until a tenant switches it on.")
	}
	b.WriteString("\n")
	if slices.ContainsFunc(a.Params, func(p tools.Param) bool { return !p.Everywhere }) {
		b.WriteString("\n| parameter | type | | meaning |\n|---|---|---|---|\n")
	}
	for _, p := range a.Params {
		if p.Everywhere {
			continue
		}
		need := ""
		if p.Required {
			need = "required"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, kind(p), need, cell.Replace(p.Doc))
	}
	for _, sentence := range append(topic.Rules, topic.Guidance...) {
		fmt.Fprintf(b, "\n%s\n", cell.Replace(sentence))
	}
	if len(topic.Full) > 0 {
		fmt.Fprintf(b, "\nOnly with `verbose`: `%s`.\n", strings.Join(topic.Full, "`, `"))
	}
	for _, ex := range topic.Examples {
		fmt.Fprintf(b, "\n```json\n%s\n```\n", ex)
	}
}

func kind(p tools.Param) string {
	switch {
	case len(p.Enum) > 0:
		return "`" + strings.Join(p.Enum, "`, `") + "`"
	case p.Type == tools.Array:
		return "list of " + kind(*p.Items)
	}
	return string(p.Type)
}

func TestTheToolPagesAreTheContract(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "tools")
	for _, tool := range tools.New().Tools() {
		file, want := filepath.Join(dir, tool.Name+".md"), page(t, tool)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the contract says; run go test ./contract/disclosure -update", file)
		}
	}
}
