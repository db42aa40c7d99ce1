// Package file has the handlers of the file tool.
package file

import (
	"context"
	"fmt"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// DocumentAt finds the document of a readable path and proves a level for it; field
// is the parameter that has the path.
type DocumentAt func(ctx context.Context, s *guard.Session, field, path string, need contract.Level) (guard.Doc, error)

// Bindings are the handlers of this tool. at reads the path language of the fs tool.
func Bindings(at DocumentAt) []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.FileGetDocAssets, docAssets),
		tools.Bind(catalogue.FileGetImageOCRText, imageText),
		tools.BindDangerous(catalogue.FileUploadAsset, previewUpload, upload),
		tools.Bind(catalogue.FileDownloadAsset, downloadAsset),
		tools.Bind(catalogue.FileExportMD, exportMD),
		tools.BindDangerous(catalogue.FileExportResources, previewExport, exportResources),
		tools.BindDangerous(catalogue.FileExtractDoc, previewExtract, extract),
		tools.Bind(catalogue.FileExportSnapshot, snapshot),
		tools.Bind(catalogue.FileAuditImageRefs, auditImages),
		tools.Bind(catalogue.FileReadImage, readImage(at)),
		tools.Bind(catalogue.FileListUnusedAssets, listUnused),
		tools.BindDangerous(catalogue.FileRemoveUnusedAssets, previewUnused, removeUnused),
		tools.BindDangerous(catalogue.FileRenameAsset, previewRename, rename),
		tools.BindDangerous(catalogue.FileDeleteAsset, previewRemove, remove),
		tools.Bind(catalogue.FileListTemplates, listTemplates),
		tools.Bind(catalogue.FileReadTemplate, readTemplate),
		tools.Bind(catalogue.FileCreateTemplate, createTemplate),
		tools.Bind(catalogue.FileUpdateTemplate, updateTemplate),
		tools.BindDangerous(catalogue.FileDeleteTemplate, previewTemplate, deleteTemplate),
		tools.Bind(catalogue.FileSaveDocAsTemplate, saveDoc),
		tools.Bind(catalogue.FileRender, render),
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
	out.Path = a.Path()
	out.Text, out.CutOut = fit(text, r.Budget)
	return out, nil
}

func listUnused(ctx context.Context, r *tools.Request, _ catalogue.FileUnusedIn) (out catalogue.FileUnusedOut, err error) {
	u, err := r.Session.Unused(ctx)
	if err != nil {
		return out, err
	}
	all := u.Files()
	out.Count, out.Assets = len(all), append([]string{}, catalogue.Fit(all, maxFiles, r.Budget, catalogue.TextChars)...)
	if out.Truncated = len(out.Assets) < len(all); out.Truncated {
		out.Hint = "There are more than an answer may have; file.remove_unused_assets removes them bit by bit."
	}
	return out, nil
}

func previewUnused(ctx context.Context, r *tools.Request, _ catalogue.FileUnusedIn) (contract.Preview, error) {
	u, err := r.Session.Unused(ctx)
	return guard.PreviewUnused(u.First()), err
}

func removeUnused(ctx context.Context, r *tools.Request, _ catalogue.FileUnusedIn) (out catalogue.FileRemoveUnusedOut, err error) {
	u, err := r.Session.Unused(ctx)
	if err != nil {
		return out, err
	}
	first := u.First()
	err = r.Session.Write(ctx, r.Intent(first), func(ctx context.Context, tx *guard.Tx) error { return tx.RemoveUnused(ctx, first) })
	out = catalogue.FileRemoveUnusedOut{Success: true, Paths: append([]string{}, first.Files()...)}
	if out.Truncated = len(first.Files()) < len(u.Files()); out.Truncated {
		out.Hint = fmt.Sprintf("%d more are unused; call again to remove the next.", len(u.Files())-len(first.Files()))
	}
	return out, err
}

// renamed finds what a renaming touches, and the name without its ending.
func renamed(ctx context.Context, r *tools.Request, in catalogue.FileRenameIn) (a guard.Asset, name string, err error) {
	if a, err = r.Session.FileToChange(ctx, in.OldPath, contract.ReadWrite); err == nil {
		err = a.Renamable()
	}
	if err == nil {
		name, err = guard.FileName("newName", in.NewName, a.Path())
	}
	return a, name, err
}

func previewRename(ctx context.Context, r *tools.Request, in catalogue.FileRenameIn) (p contract.Preview, err error) {
	a, name, err := renamed(ctx, r, in)
	if err != nil {
		return p, err
	}
	p, err = r.Session.PreviewFile(ctx, a)
	p.Find, p.Replace = a.Path(), name
	return p, err
}

func rename(ctx context.Context, r *tools.Request, in catalogue.FileRenameIn) (out catalogue.FileRenameOut, err error) {
	a, name, err := renamed(ctx, r, in)
	if err != nil {
		return out, err
	}
	out = catalogue.FileRenameOut{Success: true, OldPath: a.Path(), NewName: name, Documents: a.Documents()}
	err = r.Session.Write(ctx, r.Intent(a), func(ctx context.Context, tx *guard.Tx) (err error) {
		out.NewPath, err = tx.RenameAsset(ctx, a, name)
		return err
	})
	return out, err
}

func previewRemove(ctx context.Context, r *tools.Request, in catalogue.FileDeleteIn) (p contract.Preview, err error) {
	a, err := r.Session.FileToChange(ctx, in.Path, contract.ReadWriteDelete)
	if err != nil {
		return p, err
	}
	return r.Session.PreviewFile(ctx, a)
}

func remove(ctx context.Context, r *tools.Request, in catalogue.FileDeleteIn) (out catalogue.FileDeleteOut, err error) {
	a, err := r.Session.FileToChange(ctx, in.Path, contract.ReadWriteDelete)
	if err != nil {
		return out, err
	}
	err = r.Session.Write(ctx, r.Intent(a), func(ctx context.Context, tx *guard.Tx) error { return tx.RemoveAsset(ctx, a) })
	return catalogue.FileDeleteOut{Success: true, Path: a.Path(), Documents: a.Documents()}, err
}
