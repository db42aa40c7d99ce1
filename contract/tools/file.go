package tools

import "siyuan-broker/contract"

// FileDocAssetsIn is the input of file.get_doc_assets.
type FileDocAssetsIn struct {
	ID        string `json:"id" ref:"doc" doc:"Document id."`
	AssetType string `json:"assetType,omitempty" enum:"all|image" doc:"Default all."`
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

// The actions of the file tool, but for those that carry files away or in.
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
)

func fileTool() *Tool {
	return &Tool{
		Name:    "file",
		Title:   "Files and templates",
		Purpose: "Files that notes link to.",
		Actions: append([]*Action{FileGetDocAssets.Action, FileGetImageOCRText.Action}, fileTransfers()...),
	}
}
