package samplekernel

import (
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func searchMoreRoutes() map[string]route {
	const p = "/api/search/"
	return map[string]route{
		p + "searchRefBlock":             {serve: searchRefBlock},
		p + "searchEmbedBlock":           {serve: searchEmbedBlock},
		p + "getEmbedBlock":              {serve: getEmbedBlock},
		p + "updateEmbedBlock":           {serve: updateEmbedBlock, write: true},
		p + "findReplace":                {serve: findReplace, write: true},
		p + "listInvalidBlockRefs":       {serve: listInvalidBlockRefs},
		p + "searchTag":                  {serve: searchTag},
		p + "searchAsset":                {serve: searchAsset},
		p + "searchTemplate":             {serve: searchTemplate},
		p + "removeTemplate":             {serve: removeTemplate, write: true},
		p + "searchWidget":               {serve: searchWidget},
		p + "fullTextSearchAssetContent": {serve: fullTextSearchAssetContent},
		p + "getAssetContent":            {serve: getAssetContent},
		p + "getAssetContentByPath":      {serve: getAssetContent},
	}
}

// maxRefHits bounds what the reference menu offers.
const maxRefHits = 64

// searchRefBlock is what the editor offers while a reference is typed: without
// a keyword the blocks that are cited already.
func searchRefBlock(k *Kernel, a args) (any, error) {
	out := map[string]any{"reqId": a["reqId"]}
	id, _ := a["id"].(string)
	if id == "" {
		return out, nil
	}
	rootID, keyword := a.str("rootID"), a.str("k")
	before := a.intOr("beforeLen", maxAnchor)
	var rows []map[string]string
	mark := func(s string) string { return s }
	if keyword == "" {
		rows = k.rows("SELECT " + viewColumns + " FROM blocks WHERE id IN (SELECT def_block_id FROM refs) ORDER BY sort ASC, length ASC LIMIT " + itoa(maxRefHits))
	} else {
		words := strings.Fields(keyword)
		mark = marker(words)
		rows = k.filtered(search{types: []string{"d", "h", "p"}}, func(r map[string]string) bool {
			for _, w := range words {
				if !containsFold(haystack(r), w) {
					return false
				}
			}
			return r["id"] != id && r["id"] != rootID
		})
		sort.SliceStable(rows, func(i, j int) bool {
			a, b := rows[i], rows[j]
			return a["sort"] == b["sort"] && len(a["content"]) < len(b["content"])
		})
	}
	views := []*blockView{}
	exact := false
	for _, r := range rows[:min(len(rows), maxRefHits)] {
		v := viewOf(r)
		exact = exact || v.Type == "NodeDocument" && strings.EqualFold(v.Content, keyword)
		if p, ok := k.block(v.ID); ok {
			v.RefText = k.refText(p)
		}
		v.RefCount = k.refCount(v.ID)
		v.HPath = k.boxName(v.Box) + v.HPath
		if v.Type == "NodeDocument" {
			v.HPath = parentHPath(v.HPath)
		}
		v.Content, v.Name, v.Alias, v.Memo = shorten(mark(v.Content), before), mark(v.Name), mark(v.Alias), mark(v.Memo)
		views = append(views, v)
	}
	out["blocks"], out["k"], out["newDoc"] = views, keyword, keyword != "" && !exact
	return out, nil
}

// shorten cuts what stands too far before the first mark.
func shorten(s string, before int) string {
	at := strings.Index(s, "<mark>")
	if at < 0 {
		return s
	}
	head := []rune(s[:at])
	if limit := before * 3 / 4; len(head) > limit && limit > 0 {
		return "..." + string(head[len(head)-limit-1:]) + s[at:]
	}
	return s
}

// embedResult is one block in an embed.
func (k *Kernel) embedResult(p place, breadcrumb bool) map[string]any {
	v := &blockView{
		Box: p.doc.box, Path: p.doc.path, HPath: k.fullHPath(p.doc), ID: p.node.ID, Content: dom(p.node), Markdown: text.ExportPlain(p.node),
		Type: p.node.Type.String(), SubType: text.Subtype(p.node), IAL: text.Attrs(p.node),
	}
	paths := []any{}
	if breadcrumb {
		paths = k.breadcrumb(p)
	}
	return map[string]any{"block": v, "blockPaths": paths, "allowChildOperation": false}
}

func searchEmbedBlock(k *Kernel, a args) (any, error) {
	embed := a.str("embedBlockID")
	stmt, exclude := a.str("stmt"), map[string]bool{}
	for _, id := range a.strs("excludeIDs") {
		exclude[id] = true
	}
	if err := k.index.ReadOnly(stmt); err != nil {
		return nil, fail(err.Error())
	}
	var shown []place
	hits := k.embedHits(stmt)
	sort.SliceStable(hits, func(i, j int) bool {
		return hits[i].node.IALAttr("updated") > hits[j].node.IALAttr("updated")
	})
	for _, p := range hits {
		if !exclude[p.node.ID] {
			shown = append(shown, p)
		}
	}
	return k.renderEmbed(embed, shown, a.boolOr("breadcrumb", false)), nil
}

func getEmbedBlock(k *Kernel, a args) (any, error) {
	embed := a.str("embedBlockID")
	var shown []place
	for _, id := range a.strs("includeIDs") {
		if p, ok := k.block(id); ok {
			shown = append(shown, p)
		}
	}
	return k.renderEmbed(embed, shown, a.boolOr("breadcrumb", false)), nil
}

// renderEmbed answers the blocks an embed shows. It also puts their text in the
// embed's own index row, whatever notebooks they are in: from then on a search
// in the embed's notebook finds text of the others.
func (k *Kernel) renderEmbed(embed string, shown []place, breadcrumb bool) map[string]any {
	var content strings.Builder
	blocks := []any{}
	for _, p := range shown {
		blocks = append(blocks, k.embedResult(p, breadcrumb))
		content.WriteString(text.RawContent(p.node))
	}
	if p, ok := k.block(embed); ok && p.node.Type == ast.NodeBlockQueryEmbed {
		k.cacheEmbed(embed, content.String())
	}
	return map[string]any{"blocks": blocks}
}

func (k *Kernel) cacheEmbed(id, content string) {
	k.renders = append(k.renders, task{k.now().Add(k.opt.IndexLag), func() {
		if err := k.index.SetContent(id, content); err != nil {
			panic(err) // as in reindex
		}
	}})
}

// updateEmbedBlock lets the front end say what an embed shows.
func updateEmbedBlock(k *Kernel, a args) (any, error) {
	id, content := a.str("id"), a.str("content")
	p, ok := k.block(id)
	if !ok {
		return nil, fail(msgNoBlock)
	}
	if p.node.Type != ast.NodeBlockQueryEmbed {
		return nil, fail("not query embed block")
	}
	k.cacheEmbed(id, content)
	return nil, nil
}

// findReplace replaces in the text of the given blocks. Without a kind of text
// to replace in it does nothing, and it reports no errors.
func findReplace(k *Kernel, a args) (any, error) {
	find, with, ids := a.str("k"), a.str("r"), a.strs("ids")
	kinds := or(a, "replaceTypes", map[string]any(nil))
	if plain, _ := kinds["text"].(bool); !plain || find == "" {
		return nil, nil
	}
	pattern := regexp.QuoteMeta(find)
	if a.intOr("method", searchKeyword) == searchRegexp {
		pattern = find
	} else {
		with = strings.ReplaceAll(with, "$", "$$")
	}
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, nil //nolint:nilerr // the trap being imitated
	}
	for _, id := range ids {
		p, ok := k.block(id)
		if !ok {
			continue
		}
		if text.ReplaceText(p.node, func(s string) string { return re.ReplaceAllString(s, with) }) {
			p.node.SetIALAttr("updated", stamp(k.now()))
			if err := k.save(p.doc); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// listInvalidBlockRefs lists blocks with a reference whose target is gone.
func listInvalidBlockRefs(k *Kernel, a args) (any, error) {
	size, page := max(1, a.intOr("pageSize", 32)), max(1, a.intOr("page", 1))
	blocks, roots := []*blockView{}, map[string]bool{}
	for _, r := range k.rows("SELECT " + viewColumns + " FROM blocks WHERE id IN (SELECT block_id FROM refs WHERE def_block_id NOT IN (SELECT id FROM blocks)) ORDER BY sort, updated DESC") {
		blocks = append(blocks, viewOf(r))
		roots[r["root_id"]] = true
	}
	count := len(blocks)
	return map[string]any{
		"blocks": blocks[min((page-1)*size, count):min(page*size, count)], "matchedBlockCount": count, "matchedRootCount": len(roots), "pageCount": (count + size - 1) / size,
	}, nil
}

// tagCounts counts in how many places each tag of the open notebooks stands.
func (k *Kernel) tagCounts() map[string]int {
	counts := map[string]int{}
	for _, r := range k.rows("SELECT content FROM spans WHERE type LIKE '%tag%'") {
		counts[r["content"]]++
	}
	for _, d := range k.docs {
		for _, t := range strings.Fields(text.Tags(d.root)) {
			counts[strings.Trim(t, "#")]++
		}
	}
	return counts
}

func searchTag(k *Kernel, a args) (any, error) {
	keyword := a.str("k")
	mark := func(s string) string { return s }
	if keyword != "" {
		mark = marker([]string{keyword})
	}
	tags := []string{}
	for _, t := range sortedKeys(k.tagCounts()) {
		if containsFold(t, keyword) {
			tags = append(tags, mark(t))
		}
	}
	return map[string]any{"k": keyword, "tags": tags}, nil
}

// searchAsset answers from a cache a fresh kernel has not filled: nothing.
func searchAsset(_ *Kernel, a args) (any, error) {
	_ = a.str("k")
	return []any{}, nil
}

func searchTemplate(k *Kernel, a args) (any, error) {
	keyword := a.str("k")
	out := []any{}
	dir := k.workspace("data", "templates")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fail(err.Error())
	}
	for _, e := range entries {
		name, isTemplate := strings.CutSuffix(e.Name(), ".md")
		if !isTemplate || !containsFold(name, keyword) {
			continue
		}
		content := name
		if keyword != "" {
			content = marker([]string{keyword})(name)
		}
		out = append(out, map[string]any{"path": filepath.Join(dir, e.Name()), "relativePath": e.Name(), "content": content})
	}
	return map[string]any{"k": keyword, "templates": out}, nil
}

func removeTemplate(k *Kernel, a args) (any, error) {
	p := a.str("path")
	if strings.HasPrefix(p, k.workspace("data", "templates")+string(filepath.Separator)) {
		_ = os.Remove(p) // missing is as good as removed
	}
	return nil, nil
}

func searchWidget(_ *Kernel, a args) (any, error) {
	return map[string]any{"k": a.str("k"), "widgets": []any{}}, nil
}

func fullTextSearchAssetContent(*Kernel, args) (any, error) {
	return map[string]any{"assetContents": []any{}, "matchedAssetCount": 0, "pageCount": 0}, nil
}

func getAssetContent(*Kernel, args) (any, error) {
	return map[string]any{"assetContent": nil}, nil
}
