package tools

import (
	"encoding/json"

	"siyuan-broker/contract"
)

// SystemIn is the input of actions that need none.
type SystemIn struct{}

// SystemWorkspaceInfoOut is the output of system.workspace_info.
type SystemWorkspaceInfoOut struct {
	WorkspaceDir string `json:"workspaceDir"` // on the home machine
	SiYuanVer    string `json:"siyuanVer"`
}

// SystemNetworkOut is the output of system.network: how SiYuan reaches the
// internet. Credentials of the proxy are masked.
type SystemNetworkOut struct {
	Proxy SystemProxy `json:"proxy"`
}

// SystemProxy is a proxy; all fields are empty where there is none.
type SystemProxy struct {
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	Port   string `json:"port"`
}

// SystemConfIn is the input of system.conf.
type SystemConfIn struct {
	Mode     string `json:"mode,omitempty" enum:"summary|get" doc:"summary (default), or get for one value."`
	KeyPath  string `json:"keyPath,omitempty" doc:"As editor.fontSize or a.b[0]; for get." minlen:"1" maxlen:"512"`
	MaxDepth *int   `json:"maxDepth,omitempty" min:"0" max:"5" doc:"Levels opened; default 1."`
	MaxItems *int   `json:"maxItems,omitempty" min:"1" max:"100" doc:"Entries per level; default 12."`
}

// SystemConfOut is the output of system.conf. Secrets are [REDACTED].
type SystemConfOut struct {
	Mode                  string    `json:"mode"`
	KeyPath               string    `json:"keyPath,omitempty"`
	TopLevelKeys          []string  `json:"topLevelKeys,omitempty"`
	TotalTopLevelKeys     int       `json:"totalTopLevelKeys,omitempty"`
	TruncatedTopLevelKeys bool      `json:"truncatedTopLevelKeys,omitempty"`
	Summary               *ConfNode `json:"summary,omitempty"`
	Value                 *ConfNode `json:"value,omitempty"` // get: the value, opened as far as maxDepth and maxItems allow
	Hint                  string    `json:"hint,omitempty"`
}

