package contract

import "encoding/json"

// DefaultServer is the home MCP server a call is for when it names none.
const DefaultServer = "siyuan"

// MethodCall is the method of an ordinary tool call.
const MethodCall = "tools/call"

// Call is one aggregated tool call on its way from a front (broker, stdio,
// local HTTP, CLI) to the executor beside SiYuan. The deadline travels in the
// context, and over the tunnel as the time left.
type Call struct {
	Server    string // home MCP server; "" means DefaultServer
	Method    string // "" means MethodCall
	Tool      string // settled name, as in contract/tools
	Action    string // settled name
	Replay    bool   // answer from what is remembered of RequestID, and never execute
	RequestID string // correlates logs; for writes also the at-most-once key
	First     bool   // RequestID is known to have been sent to no connector before
	Trace     string // W3C traceparent, or ""
	Grant     *Grant // never nil
	Safety    Safety // of a write
	// Conversation names the agent's conversation where its client has such: a
	// digest of the legacy session's id, else "". Writes of one are undone together.
	Conversation string
	// ResultChars is about how many characters the answer to a read may have; 0
	// leaves it to the home. It bounds lists and texts of many blocks: one entry
	// or block alone is never cut.
	ResultChars int
	Args        json.RawMessage // an object without the action field, normalised and validated
}

// Progress is one step of a running call.
type Progress struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"` // 0: unknown
	Message string  `json:"message,omitempty"`
}

// Result is the answer to a Call: either Body or Err.
type Result struct {
	Body  json.RawMessage // compact JSON of the action's output
	Err   *Error
	Stats Stats
}

// Stats is what the connector measured about a call; the recorder keeps it.
type Stats struct {
	Notebook    string `json:"notebook,omitempty"`     // the notebook acted on, where there is one
	KernelCalls int    `json:"kernel_calls,omitempty"` // requests sent to SiYuan
	KernelUS    int64  `json:"kernel_us,omitempty"`    // time spent waiting for SiYuan, microseconds
	TotalUS     int64  `json:"total_us,omitempty"`     // time at home altogether, microseconds
}

// NotebookInfo is what a connector reports about the notebooks of its SiYuan,
// so that people can set levels by name.
type NotebookInfo struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Icon   string `json:"icon,omitempty"`
	Closed bool   `json:"closed,omitempty"`
}

// HomeState says whether the connector's SiYuan can be worked with.
type HomeState string

// The states a connector reports about its SiYuan.
const (
	HomeReady          HomeState = "ready"
	HomeOffline        HomeState = "siyuan_offline"
	HomeUnauthorized   HomeState = "siyuan_unauthorized"
	HomeWrongWorkspace HomeState = "wrong_workspace"
	HomeIndexing       HomeState = "indexing"
)

// HomeStatus is a connector's report about itself and its SiYuan. It is sent
// on connect and whenever it changes.
type HomeStatus struct {
	State         HomeState      `json:"state"`
	SiYuanVersion string         `json:"siyuan_version,omitempty"`
	Policy        PolicyEffect   `json:"policy"`
	Notebooks     []NotebookInfo `json:"notebooks"`
}
