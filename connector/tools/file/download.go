package file

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"siyuan-broker/connector/folders"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// idInName is what SiYuan adds to the name of a file.
var idInName = regexp.MustCompile(`-[0-9]{14}-[0-9a-z]{7}(\.[^.]*)?$`)

// plainName is the name of an asset for people.
func plainName(asset string) string {
	return contract.FileName(idInName.ReplaceAllString(path.Base(asset), "$1"))
}

// between stands between the blocks of an export.
const between = "\n\n"

func downloadAsset(ctx context.Context, r *tools.Request, in catalogue.FileDownloadAssetIn) (out catalogue.FileDownloadAssetOut, err error) {
	a, err := r.Session.Asset(ctx, in.Path, contract.Read)
	if err != nil {
		return out, err
	}
	if r.Out != nil {
		return out, r.Session.SendAsset(ctx, a, r.Out)
	}
	return catalogue.FileDownloadAssetOut{Path: a.Path(), Name: plainName(a.Path()), Size: a.Size()}, nil
}

func exportMD(ctx context.Context, r *tools.Request, in catalogue.FileExportMDIn) (out catalogue.FileExportMDOut, err error) {
	d, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	if out.HPath, err = r.Session.HPath(ctx, d); err != nil {
		return out, err
	}
	if in.Download && r.Out == nil {
		out.Name = contract.FileName(path.Base(out.HPath) + ".md")
		return out, nil
	}
	blocks, err := r.Session.ExportBlocks(ctx, d)
	if err != nil {
		return out, err
	}
	if r.Out == nil {
		for i := range blocks {
			blocks[i] += between
		}
		out.Content, out.PieceOut = in.Cut(blocks, r.Budget)
		out.Content = strings.TrimSuffix(out.Content, between)
		return out, nil
	}
	text := strings.Join(blocks, between) + "\n"
	if err := r.Out.Announce(int64(len(text))); err != nil {
		return out, err
	}
	_, err = io.WriteString(r.Out, text)
	return out, err
}

// chosen proves that all the assets may be read.
func chosen(ctx context.Context, r *tools.Request, in catalogue.FileExportResourcesIn) (assets []guard.Asset, out catalogue.FileExportResourcesOut, err error) {
	seen := map[string]bool{}
	for _, p := range in.Paths {
		a, err := r.Session.Asset(ctx, p, contract.Read)
		if err != nil {
			return nil, out, err
		}
		if !seen[a.Path()] {
			seen[a.Path()] = true
			assets = append(assets, a)
			out.Bytes += a.Size()
		}
	}
	out.Files, out.Name = len(assets), contract.FileName(strings.TrimSuffix(in.Name, ".zip")+".zip")
	if in.Name == "" {
		out.Name = "assets.zip"
	}
	return assets, out, nil
}

func previewExport(ctx context.Context, r *tools.Request, in catalogue.FileExportResourcesIn) (p contract.Preview, err error) {
	assets, out, err := chosen(ctx, r, in)
	if err != nil {
		return p, err
	}
	p.Counts = contract.PreviewCounts{Assets: out.Files, Bytes: int(out.Bytes)}
	if in.OutputPath != "" {
		target, err := placeOf(r, in.OutputPath, "")
		if err != nil {
			return p, err
		}
		item := onMachine(target)
		p.Target = &item
	}
	for _, a := range assets {
		p.Named = append(p.Named, contract.PreviewItem{Kind: "file", Title: a.Path()})
	}
	return p, nil
}

// onMachine is something on the disk of this machine as people are told of it.
func onMachine(target string) contract.PreviewItem {
	return contract.PreviewItem{Kind: "file", Title: filepath.Base(target), Path: filepath.Dir(target)}
}

// placeOf finds where an export would go, without making anything.
func placeOf(r *tools.Request, at, name string) (string, error) {
	disk, err := r.Disk()
	if err != nil {
		return "", err
	}
	return disk.Place(at, name)
}

func exportResources(ctx context.Context, r *tools.Request, in catalogue.FileExportResourcesIn) (out catalogue.FileExportResourcesOut, err error) {
	assets, out, err := chosen(ctx, r, in)
	switch {
	case err != nil:
		return out, err
	case r.Out != nil:
		return out, r.Session.SendZip(ctx, assets, r.Out)
	case in.OutputPath == "":
		return out, nil
	}
	disk, err := r.Disk()
	if err != nil {
		return out, err
	}
	made, file, err := disk.NewFile(in.OutputPath)
	if err != nil {
		return out, err
	}
	out.OutputPath, out.Name = made.Path, filepath.Base(made.Path)
	err = r.Session.SendZip(ctx, assets, file)
	return out, keep(made, errors.Join(err, file.Close()))
}

// keep ends an export: a complete one stays.
func keep(made *folders.Export, err error) error {
	if err != nil {
		return errors.Join(err, made.Abandon())
	}
	return made.Close()
}