// ConfNode is a setting: a scalar with its value, or an object or array with as
// many entries as were asked for.
type ConfNode struct {
	Type      string          `json:"type"` // object, array, string, number, boolean, null
	Value     json.RawMessage `json:"value,omitempty"`
	Count     int             `json:"count,omitempty"` // entries of an object or array
	Entries   []ConfEntry     `json:"entries,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // not all entries are here, or part of a long text
}

// ConfEntry is a member of an object, by Key, or of an array.
type ConfEntry struct {
	Key string `json:"key,omitempty"`
	ConfNode
}

// SystemNotifyIn is the input of system.notify.
type SystemNotifyIn struct {
	Msg     string `json:"msg" doc:"Text shown in SiYuan." minlen:"1" maxlen:"2000"`
	Level   string `json:"level" enum:"info|error" doc:"How it looks."`
	Timeout *int   `json:"timeout,omitempty" min:"0" max:"600000" doc:"Milliseconds; default 7000."`
}

// SystemNotifyOut is the output of system.notify.
type SystemNotifyOut struct {
	Level string `json:"level"`
	ID    string `json:"id"` // of the message in SiYuan's window
}

// SystemChangelogIn is the input of system.changelog.
type SystemChangelogIn struct {
	Version     string `json:"version,omitempty" doc:"Only this version." maxlen:"64"`
	FromVersion string `json:"fromVersion,omitempty" doc:"Only newer ones." maxlen:"64"`
	Limit       *int   `json:"limit,omitempty" min:"1" max:"50" doc:"Most entries; default 5."`
	IncludeRaw  bool   `json:"includeRaw,omitempty" doc:"With the Markdown."`
}

// SystemChangelogOut is the output of system.changelog.
type SystemChangelogOut struct {
	TotalEntries    int              `json:"totalEntries"`
	ReturnedEntries int              `json:"returnedEntries"`
	Entries         []ChangelogEntry `json:"entries"` // newest first
	CutOut
}

// ChangelogEntry is what changed with one version of siyuan-broker.
type ChangelogEntry struct {
	Version     string   `json:"version"`
	Date        string   `json:"date,omitempty"` // yyyy-mm-dd
	Items       []string `json:"items"`
	RawMarkdown string   `json:"rawMarkdown,omitempty"`
}

// SystemPerformSyncOut is the output of system.perform_sync.
type SystemPerformSyncOut struct {
	OK     bool   `json:"ok"`
	Result string `json:"result"` // what SiYuan says about its last sync
	Synced int64  `json:"synced"` // Unix milliseconds of the last sync
}

// SystemGetVersionOut is the output of system.get_version.
type SystemGetVersionOut struct {
	Version string `json:"version"` // of SiYuan
}

// SystemGetCurrentTimeOut is the output of system.get_current_time.
type SystemGetCurrentTimeOut struct {
	CurrentTime int64  `json:"currentTime"` // Unix milliseconds
	ISO         string `json:"iso"`         // RFC 3339, UTC
}

// SystemBootstrapOut is the output of system.bootstrap: where the agent is.
type SystemBootstrapOut struct {
	SchemaVersion int             `json:"schemaVersion"` // 2
	Version       string          `json:"version"`       // of SiYuan
	Notebooks     []Notebook      `json:"notebooks"`
	Connection    BootstrapCounts `json:"connection"`
	Limits        BootstrapLimits `json:"limits"`
	Rules         string          `json:"rules,omitempty"` // of the person the agent works for
	Hints         []string        `json:"hints,omitempty"`
}

// BootstrapCounts counts the notebooks by what the caller may do there.
type BootstrapCounts struct {
	Readable  int `json:"readable"`
	Writable  int `json:"writable"`
	Deletable int `json:"deletable"`
}

// BootstrapLimits are the limits that calls meet.
type BootstrapLimits struct {
	ListChars      int   `json:"listChars"`                // of a list in one answer
	CallsPerMinute int   `json:"callsPerMinute,omitempty"` // of the tenant; 0: none
	ResultBytes    int64 `json:"resultBytes,omitempty"`    // of one answer; 0: none
}

// The actions of the system tool.
var (
	SystemBootstrap = define[SystemIn, SystemBootstrapOut](Action{
		Name: "bootstrap", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:  "Say where you are: SiYuan's version, the notebooks you may read with your level, the person's rules, limits.",
		Guidance: []string{"One call at the start of a task is enough."},
		Examples: []string{`{}`},
	})
	SystemGetVersion = define[SystemIn, SystemGetVersionOut](Action{
		Name: "get_version", Kind: Read, Level: contract.Read, Scope: ScopeNone,
		Summary: "Tell SiYuan's version.", Examples: []string{`{}`},
	})
	SystemGetCurrentTime = define[SystemIn, SystemGetCurrentTimeOut](Action{
		Name: "get_current_time", Kind: Read, Level: contract.Read, Scope: ScopeNone,
		Summary: "Tell the time of the home machine.", Examples: []string{`{}`},
	})
	SystemChangelog = define[SystemChangelogIn, SystemChangelogOut](Action{
		Name: "changelog", Kind: Read, Level: contract.Read, Scope: ScopeNone,
		Summary: "Tell what changed in siyuan-broker, as of the connector's version.", Examples: []string{`{"limit":1}`},
	})
	SystemConf = define[SystemConfIn, SystemConfOut](Action{
		Name: "conf", Kind: Read, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchSystem, Off: true,
		Summary:  "Read SiYuan's settings, with every secret masked.",
		Rules:    []Rule{Needs("mode", "get", "keyPath")},
		Guidance: []string{"Masked at home are passwords, keys and tokens, all of what services, accounts and AI are set up with, and the window's layout."},
		Examples: []string{`{}`, `{"mode":"get","keyPath":"editor.fontSize"}`},
	})
	SystemNetwork = define[SystemIn, SystemNetworkOut](Action{
		Name: "network", Kind: Read, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchSystem, Tier: Advanced,
		Summary: "Read the proxy that SiYuan uses.", Examples: []string{`{}`},
	})
	SystemWorkspaceInfo = define[SystemIn, SystemWorkspaceInfoOut](Action{
		Name: "workspace_info", Kind: Read, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchSystem, Tier: Advanced, Off: true,
		Summary: "Tell the folder of the workspace on the home machine.", Examples: []string{`{}`},
	})
	SystemNotify = define[SystemNotifyIn, SystemNotifyOut](Action{
		Name: "notify", Kind: Write, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchSystem, Tier: Advanced,
		Summary: "Show a message in SiYuan's window.", Examples: []string{`{"msg":"The report is done.","level":"info"}`},
	})
	SystemPerformSync = define[SystemIn, SystemPerformSyncOut](Action{
		Name: "perform_sync", Kind: Write, Level: contract.ReadWrite, Scope: ScopeWorkspace, Switch: contract.SwitchSync, Tier: Advanced, Dangerous: true, Lasting: true,
		Summary:  "Sync the workspace with the storage that SiYuan is set up with, both ways.",
		Guidance: []string{"It needs sync to be on in SiYuan, in a mode other than fully manual."},
		Examples: []string{`{}`},
	})
)

func systemTool() *Tool {
	return &Tool{
		Name:    "system",
		Title:   "System",
		Purpose: "Where you are: bootstrap first; SiYuan's version, time and settings.",
		Actions: []*Action{SystemBootstrap.Action, SystemGetVersion.Action, SystemGetCurrentTime.Action, SystemChangelog.Action, SystemConf.Action,
			SystemNetwork.Action, SystemWorkspaceInfo.Action, SystemNotify.Action, SystemPerformSync.Action},
	}
}
