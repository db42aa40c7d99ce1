package tools

import "siyuan-broker/contract"

// NotebookIn is the input of the actions that take a notebook alone.
type NotebookIn struct {
	Notebook string `json:"notebook" ref:"notebook" doc:"Notebook id."`
}

// NotebookSetOpenStateIn is the input of notebook.set_open_state.
type NotebookSetOpenStateIn struct {
	NotebookIn
	Opened bool `json:"opened" doc:"true opens, false closes."`
}

// NotebookSetOpenStateOut is the output of notebook.set_open_state.
type NotebookSetOpenStateOut struct {
	Success  bool   `json:"success"`
	Notebook string `json:"notebook"`
	Opened   bool   `json:"opened"`
}

// NotebookRemoveOut is the output of notebook.remove.
type NotebookRemoveOut struct {
	Success  bool   `json:"success"`
	Notebook string `json:"notebook"`
}

// NotebookRenameIn is the input of notebook.rename.
type NotebookRenameIn struct {
	NotebookIn
	Name string `json:"name" doc:"Name of the notebook." minlen:"1" maxlen:"512"`
}

// NotebookRenameOut is the output of notebook.rename.
type NotebookRenameOut struct {
	Success  bool   `json:"success"`
	Notebook string `json:"notebook"`
	Name     string `json:"name"`
}

// NotebookConf is the configuration of a notebook. A notebook id in it that
// the caller may not read is left empty.
type NotebookConf struct {
	Name                  string `json:"name"`
	Icon                  string `json:"icon"`
	Closed                bool   `json:"closed"`
	Sort                  int    `json:"sort"`
	SortMode              int    `json:"sortMode"`
	RefCreateSaveBox      string `json:"refCreateSaveBox"`
	RefCreateSavePath     string `json:"refCreateSavePath"`
	DocCreateSaveBox      string `json:"docCreateSaveBox"`
	DocCreateSavePath     string `json:"docCreateSavePath"`
	DailyNoteSavePath     string `json:"dailyNoteSavePath"`
	DailyNoteTemplatePath string `json:"dailyNoteTemplatePath"`
}

// NotebookGetConfOut is the output of notebook.get_conf.
type NotebookGetConfOut struct {
	Box  string       `json:"box"` // notebook id
	Name string       `json:"name"`
	Conf NotebookConf `json:"conf"`
}

// NotebookConfUpdate is the part of a configuration to change.
type NotebookConfUpdate struct {
	Name                  *string `json:"name,omitempty" doc:"Name." minlen:"1" maxlen:"512"`
	Closed                *bool   `json:"closed,omitempty" doc:"Whether it is closed."`
	RefCreateSavePath     *string `json:"refCreateSavePath,omitempty" doc:"Where documents created from a reference go." maxlen:"4096"`
	CreateDocNameTemplate *string `json:"createDocNameTemplate,omitempty" doc:"Template of new titles." maxlen:"4096"`
	DailyNoteSavePath     *string `json:"dailyNoteSavePath,omitempty" doc:"Readable path of daily notes, with date templates." maxlen:"4096"`
	DailyNoteTemplatePath *string `json:"dailyNoteTemplatePath,omitempty" doc:"Template file for daily notes." maxlen:"4096"`
}

// NotebookSetConfIn is the input of notebook.set_conf.
type NotebookSetConfIn struct {
	NotebookIn
	Conf NotebookConfUpdate `json:"conf" doc:"The settings to change; others stay."`
}

// NotebookSetConfOut is the output of notebook.set_conf.
type NotebookSetConfOut struct {
	Success  bool         `json:"success"`
	Notebook string       `json:"notebook"`
	Conf     NotebookConf `json:"conf"` // after the change
}

// NotebookSetIconIn is the input of notebook.set_icon.
type NotebookSetIconIn struct {
	NotebookIn
	Icon string `json:"icon" doc:"Emoji as its hex code point, such as 1f4d4, or the path of a custom icon." maxlen:"256"`
}

// NotebookSetIconOut is the output of notebook.set_icon.
type NotebookSetIconOut struct {
	Success  bool   `json:"success"`
	Notebook string `json:"notebook"`
	Icon     string `json:"icon"`
}

// NotebookGetPermissionsIn is the input of notebook.get_permissions.
type NotebookGetPermissionsIn struct {
	Notebook string `json:"notebook,omitempty" ref:"notebook" absent:"all" doc:"Notebook id."`
}

// NotebookPermission is the caller's level in one notebook.
type NotebookPermission struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Permission contract.Level `json:"permission"`
}

