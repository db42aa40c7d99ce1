package fs_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/fs"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// The large workspace: in one notebook 500 documents with 9 below each, so 5,000,
// and two more, the first of 200 blocks.
const (
	large    = "20240101090000-largenb"
	parents  = 500
	children = 9
)

// syNode is a block as SiYuan stores it.
type syNode struct {
	ID         string            `json:"ID,omitempty"`
	Spec       string            `json:"Spec,omitempty"`
	Type       string            `json:"Type"`
	Data       string            `json:"Data,omitempty"`
	Properties map[string]string `json:"Properties,omitempty"`
	Children   []syNode          `json:"Children,omitempty"`
}

func syDoc(id, title string, paragraphs ...string) syNode {
	doc := syNode{ID: id, Spec: "1", Type: "NodeDocument", Properties: map[string]string{"id": id, "title": title, "type": "doc", "updated": "20240101090000"}}
	for i, text := range paragraphs {
		p := fmt.Sprintf("%s-p%02d%s", id[:14], i%100, id[18:])
		if i >= 100 {
			p = fmt.Sprintf("%s-q%02d%s", id[:14], i%100, id[18:])
		}
		doc.Children = append(doc.Children, syNode{ID: p, Type: "NodeParagraph", Properties: map[string]string{"id": p, "updated": "20240101090000"},
			Children: []syNode{{Type: "NodeText", Data: text}}})
	}
	return doc
}

// largeDir writes the workspace to disk: a kernel reads 5,000 files much faster
// than it creates them.
func largeDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	box := filepath.Join(dir, "data", large)
	put := func(path string, doc syNode) {
		raw, err := json.Marshal(doc)
		check(t, err)
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(box, path)), 0o755))
		check(t, os.WriteFile(filepath.Join(box, path), raw, 0o600))
	}
	check(t, os.MkdirAll(filepath.Join(box, ".siyuan"), 0o755))
	check(t, os.WriteFile(filepath.Join(box, ".siyuan", "conf.json"), []byte(`{"name":"Large","closed":false,"sortMode":15}`), 0o600))
	for i := range parents {
		parent := fmt.Sprintf("20240201%06d-%03dpare", i, i)
		put(parent+".sy", syDoc(parent, fmt.Sprintf("Parent %03d", i), "A common word."))
		for j := range children {
			child := fmt.Sprintf("20240202%06d-%03dch%02d", i*children+j, i, j)
			put(parent+"/"+child+".sy", syDoc(child, fmt.Sprintf("Child %d", j), fmt.Sprintf("A common word, number n%dn.", i*children+j)))
		}
	}
	blocks := make([]string, 200)
	for i := range blocks {
		blocks[i] = fmt.Sprintf("Paragraph %d of the long document.", i)
	}
	put("20240203000000-longdoc.sy", syDoc("20240203000000-longdoc", "Long", blocks...))
	put("20240203000001-emptydo.sy", syDoc("20240203000001-emptydo", "Empty", "nothing"))
	return dir
}

