package file

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"siyuan-broker/connector/folders"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// maxTaken is how many files are taken along with a document.
const maxTaken = 500

// bundle is a document with the files it links to.
type bundle struct {
	doc     guard.Doc
	folder  string // the title and the end of the id
	target  string // where it would be on this machine; "" where it travels
	files   []guard.Asset
	skipped []catalogue.FileSkipped
	bytes   int64
}

// linked is the path that a link in a note leads to.
func linked(link string) string {
	link, _, _ = strings.Cut(link, "?")
	link, _, _ = strings.Cut(link, "#")
	if plain, err := url.PathUnescape(link); err == nil {
		link = plain
	}
	return strings.TrimPrefix(link, "/")
}

// gather proves what of a document may be taken out, once there is a place for it.
func gather(ctx context.Context, r *tools.Request, in catalogue.FileExtractDocIn) (b bundle, err error) {
	if b.doc, err = r.Session.ExactDoc(ctx, in.ID, contract.Read); err != nil {
		return b, err
	}
	hpath, err := r.Session.HPath(ctx, b.doc)
	if err != nil {
		return b, err
	}
	b.folder = contract.FileName(path.Base(hpath)) + "-" + in.ID[len(in.ID)-7:]
	if !in.Download {
		if b.target, err = placeOf(r, in.OutputDir, b.folder); err != nil {
			return b, err
		}
	}
	links, err := r.Session.DocAssets(ctx, b.doc, false)
	if err != nil {
		return b, err
	}
	seen := map[string]bool{}
	for _, link := range links {
		clean := linked(link)
		if seen[clean] {
			continue
		}
		seen[clean] = true
		why, err := b.take(ctx, r, clean)
		if err != nil {
			return b, err
		}
		if why != "" {
			b.skipped = append(b.skipped, catalogue.FileSkipped{Path: link, Why: why})
		}
	}
	return b, nil
}

// take takes one file along, or says why not.
func (b *bundle) take(ctx context.Context, r *tools.Request, clean string) (why string, err error) {
	if !folders.Usable(clean) {
		return "Its name is no file's on every system.", nil
	}
	a, err := r.Session.Asset(ctx, clean, contract.Read)
	if err != nil {
		switch contract.CodeOf(guard.Public(err)) {
		case contract.NotFound, contract.PermissionDenied: // what this caller may not read does not exist
			return "There is no such asset.", nil
		}
		return "", err
	}
	if len(b.files) == maxTaken {
		return fmt.Sprintf("There are more than %d files.", maxTaken), nil
	}
	b.files, b.bytes = append(b.files, a), b.bytes+a.Size()
	return "", nil
}

// shelf is where a bundle is put.
type shelf interface {
	// put makes a file of that name, which write fills.
	put(name string, write func(io.Writer) error) error
}

// fill puts the document and its files on a shelf.
func (b *bundle) fill(ctx context.Context, r *tools.Request, to shelf) error {
	text, err := r.Session.Export(ctx, b.doc)
	if err != nil {
		return err
	}
	err = to.put(b.folder+".md", func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	for i := 0; err == nil && i < len(b.files); i++ {
		a := b.files[i]
		r.Progress(contract.Progress{Done: float64(i), Total: float64(len(b.files)), Message: "Copying files"})
		err = to.put(a.Path(), func(w io.Writer) error { return r.Session.CopyAsset(ctx, a, w) })
	}
	return err
}

// answer tells of the bundle as it fits.
func (b *bundle) answer(budget int) catalogue.FileExtractDocOut {
	names := []string{b.folder + ".md"}
	for _, a := range b.files {
		names = append(names, a.Path())
	}
	out := catalogue.FileExtractDocOut{DocMdFile: names[0], ExtractedAssetCount: len(b.files), SkippedAssetCount: len(b.skipped)}
	out.Skipped = catalogue.Fit(b.skipped, len(b.skipped), budget/2, catalogue.Chars[catalogue.FileSkipped])
	out.Structure = append([]string{}, catalogue.Fit(names, len(names), budget/2, catalogue.TextChars)...)
	if out.Truncated = len(out.Structure) < len(names) || len(out.Skipped) < len(b.skipped); out.Truncated {
		out.Hint = "The lists are cut; the counts are of all."
	}
	return out
}

func previewExtract(ctx context.Context, r *tools.Request, in catalogue.FileExtractDocIn) (p contract.Preview, err error) {
	b, err := gather(ctx, r, in)
	if err != nil {
		return p, err
	}
	p.Counts = contract.PreviewCounts{Documents: 1, Assets: len(b.files), Bytes: int(b.bytes)}
	if p.Target, err = r.Session.PreviewBlock(ctx, b.doc.Block()); err != nil || in.Download {
		return p, err
	}
	p.Named = []contract.PreviewItem{onMachine(b.target)}
	return p, nil
}

func extract(ctx context.Context, r *tools.Request, in catalogue.FileExtractDocIn) (out catalogue.FileExtractDocOut, err error) {
	b, err := gather(ctx, r, in)
	if err != nil {
		return out, err
	}
	out = b.answer(r.Budget)
	switch {
	case r.Out != nil:
		z := zip.NewWriter(r.Out)
		return out, errors.Join(b.fill(ctx, r, packed{z, b.folder}), z.Close())
	case in.Download:
		out.Name = b.folder + ".zip"
		return out, nil
	}
	disk, err := r.Disk()
	if err != nil {
		return out, err
	}
	made, err := disk.NewFolder(in.OutputDir, b.folder)
	if err != nil {
		return out, err
	}
	out.OutputRoot, out.DefaultOutputDirUsed, out.ExtractedDir = made.Root, made.First, made.Path
	return out, keep(made, b.fill(ctx, r, onDisk{made}))
}

// packed is a zip with everything in one folder.
type packed struct {
	*zip.Writer
	folder string
}

func (z packed) put(name string, write func(io.Writer) error) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: z.folder + "/" + name, Method: zip.Store})
	if err != nil {
		return err
	}
	return write(w)
}

// onDisk is a new folder of this machine.
type onDisk struct{ *folders.Export }

func (d onDisk) put(name string, write func(io.Writer) error) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
