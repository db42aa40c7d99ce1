package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eras are the protocol versions an agent may speak; "" is the SDK's newest.
var eras = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

// program is siyuan-broker, built once for all tests of the package, with
// siyuan-connector beside it.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "siyuan-broker-e2e-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "siyuan-broker")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, ".", "../siyuan-connector") // as the Dockerfiles build them
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	if dir := os.Getenv("TEST_KERNEL_DIR"); dir != "" {
		serveKernel(dir, os.Getenv("TEST_KERNEL_LISTEN"))
	}
	code := m.Run()
	if bin, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// ready is the line that `up --json` prints.
type ready struct {
	MCPURL     string `json:"mcp_url"`
	AgentToken string `json:"agent_token"`
	ConsoleURL string `json:"console_url"`
	SiYuan     string `json:"siyuan"`
	Data       string `json:"data"`
}

// home is a running `siyuan-broker up`.
type home struct {
	ready
	cmd *exec.Cmd
	log *bytes.Buffer
}

// up starts the program and waits for its line. It is stopped with the test.
func up(t *testing.T, data, listen string, args ...string) *home {
	t.Helper()
	return upWith(t, nil, data, listen, args...)
}

// upWith is up with more environment.
func upWith(t *testing.T, env []string, data, listen string, args ...string) *home {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	h := &home{log: &bytes.Buffer{}}
	h.cmd = exec.Command(bin, append([]string{"up", "--json", "--data", data, "--listen", listen}, args...)...)
	h.cmd.Env = append(os.Environ(), env...)
	h.cmd.Stderr = h.log
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.stop(t)
		if t.Failed() {
			t.Logf("log of the program:\n%s", h.log)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the program ended before it was ready: %v\n%s", err, h.log)
	}
	if err := json.Unmarshal(line, &h.ready); err != nil {
		t.Fatalf("its line is not JSON: %q", line)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	return h
}

func (h *home) stop(t *testing.T) {
	t.Helper()
	if h.cmd.ProcessState != nil {
		return
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("stopped with %v\n%s", err, h.log)
	}
}

// dataDir is a folder that PostgreSQL's own account may pass through, which
// t.TempDir is not when the tests run as root.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "siyuan-broker-data-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// handed are the ports freeAddr gave out.
var handed sync.Map

// freeAddr is an address for a program to listen on. Its port is below those
// that the system gives to whoever asks for any, so that nobody takes it before
// the program does.
func freeAddr(t *testing.T) string {
	t.Helper()
	for {
		port := 12000 + rand.IntN(18000)
		if _, taken := handed.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
}

// bearer adds the agent's token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// agent is an MCP client of one era.
func (h *home) agent(t *testing.T, era string) *mcp.ClientSession {
	t.Helper()
	return (&client{url: h.MCPURL, token: h.AgentToken, era: era}).connect(t)
}

// client says how to connect an MCP client.
type client struct{ url, token, era string }

func (h *client) connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: h.url, HTTPClient: &http.Client{Transport: bearer{h.token}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: h.era})
	if err != nil {
		t.Fatalf("connect at %s: %v", h.era, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls one action and decodes the JSON it answers.
func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any, into any) {
	t.Helper()
	text, isError := try(t, s, tool, args)
	if isError {
		t.Fatalf("%s %v: %s", tool, args["action"], text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s %v: %v in %s", tool, args["action"], err, text)
	}
}

func try(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (text string, isError bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args["action"], err)
	}
	if len(r.Content) != 1 || r.StructuredContent != nil {
		t.Fatalf("%s %v: %d contents, structured %v; want one text", tool, args["action"], len(r.Content), r.StructuredContent)
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

type notebook struct {
	ID, Name, Level string
	Closed          bool
}

// work is what an agent does to a notebook of its own: make it, write, read
// back, edit, find.
func work(t *testing.T, s *mcp.ClientSession, name string) (notebookID string) {
	t.Helper()
	var made struct{ Notebook notebook }
	call(t, s, "notebook", map[string]any{"action": "create", "name": name}, &made)
	if made.Notebook.Name != name || made.Notebook.ID == "" {
		t.Fatalf("made %+v", made)
	}
	nb := made.Notebook.ID

	var doc struct{ ID, Path string }
	body := "First line — 世界 𠮷 👨‍👩‍👧.\n\n## Steps 步骤\n\n- one\n- two\n"
	call(t, s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/Projects/Alpha", "markdown": body}, &doc)

	var added struct{ ID string }
	word := "zebra" + strings.ReplaceAll(name, "-", "")
	call(t, s, "block", map[string]any{"action": "append", "parentID": doc.ID, "dataType": "markdown", "data": "A " + word + " line."}, &added)
	call(t, s, "block", map[string]any{"action": "update", "id": added.ID, "dataType": "markdown", "data": "Changed " + word + " line."}, &struct{}{})

	var kram struct{ Kramdown string }
	call(t, s, "block", map[string]any{"action": "get_kramdown", "id": added.ID}, &kram)
	if !strings.HasPrefix(kram.Kramdown, "Changed "+word+" line.") {
		t.Errorf("kramdown of the changed block is %q", kram.Kramdown)
	}

	var read struct{ Content, HPath, NotebookName string }
	call(t, s, "document", map[string]any{"action": "get_doc", "id": doc.ID}, &read)
	for _, want := range []string{"First line — 世界 𠮷 👨‍👩‍👧.", "## Steps 步骤", "Changed " + word + " line."} {
		if !strings.Contains(read.Content, want) {
			t.Errorf("%q is missing in %q", want, read.Content)
		}
	}
	if read.HPath != "/Projects/Alpha" || read.NotebookName != name {
		t.Errorf("read from %q in %q", read.HPath, read.NotebookName)
	}

	var tree struct {
		Tree []struct {
			Name     string
			Children []struct{ Name, ID string }
		}
	}
	call(t, s, "document", map[string]any{"action": "list_tree", "notebook": nb, "path": "/"}, &tree)
	if len(tree.Tree) != 1 || tree.Tree[0].Name != "Projects" || len(tree.Tree[0].Children) != 1 || tree.Tree[0].Children[0].ID != doc.ID {
		t.Errorf("tree is %+v", tree)
	}

	var found struct {
		Total int
		Data  []struct{ ID, Content string }
	}
	call(t, s, "search", map[string]any{"action": "fulltext", "query": word}, &found)
	if found.Total != 1 || len(found.Data) != 1 || found.Data[0].ID != added.ID {
		t.Errorf("search for %q found %+v", word, found)
	}
	return nb
}

func TestAnAgentWorksInTheSampleWorkspaceInEveryEra(t *testing.T) {
	t.Parallel()
	h := up(t, dataDir(t), freeAddr(t))
	if h.SiYuan != "sample" {
		t.Errorf("siyuan is %q, want sample", h.SiYuan)
	}
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := h.agent(t, era)
			if got := s.InitializeResult().ProtocolVersion; got != era {
				t.Errorf("negotiated %s", got)
			}
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range tools.Tools {
				names = append(names, tool.Name)
			}
			for _, want := range []string{"block", "document", "notebook", "search"} {
				if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+want+" ") {
					t.Errorf("tool %s is missing in %v", want, names)
				}
			}
			work(t, s, "e2e-"+era)
		})
	}
}

func TestRestartAfterKillFindsDataAndTheTokenStillWorks(t *testing.T) {
	t.Parallel()
	data, listen := dataDir(t), freeAddr(t)
	first := up(t, data, listen)
	var made struct{ Notebook notebook }
	call(t, first.agent(t, ""), "notebook", map[string]any{"action": "create", "name": "kept"}, &made)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // "signal: killed"

	second := up(t, data, listen)
	if second.MCPURL != first.MCPURL {
		t.Errorf("the URL changed from %s to %s", first.MCPURL, second.MCPURL)
	}
	second.AgentToken = first.AgentToken
	var list struct{ Notebooks []notebook }
	call(t, second.agent(t, ""), "notebook", map[string]any{"action": "list"}, &list)
	for _, n := range list.Notebooks {
		if n == made.Notebook {
			return
		}
	}
	t.Errorf("%+v is missing in %+v", made.Notebook, list)
}

func TestASecondStartOnTheSameFolderIsRefusedClearly(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	up(t, data, freeAddr(t))
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "up", "--json", "--data", data, "--listen", freeAddr(t)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("got %v: %s", err, out)
	}
}

func TestNothingRunsOnAfterStopping(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	h := up(t, data, freeAddr(t))
	h.stop(t)
	// Every process of the data folder has its working directory there.
	cwds, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, cwd := range cwds {
		if dir, err := os.Readlink(cwd); err == nil && strings.HasPrefix(dir, data) {
			t.Errorf("%s still runs in %s", cwd, dir)
		}
	}
}

// TestLive does the same work in a real SiYuan: make test-siyuan.
func TestLive(t *testing.T) {
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("needs SIYUAN_API_URL and SIYUAN_TOKEN: make test-siyuan")
	}
	h := up(t, dataDir(t), freeAddr(t), "--url", url, "--allow", "rwd")
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			nb := work(t, h.agent(t, era), fmt.Sprintf("e2e-%s-%d", era, time.Now().UnixNano()))
			removeNotebook(t, url, token, nb)
		})
	}
}

// removeNotebook cleans up after TestLive, past our own guard.
func removeNotebook(t *testing.T, url, token, id string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/notebook/removeNotebook", strings.NewReader(`{"notebook":"`+id+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Token "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
