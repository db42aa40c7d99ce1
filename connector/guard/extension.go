package guard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// The tools of SiYuan's own MCP endpoint: those of plugins, and a few of SiYuan
// itself. None of them knows notebooks, so they are called only where nothing is
// hidden from the caller, and everything they say is somebody else's word.

const (
	// MinMCP is the first SiYuan with such an endpoint.
	MinMCP = "3.7.0"

	discoverTimeout = 5 * time.Second
	extensionsFresh = time.Minute // then a list is asked for again when it is needed
	maxSchema       = 16 << 10    // bytes; a larger one is left out
	maxToolText     = 2000        // characters of a title or description
	ownTools        = "plugin__siyuan_plugins_mcp_sisyphus__"
)

// nativeReads are the tools of SiYuan itself that may be called, with those of
// their actions that only read. nativeOutside reach into the internet from the
// home; each of them only where the home policy names it.
var (
	nativeReads = map[string][]string{
		"search": {"semantic", "fulltext"}, "ref": {"backlinks", "forwardlinks"}, "outline": {"get"}, "history": {"list", "search", "get"},
		"repo": {"list", "diff", "search", "file_get", "file_open"}, "image": {"list", "analyze"}, "inbox": {"list", "get"},
		"web_fetch": nil, "web_search": nil,
	}
	nativeOutside = []string{"http_request", "web_fetch", "web_search"}
)

// Extensions are the tools as SiYuan listed them last.
type Extensions struct {
	Version    string
	Supported  bool // SiYuan is new enough
	Connected  bool // the last look succeeded
	Refreshed  time.Time
	Discovered int // what SiYuan listed
	Tools      []Extension
}

// Extension is one of them. Name, title, description and schema are the plugin's
// own words, bounded.
type Extension struct {
	Name, Title, Description string
	Schema                   json.RawMessage // an object schema; nil where it was of no use
	Native                   bool
	ReadOnly                 bool     // it says so itself, or is one of SiYuan's reads
	Actions                  []string // of its own, that may be called; nil: no such limit
}

// bridge is what a guard remembers of the endpoint.
type bridge struct {
	looking sync.Mutex // one look at a time
	mu      sync.Mutex
	seen    Extensions
	tried   time.Time
}

// HomeTools are the tools as a home tells them to its broker, as last seen.
func (g *Guard) HomeTools() []contract.HomeTool {
	g.bridge.mu.Lock()
	defer g.bridge.mu.Unlock()
	var all []contract.HomeTool
	for _, t := range g.exposed(g.bridge.seen.Tools) {
		summary := t.Description
		if summary == "" {
			summary = t.Title
		}
		all = append(all, contract.HomeTool{Name: t.Name, Summary: summary, Native: t.Native, ReadOnly: t.ReadOnly})
	}
	return contract.CleanHomeTools(all)
}

// exposed leaves out what the home policy does not name.
func (g *Guard) exposed(all []Extension) []Extension {
	return slices.DeleteFunc(slices.Clone(all), func(t Extension) bool {
		return t.Native && slices.Contains(nativeOutside, t.Name) && (g.opt.Outside == nil || !g.opt.Outside(t.Name))
	})
}

// Discover asks SiYuan for its tools. A look that fails leaves the list as it was: calls find out by
// themselves what is gone.
func (g *Guard) Discover(ctx context.Context) error {
	g.bridge.looking.Lock()
	defer g.bridge.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	before := g.HomeTools()
	now, err := g.listExtensions(ctx)
	g.bridge.mu.Lock()
	g.bridge.tried = g.opt.Now()
	if err != nil {
		g.bridge.seen.Connected = false
	} else {
		g.bridge.seen = now
	}
	g.bridge.mu.Unlock()
	if !slices.Equal(before, g.HomeTools()) && g.opt.ToolsChanged != nil {
		g.opt.ToolsChanged()
	}
	return err
}

func (g *Guard) listExtensions(ctx context.Context) (now Extensions, err error) {
	info, err := g.r.WorkspaceInfo(ctx)
	if err != nil {
		return now, err
	}
	now.Version = info.Version
	if now.Supported = atLeast(info.Version, MinMCP); !now.Supported {
		now.Refreshed = g.opt.Now()
		return now, nil
	}
	all, err := g.r.MCPTools(ctx)
	if e, ok := errors.AsType[*siyuan.Error](err); ok && e.Status == http.StatusNotFound {
		now.Supported = false
		return now, nil
	}
	if err != nil {
		return now, err
	}
	mask, err := g.secretMask(ctx)
	if err != nil {
		return now, err
	}
	now.Connected, now.Refreshed, now.Discovered = true, g.opt.Now(), len(all)
	for _, t := range all {
		if e, ok := extensionOf(t); ok {
			now.Tools = append(now.Tools, mask.extension(e))
		}
	}
	slices.SortFunc(now.Tools, func(a, b Extension) int { return strings.Compare(a.Name, b.Name) })
	kept := contract.CleanHomeTools(homeTools(now.Tools)) // names that are bad, double or too many
	now.Tools = slices.DeleteFunc(now.Tools, func(t Extension) bool {
		return !slices.ContainsFunc(kept, func(h contract.HomeTool) bool { return h.Name == t.Name })
	})
	return now, nil
}

