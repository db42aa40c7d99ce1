package tools

import "siyuan-broker/contract"

// MaxImage is the largest image that an agent is shown, in bytes: in base64 it has
// room in an answer.
const MaxImage = 5 << 20

// FileSnapshotIn is the input of file.export_markdown_snapshot.
type FileSnapshotIn struct {
	NotebookID  string   `json:"notebookID" ref:"notebook" minlen:"1" doc:"Notebook id."`
	Roots       []string `json:"roots,omitempty" ref:"path" minlen:"1" maxlen:"64" doc:"Storage paths to walk, / for all."`
	DocumentIDs []string `json:"documentIDs,omitempty" ref:"doc" minlen:"1" maxlen:"500" doc:"Or these documents."`
	Limit       *int     `json:"limit,omitempty" min:"1" max:"200" doc:"Documents on a page; default 20."`
	Cursor      string   `json:"cursor,omitempty" minlen:"1" maxlen:"512" doc:"nextCursor of the page before."`
}

// FileSnapshotOut is the output of file.export_markdown_snapshot. Hashes are
// SHA-256 in hex.
type FileSnapshotOut struct {
	Kind          string             `json:"kind"` // siyuan-markdown-snapshot
	SchemaVersion int                `json:"schemaVersion"`
	Status        string             `json:"status"` // complete, or partial where a document could not be read
	Source        SnapshotSource     `json:"source"`
	Scope         SnapshotScope      `json:"scope"`
	Page          SnapshotPage       `json:"page"`
	InventoryHash string             `json:"inventoryHash"` // of which documents there are, and where
	Documents     []SnapshotDoc      `json:"documents"`
	Conflicts     []SnapshotConflict `json:"conflicts"` // on this page: files that some systems take for one
	Errors        []SnapshotError    `json:"errors"`
	CutOut
}

// SnapshotSource is where a snapshot comes from.
type SnapshotSource struct {
	NotebookID string `json:"notebookID"`
	Name       string `json:"name"`
}

// SnapshotScope says what a snapshot was asked for.
type SnapshotScope struct {
	Mode      string `json:"mode"` // roots or documentIDs
	ScopeHash string `json:"scopeHash"`
}

// SnapshotPage is a page of a snapshot.
type SnapshotPage struct {
	Offset     int    `json:"offset"`
	Limit      int    `json:"limit"`
	Total      int    `json:"total"`
	HasNext    bool   `json:"hasNext"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// SnapshotDoc is a document of a snapshot.
type SnapshotDoc struct {
	ID           string           `json:"id"`
	Title        string           `json:"title"`
	HPath        string           `json:"hPath"`
	StoragePath  string           `json:"storagePath"`
	RelativePath string           `json:"relativePath"` // for a file, with slashes; no two in a snapshot are equal
	Metadata     SnapshotMetadata `json:"metadata"`
	MetadataHash string           `json:"metadataHash"`
	Content      string           `json:"content"` // Markdown, as file.export_md gives it
	ContentHash  string           `json:"contentHash"`
	Errors       []string         `json:"errors"`
}

// SnapshotMetadata is what is known of a document besides its text.
type SnapshotMetadata struct {
	Name    string   `json:"name"`
	Alias   string   `json:"alias"`
	Memo    string   `json:"memo"`
	Tags    []string `json:"tags"`
	Created string   `json:"created"` // yyyyMMddHHmmss
	Updated string   `json:"updated"`
}

// SnapshotConflict are documents whose files are one to some systems.
type SnapshotConflict struct {
	Path string   `json:"path"` // as those systems read it
	IDs  []string `json:"ids"`
}

// SnapshotError is a document that could not be read.
type SnapshotError struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// FileAuditIn is the input of file.audit_image_refs.
type FileAuditIn struct {
	ID           string   `json:"id" ref:"doc" doc:"Document id."`
	ExpectedRefs []string `json:"expectedRefs" maxlen:"4096" doc:"Images it should show: names, paths or URLs."`
}

// FileAuditOut is the output of file.audit_image_refs.
type FileAuditOut struct {
	ID         string   `json:"id"`
	Expected   int      `json:"expected"`
	Actual     []string `json:"actual"` // as the document links to them
	Missing    []string `json:"missing"`
	Extra      []string `json:"extra"`
	Comparison string   `json:"comparison"`
	Matches    bool     `json:"matches"`
	CutOut
}

// FileReadImageIn is the input of file.read_image.
type FileReadImageIn struct {
	ID           string `json:"id,omitempty" ref:"block" doc:"Document that shows it, or a block of it."`
	DocumentPath string `json:"documentPath,omitempty" ref:"human" minlen:"1" maxlen:"16384" doc:"Or its readable path."`
	Path         string `json:"path" ref:"asset" minlen:"1" maxlen:"512" doc:"Asset, assets/…"`
}

// FileReadImageOut is the output of file.read_image. The image stands beside it
// as one.
type FileReadImageOut struct {
	DocumentID string `json:"documentID"`
	Path       string `json:"path"`
	MimeType   string `json:"mimeType"`
	Bytes      int64  `json:"bytes"`
	Delivery   string `json:"delivery"`       // image
	Data       []byte `json:"data,omitempty"` // never a part of the text that an agent reads
}

// The actions of the file tool that look into documents and images.
var (
	FileExportSnapshot = define[FileSnapshotIn, FileSnapshotOut](Action{
		Name: "export_markdown_snapshot", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced, Off: true,
		Summary: "Export many documents of a notebook as Markdown, page by page, with hashes.",
		Rules:   []Rule{ExactlyOne([]string{"roots"}, []string{"documentIDs"})},
		Guidance: []string{
			"Documents come by readable path and id. Go on with page.nextCursor and the same notebookID, roots and documentIDs; where a document came, went or moved in between, the cursor is refused: begin anew.",
			"relativePath is good for a file: documents of one path get their id, and so do all that documentIDs names. conflicts are paths that systems without upper and lower case take for one.",
		},
		Examples: []string{`{"notebookID":"20240101090000-work001","roots":["/"],"limit":5}`, `{"notebookID":"20240101090000-work001","documentIDs":["20240102100100-alphadc"]}`},
	})
	FileAuditImageRefs = define[FileAuditIn, FileAuditOut](Action{
		Name: "audit_image_refs", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced, Off: true,
		Summary:  "Compare the images of a document with those it should show.",
		Guidance: []string{"Names count, without folders and without the id that SiYuan adds; an image that is shown twice is expected twice."},
		Examples: []string{`{"id":"20240102100100-alphadc","expectedRefs":["dot.png"]}`},
	})
	FileReadImage = define[FileReadImageIn, FileReadImageOut](Action{
		Name: "read_image", Kind: Read, Level: contract.Read, Scope: ScopeTargets, Tier: Advanced, Image: true,
		Summary:  "See an image that a document shows.",
		Rules:    []Rule{ExactlyOne([]string{"id"}, []string{"documentPath"})},
		Guidance: []string{"PNG, JPEG, GIF and WebP up to 5 MiB; file.download_asset gets any file.", "file.get_doc_assets lists the images of a document."},
		Examples: []string{`{"id":"20240102100100-alphadc","path":"assets/dot-20240106090000-pngdot1.png"}`, `{"documentPath":"/Work/Projects/Alpha","path":"assets/dot-20240106090000-pngdot1.png"}`},
	})
)

func fileLooks() []*Action {
	return []*Action{FileExportSnapshot.Action, FileAuditImageRefs.Action, FileReadImage.Action}
}
