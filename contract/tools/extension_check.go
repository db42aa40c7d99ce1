package tools

import (
	"encoding/json"

	"siyuan-broker/contract"
)

// ExtensionPackage is a package of SiYuan's marketplace as an agent has it in hand.
type ExtensionPackage struct {
	Type     string                     `json:"type" enum:"plugin|theme|widget" doc:"Kind of package."`
	Manifest map[string]json.RawMessage `json:"manifest" doc:"plugin.json, theme.json or widget.json."`
	Files    map[string]string          `json:"files" doc:"Text by relative name; pictures may be empty."`
}

// ExtensionRuntime is the SiYuan that a package is meant for.
type ExtensionRuntime struct {
	AppVersion string `json:"appVersion,omitempty" doc:"Version of SiYuan." maxlen:"40"`
	Backend    string `json:"backend,omitempty" doc:"Such as linux." maxlen:"40"`
	Frontend   string `json:"frontend,omitempty" doc:"Such as desktop." maxlen:"40"`
}

// ExtensionValidateIn is the input of extension.validate_package.
type ExtensionValidateIn struct {
	Package ExtensionPackage  `json:"package" doc:"The package; nothing is read from a disk."`
	Runtime *ExtensionRuntime `json:"runtime,omitempty" doc:"SiYuan to compare it with."`
}

// PackageFinding is one thing that is wrong with a package, or may be.
type PackageFinding struct {
	Severity string `json:"severity"`       // error or warning
	Path     string `json:"path,omitempty"` // field of the manifest, or file
	Message  string `json:"message"`
}

// ExtensionValidateOut is the output of extension.validate_package.
type ExtensionValidateOut struct {
	Success  bool             `json:"success"` // no errors
	Errors   int              `json:"errors"`
	Warnings int              `json:"warnings"`
	Findings []PackageFinding `json:"findings"` // errors first
	CutOut
}

// ExtensionDiagnoseIn is the input of extension.diagnose_plugin_mcp.
type ExtensionDiagnoseIn struct {
	PluginName        string   `json:"pluginName" doc:"Name in the plugin's manifest." minlen:"1" maxlen:"100"`
	ExpectedToolNames []string `json:"expectedToolNames,omitempty" doc:"Names of its tools as the plugin gives them." minlen:"1" maxlen:"40"`
	ExpectedState     string   `json:"expectedState,omitempty" enum:"present|absent" doc:"present (default) or absent."`
}

// DiagnosedTool is a tool that SiYuan lists for a plugin.
type DiagnosedTool struct {
	Name     string `json:"name"`  // the action to call it by
	Local    string `json:"local"` // the rest behind the plugin's part
	ReadOnly bool   `json:"readOnly,omitempty"`
	Degraded bool   `json:"schemaDegraded,omitempty"`
}

// ExtensionDiagnoseOut is the output of extension.diagnose_plugin_mcp.
type ExtensionDiagnoseOut struct {
	Success   bool            `json:"success"` // all is as expected
	Supported bool            `json:"supported"`
	Version   string          `json:"siyuanVersion"`
	Prefix    string          `json:"prefix"`               // that its tools have
	Tools     []DiagnosedTool `json:"tools"`                // listed just now
	Missing   []string        `json:"missing,omitempty"`    // expected and not listed
	Present   []string        `json:"unexpected,omitempty"` // listed though expected to be absent
	Limits    []string        `json:"limits"`               // what this cannot tell
}

// The actions for those who write plugins.
var (
	ExtensionValidate = define[ExtensionValidateIn, ExtensionValidateOut](Action{
		Name: "validate_package", Kind: Read, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchExtension, Tier: Advanced,
		Summary:  "Look for mistakes in a plugin, theme or widget that you wrote.",
		Guidance: []string{"It only looks at what you send: nothing is run, installed or fetched. No finding is no promise that the package works."},
		Examples: []string{`{"package":{"type":"widget","manifest":{"name":"clock","author":"A","url":"https://example.org/clock","version":"1.0.0"},"files":{"index.html":"<p>12:00</p>"}}}`},
	})
	ExtensionDiagnose = define[ExtensionDiagnoseIn, ExtensionDiagnoseOut](Action{
		Name: "diagnose_plugin_mcp", Kind: Read, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchExtension, Tier: Advanced,
		Summary:  "Ask SiYuan anew which tools a plugin offers, and compare.",
		Guidance: []string{"A tool is named plugin__, the plugin's name with _ for all but letters and digits, __ and its own name. It is refused while any notebook is hidden from you."},
		Examples: []string{`{"pluginName":"desk-tools","expectedToolNames":["ring"]}`},
	})
)
