package tools

import "siyuan-broker/contract"

// Notebook is one notebook as an agent sees it.
type Notebook struct {
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Icon   string         `json:"icon,omitempty"`
	Closed bool           `json:"closed"`
	Level  contract.Level `json:"level"` // what the caller may do in it
}

// NotebookListIn is the input of notebook.list.
type NotebookListIn struct{}

// NotebookListOut is the output of notebook.list.
type NotebookListOut struct {
	Notebooks []Notebook `json:"notebooks"`
}

// NotebookCreateIn is the input of notebook.create.
type NotebookCreateIn struct {
	Name string `json:"name" doc:"Name of the notebook." minlen:"1" maxlen:"512"`
	Icon string `json:"icon,omitempty" doc:"Emoji as its hex code point, such as 1f4d4, or the path of a custom icon." maxlen:"256"`
}

// NotebookCreateOut is the output of notebook.create.
type NotebookCreateOut struct {
	Notebook Notebook `json:"notebook"`
}

// The actions of the notebook tool.
var (
	NotebookList = define[NotebookListIn, NotebookListOut](Action{
		Name: "list", Kind: Read, Level: contract.Read, Scope: ScopeCollection,
		Summary:  "List the notebooks you may read, with your level in each.",
		Guidance: []string{"Closed notebooks are listed; their notes can be read only after they are opened."},
		Examples: []string{`{}`},
	})
	NotebookCreate = define[NotebookCreateIn, NotebookCreateOut](Action{
		Name: "create", Kind: Write, Level: contract.ReadWrite, Scope: ScopeWorkspace, Switch: contract.SwitchWorkspace,
		Summary:  "Create an empty notebook and open it.",
		Guidance: []string{"Another notebook of the same name may exist.", "A new notebook has the default level, which is usually r: writing into it needs a person to raise the level first."},
		Examples: []string{`{"name":"Reading list"}`},
	})
)

func notebookTool() *Tool {
	return &Tool{
		Name:    "notebook",
		Title:   "Notebooks",
		Purpose: "Notebooks: the top level of the workspace. Start here to learn ids and what you may do where.",
		Actions: []*Action{
			NotebookList.Action, NotebookCreate.Action, NotebookSetOpenState.Action, NotebookRemove.Action, NotebookRename.Action,
			NotebookGetConf.Action, NotebookSetConf.Action, NotebookSetIcon.Action, NotebookGetPermissions.Action, NotebookSetPermission.Action, NotebookGetChildDocs.Action,
		},
	}
}
