package tools

import "siyuan-broker/contract"

// FileListTemplatesIn is the input of file.list_templates.
type FileListTemplatesIn struct {
	Query    string `json:"query,omitempty" maxlen:"128" doc:"Part of the name."`
	Page     *int   `json:"page,omitempty" min:"1" max:"1000000" doc:"From 1."`
	PageSize *int   `json:"pageSize,omitempty" min:"1" max:"128" doc:"Entries on a page; default 20."`
}

// FileTemplate is a template in a list.
type FileTemplate struct {
	Path string `json:"path"` // below the templates folder, as the other actions take it
	Name string `json:"name"`
}

// FileListTemplatesOut is the output of file.list_templates.
type FileListTemplatesOut struct {
	Data []FileTemplate `json:"data"`
	PageOut
	Showing int `json:"showing"`
	CutOut
}

// FileReadTemplateIn is the input of file.read_template.
type FileReadTemplateIn struct {
	Path   string `json:"path" ref:"template" minlen:"1" maxlen:"512" doc:"Template, name.md."`
	Offset *int   `json:"offset,omitempty" min:"0" max:"1048576" doc:"First character."`
	Limit  *int   `json:"limit,omitempty" min:"1" max:"20000" doc:"Characters; default 8000."`
}

// FileReadTemplateOut is the output of file.read_template.
type FileReadTemplateOut struct {
	Path       string `json:"path"`
	Markdown   string `json:"markdown"`
	TotalChars int    `json:"totalChars"`
	Offset     int    `json:"offset"`
	Limit      int    `json:"limit"`
	Truncated  bool   `json:"truncated"`
	NextOffset int    `json:"nextOffset,omitempty"`
}

// FileCreateTemplateIn is the input of file.create_template.
type FileCreateTemplateIn struct {
	Path      string `json:"path" ref:"template" minlen:"1" maxlen:"512" doc:"Template, name.md."`
	Markdown  string `json:"markdown" maxlen:"262144" doc:"Whole text."`
	Overwrite bool   `json:"overwrite,omitempty" doc:"Replace one that is there."`
}

// FileUpdateTemplateIn is the input of file.update_template.
type FileUpdateTemplateIn struct {
	Path     string `json:"path" ref:"template" minlen:"1" maxlen:"512" doc:"Template, name.md."`
	Markdown string `json:"markdown" maxlen:"262144" doc:"Whole text."`
}

// FileTemplateOut is what a write to a template answers.
type FileTemplateOut struct {
	Success    bool   `json:"success"`
	Path       string `json:"path"`
	Name       string `json:"name"`
	TotalChars int    `json:"totalChars"`
}

// FileDeleteTemplateIn is the input of file.delete_template.
type FileDeleteTemplateIn struct {
	Path string `json:"path" ref:"template" minlen:"1" maxlen:"512" doc:"Template, name.md."`
}

// FileDeleteTemplateOut is the output of file.delete_template.
type FileDeleteTemplateOut struct {
	Success bool   `json:"success"`
	Path    string `json:"path"`
}

// FileSaveDocIn is the input of file.save_doc_as_template.
type FileSaveDocIn struct {
	ID        string `json:"id" ref:"doc,r" doc:"Document id."`
	Name      string `json:"name" minlen:"1" maxlen:"120" doc:"Of the template, no folder."`
	Overwrite bool   `json:"overwrite,omitempty" doc:"Replace one that is there."`
}

