// Package file has the handlers of the file tool.
package file

import (
	"context"
	"fmt"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.FileGetDocAssets, docAssets),
		tools.Bind(catalogue.FileGetImageOCRText, imageText),
		tools.BindDangerous(catalogue.FileUploadAsset, previewUpload, upload),
		tools.Bind(catalogue.FileDownloadAsset, downloadAsset),
		tools.Bind(catalogue.FileExportMD, exportMD),
		tools.Bind(catalogue.FileExportResources, exportResources),
	}
}

// maxFiles bounds a list of files.
const maxFiles = 1000

func docAssets(ctx context.Context, r *tools.Request, in catalogue.FileDocAssetsIn) (out catalogue.FileDocAssetsOut, err error) {
	out = catalogue.FileDocAssetsOut{AssetType: in.AssetType}
	if out.AssetType == "" {
		out.AssetType = "all"
	}
	d, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	all, err := r.Session.DocAssets(ctx, d, out.AssetType == "image")
	if err != nil {
		return out, err
	}
	out.ID, out.Count = d.ID(), len(all)
	out.Assets = append([]string{}, catalogue.Fit(all, maxFiles, r.Budget, catalogue.TextChars)...)
	if out.Truncated = len(out.Assets) < len(all); out.Truncated {
		out.Hint = fmt.Sprintf("Page through all with search.query_sql: SELECT DISTINCT path FROM assets WHERE root_id = '%s' ORDER BY path LIMIT 50 OFFSET 0.", d.ID())
	}
	return out, nil
}

func imageText(ctx context.Context, r *tools.Request, in catalogue.FileOCRIn) (out catalogue.FileOCROut, err error) {
	a, err := r.Session.Asset(ctx, in.Path, contract.Read)
	if err != nil {
		return out, err
	}
	text, err := r.Session.ImageText(ctx, a)
	if err != nil {
		return out, err
	}
	out = catalogue.FileOCROut{Path: a.Path(), Text: text}
	if runes := []rune(text); len(runes) > r.Budget {
		out.Text, out.Truncated, out.Hint = string(runes[:r.Budget]), true, "The text is longer than an answer may be; the rest is in the image only."
	}
	return out, nil
}
