package mcpserver

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/admission"
	"siyuan-broker/contract/disclosure"
	"siyuan-broker/contract/disclosure/guides"
)

// profile is what principals who may use the same actions are shown, and it is
// shared by all of them. It holds nothing of a tenant but the names and summaries
// of plugins' tools, for which its key stands too.
type profile struct {
	tools     []*mcp.Tool
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
	prompts   []*mcp.Prompt
	guides    *guides.Set

	instructions string
}

// profileOf is the profile of a snapshot.
func (s *Server) profileOf(snap *admission.Snapshot) *profile {
	key := snap.Profile()
	if p, ok := s.profiles.Get(key); ok {
		return p
	}
	p := &profile{guides: guides.New().For(snap.Enabled, snap.Strict()), instructions: disclosure.Instructions(s.cfg.Preface, snap.Enabled)}
	for _, d := range disclosure.List(snap.Catalogue(), snap.Enabled, snap.Strict()) {
		p.tools = append(p.tools, &mcp.Tool{
			Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: d.ReadOnly, DestructiveHint: &d.Destructive},
		})
	}
	p.resources, p.templates = resourcesOf(snap, p.guides), templatesOf(snap, p.guides)
	for _, x := range p.guides.Prompts {
		p.prompts = append(p.prompts, promptOf(x))
	}
	s.profiles.Add(key, p)
	return p
}

// shown is what an SDK server shows now, by name or URI.
type shown struct {
	tools     map[string]*mcp.Tool
	resources map[string]*mcp.Resource
	templates map[string]*mcp.ResourceTemplate
	prompts   map[string]*mcp.Prompt
}

// showProfile makes a server show a profile. The SDK tells open sessions which of the
// lists changed.
func (s *Server) showProfile(srv *mcp.Server, now *shown, p *profile) {
	now.tools = become(now.tools, p.tools, func(t *mcp.Tool) string { return t.Name }, sameTool,
		func(t *mcp.Tool) { srv.AddTool(t, s.handleCall) }, srv.RemoveTools)
	now.resources = become(now.resources, p.resources, func(r *mcp.Resource) string { return r.URI }, same,
		func(r *mcp.Resource) { srv.AddResource(r, s.readResource) }, srv.RemoveResources)
	now.templates = become(now.templates, p.templates, func(t *mcp.ResourceTemplate) string { return t.URITemplate }, same,
		func(t *mcp.ResourceTemplate) { srv.AddResourceTemplate(t, s.readResource) }, srv.RemoveResourceTemplates)
	now.prompts = become(now.prompts, p.prompts, func(x *mcp.Prompt) string { return x.Name }, same,
		func(x *mcp.Prompt) { srv.AddPrompt(x, s.getPrompt) }, srv.RemovePrompts)
}

// become adds what is new or different and removes what is gone.
func become[T any](have map[string]*T, want []*T, name func(*T) string, same func(a, b *T) bool, add func(*T), remove func(...string)) map[string]*T {
	next := map[string]*T{}
	for _, x := range want {
		next[name(x)] = x
		if old, ok := have[name(x)]; !ok || !same(old, x) {
			add(x)
		}
	}
	var gone []string
	for name := range have {
		if next[name] == nil {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		remove(gone...)
	}
	return next
}

func same[T any](a, b *T) bool { return a == b || reflect.DeepEqual(a, b) }

func sameTool(a, b *mcp.Tool) bool {
	return a == b || a.Title == b.Title && a.Description == b.Description && bytes.Equal(schemaOf(a), schemaOf(b)) &&
		a.Annotations.ReadOnlyHint == b.Annotations.ReadOnlyHint && *a.Annotations.DestructiveHint == *b.Annotations.DestructiveHint
}

func schemaOf(t *mcp.Tool) []byte {
	raw, _ := t.InputSchema.(json.RawMessage) // profileOf sets nothing else
	return raw
}
