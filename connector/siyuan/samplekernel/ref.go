package samplekernel

import (
	"slices"
	"sort"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func refRoutes() map[string]route {
	return map[string]route{
		"/api/ref/getBacklink2":      {serve: getBacklink2},
		"/api/ref/getBacklinkDoc":    {serve: getBacklinkDoc},
		"/api/ref/getBackmentionDoc": {serve: getBackmentionDoc},
		"/api/ref/refreshBacklink":   {serve: nothing},
	}
}

// definition is what backlinks are asked for: a block, or a document with
// everything in it.
type definition struct {
	place
	ids map[string]bool // the blocks whose citations count
}

// definition finds it. The section of a heading and the content of a container
// belong to it when children is set.
func (k *Kernel) definition(id string, children bool) (definition, bool) {
	p, ok := k.block(id)
	if !ok {
		return definition{}, false
	}
	d := definition{p, map[string]bool{id: true}}
	nodes := []*ast.Node{p.node}
	if children && p.node.Type == ast.NodeHeading {
		nodes = append(nodes, text.Section(p.node)...)
	}
	if p.node == p.doc.root || children {
		for _, n := range nodes {
			for _, b := range text.Blocks(n) {
				d.ids[b.ID] = true
			}
		}
	}
	return d, true
}

// citations lists the blocks that cite a definition, in document order of the
// index, each once.
func (k *Kernel) citations(d definition, keyword string) (rows []map[string]string) {
	seen := map[string]bool{}
	for _, r := range k.rows("SELECT r.block_id, r.def_block_id, r.root_id, b.content, d.content AS title FROM refs r JOIN blocks b ON b.id = r.block_id JOIN blocks d ON d.id = r.root_id") {
		if !d.ids[r["def_block_id"]] || seen[r["block_id"]] {
			continue
		}
		if keyword != "" && !containsFold(r["content"], keyword) && !containsFold(r["title"], keyword) {
			continue
		}
		seen[r["block_id"]] = true
		rows = append(rows, r)
	}
	return rows
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// mentions lists the blocks outside the definition's document that name it
// without citing it.
func (k *Kernel) mentions(d definition, keyword string) (rows []map[string]string) {
	words := k.mentionWords(d)
	if len(words) == 0 {
		return nil
	}
	citing := map[string]bool{}
	for _, r := range k.citations(d, "") {
		citing[r["block_id"]] = true
	}
	for _, r := range k.rows("SELECT DISTINCT id AS block_id, root_id, content, type FROM blocks ORDER BY sort, id") {
		if r["root_id"] == d.doc.id() || citing[r["block_id"]] || !mentionable(r["type"]) || keyword != "" && !containsFold(r["content"], keyword) {
			continue
		}
		if slices.ContainsFunc(words, func(w string) bool { return containsFold(r["content"], w) }) {
			rows = append(rows, r)
		}
	}
	return rows
}

func mentionable(code string) bool { return code == "d" || code == "h" || code == "p" || code == "t" }

// mentionWords are the names a definition goes by: of the document its title,
// and the name attributes of the blocks asked about.
func (k *Kernel) mentionWords(d definition) (words []string) {
	for _, b := range text.Blocks(d.doc.root) {
		if name := text.Attr(b, "name"); name != "" && d.ids[b.ID] {
			words = append(words, name)
		}
	}
	if d.node == d.doc.root {
		words = append(words, d.doc.title())
	}
	return words
}

// byDocument groups rows into path views of their documents, newest first.
func (k *Kernel) byDocument(rows []map[string]string) []*pathView {
	views, byRoot := []*pathView{}, map[string]*pathView{}
	for _, r := range rows {
		v := byRoot[r["root_id"]]
		if v == nil {
			d, ok := k.docs[r["root_id"]]
			if !ok {
				continue
			}
			v = &pathView{ID: d.id(), Box: d.box, Name: d.title(), HPath: k.fullHPath(d), Type: "backlink", NodeType: "NodeDocument",
				Updated: d.root.IALAttr("updated"), Created: d.id()[:14]}
			byRoot[d.id()] = v
			views = append(views, v)
		}
		v.Count++
	}
	sort.SliceStable(views, func(i, j int) bool { return views[i].Updated > views[j].Updated })
	return views
}

func getBacklink2(k *Kernel, a args) (any, error) {
	id, keyword, mentionKeyword := a.str("id"), a.str("k"), a.str("mk")
	out := map[string]any{"backlinks": []any{}, "backmentions": []any{}, "box": "", "k": keyword, "mk": mentionKeyword, "linkRefsCount": 0, "mentionsCount": 0}
	d, ok := k.definition(id, a.boolOr("containChildren", true))
	if !ok {
		return out, nil
	}
	links, mentions := k.citations(d, keyword), k.mentions(d, mentionKeyword)
	out["box"], out["backlinks"], out["linkRefsCount"] = d.doc.box, k.byDocument(links), len(links)
	out["backmentions"], out["mentionsCount"] = k.byDocument(mentions), len(mentions)
	return out, nil
}

// backlink is a citing or mentioning block of one document.
type backlink struct {
	DOM    string `json:"dom"`
	Paths  []any  `json:"blockPaths"`
	Expand bool   `json:"expand"`
}

// inTree renders the blocks of one document, a heading with its section folded.
func (k *Kernel) inTree(rows []map[string]string, treeID string) []backlink {
	out := []backlink{}
	for _, r := range rows {
		p, ok := k.block(r["block_id"])
		if !ok || r["root_id"] != treeID {
			continue
		}
		if p.node.Type == ast.NodeHeading {
			var b strings.Builder
			for _, n := range append([]*ast.Node{p.node}, text.Section(p.node)...) {
				b.WriteString(text.DOM(n))
			}
			out = append(out, backlink{b.String(), []any{}, false})
			continue
		}
		out = append(out, backlink{text.DOM(p.node), k.breadcrumb(p), true})
	}
	return out
}

func getBacklinkDoc(k *Kernel, a args) (any, error) {
	defID, treeID, keyword := a.str("defID"), a.str("refTreeID"), a.str("keyword")
	out := map[string]any{"backlinks": []any{}, "keywords": []any{}}
	if d, ok := k.definition(defID, a.boolOr("containChildren", true)); ok {
		out["backlinks"] = k.inTree(k.citations(d, keyword), treeID)
	}
	return out, nil
}

func getBackmentionDoc(k *Kernel, a args) (any, error) {
	defID, treeID, keyword := a.str("defID"), a.str("refTreeID"), a.str("keyword")
	d, ok := k.definition(defID, false)
	if !ok {
		return map[string]any{"backmentions": []any{}, "keywords": nil}, nil
	}
	return map[string]any{"backmentions": k.inTree(k.mentions(d, keyword), treeID), "keywords": k.mentionWords(d)}, nil
}
