package guard

import (
	"context"
	"html"
	"regexp"
	"strings"

	"siyuan-broker/connector/guard/sqlscope"
	"siyuan-broker/connector/siyuan"
)

// Placeholder is what stands for the title of anything the caller may not
// read, whether it is hidden, closed or gone. SQL shows the same.
const Placeholder = sqlscope.Placeholder

const idPattern = `\d{14}-[0-9a-z]{7}`

// dynamicRef is a reference whose anchor the kernel fills with the target's
// title. The kernel writes an apostrophe in it as &apos;, so the anchor ends at
// the first one. Where that fails to hold, the rest of the line counts as
// anchor: hiding too much is the safe side. The id is empty where the kernel has
// forgotten it, because the target was missing when the text was written.
var dynamicRef = regexp.MustCompile(`\(\((` + idPattern + `)? '(?:([^'\n]*)'\)\)|([^\n]*))`)

func dynamicTargets(text string) []siyuan.ID {
	var ids []siyuan.ID
	for _, m := range dynamicRef.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			ids = append(ids, siyuan.ID(m[1]))
		}
	}
	return ids
}

// maskText shows the dynamic anchors of unreadable targets in Markdown or
// kramdown as the placeholder.
func (s *Session) maskText(ctx context.Context, text string) (string, error) {
	if !strings.Contains(text, "((") {
		return text, nil
	}
	can, err := s.showable(ctx, dynamicTargets(text))
	if err != nil {
		return "", err
	}
	return maskDynamic(text, can), nil
}

func maskDynamic(text string, can map[siyuan.ID]bool) string {
	return dynamicRef.ReplaceAllStringFunc(text, func(ref string) string {
		m := dynamicRef.FindStringSubmatch(ref)
		if can[siyuan.ID(m[1])] && m[3] == "" {
			return ref
		}
		return "((" + m[1] + " '" + Placeholder + "'))"
	})
}

// maskTexts is maskText of many, with one round of questions.
func (s *Session) maskTexts(ctx context.Context, texts []string) ([]string, error) {
	var ids []siyuan.ID
	for _, t := range texts {
		ids = append(ids, dynamicTargets(t)...)
	}
	can, err := s.showable(ctx, ids)
	if err != nil {
		return nil, err
	}
	masked := make([]string, len(texts))
	for i, t := range texts {
		masked[i] = maskDynamic(t, can)
	}
	return masked, nil
}

// unmask puts the anchors of the stored text back where the new text has the
// placeholder, per target in order. What has no counterpart stays, and is then
// refused as a reference to something unreadable.
func unmask(text, stored string) string {
	anchors := map[string][]string{}
	for _, m := range dynamicRef.FindAllStringSubmatch(stored, -1) {
		anchors[m[1]] = append(anchors[m[1]], m[2])
	}
	return dynamicRef.ReplaceAllStringFunc(text, func(ref string) string {
		m := dynamicRef.FindStringSubmatch(ref)
		queue := anchors[m[1]]
		if len(queue) == 0 {
			return ref
		}
		anchors[m[1]] = queue[1:]
		if m[2] != Placeholder {
			return ref
		}
		return "((" + m[1] + " '" + queue[0] + "'))"
	})
}

var (
	staticRef  = regexp.MustCompile(`\(\((?:` + idPattern + `) "([^\n]*?)"\)\)`)
	linkMarks  = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	lineMarks  = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}|>|[-*+]|\d{1,9}[.)])[ \t]+`)
	emphasis   = regexp.MustCompile("\\*\\*|==|~~|`")
	inlineIALs = regexp.MustCompile(`\{:[^}\n]*\}`)
)

// plain is the text of Markdown without its marks: what a search hit or a title
// shows. References show their anchor.
func plain(markdown string) string {
	t := dynamicRef.ReplaceAllString(markdown, "$2$3")
	t = staticRef.ReplaceAllString(t, "$1")
	t = inlineIALs.ReplaceAllString(t, "")
	t = linkMarks.ReplaceAllString(t, "$1")
	t = lineMarks.ReplaceAllString(t, "")
	t = emphasis.ReplaceAllString(t, "")
	return strings.TrimSpace(html.UnescapeString(withoutZWSP(t)))
}
