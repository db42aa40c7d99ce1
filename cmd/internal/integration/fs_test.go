package integration

import (
	"strings"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// TestAgentsWorkWithNotesAsFiles takes an agent of each protocol era through every
// action, from its call to the kernel and back. Moving and removing need a
// person's consent by default; here the tenant allows them.
func TestAgentsWorkWithNotesAsFiles(t *testing.T) {
	t.Parallel()
	x, sessions := writer(t)
	x.change(func(tx tenants.Tx) error {
		must(t, tx.SetConsent(t.Context(), x.instance, tenants.Consent{Tool: "fs", Action: "mv", Mode: tenants.ConsentAllow}))
		return tx.SetConsent(t.Context(), x.instance, tenants.Consent{Tool: "fs", Action: "rm", Mode: tenants.ConsentAllow})
	})
	into[madeNotebook](t, sessions[0], "notebook", map[string]any{"action": "create", "name": "Work 工作"})
	for i, s := range sessions {
		fs := func(action string, args map[string]any) map[string]any {
			t.Helper()
			args["action"] = action
			return into[map[string]any](t, s, "fs", args)
		}
		root := "/Work 工作/" + eras[i]
		eventually(t, "the allowed actions", func() bool {
			return call(t.Context(), s, "fs", map[string]any{"action": "mv", "from": "/x/y", "to": "/x/z"}).code == contract.NotFound
		})
		fs("write", map[string]any{"path": root, "markdown": "# Plan\n\nShips a **small** tool."})
		fs("write", map[string]any{"path": root + "/日记 📓", "markdown": "needle 针"})
		fs("write", map[string]any{"path": root + "/B", "markdown": "b"})
		fs("replace", map[string]any{"path": root, "edit": map[string]any{"old": "small", "new": "large"}})
		if got := into[tools.FSReadOut](t, s, "fs", map[string]any{"action": "read", "path": root}); got.Content != "# Plan\n\nShips a **large** tool." {
			t.Errorf("%s: %q", eras[i], got.Content)
		}
		if got := into[tools.FSSearchOut](t, s, "fs", map[string]any{"action": "search", "path": root, "query": "NEEDLE"}); len(got.Data) != 1 || got.Data[0].Path != root+"/日记 📓" {
			t.Errorf("%s: found %+v", eras[i], got.Data)
		}
		fs("reorder", map[string]any{"path": root, "orderedPaths": []string{root + "/B", root + "/日记 📓"}})
		fs("mv", map[string]any{"from": root + "/B", "to": root + "/C"})
		if got := into[tools.FSLsOut](t, s, "fs", map[string]any{"action": "ls", "path": root}); len(got.Items) != 2 || got.Items[0].Name != "C" {
			t.Errorf("%s: %+v", eras[i], got.Items)
		}
		fs("write", map[string]any{"path": root + "/C", "markdown": "over", "overwrite": true})
		if got := into[tools.FSTreeOut](t, s, "fs", map[string]any{"action": "tree", "path": root}); len(got.Tree) != 2 {
			t.Errorf("%s: %+v", eras[i], got.Tree)
		}
		fs("rm", map[string]any{"path": root})
		if a := call(t.Context(), s, "fs", map[string]any{"action": "read", "path": root}); a.code != contract.NotFound {
			t.Errorf("%s: after rm %+v", eras[i], a)
		}
	}
}

// TestVirtualFilesAreTheAgentsOwnAndNeverGoHome: they are there while the home is
// away, shared by a member's agents in both eras, and listed beside the notebooks.
func TestVirtualFilesAreTheAgentsOwnAndNeverGoHome(t *testing.T) {
	t.Parallel()
	x := newWorld(t).tenant("Ada", tenants.NewID())
	x.allow()
	h := x.home(nil)
	_, one := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	_, two := x.agentToken(tenants.NewID(), contract.Read)
	writer, reader := x.w.agent(one, eras[0]), x.w.agent(two, eras[1])
	x.change(func(tx tenants.Tx) error { return tx.SetRules(t.Context(), x.instance, x.owner, "Answer in Dutch.") })
	list := into[tools.FSLsOut](t, reader, "fs", map[string]any{"action": "ls", "path": "/"})
	virtual := 0
	for _, item := range list.Items {
		if item.Virtual {
			virtual++
		}
	}
	if virtual != 2 || list.Total != len(list.Items) {
		t.Errorf("%+v", list)
	}
	must(t, h.stop())
	eventually(t, "the home to be away", func() bool {
		return call(t.Context(), writer, "fs", map[string]any{"action": "ls", "path": "/"}).code == contract.ConnectorOffline
	})
	wrote := call(t.Context(), writer, "fs", map[string]any{"action": "write", "path": "/AGENTS.md", "markdown": "likes 茶"})
	if wrote.code != "" || !strings.Contains(wrote.body, `"requestId"`) {
		t.Errorf("write: %+v", wrote)
	}
	if got := into[tools.FSReadOut](t, reader, "fs", map[string]any{"action": "read", "path": "/AGENTS.md"}); got.Content != "likes 茶" {
		t.Errorf("another agent of the member reads %q", got.Content)
	}
	if got := into[tools.FSReadOut](t, reader, "fs", map[string]any{"action": "read", "path": "/USER_RULES.md"}); got.Content != "Answer in Dutch." {
		t.Errorf("rules %q", got.Content)
	}
	if a := call(t.Context(), writer, "fs", map[string]any{"action": "write", "path": "/USER_RULES.md", "markdown": "x"}); a.code != contract.PermissionDenied {
		t.Errorf("writing rules: %+v", a)
	}
	if a := call(t.Context(), reader, "fs", map[string]any{"action": "write", "path": "/AGENTS.md", "markdown": "x"}); a.code == "" {
		t.Errorf("a reading agent writes: %+v", a)
	}
}