func homeTools(all []Extension) []contract.HomeTool {
	list := make([]contract.HomeTool, len(all))
	for i, t := range all {
		list[i] = contract.HomeTool{Name: t.Name}
	}
	return list
}

// extensionOf bounds a tool and says whether it is one that may be called at all.
func extensionOf(t siyuan.MCPTool) (Extension, bool) {
	e := Extension{
		Name: t.Name, Title: contract.PlainText(t.Title, contract.PreviewRunes), Description: contract.PlainText(t.Description, maxToolText),
		Native: t.Source == "" || t.Source == "native", ReadOnly: t.ReadOnly || t.Annotations.ReadOnly,
	}
	switch {
	case t.Source != "" && t.Source != "native" && t.Source != "plugin", strings.HasPrefix(strings.ToLower(t.Name), ownTools):
		return e, false
	case e.Native:
		actions, reads := nativeReads[t.Name]
		if !reads && t.Name != "http_request" {
			return e, false
		}
		e.ReadOnly, e.Actions = reads, actions
	}
	var form struct {
		Type string `json:"type"`
	}
	if len(t.InputSchema) <= maxSchema && json.Unmarshal(t.InputSchema, &form) == nil && form.Type == "object" {
		e.Schema = t.InputSchema
	}
	return e, true
}

// atLeast compares versions such as 3.7.3, v3.10.1 and 3.7.0-dev1 by their first
// three numbers.
func atLeast(version, least string) bool {
	parts := func(v string) (n [3]int) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
		for i, p := range strings.SplitN(v, ".", 3) {
			n[i], _ = strconv.Atoi(p) // what is no number counts as 0
		}
		return n
	}
	have, need := parts(version), parts(least)
	return slices.Compare(have[:], need[:]) >= 0
}

// Extensions are the tools that the caller may see. It needs the extension switch;
// SiYuan's own need theirs too. refresh asks SiYuan anew.
func (s *Session) Extensions(ctx context.Context, refresh bool) (Extensions, error) {
	if err := s.holds(contract.SwitchExtension); err != nil {
		return Extensions{}, err
	}
	return s.extensions(ctx, refresh)
}

func (s *Session) extensions(ctx context.Context, refresh bool) (Extensions, error) {
	b := &s.g.bridge
	b.mu.Lock()
	stale := refresh || b.tried.IsZero() || s.g.opt.Now().Sub(b.tried) > extensionsFresh || s.g.opt.Now().Before(b.tried)
	b.mu.Unlock()
	if stale {
		if err := s.g.Discover(ctx); err != nil {
			return Extensions{}, err
		}
	}
	b.mu.Lock()
	seen := b.seen
	b.mu.Unlock()
	seen.Tools = slices.DeleteFunc(s.g.exposed(seen.Tools), func(t Extension) bool { return t.Native && !s.grant.Has(contract.SwitchNative) })
	return seen, nil
}

// ExtensionUse is a call of a tool as the caller means it.
type ExtensionUse struct {
	Tool      string
	Native    bool
	ReadOnly  bool
	Arguments json.RawMessage // an object
}