// FileSaveDocOut is the output of file.save_doc_as_template.
type FileSaveDocOut struct {
	Success  bool   `json:"success"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	Template string `json:"template"` // its path
}

// FileRenderIn is the input of file.render.
type FileRenderIn struct {
	Engine   string `json:"engine" enum:"template|sprig" doc:"A template for a document, or a text with {{ }}."`
	ID       string `json:"id,omitempty" ref:"doc" doc:"Document id."`
	Path     string `json:"path,omitempty" ref:"template" minlen:"1" maxlen:"512" doc:"Template, name.md."`
	Template string `json:"template,omitempty" minlen:"1" maxlen:"8192" doc:"Text for sprig."`
	Preview  bool   `json:"preview,omitempty" legacy:"true" doc:"Not used; rendering changes nothing."`
}

// FileRenderOut is the output of file.render: the first two of a template, the
// last of a text.
type FileRenderOut struct {
	Content string `json:"content,omitempty"` // block DOM
	Path    string `json:"path,omitempty"`
	String  string `json:"string,omitempty"`
	CutOut
}

// templateRules are what agents have to know to write one.
var templateRules = []string{
	"Code stands between .action{ and }; it may tell the time and work with text, and ask about notes with one SELECT in queryBlocks, querySpans or querySQL.",
	"It needs the workspace permission assets and the level in every notebook that makes daily notes with the template, and is refused while any notebook is hidden from you.",
}

// The actions of the file tool on templates.
var (
	FileListTemplates = define[FileListTemplatesIn, FileListTemplatesOut](Action{
		Name: "list_templates", Kind: Read, Level: contract.Read, Scope: ScopeCollection, Tier: Advanced,
		Summary:  "List templates.",
		Guidance: []string{"Shown are those that your notebooks make daily notes with; with the workspace permission assets, and while nothing is hidden from you, all."},
		Examples: []string{`{"query":"daily"}`},
	})
	FileReadTemplate = define[FileReadTemplateIn, FileReadTemplateOut](Action{
		Name: "read_template", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary: "Read a template's source.", Examples: []string{`{"path":"daily.md"}`},
	})
	FileCreateTemplate = define[FileCreateTemplateIn, FileTemplateOut](Action{
		Name: "create_template", Kind: Write, Level: contract.ReadWrite, Scope: ScopeWorkspace, Switch: contract.SwitchAssets, Tier: Advanced, Off: true, Guarded: OnState,
		Summary: "Make a template.", Guidance: templateRules, Examples: []string{`{"path":"meeting.md","markdown":"## Meeting of .action{now | date \"2006-01-02\"}\n"}`},
	})
	FileUpdateTemplate = define[FileUpdateTemplateIn, FileTemplateOut](Action{
		Name: "update_template", Kind: Write, Level: contract.ReadWrite, Scope: ScopeWorkspace, Switch: contract.SwitchAssets, Tier: Advanced, Off: true, Guarded: OnState,
		Summary: "Replace a template's text.", Guidance: templateRules, Examples: []string{`{"path":"daily.md","markdown":"## Plan\n"}`},
	})
	FileDeleteTemplate = define[FileDeleteTemplateIn, FileDeleteTemplateOut](Action{
		Name: "delete_template", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeWorkspace, Switch: contract.SwitchAssets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnState,
		Summary: "Delete a template.", Guidance: append(templateRules[1:2:2], "SiYuan keeps no copy."), Examples: []string{`{"path":"daily.md"}`},
	})
	FileSaveDocAsTemplate = define[FileSaveDocIn, FileSaveDocOut](Action{
		Name: "save_doc_as_template", Kind: Write, Level: contract.ReadWrite, Scope: ScopeWorkspace, Switch: contract.SwitchAssets, Tier: Advanced, Off: true, Guarded: OnState,
		Summary: "Save a document as a template.", Guidance: templateRules[1:], Examples: []string{`{"id":"20240102100100-alphadc","name":"project"}`},
	})
	FileRender = define[FileRenderIn, FileRenderOut](Action{
		Name: "render", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary: "Render a template for a document, or a text with {{ }}, without writing.",
		Rules:   []Rule{Needs("engine", "template", "id"), Needs("engine", "template", "path"), Needs("engine", "sprig", "template")},
		Guidance: []string{
			"While anything is hidden from you, only templates are rendered that cannot read notes.",
			"A text may tell the time and work with text.",
		},
		Examples: []string{`{"engine":"sprig","template":"/daily note/{{now | date \"2006-01-02\"}}"}`, `{"engine":"template","id":"20240102100100-alphadc","path":"daily.md"}`},
	})
)