// newLarge is a desk in front of the large workspace.
func newLarge(t testing.TB) *desk {
	t.Helper()
	k, err := samplekernel.New(samplekernel.Options{Dir: largeDir(t), IndexLag: -1, DeleteLag: -1, MountLag: -1})
	check(t, err)
	t.Cleanup(func() { check(t, k.Close()) })
	server := httptest.NewServer(k.Handler())
	t.Cleanup(server.Close)
	client, err := siyuan.New(siyuan.Config{BaseURL: server.URL, Token: siyuan.NewToken(k.Token()), Retry: siyuan.Retry{Attempts: 1}})
	check(t, err)
	t.Cleanup(client.Close)
	g := guard.New(client.Reader(), client.Writer(), guard.Options{})
	t.Cleanup(func() { check(t, g.Close()) })
	d := &desk{grant: &contract.Grant{V: contract.GrantVersion, Exp: 1 << 40, Default: contract.ReadWriteDelete}}
	d.exec, err = tools.New(tools.Config{Guard: g, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome()}, fs.Bindings()...)
	check(t, err)
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// costs are calls on the large workspace, in an order in which all succeed, with
// the most kernel calls each may take.
var costs = []struct {
	action, args string
	most         int
}{
	{"ls", `{"path":"/"}`, 1},
	{"ls", `{"path":"/Large"}`, 2},
	{"ls", `{"path":"/Large/Parent 007"}`, 4},
	{"tree", `{"path":"/","maxDepth":20}`, 2},
	{"tree", `{"path":"/Large"}`, 2},
	{"tree", `{"path":"/Large/Parent 007"}`, 4},
	{"read", `{"path":"/Large/Long","blockLimit":200,"tokenBudget":32000}`, 4},
	{"search", `{"path":"/","query":"n4321n"}`, 6},
	{"search", `{"path":"/","query":"common word"}`, 6},
	{"search", `{"path":"/Large","query":"^A .* n\\d+n\\.$","regex":true,"page":4}`, 15},
	{"search", `{"path":"/Large/Long","query":"199"}`, 8},
	{"search", `{"path":"/","query":"nowhere at all"}`, 3},
	{"write", `{"path":"/Large/Parent 007/New","markdown":"x"}`, 14},
	{"write", `{"path":"/Large/Long","markdown":"all new","overwrite":true}`, 22},
	{"replace", `{"path":"/Large/Parent 008/Child 1","old":"common","new":"rare"}`, 22},
	{"reorder", `{"path":"/Large/Parent 009","orderedPaths":["/Large/Parent 009/Child 8","/Large/Parent 009/Child 0","/Large/Parent 009/Child 1","/Large/Parent 009/Child 2","/Large/Parent 009/Child 3","/Large/Parent 009/Child 4","/Large/Parent 009/Child 5","/Large/Parent 009/Child 6","/Large/Parent 009/Child 7"]}`, 16},
	{"mv", `{"from":"/Large/Parent 010/Child 1","to":"/Large/Parent 011/Moved"}`, 28},
	{"rm", `{"path":"/Large/Parent 012"}`, 14},
}

func TestALargeWorkspaceIsServedWithFewKernelCallsAndBoundedAnswers(t *testing.T) {
	t.Parallel()
	d := newLarge(t)
	answersAreBounded(t, d)
	for _, c := range costs {
		r := d.call(c.action, "%q", json.RawMessage(c.args))
		if r.Err != nil {
			t.Errorf("%s %s: %v", c.action, c.args, r.Err)
		}
		if r.Stats.KernelCalls > c.most {
			t.Errorf("%s %.80s took %d kernel calls, want at most %d", c.action, c.args, r.Stats.KernelCalls, c.most)
		}
	}
}

// answersAreBounded and say so, and what is not shown is counted.
func answersAreBounded(t *testing.T, d *desk) {
	t.Helper()
	tree := ok[catalogue.FSTreeOut](t, d, "tree", `{"path":"/Large","maxDepth":20}`)
	shown, counted := 0, 0
	for _, n := range tree.Tree {
		shown += 1 + len(n.Children)
		counted += n.Count
	}
	if raw, err := json.Marshal(tree); err != nil || len(raw) > 48_000 || !tree.Truncated || tree.Hint == "" {
		t.Errorf("%d bytes, truncated %v, hint %q (%v)", len(raw), tree.Truncated, tree.Hint, err)
	}
	if len(tree.Tree) < 200 || shown+counted < len(tree.Tree)*10-10 {
		t.Errorf("%d at the top, %d shown, %d counted: something is neither shown nor counted", len(tree.Tree), shown, counted)
	}
	if out := ok[catalogue.FSLsOut](t, d, "ls", `{"path":"/Large"}`); len(out.Items) != 200 || out.Total != parents+2 || !out.HasNextPage {
		t.Errorf("ls: %d of %d", len(out.Items), out.Total)
	}
	found := ok[catalogue.FSSearchOut](t, d, "search", `{"path":"/","query":"common word"}`)
	if len(found.Data) != 50 || !found.HasNextPage || !found.Truncated || found.Hint == "" {
		t.Errorf("search: %d lines, %+v", len(found.Data), found.PageOut)
	}
}

func BenchmarkLargeWorkspace(b *testing.B) {
	d := newLarge(b)
	for _, c := range costs[:12] {
		b.Run(c.action+" "+c.args, func(b *testing.B) {
			for b.Loop() {
				if r := d.call(c.action, "%q", json.RawMessage(c.args)); r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}
