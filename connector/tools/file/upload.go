package file

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// incoming is a file on its way to SiYuan.
type incoming struct {
	guard.Upload
	doc  *guard.Doc // nil: for nobody
	body io.Reader  // nil where only the intention is known
	file io.Closer  // of this machine; nil: the file comes from elsewhere
}

// receive proves that the file may be stored, and finds where it comes from. What it
// opened, close ends.
func receive(ctx context.Context, r *tools.Request, in catalogue.FileUploadAssetIn) (f incoming, err error) {
	f.Name, f.Sum = in.FileName, strings.ToLower(in.SHA256)
	if _, err := hex.DecodeString(f.Sum); err != nil {
		return f, contract.InvalidFields(contract.Field{Path: "sha256", Message: "must be 64 hexadecimal digits"})
	}
	if in.ID != "" {
		d, err := r.Session.Doc(ctx, in.ID, contract.ReadWrite)
		if err != nil {
			return f, err
		}
		f.doc = &d
	}
	if err := r.Session.CheckUpload(f.doc); err != nil {
		return f, err
	}
	switch {
	case in.Content != "":
		return f, f.inline(in.Content)
	case in.LocalFilePath != "":
		return f, f.local(r, in)
	}
	f.Size, f.body = *in.Size, r.Body
	if r.Body != nil && r.Size != contract.UnknownSize && r.Size != f.Size {
		return f, contract.Fail(contract.InvalidValue, "The file has %d bytes, and %d were announced; nothing was stored.", r.Size, f.Size)
	}
	return f, nil
}

func (f *incoming) inline(content string) error {
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return contract.InvalidFields(contract.Field{Path: "content", Message: "must be base64"})
	}
	if len(data) > catalogue.MaxInline {
		return contract.Fail(contract.TooLarge, "The file has %d bytes; content takes %d.", len(data), catalogue.MaxInline).
			WithHint("Give size in place of content, and send the file to the one-time URL you get.")
	}
	f.Size, f.body = int64(len(data)), bytes.NewReader(data)
	return nil
}

// local takes the file from a folder of this machine.
func (f *incoming) local(r *tools.Request, in catalogue.FileUploadAssetIn) error {
	disk, err := r.Disk()
	if err != nil {
		return err
	}
	src, err := disk.Open(in.LocalFilePath)
	if err != nil {
		return err
	}
	if f.Name == "" {
		f.Name = src.Name
	}
	f.Size, f.body, f.file = src.Size, src, src
	return nil
}

func (f *incoming) close() {
	if f.file != nil {
		_ = f.file.Close() // it was only read
	}
}

func previewUpload(ctx context.Context, r *tools.Request, in catalogue.FileUploadAssetIn) (p contract.Preview, err error) {
	f, err := receive(ctx, r, in)
	defer f.close()
	if err != nil {
		return p, err
	}
	p.Counts = contract.PreviewCounts{Assets: 1, Bytes: int(f.Size)}
	p.Named = []contract.PreviewItem{{Kind: "file", Title: contract.FileName(f.Name)}}
	if in.LocalFilePath != "" {
		p.Named[0] = onMachine(in.LocalFilePath)
	}
	if f.doc != nil {
		p.Target, err = r.Session.PreviewBlock(ctx, f.doc.Block())
	}
	return p, err
}

func upload(ctx context.Context, r *tools.Request, in catalogue.FileUploadAssetIn) (out catalogue.FileUploadAssetOut, err error) {
	f, err := receive(ctx, r, in)
	defer f.close()
	if err != nil {
		return out, err
	}
	if f.body == nil {
		return out, contract.Fail(contract.Unsupported, "The file itself did not come.").WithHint("Ask whoever runs the service to update it, or give the file in content.")
	}
	stored, err := r.Session.StoreFile(ctx, r.Intent(), f.doc, f.Upload, f.body)
	return catalogue.FileUploadAssetOut{
		Path: stored.Path, Size: stored.Size, SHA256: stored.Sum, SuccMap: map[string]string{contract.FileName(f.Name): stored.Path},
	}, err
}
