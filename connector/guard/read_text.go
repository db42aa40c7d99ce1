package guard

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// Kramdown is a block, or a document with everything in it, with attribute
// lists; anchors of what the caller may not read are the placeholder.
func (s *Session) Kramdown(ctx context.Context, b Block) (string, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return "", err
	}
	text, err := s.g.r.BlockKramdown(ctx, b.id, siyuan.KramdownMarkdown)
	if err != nil {
		return "", s.vanished(err, "block", b.id)
	}
	if !s.whole() {
		text = withoutDatabases(text)
	}
	text, err = s.maskText(ctx, text)
	return withoutZWSP(text), err
}

// vanished names a block that was there a moment ago.
func (s *Session) vanished(err error, what string, id siyuan.ID) error {
	if siyuan.KindOf(err) == siyuan.Missing {
		return notFound(what, id)
	}
	return err
}

// Child is a child of a container, or a block of a document's top level.
type Child struct {
	ID       string
	Type     string // short code: p, h, l, ...
	SubType  string // h1..h6, u, o, t
	Markdown string // without attribute lists
	Title    string // text without marks, of headings
}

// Level is the level of a heading, 0 for other blocks.
func (c Child) Level() int {
	n, err := strconv.Atoi(strings.TrimPrefix(c.SubType, "h"))
	if c.Type != "h" || err != nil {
		return 0
	}
	return n
}

// Children lists the blocks right below a container, in order; of a heading its
// section; of a document its top-level blocks, headings beside what follows
// them.
func (s *Session) Children(ctx context.Context, b Block) ([]Child, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return nil, err
	}
	blocks, err := s.g.r.ChildBlocks(ctx, b.id)
	if err != nil {
		return nil, s.vanished(err, "block", b.id)
	}
	texts := make([]string, len(blocks))
	for i, c := range blocks {
		texts[i] = c.Markdown
	}
	if texts, err = s.maskTexts(ctx, texts); err != nil {
		return nil, err
	}
	children := make([]Child, len(blocks))
	for i, c := range blocks {
		children[i] = Child{ID: string(c.ID), Type: c.Type, SubType: c.SubType, Markdown: withoutZWSP(texts[i])}
		if c.Type == "h" {
			children[i].Title = plain(texts[i])
		}
	}
	return children, nil
}

// Block is the document as a block.
func (d Doc) Block() Block { return Block{doc: d, id: d.id} }

// DocDOM loads the first size blocks of a document as block DOM, block by block.
func (s *Session) DocDOM(ctx context.Context, d Doc, size int) ([]string, error) {
	if err := s.use(d.nb, contract.Read); err != nil {
		return nil, err
	}
	page, err := s.g.r.Doc(ctx, d.id, size, 0)
	if err != nil {
		return nil, s.vanished(err, "document", d.id)
	}
	dom, err := s.maskDOM(ctx, page.Content)
	return DOMBlocks(dom), err
}

// DOMBlocks cuts block DOM before each of its top-level blocks. Joined again, the
// parts are the whole.
func DOMBlocks(dom string) []string {
	var cuts []int
	at := 0
	walkDOM(dom, func(t html.Token, raw string, in []domElement) {
		if t.Type == html.StartTagToken && len(in) == 0 {
			cuts = append(cuts, at)
		}
		at += len(raw)
	})
	return parts(dom, cuts)
}

// KramdownBlocks cuts the kramdown of a document behind the attribute list of
// each of its top-level blocks. Joined again, the parts are the whole; a block
// whose list is not found stands with the next one.
func KramdownBlocks(text string, blocks []Child) []string {
	cuts, at := []int{0}, 0
	for _, b := range blocks[:max(0, len(blocks)-1)] {
		end := regexp.MustCompile(`(?m)^\{:[^\n]*\bid="` + regexp.QuoteMeta(b.ID) + `"[^\n]*\}[ \t]*\n+`).FindStringIndex(text[at:])
		if end != nil {
			at += end[1]
		}
		cuts = append(cuts, at)
	}
	return parts(text, cuts)
}

// parts cuts a text at the given places; the first part begins with the text.
func parts(text string, cuts []int) []string {
	var list []string
	for i, from := range cuts {
		to := len(text)
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		if i == 0 {
			from = 0
		}
		list = append(list, text[from:to])
	}
	return list
}

// DOM is a block as block DOM.
func (s *Session) DOM(ctx context.Context, b Block) (string, error) {
	if err := s.use(b.doc.nb, contract.Read); err != nil {
		return "", err
	}
	dom, err := s.g.r.BlockDOM(ctx, b.id)
	if err != nil {
		return "", s.vanished(err, "block", b.id)
	}
	return s.maskDOM(ctx, dom)
}
