package guard

import (
	"context"
	"regexp"

	"siyuan-broker/connector/siyuan"
)

// maxChain bounds how far dynamic anchors are followed. What is further away
// counts as hidden.
const maxChain = 8

// showable tells for which targets a dynamic anchor may be shown. The target
// must be readable, and its text must not itself show the title of something
// that is not: an anchor is made of its target's text, anchors in it included.
// A document's anchor is its title and a named block's its name, which hold no
// references.
func (s *Session) showable(ctx context.Context, ids []siyuan.ID) (map[siyuan.ID]bool, error) {
	can, err := s.readable(ctx, ids)
	if err != nil {
		return nil, err
	}
	cites := map[siyuan.ID][]siyuan.ID{}
	for depth, next := 0, s.quoting(ids, can); len(next) > 0; depth++ {
		texts, err := s.g.r.BlockKramdowns(ctx, next, siyuan.KramdownMarkdown)
		if err != nil {
			return nil, err
		}
		var targets []siyuan.ID
		for _, id := range next {
			cites[id] = quoted(texts[id])
			targets = append(targets, cites[id]...)
			can[id] = can[id] && depth < maxChain && texts[id] != ""
		}
		more, err := s.readable(ctx, targets)
		if err != nil {
			return nil, err
		}
		var unseen []siyuan.ID
		for _, id := range unique(targets) {
			if _, known := can[id]; !known {
				can[id] = more[id]
				unseen = append(unseen, id)
			}
		}
		if next = s.quoting(unseen, can); depth >= maxChain {
			break
		}
	}
	for changed := true; changed; {
		changed = false
		for id, targets := range cites {
			for _, t := range targets {
				if can[id] && !can[t] {
					can[id], changed = false, true
				}
			}
		}
	}
	return can, nil
}

// quoting are the readable blocks among ids whose anchors quote text: all but
// documents.
func (s *Session) quoting(ids []siyuan.ID, can map[siyuan.ID]bool) []siyuan.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var blocks []siyuan.ID
	for _, id := range unique(ids) {
		if can[id] && s.places[id].root != id {
			blocks = append(blocks, id)
		}
	}
	return blocks
}

// quoted are the targets whose titles are in the anchor of a block; "" stands
// for one the kernel has forgotten.
func quoted(kramdown string) []siyuan.ID {
	if _, own := cutOwnIAL(kramdown); own["name"] != "" {
		return nil
	}
	var ids []siyuan.ID
	for _, m := range dynamicRef.FindAllStringSubmatch(kramdown, -1) {
		ids = append(ids, siyuan.ID(m[1]))
	}
	return ids
}

// foreignPart is what shows rows of other notebooks inside a block's text:
// embeds and databases.
var foreignPart = regexp.MustCompile(`\{\{[^{}][^\n]*?\}\}|<div [^>\n]*data-av-id="[^"\n]*"[^>\n]*>(?:</div>)?`)

// rendered reports whether the index's plain text of a block may hold what an
// embed or a database in it shows. Its Markdown does not.
func rendered(code, markdown string) bool {
	return code == "av" || code == "query_embed" || foreignPart.MatchString(markdown)
}

// ownText is Markdown without embeds and databases.
func ownText(markdown string) string { return foreignPart.ReplaceAllString(markdown, "") }
