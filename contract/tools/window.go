package tools

import (
	"strings"
	"unicode/utf8"
)

// Defaults of a text window.
const (
	defaultBlocks = 50
	DefaultBudget = 2000 // tokens
)

// TokenMode says how tokens are estimated: one for every four characters.
const (
	TokenMode     = "approx_chars_div_4"
	runesPerToken = 4
)

// outlineShare is the part of an answer that the outline beside a text may take:
// one of so many.
const outlineShare = 4

// blockSeparator stands between the blocks of a window.
const blockSeparator = "\n\n"

// Tokens estimates how many tokens a text takes.
func Tokens(text string) int { return tokens(utf8.RuneCountInString(text)) }

func tokens(runes int) int { return (runes + runesPerToken - 1) / runesPerToken }

// TextBlock is one block of a text to be read in windows.
type TextBlock struct {
	ID, Type string // Type as short code
	Markdown string
	Level    int    // of a heading, else 0
	Title    string // of a heading, without marks
}

// Cut takes whole blocks out of a text: as many as the window asks for and as
// have, with the outline, at most chars characters in the answer. One block that
// is larger still comes, alone.
func (w Window) Cut(blocks []TextBlock, chars int) WindowOut {
	start, limit, budget := or(w.BlockStart, 0), or(w.BlockLimit, defaultBlocks), or(w.TokenBudget, DefaultBudget)
	out := WindowOut{
		BlockStart: start, BlockLimit: limit, TotalBlocks: len(blocks), TokenBudget: budget, TokenMode: TokenMode,
	}
	out.SetOutline(Outline(blocks, w.IncludeBlockIDs), chars/outlineShare)
	chars -= Chars(out.Outline)
	var text strings.Builder
	runes, used := 0, 0
	end := min(start, len(blocks))
	for end < len(blocks) && out.ReturnedBlocks < limit {
		b := blocks[end]
		add := utf8.RuneCountInString(b.Markdown)
		if text.Len() > 0 && b.Markdown != "" {
			add += len(blockSeparator)
		}
		ref := BlockRef{BlockIndex: end, ID: b.ID, Type: b.Type}
		more := TextChars(b.Markdown) + TextChars(blockSeparator)
		if w.IncludeBlockIDs {
			more += Chars(ref) + 1
		}
		if out.ReturnedBlocks > 0 && (tokens(runes+add) > budget || used+more > chars) {
			break
		}
		used += more
		if text.Len() > 0 && b.Markdown != "" {
			text.WriteString(blockSeparator)
		}
		text.WriteString(b.Markdown)
		runes += add
		if w.IncludeBlockIDs && b.ID != "" {
			out.BlockRefs = append(out.BlockRefs, ref)
		}
		out.ReturnedBlocks++
		end++
	}
	out.Content = text.String()
	out.EstimatedTokens = tokens(runes)
	out.BudgetExceeded = out.EstimatedTokens > budget || used > chars
	if end < len(blocks) {
		out.Truncated, out.HasNextWindow = true, true
		out.NextWindow = &NextWindow{BlockStart: end, BlockLimit: limit}
	}
	return out
}

// SetOutline shows as much of an outline as has at most chars characters.
func (o *WindowOut) SetOutline(all []OutlineEntry, chars int) {
	o.Outline = Fit(all, len(all), chars, Chars[OutlineEntry])
	o.OutlineTruncated = len(o.Outline) < len(all)
}

func or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}

// Outline lists the headings of a whole text.
func Outline(blocks []TextBlock, ids bool) []OutlineEntry {
	entries := []OutlineEntry{}
	for i, b := range blocks {
		if b.Level == 0 {
			continue
		}
		e := OutlineEntry{BlockIndex: i, Level: b.Level, Title: b.Title}
		if ids {
			e.ID = b.ID
		}
		entries = append(entries, e)
	}
	return entries
}
