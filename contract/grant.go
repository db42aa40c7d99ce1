package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// GrantVersion is the version of the Grant encoding.
const GrantVersion = 1

// AgentRef names the agent a call is made for.
type AgentRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Switch is a workspace-wide permission that only an owner's or admin's agent
// can hold.
type Switch string

// The workspace switches.
const (
	SwitchWorkspace Switch = "workspace"        // create notebooks, workspace settings
	SwitchTags      Switch = "tags"             // rename and remove tags everywhere
	SwitchAssets    Switch = "assets"           // unreferenced assets and templates
	SwitchSync      Switch = "sync"             // start a sync
	SwitchSystem    Switch = "system"           // notify, configuration
	SwitchExtension Switch = "extension"        // tools of SiYuan plugins
	SwitchNative    Switch = "extension_native" // SiYuan's own tools, as far as the bridge lets them through
	SwitchTimeline  Switch = "timeline_global"  // the workspace timeline
)

// Switches lists every switch, in the order people see them.
func Switches() []Switch {
	return []Switch{SwitchWorkspace, SwitchTags, SwitchAssets, SwitchSync, SwitchSystem, SwitchExtension, SwitchNative, SwitchTimeline}
}

// Grant is what the broker tells a connector about one caller: the effective
// levels after tenant, member and agent were combined. The connector combines
// it with the home policy; a grant can only lose rights on its way.
type Grant struct {
	V             int              `json:"v"`
	Tenant        string           `json:"tenant"`
	Instance      string           `json:"instance"`
	Member        string           `json:"member"`
	Agent         AgentRef         `json:"agent"`
	Levels        map[string]Level `json:"levels"`  // by notebook id
	Default       Level            `json:"default"` // for a notebook not in Levels
	Switches      []Switch         `json:"switches"`
	PolicyVersion int64            `json:"policy_version"`
	Exp           int64            `json:"exp"` // unix seconds
}

// Level is the level the grant gives on a notebook.
func (g *Grant) Level(notebook string) Level {
	if l, ok := g.Levels[notebook]; ok {
		return l
	}
	return g.Default
}

// Has reports whether the grant holds a workspace switch.
func (g *Grant) Has(s Switch) bool { return slices.Contains(g.Switches, s) }

// Expired reports whether the grant may no longer be used at now.
func (g *Grant) Expired(now time.Time) bool { return now.Unix() >= g.Exp }

// Canonical is the one encoding of a grant: JSON with sorted map keys and
// sorted, unique switches. Equal grants have equal bytes.
func (g *Grant) Canonical() ([]byte, error) {
	c := *g
	c.Switches = slices.Compact(slices.Sorted(slices.Values(g.Switches)))
	if c.Switches == nil {
		c.Switches = []Switch{}
	}
	if c.Levels == nil {
		c.Levels = map[string]Level{}
	}
	b, err := json.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("encode grant: %w", err)
	}
	return b, nil
}

// Digest is the lower-case hex SHA-256 of the canonical bytes.
func (g *Grant) Digest() (string, error) {
	b, err := g.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// PolicyEffect is what a connector reports about its home policy: enough for
// the broker to decide and explain truthfully, nothing that it could change.
type PolicyEffect struct {
	MaxLevel  Level            `json:"max_level"`           // cap for notebooks not listed
	Notebooks map[string]Level `json:"notebooks,omitempty"` // caps by notebook id
	Vetoed    []string         `json:"vetoed,omitempty"`    // "tool" or "tool.action", sorted
	Digest    string           `json:"digest"`              // changes whenever the policy file's meaning does
	Tools     []HomeTool       `json:"tools,omitempty"`     // of plugins and of SiYuan itself, as far as the policy lets them through
}

// Bounds of what a home tells of the tools of its SiYuan.
const (
	MaxHomeTools   = 40
	HomeToolName   = 100 // bytes
	HomeToolPhrase = 100 // characters
)

// HomeTool is a tool that SiYuan's own MCP endpoint offers. Name and summary are
// somebody else's words.
type HomeTool struct {
	Name     string `json:"name"`
	Summary  string `json:"summary,omitempty"` // one line
	Native   bool   `json:"native,omitempty"`  // of SiYuan itself, not of a plugin
	ReadOnly bool   `json:"read_only,omitempty"`
}

// CleanHomeTools makes a list of tools fit to be kept and shown, whoever sent it: bounded,
// each name once and of a form that cannot pass for an action of ours.
func CleanHomeTools(list []HomeTool) []HomeTool {
	var kept []HomeTool
	seen := map[string]bool{}
	for _, t := range list {
		if len(kept) == MaxHomeTools {
			break
		}
		if !homeToolName.MatchString(t.Name) || seen[strings.ToLower(t.Name)] || slices.Contains(reservedTools, strings.ToLower(t.Name)) {
			continue
		}
		seen[strings.ToLower(t.Name)] = true
		t.Summary = PlainText(t.Summary, HomeToolPhrase)
		kept = append(kept, t)
	}
	return kept
}

var (
	homeToolName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)
	reservedTools = []string{"list", "ls", "help", "validate_package", "diagnose_plugin_mcp", "plugin_read", "plugin_call", "native_read", "native_call"}
)

// Cap is the highest level the home allows on a notebook.
func (p *PolicyEffect) Cap(notebook string) Level {
	if l, ok := p.Notebooks[notebook]; ok {
		return l
	}
	return p.MaxLevel
}

// Vetoes reports whether the home refuses an action altogether.
func (p *PolicyEffect) Vetoes(tool, action string) bool {
	return slices.Contains(p.Vetoed, tool) || slices.Contains(p.Vetoed, tool+"."+action)
}
