package guard

import (
	"context"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

var (
	refTarget   = regexp.MustCompile(`\(\((` + idPattern + `)`)
	linkTarget  = regexp.MustCompile(`siyuan://blocks/(` + idPattern + `)`)
	domTarget   = regexp.MustCompile(`data-id="(` + idPattern + `)"`)
	avTarget    = regexp.MustCompile(`data-av-id="(` + idPattern + `)"`)
	assetTarget = regexp.MustCompile(`assets/[^\s"'()<>\]]+`)
	queryEmbed  = regexp.MustCompile(`\{\{([^{}][^\n]*?)\}\}`)
	domQuery    = regexp.MustCompile(`data-content="([^"]*)"`)
	bareRef     = regexp.MustCompile(`\(\((` + idPattern + `)\)\)`)
	// blockQuery is the one form of embed that can be judged by looking at it:
	// one block by its id.
	blockQuery = regexp.MustCompile(`(?i)^\s*select \* from blocks where id\s*=\s*'(` + idPattern + `)'\s*;?\s*$`)
)

// pull is everything a text makes its reader's SiYuan fetch from elsewhere.
type pull struct {
	blocks  []siyuan.ID
	avs     []siyuan.ID
	assets  []string
	queries []string
}

func pulls(text string, dom bool) pull {
	var p pull
	for _, re := range []*regexp.Regexp{refTarget, linkTarget, domTarget} {
		p.blocks = append(p.blocks, firstGroup(re, text)...)
	}
	p.avs = firstGroup(avTarget, text)
	p.assets = assetTarget.FindAllString(text, -1)
	queries := queryEmbed
	if dom {
		queries = domQuery
	}
	for _, m := range queries.FindAllStringSubmatch(text, -1) {
		q := html.UnescapeString(m[1])
		if dom || looksLikeQuery(q) {
			p.queries = append(p.queries, strings.TrimSpace(q))
		}
	}
	if dom { // math and HTML blocks keep their text in data-content too
		p.queries = slices.DeleteFunc(p.queries, func(q string) bool { return !looksLikeQuery(q) })
	}
	return p
}

// looksLikeQuery tells an embed from other text in double braces. An embed holds
// SQL, or a script after a //!js line.
func looksLikeQuery(q string) bool {
	q = strings.ToLower(strings.TrimSpace(q))
	return strings.Contains(q, "select") || strings.HasPrefix(q, "with") || strings.Contains(q, "//!js")
}

func firstGroup(re *regexp.Regexp, text string) []siyuan.ID {
	var ids []siyuan.ID
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		ids = append(ids, siyuan.ID(m[1]))
	}
	return ids
}

// checkPulls refuses a text that cites, embeds or links to what its writer may
// not read. What the stored text of the same block has already is none of its
// business: see checkKept.
func (s *Session) checkPulls(ctx context.Context, text, stored string, dom bool) error {
	now, before := pulls(text, dom), pulls(stored, false)
	fresh := without(now.blocks, before.blocks)
	for _, q := range without(now.queries, before.queries) {
		switch m := blockQuery.FindStringSubmatch(q); {
		case strings.Contains(strings.ToLower(q), "//!js"):
			return contract.Fail(contract.HiddenReference, "An embed block with a script can read every notebook, so agents may not write one.")
		case m != nil:
			fresh = append(fresh, siyuan.ID(m[1]))
		case !s.whole():
			return contract.Fail(contract.HiddenReference, "A query embed shows results of every notebook, also of those you may not read.").
				WithHint("Embed one block: {{select * from blocks where id='<block id>'}}.")
		}
	}
	if err := s.checkBlocks(ctx, fresh); err != nil {
		return err
	}
	for _, av := range without(now.avs, before.avs) {
		if err := s.checkDatabase(ctx, av); err != nil {
			return err
		}
	}
	return s.checkAssets(ctx, without(now.assets, before.assets))
}

