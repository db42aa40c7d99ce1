package document

import (
	"context"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Defaults of a text window.
const (
	defaultLimit  = 50
	defaultBudget = 2000
	defaultSize   = 128 // blocks of an html window
)

// tokenMode says how tokens are estimated: one for every four characters.
const (
	tokenMode     = "approx_chars_div_4"
	runesPerToken = 4
)

func getDoc(ctx context.Context, r *tools.Request, in catalogue.DocumentGetDocIn) (out catalogue.DocumentGetDocOut, err error) {
	doc, err := r.Session.Doc(ctx, in.ID, contract.Read)
	if err != nil {
		return out, err
	}
	hpath, err := r.Session.HPath(ctx, doc)
	if err != nil {
		return out, err
	}
	blocks, err := r.Session.Children(ctx, doc.Block())
	if err != nil {
		return out, err
	}
	out = catalogue.DocumentGetDocOut{
		ID: doc.ID(), Mode: "markdown", Notebook: doc.Notebook().ID(), NotebookName: doc.Notebook().Name(), HPath: hpath,
	}
	if in.Mode == "html" {
		out.Mode = "html"
		out.WindowOut, err = htmlWindow(ctx, r.Session, doc, blocks, in.Size)
		return out, err
	}
	out.WindowOut = textWindow(blocks, in.Window)
	return out, nil
}

// textWindow cuts whole blocks out of a document. One block that is larger than
// the budget still comes, alone.
func textWindow(blocks []guard.Child, w catalogue.Window) catalogue.WindowOut {
	start, limit, budget := or(w.BlockStart, 0), or(w.BlockLimit, defaultLimit), or(w.TokenBudget, defaultBudget)
	out := catalogue.WindowOut{
		Outline: outline(blocks, w.IncludeBlockIDs), BlockStart: start, BlockLimit: limit,
		TotalBlocks: len(blocks), TokenBudget: budget, TokenMode: tokenMode,
	}
	var text strings.Builder
	runes := 0
	end := min(start, len(blocks))
	for end < len(blocks) && out.ReturnedBlocks < limit {
		b := blocks[end]
		add := utf8.RuneCountInString(b.Markdown)
		if text.Len() > 0 && b.Markdown != "" {
			add += len(separator)
		}
		if out.ReturnedBlocks > 0 && tokens(runes+add) > budget {
			break
		}
		if text.Len() > 0 && b.Markdown != "" {
			text.WriteString(separator)
		}
		text.WriteString(b.Markdown)
		runes += add
		if w.IncludeBlockIDs {
			out.BlockRefs = append(out.BlockRefs, catalogue.BlockRef{BlockIndex: end, ID: b.ID, Type: b.Type})
		}
		out.ReturnedBlocks++
		end++
	}
	out.Content = text.String()
	out.EstimatedTokens = tokens(runes)
	out.BudgetExceeded = out.EstimatedTokens > budget
	if end < len(blocks) {
		out.Truncated, out.HasNextWindow = true, true
		out.NextWindow = &catalogue.NextWindow{BlockStart: end, BlockLimit: limit}
	}
	return out
}

// separator stands between the blocks of a window.
const separator = "\n\n"

func tokens(runes int) int { return (runes + runesPerToken - 1) / runesPerToken }

func or(v *int, standard int) int {
	if v == nil {
		return standard
	}
	return *v
}

// outline lists the headings of the whole document.
func outline(blocks []guard.Child, ids bool) []catalogue.OutlineEntry {
	entries := []catalogue.OutlineEntry{}
	for i, b := range blocks {
		if b.Level() == 0 {
			continue
		}
		e := catalogue.OutlineEntry{BlockIndex: i, Level: b.Level(), Title: b.Title}
		if ids {
			e.ID = b.ID
		}
		entries = append(entries, e)
	}
	return entries
}

func htmlWindow(ctx context.Context, s *guard.Session, doc guard.Doc, blocks []guard.Child, size int) (catalogue.WindowOut, error) {
	if size == 0 {
		size = defaultSize
	}
	dom, returned, err := s.DocDOM(ctx, doc, size)
	return catalogue.WindowOut{
		Content: dom, Outline: outline(blocks, true), BlockLimit: size, ReturnedBlocks: returned, TotalBlocks: len(blocks),
		TokenBudget: defaultBudget, EstimatedTokens: tokens(utf8.RuneCountInString(dom)), TokenMode: tokenMode,
		Truncated: returned < len(blocks),
	}, err
}
