package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/contract"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/disclosure/guides"
	"siyuan-broker/tenants"
)

// TestA18HelpHasOnlyWhatTheAgentMayUse, in both eras and without the home: the test's home answers no call.
func TestA18HelpHasOnlyWhatTheAgentMayUse(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c, _ := r.client(t, era, tenantA, agent, nil)
			templates, err := c.ListResourceTemplates(t.Context(), nil)
			if err != nil || len(templates.ResourceTemplates) != 5 {
				t.Fatalf("%+v, %v", templates, err)
			}
			read := func(uri string) (string, error) {
				got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err != nil {
					return "", err
				}
				return got.Contents[0].Text, nil
			}
			snap, err := r.cache.Get(t.Context(), tenantA, agent)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range catalogue.Tools() {
				for _, a := range tool.Actions {
					text, err := read(disclosure.HelpURI + tool.Name + "/" + a.Name)
					if (err == nil) != snap.Enabled(a) {
						t.Errorf("%s: enabled %v, read %v", a.ID(), snap.Enabled(a), err)
					}
					if err != nil {
						continue
					}
					want, _ := disclosure.Help(tool, a.Name, snap.Enabled, snap.Strict())
					if b, _ := json.Marshal(want); string(b) != text {
						t.Errorf("%s: %s", a.ID(), text)
					}
				}
			}
			if text, err := read(disclosure.HelpURI + "block"); err != nil || !strings.Contains(text, "get_kramdown(id, blockStart?)") {
				t.Errorf("tool: %s, %v", text, err)
			}
			if text, err := read(disclosure.HelpIndexURI); err != nil || strings.Contains(text, "set_permission") || !strings.Contains(text, "fulltext(query") {
				t.Errorf("index: %s, %v", text, err)
			}
			for _, uri := range []string{"siyuan://help/nonsense", disclosure.HelpURI + "nonsense", disclosure.HelpURI + "block/nonsense", disclosure.HelpURI + "block/update/x", "file:///etc/passwd"} {
				if text, err := read(uri); err == nil {
					t.Errorf("%s: %s", uri, text)
				}
			}
			if n := len(r.home.received()); n != 0 {
				t.Errorf("%d calls went home", n)
			}
		})
	}
}

// resourcesListed are the resources a client is shown, by URI.
func resourcesListed(t testing.TB, c *mcp.ClientSession) map[string]*mcp.Resource {
	t.Helper()
	found := map[string]*mcp.Resource{}
	for r, err := range c.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		found[r.URI] = r
	}
	return found
}

// onlyTools limits an agent to some tools.
func onlyTools(names ...string) *tenants.Snapshot {
	f := facts(tenantA, agent)
	f.Agent.Tools = names
	return f
}

func TestResourcesAreListedAsFarAsTheyCanBeRead(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		c, _ := r.client(t, era, tenantA, agent, nil)
		all := slices.Sorted(maps.Keys(resourcesListed(t, c)))
		for _, want := range []string{
			"siyuan://help/index", "siyuan://help/tool-overview", "siyuan://help/document-path-semantics", "siyuan://help/examples",
			"siyuan://help/ai-layout-guide", "siyuan://help/write-safety", "siyuan://help/changelog", "siyuan://help/user-rules",
			"siyuan://workspace/info", "siyuan://notebooks", "siyuan://recent", "siyuan://skills/index",
			"siyuan://skills/siyuan-mcp-sisyphus", "siyuan://skills/browse-read", "siyuan://skills/create-edit", "siyuan://skills/knowledge-ingest",
			"siyuan://skills/knowledge-governance", "siyuan://skills/search-query", "siyuan://skills/database", "siyuan://skills/tag-flashcard",
			"siyuan://skills/system-safety", "siyuan://skills/markup-guide",
		} {
			if !slices.Contains(all, want) {
				t.Errorf("%s is not listed", want)
			}
		}
		draw := rand.New(rand.NewPCG(5, 6))
		for range 8 {
			r.store.change(randomFacts(draw))
			c, _ := r.client(t, era, tenantA, agent, nil) // which has no list in memory
			now := resourcesListed(t, c)
			for _, uri := range all {
				_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if listed := now[uri] != nil; listed != (err == nil) {
					t.Errorf("%s: listed %v, read %v", uri, listed, err)
				}
			}
		}
	})
}

