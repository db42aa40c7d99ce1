package guard

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Blocks proves a level for many blocks. The first that fails fails all.
func (s *Session) Blocks(ctx context.Context, ids []string, need contract.Level) ([]Block, error) {
	if err := s.locateAll(ctx, ids); err != nil {
		return nil, err
	}
	blocks := make([]Block, len(ids))
	for i, id := range ids {
		var err error
		if blocks[i], err = s.Block(ctx, id, need); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// locateAll asks the block tree about many blocks at once, so that proving them
// one by one needs no further questions.
func (s *Session) locateAll(ctx context.Context, ids []string) error {
	list := make([]siyuan.ID, len(ids))
	for i, id := range ids {
		list[i] = siyuan.ID(id)
	}
	_, err := s.readable(ctx, list)
	return err
}

// BlockText is the kramdown of one block of a batch, or why there is none.
type BlockText struct {
	ID, Kramdown string
	IsDoc        bool
	Err          *contract.Error
}

// Kramdowns is Kramdown of many, one entry for each id in its order; repeats are
// kept. With textmark, inline marks are spans instead of Markdown. A block that
// cannot be read fails alone.
func (s *Session) Kramdowns(ctx context.Context, ids []string, textmark bool) ([]BlockText, error) {
	if err := s.locateAll(ctx, ids); err != nil {
		return nil, err
	}
	items := make([]BlockText, len(ids))
	var wanted []siyuan.ID
	for i, id := range ids {
		items[i].ID = id
		switch b, err := s.Block(ctx, id, contract.Read); contract.CodeOf(err) {
		case "":
			items[i].IsDoc = b.id == b.doc.id
			wanted = append(wanted, siyuan.ID(id))
		case contract.NotFound, contract.IndexUnavailable, contract.PermissionDenied:
			items[i].Err = Public(err)
		default:
			return nil, err
		}
	}
	texts, err := s.kramdowns(ctx, unique(wanted), textmark)
	if err != nil {
		return nil, err
	}
	for i := range items {
		text, ok := texts[siyuan.ID(items[i].ID)]
		switch {
		case items[i].Err != nil:
		case ok:
			items[i].Kramdown = text
		default:
			items[i].Err = Public(notFound("block", siyuan.ID(items[i].ID)))
		}
	}
	return items, nil
}

// kramdowns reads readable blocks with everything hidden taken out.
func (s *Session) kramdowns(ctx context.Context, ids []siyuan.ID, textmark bool) (map[siyuan.ID]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	mode := siyuan.KramdownMarkdown
	if textmark {
		mode = siyuan.KramdownTextmark
	}
	texts, err := s.g.r.BlockKramdowns(ctx, ids, mode)
	if err != nil {
		return nil, err
	}
	var targets []siyuan.ID
	for _, text := range texts {
		targets = append(targets, dynamicTargets(text)...)
		targets = append(targets, spanTargets(text)...)
	}
	can, err := s.showable(ctx, targets)
	if err != nil {
		return nil, err
	}
	for id, text := range texts {
		if !s.whole() {
			text = withoutDatabases(text)
		}
		if textmark {
			text = maskSpans(text, can)
		}
		texts[id] = withoutZWSP(maskDynamic(text, can))
	}
	return texts, nil
}

// refSpan is a reference in the textmark form of kramdown. Its anchor has no
// unescaped <; where that fails to hold, the rest of the line counts as anchor.
// It is found by pattern and not by a parser of HTML: the text around it is
// anything, open comments and text areas included.
var refSpan = regexp.MustCompile(`(?m)(<span [^>\n]*data-type="[^"\n]*block-ref[^>\n]*>)([^\n]*?)(</span>|$)`)

// spanTargets are the targets of the dynamic references among the spans.
func spanTargets(text string) []siyuan.ID {
	var ids []siyuan.ID
	for _, m := range refSpan.FindAllStringSubmatch(text, -1) {
		if !staticSpan(m[1]) {
			ids = append(ids, firstGroup(domTarget, m[1])...)
		}
	}
	return ids
}

// staticSpan: the author wrote the anchor. A span that does not say so is taken
// for dynamic.
func staticSpan(tag string) bool { return strings.Contains(tag, `data-subtype="s"`) }

func maskSpans(text string, can map[siyuan.ID]bool) string {
	return refSpan.ReplaceAllStringFunc(text, func(span string) string {
		m := refSpan.FindStringSubmatch(span)
		targets := firstGroup(domTarget, m[1])
		if staticSpan(m[1]) || len(targets) == 1 && can[targets[0]] && m[3] != "" {
			return span
		}
		return m[1] + Placeholder + "</span>"
	})
}

// Plain is the text of a child without marks.
func (c Child) Plain() string {
	text := c.Markdown
	switch c.Type {
	case "c", "m":
		text = strings.TrimSpace(text)
		if _, rest, ok := strings.Cut(text, "\n"); ok && fenceLine.MatchString(text) {
			text = strings.TrimRight(rest, "`~$ \n")
		}
		return text
	case "html", "iframe", "video", "audio", "widget", "tb":
		return text
	}
	return plain(ownText(text))
}

// BlockInfo says where a block is.
type BlockInfo struct {
	RootTitle, RootIcon string
	Untitled            bool
	TopID               string // the block right below the document that holds the block
}

// BlockInfo describes the place of a block.
func (s *Session) BlockInfo(ctx context.Context, b Block) (BlockInfo, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return BlockInfo{}, err
	}
	info, err := s.g.r.BlockInfo(ctx, b.id)
	if err != nil {
		return BlockInfo{}, s.vanished(err, "block", b.id)
	}
	steps, err := s.g.r.Breadcrumb(ctx, b.id)
	if err != nil {
		return BlockInfo{}, s.vanished(err, "block", b.id)
	}
	return BlockInfo{RootTitle: info.RootTitle, RootIcon: info.RootIcon, Untitled: info.RootTitleEmpty, TopID: string(topOf(steps))}, nil
}

// topOf is the block right below the document on a trail. Headings stand on the
// trail of what follows them but hold nothing. The kernel's own rootChildID is
// the document.
func topOf(trail []siyuan.Crumb) siyuan.ID {
	for _, c := range trail[1:] {
		if c.Type != "NodeHeading" {
			return c.ID
		}
	}
	return trail[len(trail)-1].ID
}

// Size is what a text is made of.
type Size = siyuan.Stat

// Size counts blocks together. Titles of hidden things count as the placeholder:
// where there is one, characters and words are those of the text as shown.
func (s *Session) Size(ctx context.Context, blocks []Block) (Size, error) {
	ids := make([]siyuan.ID, len(blocks))
	for i, b := range blocks {
		if err := s.use(b.doc.nb, contract.Read); err != nil {
			return Size{}, err
		}
		ids[i] = b.id
	}
	ids = unique(ids)
	stat, err := s.g.r.WordCount(ctx, ids)
	if err != nil || s.whole() {
		return stat, err
	}
	texts, err := s.kramdowns(ctx, ids, false)
	if err != nil {
		return Size{}, err
	}
	masked := false
	runes, words := 0, 0
	for _, text := range texts {
		r, w := count(plain(ownText(ialPattern.ReplaceAllString(text, ""))))
		runes, words = runes+r, words+w
		masked = masked || strings.Contains(text, Placeholder)
	}
	if masked {
		stat.RuneCount, stat.WordCount = runes, words
	}
	return stat, nil
}

// count counts characters other than space, and words as SiYuan does: runs of
// characters between spaces, and every ideograph for itself.
func count(text string) (runes, words int) {
	in := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			in = false
			continue
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			in = false
			words++
		case !in:
			in = true
			words++
		}
		runes++
	}
	return runes, words
}
