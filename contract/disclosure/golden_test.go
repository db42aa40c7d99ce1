package disclosure_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/tools"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everything is the caller who may use all that is on by default.
func everything(a *tools.Action) bool { return !a.Off }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (review, then -update):\n%s", file, got)
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDescriptorsReadAsReviewed(t *testing.T) {
	t.Parallel()
	for _, d := range disclosure.List(tools.New(), everything, false) {
		text := append([]byte(d.Description+"\n\n"), indented(t, d)...)
		golden(t, d.Name+".golden", text)
	}
}

func TestInstructionsReadAsReviewed(t *testing.T) {
	t.Parallel()
	golden(t, "instructions.golden", []byte(disclosure.Instructions(disclosure.Preface{}, everything)+"\n"))
	golden(t, "instructions_preface.golden", []byte(disclosure.Instructions(disclosure.Preface{
		Rules: " Answer in Dutch.\n", Memory: "Your own notes are in /AGENTS.md, written today.",
	}, everything)+"\n"))
}

func TestHelpReadsAsReviewed(t *testing.T) {
	t.Parallel()
	block, _ := tools.New().Tool("block")
	for name, topic := range map[string]string{"help_block.golden": "", "help_block_update.golden": "update"} {
		answer, err := disclosure.Help(block, topic, everything, true)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, indented(t, answer))
	}
}