func without[T comparable](list, known []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return slices.Contains(known, v) })
}

func (s *Session) checkBlocks(ctx context.Context, ids []siyuan.ID) error {
	if len(ids) == 0 {
		return nil
	}
	can, err := s.readable(ctx, ids)
	if err != nil {
		return err
	}
	var bad []siyuan.ID
	for _, id := range unique(ids) {
		if !can[id] {
			bad = append(bad, id)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return contract.Fail(contract.HiddenReference, "There is no block %s to refer to.", bad[0]).
		WithDetail(map[string]any{"ids": bad})
}

// checkDatabase demands that the database can be read, as [Session.Database]
// judges it.
func (s *Session) checkDatabase(ctx context.Context, av siyuan.ID) error {
	_, err := s.Database(ctx, string(av), contract.Read)
	if contract.CodeOf(err) == contract.NotFound {
		return contract.Fail(contract.HiddenReference, "There is no database %s to show.", string(av))
	}
	return err
}

// checkAssets demands that a readable note links to the asset already, or that
// the agent stored it. With
// nothing hidden from the caller every asset may be linked, but no other file:
// SiYuan's exports copy what a note links to.
func (s *Session) checkAssets(ctx context.Context, paths []string) error {
	if i := slices.IndexFunc(paths, leavesAssets); i >= 0 {
		return contract.Fail(contract.HiddenReference, "There is no asset of that path to link to.").WithDetail(map[string]any{"path": paths[i]})
	}
	if s.whole() {
		return nil
	}
	for _, p := range paths {
		if s.stored(p) {
			continue
		}
		rows, err := s.g.sql(ctx, "SELECT DISTINCT box FROM assets WHERE path = "+quoteSQL(p)+" LIMIT 1000")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(rows, func(r siyuan.Row) bool { return s.level(siyuan.ID(r.Text("box"))).Allows(contract.Read) }) {
			return contract.Fail(contract.HiddenReference, "There is no asset of that path to link to.").
				WithDetail(map[string]any{"path": p})
		}
	}
	return nil
}

func quoteSQL(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// anchorRunes bounds the anchor given to a bare reference.
const anchorRunes = 64

// anchor gives every bare ((id)) the text of its target as a dynamic anchor.
// The targets are known to be readable.
func (s *Session) anchor(ctx context.Context, text string) (string, error) {
	titles := map[siyuan.ID]string{}
	for _, id := range unique(firstGroup(bareRef, text)) {
		title, err := s.title(ctx, id)
		if err != nil {
			return "", err
		}
		titles[id] = title
	}
	return bareRef.ReplaceAllStringFunc(text, func(ref string) string {
		id := siyuan.ID(bareRef.FindStringSubmatch(ref)[1])
		if titles[id] == "" {
			return ref
		}
		return "((" + string(id) + " '" + html.EscapeString(titles[id]) + "'))"
	}), nil
}

// title is what a reference to the block shows: its name, else its title, else
// the start of its text. "" when there is no text.
func (s *Session) title(ctx context.Context, id siyuan.ID) (string, error) {
	attrs, err := s.g.r.BlockAttrs(ctx, id)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"name", "title"} {
		if attrs[name] != "" {
			return shorten(attrs[name]), nil
		}
	}
	text, err := s.g.r.BlockKramdown(ctx, id, siyuan.KramdownMarkdown)
	if err != nil {
		return "", err
	}
	if text, err = s.maskText(ctx, text); err != nil {
		return "", err
	}
	return shorten(plain(text)), nil
}

func shorten(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > anchorRunes {
		text = string(runes[:anchorRunes]) + "…"
	}
	return text
}

// checkKept refuses a text that keeps a reference to a block that cannot be read.
// SiYuan drops the id of a reference when it stores one to a block it does not
// know, in Markdown and in DOM alike. A reference to a hidden block would stay,
// and what became of it would tell the two apart.
func (s *Session) checkKept(ctx context.Context, block siyuan.ID, text string) error {
	ids := unique(append(firstGroup(refTarget, text), firstGroup(domTarget, text)...))
	if len(ids) == 0 {
		return nil
	}
	can, err := s.readable(ctx, ids)
	if err != nil {
		return err
	}
	lost := slices.DeleteFunc(ids, func(id siyuan.ID) bool { return can[id] })
	if len(lost) == 0 {
		return nil
	}
	return contract.Fail(contract.WouldLoseAttrs, "Block %s cannot be written with its reference to %s, because there is no such block.", block, lost[0]).
		WithDetail(map[string]any{"block": block, "references": lost}).
		WithHint("Write the text without the reference, or edit another block.")
}

// inlineMark is a marked text with an attribute list right behind it, such as
// **bold**{: style="color:red"}.
type inlineMark struct {
	mark  string // with its delimiters
	attrs siyuan.Attrs
}

// inlineMarks finds the attribute lists of a text that belong to no block: those
// with something before them on their line, which is not the marker of a list
// item, and without an id.
func inlineMarks(text string) []inlineMark {
	var marks []inlineMark
	outsideFences(text, func(part string) string {
		for _, at := range ialPattern.FindAllStringIndex(part, -1) {
			attrs := parseIAL(part[at[0]:at[1]])
			line := part[strings.LastIndexByte(part[:at[0]], '\n')+1 : at[0]]
			if mark := markAtEnd(line); mark != "" && attrs["id"] == "" && len(attrs) > 0 {
				marks = append(marks, inlineMark{mark, attrs})
			}
		}
		return part
	})
	return marks
}

// markAtEnd is the marked text that a line ends with, "" when it ends with none.
func markAtEnd(line string) string {
	if line == "" {
		return ""
	}
	end := line[len(line)-1]
	inner, open := line, ""
	switch {
	case strings.ContainsRune("*=~_^`#$", rune(end)):
		inner = strings.TrimRight(line, string(end))
		open = line[len(inner):]
	case strings.HasSuffix(line, "))"):
		open = "(("
	case end == ')':
		open = "["
	case end == '>':
		inner, open = line[:max(0, strings.LastIndexByte(line, '<'))], "<"
	}
	from := -1
	if open != "" {
		from = strings.LastIndex(inner, open)
	}
	if from > 0 && open == "[" && line[from-1] == '!' {
		from-- // an image
	}
	if from < 0 {
		return ""
	}
	return line[from:]
}

// checkInline refuses Markdown that keeps a marked text of the stored block but
// not its inline attributes, and Markdown with attributes on an image, which
// the kernel garbles.
func checkInline(block siyuan.ID, text, stored string) error {
	lost := func(what string, attrs siyuan.Attrs) error {
		names := slices.Sorted(maps.Keys(attrs))
		return contract.Fail(contract.WouldLoseAttrs, "The inline attributes %s of %s in block %s would be lost.", strings.Join(names, ", "), what, block).
			WithDetail(map[string]any{"block": block, "attributes": names}).
			WithHint("Send the attributes as block.get_kramdown shows them, behind the same text, or send DOM.")
	}
	kept := inlineMarks(text)
	for _, m := range kept {
		if strings.HasPrefix(m.mark, "![") {
			return lost("an image", m.attrs)
		}
	}
	for _, m := range inlineMarks(stored) {
		if !strings.Contains(text, m.mark) {
			continue // the text itself is gone: that is what the caller asked for
		}
		i := slices.IndexFunc(kept, func(k inlineMark) bool { return k.mark == m.mark && includes(k.attrs, m.attrs) })
		if i < 0 {
			return lost("a marked text", m.attrs)
		}
		if strings.Count(text, m.mark) >= strings.Count(stored, m.mark) {
			kept = slices.Delete(kept, i, i+1) // each stands for one
		}
	}
	return nil
}

// includes reports whether have has every attribute of want with its value.
func includes(have, want siyuan.Attrs) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}