// NotebookGetPermissionsOut is the output of notebook.get_permissions.
type NotebookGetPermissionsOut struct {
	Notebooks []NotebookPermission `json:"notebooks"`
}

// NotebookSetPermissionIn is the input of notebook.set_permission.
type NotebookSetPermissionIn struct {
	NotebookIn
	Permission string `json:"permission" enum:"none|r|rw|rwd" doc:"The tenant's new level for it."`
}

// NotebookSetPermissionOut is the output of notebook.set_permission.
type NotebookSetPermissionOut struct {
	Success    bool           `json:"success"`
	Notebook   string         `json:"notebook"`
	Permission contract.Level `json:"permission"`
}

// NotebookGetChildDocsIn is the input of notebook.get_child_docs.
type NotebookGetChildDocsIn struct {
	NotebookIn
	PageIn
}

// NotebookGetChildDocsOut is the output of notebook.get_child_docs.
type NotebookGetChildDocsOut struct {
	Notebook string     `json:"notebook"`
	Data     []ChildDoc `json:"data"`
	PageOut
	Hint string `json:"hint,omitempty"`
}

// The other actions of the notebook tool.
var (
	NotebookSetOpenState = define[NotebookSetOpenStateIn, NotebookSetOpenStateOut](Action{
		Name: "set_open_state", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnState,
		Summary:  "Open or close a notebook.",
		Guidance: []string{"Closing hides the notebook from everybody who works in this SiYuan, and from search.", "Right after opening, SiYuan indexes the notebook for some seconds."},
		Examples: []string{`{"notebook":"20240101090000-work001","opened":true}`},
	})
	NotebookRemove = define[NotebookIn, NotebookRemoveOut](Action{
		Name: "remove", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState, Dangerous: true, Lasting: true, Off: true,
		Agreement: ByPerson,
		Summary:   "Delete a notebook with every document in it.",
		Guidance:  []string{"A person can restore it from SiYuan's file history as long as that is kept."},
		Aliases:   []string{"rm", "delete", "del"},
		Examples:  []string{`{"notebook":"20240101090000-work001"}`},
	})
	NotebookRename = define[NotebookRenameIn, NotebookRenameOut](Action{
		Name: "rename", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Guarded: OnState,
		Summary:  "Rename a notebook; it must be open.",
		Examples: []string{`{"notebook":"20240101090000-work001","name":"Work"}`},
	})
	NotebookGetConf = define[NotebookIn, NotebookGetConfOut](Action{
		Name: "get_conf", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "Read a notebook's settings: name, icon, where new documents and daily notes go.",
		Examples: []string{`{"notebook":"20240101090000-work001"}`},
	})
	NotebookSetConf = define[NotebookSetConfIn, NotebookSetConfOut](Action{
		Name: "set_conf", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Change some of a notebook's settings.",
		Examples: []string{`{"notebook":"20240101090000-work001","conf":{"dailyNoteSavePath":"/Daily/{{now | date \"2006-01-02\"}}"}}`},
	})
	NotebookSetIcon = define[NotebookSetIconIn, NotebookSetIconOut](Action{
		Name: "set_icon", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Guarded: OnState,
		Summary:  "Set a notebook's icon; an empty one removes it.",
		Examples: []string{`{"notebook":"20240101090000-work001","icon":"1f4d4"}`},
	})
	NotebookGetPermissions = define[NotebookGetPermissionsIn, NotebookGetPermissionsOut](Action{
		Name: "get_permissions", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:  "Say what you may do in one notebook, or without one in each you may read.",
		Examples: []string{`{}`, `{"notebook":"20240101090000-work001"}`},
	})
	NotebookSetPermission = define[NotebookSetPermissionIn, NotebookSetPermissionOut](Action{
		Name: "set_permission", Kind: Write, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchWorkspace, Tier: Advanced, Dangerous: true, Off: true,
		Agreement: InConsole, AtBroker: true,
		Summary:  "Ask a person to change the level that everybody has at most in a notebook.",
		Guidance: []string{"It always waits for an owner or admin in the console, who must have approved before you send the same call again.", "What you may do at most yourself, and what the home allows, stay as they are."},
		Examples: []string{`{"notebook":"20240101090000-work001","permission":"rw"}`},
	})
	NotebookGetChildDocs = define[NotebookGetChildDocsIn, NotebookGetChildDocsOut](Action{
		Name: "get_child_docs", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List the documents at the top of a notebook.",
		Examples: []string{`{"notebook":"20240101090000-work001"}`},
	})
)