func TestADocumentIsReadAsACallIsMade(t *testing.T) {
	t.Parallel()
	const doc = "20240102100100-alphadc"
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		c, _ := r.client(t, era, tenantA, agent, nil)
		r.home.will(func(context.Context, relayed) contract.Result {
			return contract.Result{Body: json.RawMessage(`{"id":"` + doc + `","content":"Text."}`)}
		})
		before := r.records.count()
		for uri, args := range map[string]string{
			"siyuan://doc/" + doc:                    `{"blockLimit":200,"id":"` + doc + `","tokenBudget":8000}`,
			"siyuan://doc/" + doc + "?blockStart=50": `{"blockLimit":200,"blockStart":50,"id":"` + doc + `","tokenBudget":8000}`,
		} {
			got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || got.Contents[0].Text != `{"id":"`+doc+`","content":"Text."}` || got.Contents[0].URI != uri || got.Contents[0].MIMEType != "application/json" {
				t.Fatalf("%s: %+v, %v", uri, got, err)
			}
			if era >= modernEra && (got.TTLMs != 0 || got.CacheScope != "private") {
				t.Errorf("notes may be kept: %+v", got.Cacheable)
			}
			sent := r.home.last(t)
			if sent.call.Tool != "document" || sent.call.Action != "get_doc" || string(sent.call.Args) != args || sent.call.Grant == nil || sent.tenant != tenantA.String() || !sent.idempotent {
				t.Errorf("%s: %+v %s", uri, sent.call, sent.call.Args)
			}
		}
		recorded := r.records.since(before)
		if len(recorded) != 2 || recorded[0].Tool != "document" || recorded[0].Action != "get_doc" || recorded[0].Outcome != tenants.OutcomeOK || recorded[0].AgentID != agent {
			t.Errorf("recorded: %+v", recorded)
		}
	})
}

func TestADocumentThatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	const doc = "siyuan://doc/20240102100100-alphadc"
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		c, _ := r.client(t, era, tenantA, agent, nil)
		for name, x := range map[string]struct {
			uri  string
			err  *contract.Error
			code int64
			says string
		}{
			"hidden or missing":  {doc, contract.Fail(contract.NotFound, "There is no such document."), jsonrpc.CodeInvalidParams, ""},
			"offline":            {doc, contract.Fail(contract.ConnectorOffline, "The home of these notes is not connected."), codeUnavailable, "The home of these notes is not connected."},
			"too many calls":     {doc, contract.Fail(contract.RateLimited, "Too many calls.").After(7), codeUnavailable, "Too many calls."},
			"no id":              {"siyuan://doc/nonsense", nil, jsonrpc.CodeInvalidParams, ""},
			"no number":          {doc + "?blockStart=x", nil, jsonrpc.CodeInvalidParams, ""},
			"a number too large": {doc + "?blockStart=99999999", nil, jsonrpc.CodeInvalidParams, ""},
		} {
			r.home.will(func(context.Context, relayed) contract.Result { return contract.Result{Err: x.err} })
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: x.uri})
			var rpc *jsonrpc.Error
			if !errors.As(err, &rpc) || !strings.HasPrefix(rpc.Message, x.says) {
				t.Fatalf("%s: %v", name, err)
			}
			if x.says == "" {
				if rpc.Code != x.code {
					t.Errorf("%s: %+v", name, rpc)
				}
				continue
			}
			var data struct{ Error contract.Error }
			if err := json.Unmarshal(rpc.Data, &data); rpc.Code != x.code || err != nil || data.Error.Type != x.err.Type || data.Error.RetryAfterS != x.err.RetryAfterS {
				t.Errorf("%s: %+v with %s", name, rpc, rpc.Data)
			}
		}
	})
}

func TestSkillsAreWhatTheirDigestsSay(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var c *mcp.ClientSession
	read := func(uri string) string {
		got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		return got.Contents[0].Text
	}
	for _, f := range []*tenants.Snapshot{facts(tenantA, agent), onlyTools("fs", "search")} {
		r.store.change(f)
		c, _ = r.client(t, "", tenantA, agent, nil) // which has nothing in memory
		var index struct {
			Skills []struct{ Name, URI, Digest string }
		}
		if err := json.Unmarshal([]byte(read(guides.SkillIndexURI)), &index); err != nil || len(index.Skills) < 3 {
			t.Fatalf("%+v, %v", index, err)
		}
		for _, k := range index.Skills {
			sum := sha256.Sum256([]byte(read(k.URI)))
			if k.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Errorf("%s: %s", k.Name, k.Digest)
			}
		}
	}
	if text := read("siyuan://skills/siyuan-mcp-sisyphus"); strings.Contains(text, "document.") || strings.Contains(text, "skills/database") || !strings.Contains(text, "fs.read") {
		t.Errorf("of an agent with fs and search: %s", text)
	}
}

