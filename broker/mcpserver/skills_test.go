package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"gopkg.in/yaml.v3"

	"siyuan-broker/tenants"
)

// withSkillsOn are an agent's facts in a tenant that has the extension.
func withSkillsOn(f *tenants.Snapshot) *tenants.Snapshot {
	f.Settings.SkillsExtension = true
	return f
}

// asked is the result of one modern request, or its error.
func (r *rig) asked(t *testing.T, raw, method, params string) (result map[string]json.RawMessage, code int64, status int) {
	t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		params += ","
	}
	w := r.send(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`, modernHeader(raw, method, ""))
	var answer struct {
		Result map[string]json.RawMessage
		Error  *jsonrpc.Error
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %d %s", method, w.Code, w.Body)
	}
	if answer.Error != nil {
		code = answer.Error.Code
	}
	return answer.Result, code, w.Code
}

func TestTheSkillsExtensionIsOffUntilATenantSwitchesItOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	raw, _ := r.token(t, tenantA, agent)
	for _, on := range []bool{false, true, false} {
		f := facts(tenantA, agent)
		f.Settings.SkillsExtension = on
		r.store.change(f)
		found, _, _ := r.asked(t, raw, "server/discover", "")
		var caps struct {
			Extensions map[string]map[string]any
			Resources  map[string]any
		}
		if err := json.Unmarshal(found["capabilities"], &caps); err != nil {
			t.Fatal(err)
		}
		if settings, declared := caps.Extensions["io.modelcontextprotocol/skills"]; declared != on || len(settings) > 0 || caps.Resources == nil {
			t.Errorf("on %v: %s", on, found["capabilities"])
		}
		list, code, status := r.asked(t, raw, "skills/list", "")
		if on != (list["skills"] != nil) || !on && (code != jsonrpc.CodeMethodNotFound || status != http.StatusNotFound) {
			t.Errorf("on %v: skills/list %v, %d, %d", on, list, code, status)
		}
		_, code, _ = r.asked(t, raw, "skills/get", `"uri":"skill://browse-read/SKILL.md"`)
		if on != (code == 0) {
			t.Errorf("on %v: skills/get %d", on, code)
		}
		c, _ := r.client(t, "2025-11-25", tenantA, agent, nil)
		if _, declared := c.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/skills"]; declared != on {
			t.Errorf("on %v: initialize declares it: %v", on, declared)
		}
		if listed := resourcesListed(t, c)["skill://browse-read/SKILL.md"] != nil; listed != on {
			t.Errorf("on %v: the file is listed: %v", on, listed)
		}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://browse-read/SKILL.md"}); (err == nil) != on {
			t.Errorf("on %v: reading the file: %v", on, err)
		}
	}
}

// What the extension says of a skill is so: the digest and size of what
// resources/read gives, and the head of the file.
func TestSkillsAreListedAsTheExtensionWantsThem(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.store.change(withSkillsOn(onlyTools("fs", "search")))
	raw, _ := r.token(t, tenantA, agent)
	result, _, _ := r.asked(t, raw, "skills/list", "")
	if string(result["resultType"]) != `"complete"` || string(result["cacheScope"]) != `"private"` || string(result["ttlMs"]) != "30000" || result["nextCursor"] != nil || result["_meta"] == nil {
		t.Errorf("%s", result)
	}
	var skills []json.RawMessage
	if err := json.Unmarshal(result["skills"], &skills); err != nil || len(skills) < 3 {
		t.Fatalf("%s: %v", result["skills"], err)
	}
	c, _ := r.client(t, "", tenantA, agent, nil)
	for _, one := range skills {
		var k struct {
			URI         string
			Frontmatter map[string]string
			Resources   []struct {
				URI, Digest string
				Size        int
			}
		}
		if err := json.Unmarshal(one, &k); err != nil {
			t.Fatal(err)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: k.URI})
		if err != nil {
			t.Fatal(err)
		}
		text := read.Contents[0].Text
		sum := sha256.Sum256([]byte(text))
		if len(k.Resources) != 1 || k.Resources[0].URI != k.URI || k.Resources[0].Digest != "sha256:"+hex.EncodeToString(sum[:]) || k.Resources[0].Size != len(text) {
			t.Errorf("%s: %+v", k.URI, k.Resources)
		}
		head, _, _ := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
		var front map[string]string
		if err := yaml.Unmarshal([]byte(head), &front); err != nil || front["name"] != k.Frontmatter["name"] || front["description"] != k.Frontmatter["description"] || len(front) != len(k.Frontmatter) {
			t.Errorf("%s: the file says %v, the list %v", k.URI, front, k.Frontmatter)
		}
		if k.URI != "skill://"+front["name"]+"/SKILL.md" || strings.Contains(text, "document.") {
			t.Errorf("%s of an agent with fs and search: %s", k.URI, text)
		}
		got, _, _ := r.asked(t, raw, "skills/get", `"uri":"`+k.URI+`"`)
		if string(got["skill"]) != string(one) {
			t.Errorf("skills/get: %s, listed %s", got["skill"], one)
		}
	}
	for _, uri := range []string{"skill://database/SKILL.md", "skill://nonsense/SKILL.md", "siyuan://skills/browse-read", ""} {
		if _, code, _ := r.asked(t, raw, "skills/get", `"uri":"`+uri+`"`); code != jsonrpc.CodeInvalidParams {
			t.Errorf("skills/get %q: %d", uri, code)
		}
	}
}

func TestInstructionsNameWhatTheAgentMayUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, f := range []*tenants.Snapshot{facts(tenantA, agent), onlyTools("search")} {
		r.store.change(f)
		for _, era := range eras {
			c, _ := r.client(t, era, tenantA, agent, nil)
			text := c.InitializeResult().Instructions
			if !strings.Contains(text, "search.fulltext") || strings.Contains(text, "document.lookup") != (f.Agent.Tools == nil) {
				t.Errorf("%s of %v: %s", era, f.Agent.Tools, text)
			}
		}
	}
}
