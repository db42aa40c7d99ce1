package guard

import (
	"context"
	"regexp"
	"strings"
)

var (
	superLine = regexp.MustCompile(`(?m)^[ \t>]*(?:\{\{\{(?:row|col)?|\}\}\})[ \t]*\n?`)
	anyEmbed  = regexp.MustCompile(`\{\{[^{}][^\n]*?\}\}`)
	avBlock   = regexp.MustCompile(`<div [^>]*data-av-id="[^"]*"[^>]*></div>`)
)

// Export is a document as Markdown for other programs: references are the text
// they show, embeds and databases are left out, because what they would show
// comes from anywhere. The kernel's own export is not used for that reason.
func (s *Session) Export(ctx context.Context, d Doc) (string, error) {
	parts, err := s.ExportBlocks(ctx, d)
	if err != nil {
		return "", err
	}
	return strings.Join(parts, "\n\n") + "\n", nil
}

// ExportBlocks is Export, block by block; a blank line stands between them.
func (s *Session) ExportBlocks(ctx context.Context, d Doc) (parts []string, err error) {
	blocks, err := s.Children(ctx, d.Block())
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		text := b.Markdown
		if b.Type != "c" && b.Type != "m" && b.Type != "html" {
			text = dynamicRef.ReplaceAllString(text, "$2$3")
			text = staticRef.ReplaceAllString(text, "$1")
			text = anyEmbed.ReplaceAllString(text, "")
			text = avBlock.ReplaceAllString(text, "")
			text = superLine.ReplaceAllString(text, "")
		}
		if text = strings.TrimRight(text, "\n "); text != "" {
			parts = append(parts, text)
		}
	}
	return parts, nil
}
