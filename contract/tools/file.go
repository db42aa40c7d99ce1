package tools

import (
	"slices"

	"siyuan-broker/contract"
)

// FileDocAssetsIn is the input of file.get_doc_assets.
type FileDocAssetsIn struct {
	ID        string `json:"id" ref:"doc" doc:"Document id."`
	AssetType string `json:"assetType,omitempty" enum:"all|image" doc:"Which."`
}

// FileDocAssetsOut is the output of file.get_doc_assets.
type FileDocAssetsOut struct {
	ID        string   `json:"id"`
	AssetType string   `json:"assetType"`
	Assets    []string `json:"assets"` // as the document links to them
	Count     int      `json:"count"`
	CutOut
}

// FileOCRIn is the input of file.get_image_ocr_text.
type FileOCRIn struct {
	Path string `json:"path" ref:"asset" minlen:"1" maxlen:"512" doc:"Asset, assets/…"`
}

// FileOCROut is the output of file.get_image_ocr_text.
type FileOCROut struct {
	Path string `json:"path"`
	Text string `json:"text"` // "" when SiYuan recognised none
	CutOut
}

// FileUnusedIn is the input of file.list_unused_assets and remove_unused_assets.
type FileUnusedIn struct{}

// FileUnusedOut is the output of file.list_unused_assets.
type FileUnusedOut struct {
	Assets []string `json:"assets"` // sorted
	Count  int      `json:"count"`  // of all
	CutOut
}

// FileRemoveUnusedOut is the output of file.remove_unused_assets.
type FileRemoveUnusedOut struct {
	Success bool     `json:"success"`
	Paths   []string `json:"paths"` // that were removed
	CutOut
}

// FileRenameIn is the input of file.rename_asset.
type FileRenameIn struct {
	OldPath string `json:"oldPath" ref:"asset" minlen:"1" maxlen:"512" doc:"Asset, assets/…"`
	NewName string `json:"newName" minlen:"1" maxlen:"120" doc:"Without folder and id."`
}

// FileRenameOut is the output of file.rename_asset.
type FileRenameOut struct {
	Success   bool   `json:"success"`
	OldPath   string `json:"oldPath"`
	NewName   string `json:"newName"`
	NewPath   string `json:"newPath"`   // with an id that SiYuan chose
	Documents int    `json:"documents"` // that link to it
}

// FileDeleteIn is the input of file.delete_asset.
type FileDeleteIn struct {
	Path string `json:"path" ref:"asset" minlen:"1" maxlen:"512" doc:"Asset, assets/…"`
}

// FileDeleteOut is the output of file.delete_asset.
type FileDeleteOut struct {
	Success   bool   `json:"success"`
	Path      string `json:"path"`
	Documents int    `json:"documents"` // whose links lead nowhere now
}

// The actions of the file tool on files that are there.
var (
	FileGetDocAssets = define[FileDocAssetsIn, FileDocAssetsOut](Action{
		Name: "get_doc_assets", Kind: Read, Level: contract.Read, Scope: ScopeTargets,
		Summary:  "List the files a document links to.",
		Examples: []string{`{"id":"20240102100100-alphadc"}`, `{"id":"20240102100100-alphadc","assetType":"image"}`},
	})
	FileGetImageOCRText = define[FileOCRIn, FileOCROut](Action{
		Name: "get_image_ocr_text", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced,
		Summary:  "Read the text that SiYuan recognised in an image.",
		Guidance: []string{"A file belongs to all notebooks that link to it; one that nothing links to needs the workspace permission assets."},
		Examples: []string{`{"path":"assets/dot-20240106090000-pngdot1.png"}`},
	})
	FileListUnusedAssets = define[FileUnusedIn, FileUnusedOut](Action{
		Name: "list_unused_assets", Kind: Read, Level: contract.Read, Scope: ScopeWorkspace, Switch: contract.SwitchAssets, Tier: Advanced, Off: true,
		Summary:  "List the files that no note, cover or database links to.",
		Guidance: []string{"It is refused while any notebook is hidden from you."},
		Examples: []string{`{}`},
	})
	FileRemoveUnusedAssets = define[FileUnusedIn, FileRemoveUnusedOut](Action{
		Name: "remove_unused_assets", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeWorkspace, Switch: contract.SwitchAssets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnManifest,
		Summary:  "Remove the files that nothing links to.",
		Guidance: []string{"It is refused while any notebook is hidden from you.", "SiYuan keeps them in its history for some time; no agent can bring them back."},
		Examples: []string{`{}`},
	})
	FileRenameAsset = define[FileRenameIn, FileRenameOut](Action{
		Name: "rename_asset", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Off: true, Guarded: OnState,
		Summary: "Rename a file, and every link to it.",
		Guidance: []string{
			"It needs the level rw in every notebook that links to the file and in every closed one, and is refused while any notebook is hidden from you.",
			"SiYuan keeps the ending and adds an id to the name. A file in a database cell is not renamed.",
		},
		Examples: []string{`{"oldPath":"assets/dot-20240106090000-pngdot1.png","newName":"red dot"}`},
	})
	FileDeleteAsset = define[FileDeleteIn, FileDeleteOut](Action{
		Name: "delete_asset", Kind: Delete, Level: contract.ReadWriteDelete, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Lasting: true, Guarded: OnState,
		Summary: "Delete a file; links to it lead nowhere then.",
		Guidance: []string{
			"It needs the level rwd in every notebook that links to the file and in every closed one, and is refused while any notebook is hidden from you.",
		},
		Examples: []string{`{"path":"assets/dot-20240106090000-pngdot1.png"}`},
	})
)

func fileTool() *Tool {
	return &Tool{
		Name:    "file",
		Title:   "Files and templates",
		Purpose: "Files of notes, and templates.",
		Fields:  map[string]string{"path": "Asset or template.", "name": "No folder.", "id": "Document id.", "limit": "Characters or documents."},
		Actions: slices.Concat([]*Action{
			FileListTemplates.Action, FileReadTemplate.Action, FileCreateTemplate.Action, FileUpdateTemplate.Action, FileDeleteTemplate.Action,
			FileSaveDocAsTemplate.Action, FileRender.Action, FileGetDocAssets.Action, FileGetImageOCRText.Action, FileListUnusedAssets.Action,
			FileRemoveUnusedAssets.Action, FileRenameAsset.Action, FileDeleteAsset.Action,
		}, fileTransfers(), fileLooks()),
	}
}