// Extension proves that a caller may use a tool like this. It needs the switch,
// that nothing is hidden from the caller, and for a plugin's tool that does not say
// it only reads the level rwd in every notebook: it may do anything anywhere.
//
// Errors: unsupported while anything is hidden, permission_denied, not_found, and
// state_changed for a tool that is not what the caller takes it for any more.
func (s *Session) Extension(ctx context.Context, use ExtensionUse) (Extension, error) {
	need := contract.SwitchExtension
	if use.Native {
		need = contract.SwitchNative
	}
	if err := s.holds(need); err != nil {
		return Extension{}, err
	}
	if !s.whole() {
		return Extension{}, contract.Fail(contract.Unsupported, "Plugins see every notebook, so their tools are called only for those who may read all of them.").
			WithHint("Ask a tenant owner for the level r on every notebook.")
	}
	if !use.ReadOnly && !use.Native && !s.everywhere(contract.ReadWriteDelete) {
		return Extension{}, contract.Fail(contract.PermissionDenied, "%s may change any note, so it needs the level rwd in every notebook.", use.Tool).
			WithHint("Levels are raised by people only: a tenant owner or admin, and the owner of the home in the connector's policy file.")
	}
	now, err := s.extensions(ctx, false)
	if err != nil {
		return Extension{}, err
	}
	i := slices.IndexFunc(now.Tools, func(t Extension) bool { return t.Name == use.Tool && t.Native == use.Native })
	switch {
	case !now.Supported:
		return Extension{}, contract.Fail(contract.UnsupportedByKernel, "SiYuan %s has no tools of plugins; %s is the first that has.", now.Version, MinMCP)
	case i < 0 && use.Native:
		return Extension{}, contract.Fail(contract.Unsupported, "%s is not one of SiYuan's own tools that may be called here.", contract.PlainText(use.Tool, contract.PreviewRunes)).
			WithHint("extension.list names those that may. Tools that reach into the internet are named by the home owner, in the connector's policy file.")
	case i < 0:
		return Extension{}, contract.Fail(contract.NotFound, "No plugin offers the tool %s now.", contract.PlainText(use.Tool, contract.PreviewRunes)).
			WithHint("extension.list with refresh tells what there is.")
	}
	t := now.Tools[i]
	if use.ReadOnly && !t.ReadOnly {
		return t, contract.Fail(contract.StateChanged, "%s does not say any more that it only reads; it was not called.", t.Name).WithHint("List the tools again.")
	}
	return t, t.takes(use.Arguments)
}

// everywhere reports whether the grant has a level in every notebook, decided by
// the grant alone.
func (s *Session) everywhere(need contract.Level) bool {
	if !s.grant.Default.Allows(need) {
		return false
	}
	for _, l := range s.grant.Levels {
		if !l.Allows(need) {
			return false
		}
	}
	return true
}

// takes checks the arguments of SiYuan's own tools for an action that only reads.
func (t Extension) takes(arguments json.RawMessage) error {
	if t.Actions == nil {
		return nil
	}
	var in map[string]json.RawMessage
	var action string
	err := json.Unmarshal(arguments, &in)
	if err == nil {
		err = json.Unmarshal(in["action"], &action)
	}
	for name := range in { // keys that differ only in case could mean the action to SiYuan
		if name != "action" && strings.EqualFold(name, "action") {
			err = errors.Join(err, errors.New("guard: two actions"))
		}
	}
	if err != nil || !slices.Contains(t.Actions, action) {
		return contract.InvalidFields(contract.Field{Path: "arguments.action", Message: "must be one of " + strings.Join(t.Actions, ", ")})
	}
	return nil
}

// Said is what a tool answered.
type Said struct {
	Text   string // of all its text parts
	Other  int    // parts that are no text
	Failed bool   // it says so
	// Withheld: SiYuan's settings could not be read, so nobody knows which secrets
	// of theirs are in the text.
	Withheld bool
}

func said(r siyuan.MCPResult) (s Said) {
	var texts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			texts = append(texts, strings.ToValidUTF8(c.Text, "�"))
		} else {
			s.Other++
		}
	}
	s.Text, s.Failed = strings.Join(texts, "\n"), r.IsError
	return s
}

// ReadExtension calls a tool that says it only reads, once.
func (s *Session) ReadExtension(ctx context.Context, use ExtensionUse) (Said, error) {
	if !use.ReadOnly {
		return Said{}, contract.Internalf(errors.New("guard: a read of a tool that writes"), "call %s", use.Tool)
	}
	if _, err := s.Extension(ctx, use); err != nil {
		return Said{}, err
	}
	r, err := s.g.r.MCPRead(ctx, use.Tool, use.Arguments)
	return s.g.withoutSecrets(ctx, said(r)), err
}

// CallExtension calls a tool, once. Nothing shows whether it did something, so what
// became of a call whose answer never came stays unknown.
func (tx *Tx) CallExtension(ctx context.Context, use ExtensionUse) (out Said, err error) {
	if _, err := tx.s.Extension(ctx, use); err != nil {
		return out, err
	}
	err = tx.step(ctx, Step{Op: "extension.call", Marks: []Mark{{Look: LookNever}}}, func(w *siyuan.Writer) error {
		r, err := w.MCPCall(ctx, use.Tool, use.Arguments)
		out = said(r)
		return err
	})
	return tx.s.g.withoutSecrets(ctx, out), err
}
