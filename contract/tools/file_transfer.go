package tools

import "siyuan-broker/contract"

// MaxInline is the largest file that travels inside a call, in bytes.
const MaxInline = 256 << 10

// FileUploadAssetIn is the input of file.upload_asset.
type FileUploadAssetIn struct {
	ID               string `json:"id,omitempty" ref:"doc" doc:"Document id."`
	FileName         string `json:"fileName" minlen:"1" maxlen:"8192" doc:"Name of the file."`
	Size             *int64 `json:"size,omitempty" min:"0" max:"4294967296" doc:"Its bytes, to get a one-time URL to send it to."`
	Content          string `json:"content,omitempty" minlen:"1" maxlen:"349528" doc:"Or the file itself in base64, up to 256 KiB."`
	SHA256           string `json:"sha256,omitempty" minlen:"64" maxlen:"64" doc:"Its SHA-256 in hex; anything else is not stored."`
	ConfirmLargeFile bool   `json:"confirmLargeFile,omitempty" legacy:"true" doc:"Not used; a person agrees to the size."`
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
	Download bool   `json:"download,omitempty" doc:"Answer a one-time URL of the Markdown file."`
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
	Paths []string `json:"paths" ref:"asset" minlen:"1" maxlen:"200" doc:"Assets, assets/…"`
	Name  string   `json:"name,omitempty" minlen:"1" maxlen:"512" doc:"Name of the zip."`
}

// FileExportResourcesOut is the output of file.export_resources.
type FileExportResourcesOut struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"` // of the files; the zip is a little larger
	OneTimeURL
}

// The actions of the file tool that carry files.
var (
	FileUploadAsset = define[FileUploadAssetIn, FileUploadAssetOut](Action{
		Name: "upload_asset", Kind: Write, Level: contract.ReadWrite, Scope: ScopeTargets, Dangerous: true, Passage: Upwards, PassageBy: "size",
		Summary: "Store a file to link to in notes.",
		Rules: []Rule{
			ExactlyOne([]string{"size"}, []string{"content"}),
		},
		Guidance: []string{
			"With size, such as \"size\":48213 in place of content, the answer has uploadUrl and a curl command: send the file there by PUT within five minutes; the answer to that names its path. The same call again, with its requestId, tells the path too, or gives a new URL if nothing was stored.",
			"id is the document the file is for; it needs the level rw there. Without it the file belongs to nobody, which needs the workspace permission assets.",
			"Link to it with the path, such as ![](assets/…). A path on your own machine means nothing here.",
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
		Name: "export_resources", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced, Passage: Downwards,
		Summary:  "Get a one-time URL to download assets from, in one zip.",
		Guidance: []string{"Every asset must be readable. The zip is made while it is downloaded."},
		Examples: []string{`{"paths":["assets/dot-20240106090000-pngdot1.png"],"name":"pictures"}`},
	})
)

func fileTransfers() []*Action {
	return []*Action{FileUploadAsset.Action, FileDownloadAsset.Action, FileExportMD.Action, FileExportResources.Action}
}
