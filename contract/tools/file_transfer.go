package tools

import "siyuan-broker/contract"

// MaxInline is the largest file that travels inside a call, in bytes.
const MaxInline = 256 << 10

// FileUploadAssetIn is the input of file.upload_asset.
type FileUploadAssetIn struct {
	ID               string `json:"id,omitempty" ref:"doc" doc:"Document id."`
	FileName         string `json:"fileName,omitempty" minlen:"1" maxlen:"8192" doc:"Its name."`
	Size             *int64 `json:"size,omitempty" min:"0" max:"4294967296" doc:"Bytes, for a one-time URL."`
	Content          string `json:"content,omitempty" minlen:"1" maxlen:"349528" doc:"Base64, up to 256 KiB."`
	LocalFilePath    string `json:"localFilePath,omitempty" minlen:"1" maxlen:"4096" doc:"At home."`
	SHA256           string `json:"sha256,omitempty" minlen:"64" maxlen:"64" doc:"In hex."`
	ConfirmLargeFile bool   `json:"confirmLargeFile,omitempty" legacy:"true" doc:"Not used; a person agrees to the size."`
	AssetsDirPath    string `json:"assetsDirPath,omitempty" enum:"/assets/" legacy:"true" doc:"Not used; there is one folder."`
}

// FileUploadAssetOut is the output of file.upload_asset: the stored file, or the
// URL to send it to.
type FileUploadAssetOut struct {
	Path    string            `json:"path,omitempty"` // to link to it: [name](path)
	Size    int64             `json:"size,omitempty"`
	SHA256  string            `json:"sha256,omitempty"`
	SuccMap map[string]string `json:"succMap,omitempty"` // the name to the path
	OneTimeURL
}

// FileDownloadAssetIn is the input of file.download_asset.
type FileDownloadAssetIn struct {
	Path string `json:"path" ref:"asset" minlen:"1" maxlen:"512" doc:"Asset, assets/…"`
}

// FileDownloadAssetOut is the output of file.download_asset.
type FileDownloadAssetOut struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Size int64  `json:"size"`
	OneTimeURL
}

// FileExportMDIn is the input of file.export_md.
type FileExportMDIn struct {
	ID       string `json:"id" ref:"doc" doc:"Document id."`
	Download bool   `json:"download,omitempty" doc:"By a one-time URL."`
	Piece
}

// FileExportMDOut is the output of file.export_md.
type FileExportMDOut struct {
	HPath   string `json:"hPath"`
	Name    string `json:"name,omitempty"` // of the file
	Content string `json:"content,omitempty"`
	PieceOut
	OneTimeURL
}

// FileExportResourcesIn is the input of file.export_resources.
type FileExportResourcesIn struct {
	Paths      []string `json:"paths" ref:"asset" minlen:"1" maxlen:"200" doc:"Assets, assets/…"`
	Name       string   `json:"name,omitempty" minlen:"1" maxlen:"512" doc:"Name of the zip."`
	OutputPath string   `json:"outputPath,omitempty" minlen:"1" maxlen:"4096" doc:"New file at home for the zip, in place of a URL."`
}

// FileExportResourcesOut is the output of file.export_resources.
type FileExportResourcesOut struct {
	Name       string `json:"name"`
	OutputPath string `json:"outputPath,omitempty"` // of the zip at home, as a whole path
	Files      int    `json:"files"`
	Bytes      int64  `json:"bytes"` // of the files; the zip is a little larger
	OneTimeURL
}

