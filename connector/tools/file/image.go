package file

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// comparison is how file.audit_image_refs compares.
const comparison = "names, without folders and SiYuan's ids, each as often as it occurs"

// imageName is what an image is compared by.
func imageName(ref string) string {
	return idInName.ReplaceAllString(path.Base(linked(strings.ReplaceAll(ref, `\`, "/"))), "$1")
}

func auditImages(ctx context.Context, r *tools.Request, in catalogue.FileAuditIn) (out catalogue.FileAuditOut, err error) {
	d, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	actual, err := r.Session.DocAssets(ctx, d, true)
	if err != nil {
		return out, err
	}
	left := map[string]int{}
	for _, ref := range in.ExpectedRefs {
		left[imageName(ref)]++
	}
	var extra, missing []string
	for _, link := range actual {
		if name := imageName(link); left[name] > 0 {
			left[name]--
		} else {
			extra = append(extra, link)
		}
	}
	for _, ref := range slices.Backward(in.ExpectedRefs) { // the last ones of a name are those that are missing
		if name := imageName(ref); left[name] > 0 {
			left[name]--
			missing = append(missing, ref)
		}
	}
	slices.Reverse(missing)
	out = catalogue.FileAuditOut{ID: d.ID(), Expected: len(in.ExpectedRefs), Comparison: comparison, Matches: len(missing)+len(extra) == 0}
	third := func(list []string) []string {
		fits := catalogue.Fit(list, len(list), r.Budget/3, catalogue.TextChars)
		out.Truncated = out.Truncated || len(fits) < len(list)
		return append([]string{}, fits...)
	}
	out.Actual, out.Missing, out.Extra = third(actual), third(missing), third(extra)
	if out.Truncated {
		out.Hint = "The lists are cut. Send a part of expectedRefs at a time; file.get_doc_assets lists the images."
	}
	return out, nil
}

func readImage(at DocumentAt) func(context.Context, *tools.Request, catalogue.FileReadImageIn) (catalogue.FileReadImageOut, error) {
	return func(ctx context.Context, r *tools.Request, in catalogue.FileReadImageIn) (out catalogue.FileReadImageOut, err error) {
		var d guard.Doc
		if in.ID != "" {
			d, err = r.Session.Doc(ctx, in.ID, contract.Read)
		} else {
			d, err = at(ctx, r.Session, "documentPath", in.DocumentPath, contract.Read)
		}
		if err != nil {
			return out, err
		}
		a, err := r.Session.Asset(ctx, in.Path, contract.Read)
		if err != nil {
			return out, err
		}
		shown, err := r.Session.DocAssets(ctx, d, true)
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(shown, func(link string) bool { return linked(link) == a.Path() }) {
			return out, contract.Fail(contract.InvalidTarget, "The document shows no such image.").WithHint("file.get_doc_assets with assetType image lists those it shows.")
		}
		if a.Size() > catalogue.MaxImage {
			return out, contract.Fail(contract.TooLarge, "The image has %d bytes; %d can be shown.", a.Size(), catalogue.MaxImage).WithHint("Get it with file.download_asset.")
		}
		data, _, err := r.Session.AssetFile(ctx, a)
		if err != nil {
			return out, err
		}
		out = catalogue.FileReadImageOut{DocumentID: d.ID(), Path: a.Path(), MimeType: imageType(data), Bytes: int64(len(data)), Delivery: "image", Data: data}
		if out.MimeType == "" || len(data) > catalogue.MaxImage {
			return catalogue.FileReadImageOut{}, contract.Fail(contract.Unsupported, "The file is no PNG, JPEG, GIF or WebP.").WithHint("Get it with file.download_asset; file.get_image_ocr_text tells its text.")
		}
		return out, nil
	}
}

// imageType tells an image by its first bytes, as the formats define them; "" for
// what is none of those that agents are shown.
func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