func TestCompletionOffersWhatThereIs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c, _ := r.client(t, "", tenantA, agent, nil)
	r.store.change(onlyTools("fs", "search"))
	for name, x := range map[string]struct {
		ref   mcp.CompleteReference
		arg   string
		value string
		known map[string]string
		want  []string
	}{
		"languages":           {mcp.CompleteReference{Type: "ref/prompt", Name: "daily_review"}, "lang", "", nil, []string{"en", "zh"}},
		"one language":        {mcp.CompleteReference{Type: "ref/prompt", Name: "daily_review"}, "lang", "z", nil, []string{"zh"}},
		"tools":               {mcp.CompleteReference{Type: "ref/resource", URI: "siyuan://help/action/{tool}"}, "tool", "", nil, []string{"fs", "search"}},
		"actions":             {mcp.CompleteReference{Type: "ref/resource", URI: "siyuan://help/action/{tool}/{action}"}, "action", "re", map[string]string{"tool": "fs"}, []string{"read", "replace", "reorder"}},
		"actions of no tool":  {mcp.CompleteReference{Type: "ref/resource", URI: "siyuan://help/action/{tool}/{action}"}, "action", "", nil, []string{}},
		"actions it may not":  {mcp.CompleteReference{Type: "ref/resource", URI: "siyuan://help/action/{tool}/{action}"}, "action", "", map[string]string{"tool": "block"}, []string{}},
		"skills":              {mcp.CompleteReference{Type: "ref/resource", URI: "siyuan://skills/{name}"}, "name", "s", nil, []string{"search-query", "siyuan-mcp-sisyphus", "system-safety"}},
		"no ids of documents": {mcp.CompleteReference{Type: "ref/resource", URI: "siyuan://doc/{id}"}, "id", "2", nil, []string{}},
	} {
		got, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &x.ref, Argument: mcp.CompleteParamsArgument{Name: x.arg, Value: x.value}, Context: &mcp.CompleteContext{Arguments: x.known}})
		if err != nil || !slices.Equal(got.Completion.Values, x.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestPromptsAreThereForWhoMayUseThem(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		c, _ := r.client(t, era, tenantA, agent, nil)
		listed := func() (names []string) {
			for p, err := range c.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, p.Name)
			}
			return names
		}
		get := func(name, lang, task string) (string, error) {
			got, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"lang": lang, "task": task}})
			if err != nil {
				return "", err
			}
			return got.Messages[0].Content.(*mcp.TextContent).Text, nil
		}
		for _, want := range []string{"build_database", "daily_review", "health_check", "ingest", "make_flashcards", "tidy_notebook"} {
			if !slices.Contains(listed(), want) {
				t.Errorf("%s is not listed", want)
			}
		}
		if text, err := get("ingest", "zh", "把这段话收进去"); err != nil || !strings.Contains(text, "用户的要求：\n\n把这段话收进去\n") || !strings.Contains(text, "notebook.list") {
			t.Errorf("%s, %v", text, err)
		}
		if _, err := get("ingest", "fr", ""); err == nil || !strings.Contains(err.Error(), "en or zh") {
			t.Errorf("in French: %v", err)
		}
		r.store.change(onlyTools("search", "system"))
		c, _ = r.client(t, era, tenantA, agent, nil) // which has no list in memory
		if got := listed(); !slices.Equal(got, []string{"daily_review", "health_check"}) {
			t.Errorf("with search and system: %v", got)
		}
		text, err := get("daily_review", "", "")
		if err != nil || strings.Contains(text, "block.") || strings.Contains(text, "document.") || !strings.Contains(text, "2. Documents of the day: `search.query_sql") {
			t.Errorf("%s, %v", text, err)
		}
		if _, err := get("ingest", "", ""); err == nil || !strings.Contains(err.Error(), "unknown prompt") {
			t.Errorf("a prompt whose core is off: %v", err)
		}
		if n := len(r.home.received()); n != 0 {
			t.Errorf("%d calls went home", n)
		}
	})
}

func TestOpenSessionsLearnThatResourcesAndPromptsChanged(t *testing.T) {
	t.Parallel()
	forEachEra(t, func(t *testing.T, era string) {
		r := newRig(t, nil)
		resources, prompts := make(chan struct{}, 256), make(chan struct{}, 256)
		c, _ := r.client(t, era, tenantA, agent, &mcp.ClientOptions{
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { resources <- struct{}{} },
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { prompts <- struct{}{} },
		})
		_ = listed(t, c)
		// The client's stream opens a moment after it is connected; what happens
		// before is not told to it.
		deadline := time.Now().Add(30 * time.Second)
		for resourcesTold, promptsTold := false, false; !resourcesTold || !promptsTold; {
			r.store.change(onlyTools("search"))
			select {
			case <-resources:
				resourcesTold = true
			case <-prompts:
				promptsTold = true
			case <-time.After(250 * time.Millisecond):
				r.store.change(facts(tenantA, agent))
			}
			if time.Now().After(deadline) {
				t.Fatalf("told of resources: %v, of prompts: %v", resourcesTold, promptsTold)
			}
		}
	})
}
