package file

import (
	"context"
	"io"
	"path"
	"regexp"
	"strings"

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

func exportResources(ctx context.Context, r *tools.Request, in catalogue.FileExportResourcesIn) (out catalogue.FileExportResourcesOut, err error) {
	var assets []guard.Asset
	seen := map[string]bool{}
	for _, p := range in.Paths {
		a, err := r.Session.Asset(ctx, p, contract.Read)
		if err != nil {
			return out, err
		}
		if !seen[a.Path()] {
			seen[a.Path()] = true
			assets = append(assets, a)
			out.Bytes += a.Size()
		}
	}
	if r.Out != nil {
		return out, r.Session.SendZip(ctx, assets, r.Out)
	}
	out.Files, out.Name = len(assets), contract.FileName(strings.TrimSuffix(in.Name, ".zip")+".zip")
	if in.Name == "" {
		out.Name = "assets.zip"
	}
	return out, nil
}
