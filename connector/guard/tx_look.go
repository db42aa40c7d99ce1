package guard

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// foldable are the blocks that SiYuan's window can fold. The kernel would fold
// any block; nobody could unfold those again.
var foldable = []string{"NodeHeading", "NodeList", "NodeListItem", "NodeBlockquote", "NodeSuperBlock", "NodeCallout"}

// SetFold folds or unfolds a heading or a container.
func (tx *Tx) SetFold(ctx context.Context, b Block, folded bool) error {
	if err := tx.covers(b); err != nil {
		return err
	}
	infos, err := tx.s.g.r.BlockTreeInfos(ctx, []siyuan.ID{b.id})
	if err != nil {
		return err
	}
	if !slices.Contains(foldable, infos[b.id].Type) {
		return contract.Fail(contract.InvalidTarget, "Block %s cannot be folded.", b.ID()).
			WithHint("Fold a heading, list, list item, quote, callout or super block.")
	}
	before, err := tx.s.g.r.BlockAttrs(ctx, b.id)
	if err != nil || (before["fold"] == "1") == folded {
		return err
	}
	then := maps.Clone(before)
	then["fold"] = ""
	if folded {
		then["fold"] = "1"
	}
	mark := Mark{LookAttrs, b.ID(), attrsMark(before), attrsMark(then)}
	err = tx.step(ctx, Step{Op: "block.fold", ID: b.ID(), Marks: []Mark{mark}}, func(w *siyuan.Writer) error {
		if folded {
			return w.FoldBlock(ctx, b.id)
		}
		return w.UnfoldBlock(ctx, b.id)
	})
	if err != nil && !answered(err) {
		return err
	}
	after, err := tx.s.g.r.BlockAttrs(ctx, b.id)
	if err == nil && (after["fold"] == "1") != folded {
		err = notPersisted("SiYuan did not change the fold state of block %s.", b.ID())
	}
	return err
}

// coverBefore and coverAfter stand around the address of a document's cover in
// the attribute that SiYuan keeps it in, which is CSS.
const (
	coverAttr   = "title-img"
	coverBefore = `background-image:url("`
	coverAfter  = `")`
)

// SetLook sets the icon and the cover of a document; nil leaves one as it is and
// "" removes it. It returns what SiYuan keeps of the cover.
func (tx *Tx) SetLook(ctx context.Context, d Doc, icon, cover *string) (stored string, err error) {
	if err := firstErr(tx.covers(d.Block()), d.notRoot()); err != nil {
		return "", err
	}
	want := siyuan.Attrs{}
	if icon != nil {
		if err := checkIcon(*icon); err != nil {
			return "", err
		}
		want["icon"] = *icon
	}
	if cover != nil {
		if want[coverAttr], err = tx.s.coverOf(ctx, *cover); err != nil {
			return "", err
		}
	}
	return want[coverAttr], tx.settleAttrs(ctx, d.id, want)
}

// coverOf is the attribute for a cover: an address on the web, or a file of the
// assets folder that the caller may link to.
func (s *Session) coverOf(ctx context.Context, cover string) (string, error) {
	bad := contract.InvalidFields(contract.Field{Path: "attrs.cover", Message: "must be an http or https address, or the path of a picture below /assets/"})
	if cover == "" {
		return "", nil
	}
	if strings.ContainsAny(cover, "\"'()\\<> \t\r\n") || strings.ContainsFunc(cover, func(r rune) bool { return r < ' ' }) {
		return "", bad
	}
	if u, err := url.Parse(cover); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return coverBefore + cover + coverAfter, nil
	}
	file, ok := assetPath(cover)
	if !ok {
		return "", bad
	}
	if err := s.checkAssets(ctx, []string{file}); err != nil {
		return "", err
	}
	return coverBefore + file + coverAfter, nil // with a slash before it SiYuan takes the file for unused
}