// The actions of the file tool that carry files.
var (
	FileUploadAsset = define[FileUploadAssetIn, FileUploadAssetOut](Action{
		Name: "upload_asset", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Dangerous: true, Passage: Upwards, PassageBy: "size",
		Summary:      "Store a file to link to in notes.",
		ParamAliases: map[string]string{"file": "localFilePath"},
		Rules: []Rule{
			ExactlyOne([]string{"size"}, []string{"content"}, []string{"localFilePath"}),
			Needs("size", "", "fileName"), Needs("content", "", "fileName"),
		},
		Guidance: []string{
			"With size, such as \"size\":48213 in place of content, the answer has uploadUrl and a curl command: send the file there by PUT within five minutes; the answer to that names its path. The same call again, with its requestId, tells the path too, or gives a new URL if nothing was stored.",
			"id is the document the file is for; it needs the level rw there. Without it the file belongs to nobody, which needs the workspace permission assets.",
			"Link to it with the path, such as ![](assets/…).",
			"localFilePath is a file on the machine of the notes, in a folder that the home owner allows (upload_folders in the connector's policy file); it needs the workspace permission assets. A path on your own machine means nothing here.",
		},
		Examples: []string{
			`{"id":"20240102100100-alphadc","fileName":"hello.txt","content":"aGVsbG8="}`,
		},
	})
	FileDownloadAsset = define[FileDownloadAssetIn, FileDownloadAssetOut](Action{
		Name: "download_asset", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Passage: Downwards,
		Summary:  "Get a one-time URL to download an asset from.",
		Guidance: []string{"The URL works once, within five minutes. Rights are looked at again when it is used."},
		Examples: []string{`{"path":"assets/dot-20240106090000-pngdot1.png"}`},
	})
	FileExportMD = define[FileExportMDIn, FileExportMDOut](Action{
		Name: "export_md", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Passage: Downwards, PassageBy: "download",
		Summary:  "Export a document as Markdown for other programs.",
		Guidance: []string{"References are the text they show; embeds and databases are left out. file.export_resources packs the files it links to."},
		Examples: []string{`{"id":"20240102100100-alphadc"}`, `{"id":"20240102100100-alphadc","download":true}`},
	})
	FileExportResources = define[FileExportResourcesIn, FileExportResourcesOut](Action{
		Name: "export_resources", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced, Passage: Downwards, StaysBy: "outputPath", Dangerous: true,
		Summary: "Get assets in one zip.",
		Guidance: []string{
			"Every asset must be readable. Without outputPath the answer has a one-time URL, and nobody is asked; the zip is made while it is downloaded.",
			"outputPath is a new file on the machine of the notes, in a folder that the home owner allows; " + atHome,
		},
		Examples: []string{`{"paths":["assets/dot-20240106090000-pngdot1.png"],"name":"pictures"}`},
	})
)

// atHome is what writing on the machine of the notes needs.
const atHome = "the folder is named in export_folders in the connector's policy file, the workspace permission assets is needed, and nothing that is there is replaced."

// FileExtractDocIn is the input of file.extract_doc.
type FileExtractDocIn struct {
	ID        string `json:"id" ref:"doc" doc:"Document id."`
	OutputDir string `json:"outputDir,omitempty" minlen:"1" maxlen:"4096" doc:"Folder at home for the new one."`
	Download  bool   `json:"download,omitempty" doc:"By a one-time URL."`
}

// FileExtractDocOut is the output of file.extract_doc: a folder at home, or the
// zip of it to download.
type FileExtractDocOut struct {
	Name                 string        `json:"name,omitempty"`         // of the zip
	OutputRoot           string        `json:"outputRoot,omitempty"`   // the folder that the owner allows
	DefaultOutputDirUsed bool          `json:"defaultOutputDirUsed"`   // no outputDir was given
	ExtractedDir         string        `json:"extractedDir,omitempty"` // the new folder, as a whole path
	DocMdFile            string        `json:"docMdFile"`              // below the new folder
	ExtractedAssetCount  int           `json:"extractedAssetCount"`
	SkippedAssetCount    int           `json:"skippedAssetCount"`
	Skipped              []FileSkipped `json:"skipped,omitempty"`
	Structure            []string      `json:"structure"` // files below the new folder
	CutOut
	OneTimeURL
}

// FileSkipped is a file that a document links to and that was not taken along.
type FileSkipped struct {
	Path string `json:"path"` // as the document has it
	Why  string `json:"why"`
}

// FileExtractDoc writes a document with its files at home.
var FileExtractDoc = define[FileExtractDocIn, FileExtractDocOut](Action{
	Name: "extract_doc", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced, Dangerous: true, Passage: Downwards, PassageBy: "download",
	Summary: "Write a document as Markdown, with its files, into a new folder at home.",
	Rules:   []Rule{NotWith("outputDir", "", "download")},
	Guidance: []string{
		"The new folder is called by the title and the last seven characters of the id; " + atHome,
		"With download the same comes as a zip from a one-time URL, and nobody is asked.",
		"References are the text they show; embeds and databases are left out. Files that you may not read, or that are gone, are counted and named as skipped.",
	},
	Examples: []string{`{"id":"20240102100100-alphadc"}`, `{"id":"20240102100100-alphadc","download":true}`},
})

func fileTransfers() []*Action {
	return []*Action{FileUploadAsset.Action, FileDownloadAsset.Action, FileExportMD.Action, FileExportResources.Action, FileExtractDoc.Action}
}
