package samplekernel

import (
	"maps"
	"slices"
)

func graphRoutes() map[string]route {
	return map[string]route{
		"/api/graph/getGraph":        {serve: getGraph},
		"/api/graph/getLocalGraph":   {serve: getLocalGraph},
		"/api/graph/resetGraph":      {serve: resetGraph, noBody: true},
		"/api/graph/resetLocalGraph": {serve: resetLocalGraph, noBody: true},
	}
}

// graphNode is a block or a tag in the graph. Size grows with citations in a
// real kernel; here it is the configured one, doubled from the second on.
type graphNode struct {
	ID    string  `json:"id"`
	Box   string  `json:"box"`
	Path  string  `json:"path"`
	Size  float64 `json:"size"`
	Title string  `json:"title,omitempty"`
	Label string  `json:"label"`
	Type  string  `json:"type"`
	Refs  int     `json:"refs"`
	Defs  int     `json:"defs"`
}

type graphLink struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Ref    bool   `json:"ref"`
	Arrows any    `json:"arrows"`
}

// graphTypes maps the switches of a graph to types of the index.
func graphTypes() map[string]string {
	return map[string]string{"paragraph": "p", "heading": "h", "math": "m", "code": "c", "table": "t", "list": "l", "listItem": "i",
		"blockquote": "b", "super": "s", "callout": "callout"}
}

// graphConf completes a configuration.
func graphConf(conf args, global bool) map[string]any {
	types := map[string]any{"tag": false}
	for name := range graphTypes() {
		types[name] = false
	}
	if given, ok := conf["type"].(map[string]any); ok {
		maps.Copy(types, given)
	}
	d3 := map[string]any{"nodeSize": 15.0, "linkWidth": 8.0, "lineOpacity": 0.36, "centerStrength": 0.01, "collideRadius": 600.0,
		"collideStrength": 0.08, "linkDistance": 400.0, "arrow": true}
	if given, ok := conf["d3"].(map[string]any); ok {
		maps.Copy(d3, given)
	}
	out := map[string]any{"dailyNote": conf.boolOr("dailyNote", false), "type": types, "d3": d3}
	if global {
		out["minRefs"] = conf.intOr("minRefs", 0)
	}
	return out
}

// graph builds nodes and links from the rows keep says.
func (k *Kernel) graph(conf map[string]any, keep func(map[string]string) bool) (nodes []*graphNode, links []graphLink) {
	nodes, links = []*graphNode{}, []graphLink{}
	types := conf["type"].(map[string]any)
	codes := []string{"d"}
	for name, code := range graphTypes() {
		if on, _ := types[name].(bool); on {
			codes = append(codes, code)
		}
	}
	size, _ := conf["d3"].(map[string]any)["nodeSize"].(float64)
	byID := map[string]*graphNode{}
	parents := map[string]string{}
	for _, r := range k.rows("SELECT id, box, path, parent_id, name, content, type FROM blocks GROUP BY id ORDER BY root_id, sort, id") {
		if !slices.Contains(codes, r["type"]) || !keep(r) {
			continue
		}
		n := &graphNode{ID: r["id"], Box: r["box"], Path: r["path"], Size: size, Type: viewOf(r).Type}
		if r["type"] == "d" || r["type"] == "h" {
			n.Label = r["content"]
		} else if n.Title = r["name"]; n.Title == "" {
			n.Title = shortTitle(r["content"])
		}
		byID[n.ID] = n
		parents[n.ID] = r["parent_id"]
		nodes = append(nodes, n)
	}
	link := func(from, to string, ref bool) {
		a, b := byID[from], byID[to]
		if a == nil || b == nil {
			return
		}
		l := graphLink{From: from, To: to, Ref: ref}
		a.Refs++
		if ref {
			b.Defs++
			l.Arrows = map[string]any{"to": map[string]any{"enabled": true}}
			if b.Defs > 1 {
				b.Size = 2 * size
			}
		}
		links = append(links, l)
	}
	for _, n := range nodes {
		link(parents[n.ID], n.ID, false)
	}
	for _, r := range k.rows("SELECT DISTINCT block_id, root_id, def_block_id, def_block_root_id FROM refs") {
		link(r["block_id"], r["def_block_id"], true)
		if r["def_block_root_id"] != r["root_id"] {
			link(r["root_id"], r["def_block_root_id"], true)
		}
	}
	if on, _ := types["tag"].(bool); on {
		nodes = append(nodes, k.graphTags(byID, size, link)...)
	}
	return nodes, links
}

func (k *Kernel) graphTags(byID map[string]*graphNode, size float64, link func(from, to string, ref bool)) (tags []*graphNode) {
	for _, r := range k.rows("SELECT DISTINCT content, block_id FROM spans WHERE type LIKE '%tag%' ORDER BY content, block_id") {
		if byID[r["content"]] == nil {
			n := &graphNode{ID: r["content"], Size: size, Label: r["content"], Type: "textmark tag"}
			byID[n.ID] = n
			tags = append(tags, n)
		}
		link(r["content"], r["block_id"], false)
	}
	return tags
}

// shortTitle cuts a text at 48 characters.
func shortTitle(s string) string {
	if r := []rune(s); len(r) > 48 {
		return string(r[:48]) + "..."
	}
	return s
}

func getGraph(k *Kernel, a args) (any, error) {
	raw, err := need[map[string]any](a, "conf", "Object")
	if err != nil {
		return nil, &apiError{code: -1, msg: err.(*apiError).msg, data: map[string]any{"reqId": a["reqId"]}}
	}
	keyword := a.strOr("k", "")
	conf := graphConf(args(raw), true)
	cited := map[string]bool{}
	if keyword != "" {
		for _, r := range k.rows("SELECT r.def_block_id AS id FROM refs r JOIN blocks b ON b.id = r.block_id WHERE instr(lower(b.content), lower(?)) > 0", keyword) {
			cited[r["id"]] = true
		}
	}
	nodes, links := k.graph(conf, func(r map[string]string) bool { return containsFold(r["content"], keyword) || cited[r["id"]] })
	box := ""
	for _, n := range k.orderedNotebooks() {
		if box == "" && !n.conf.Closed {
			box = n.id
		}
	}
	return map[string]any{"box": box, "conf": conf, "nodes": nodes, "links": links, "reqId": a["reqId"]}, nil
}

// getLocalGraph shows a block, or a document with all its blocks, and what
// cites or is cited by it.
func getLocalGraph(k *Kernel, a args) (any, error) {
	id, keyword := a.str("id"), a.strOr("k", "")
	conf := graphConf(a.object("conf"), false)
	out := map[string]any{"id": id, "box": "", "conf": conf, "nodes": []any{}, "links": []any{}, "reqId": a["reqId"]}
	d, ok := k.definition(id, true)
	if !ok {
		return out, nil
	}
	near := maps.Clone(d.ids)
	for _, r := range k.rows("SELECT block_id, root_id, def_block_id, def_block_root_id FROM refs") {
		if d.ids[r["def_block_id"]] || d.ids[r["block_id"]] {
			near[r["block_id"]], near[r["def_block_id"]] = true, true
			if d.node == d.doc.root {
				near[r["root_id"]], near[r["def_block_root_id"]] = true, true
			}
		}
	}
	out["nodes"], out["links"] = k.graph(conf, func(r map[string]string) bool { return near[r["id"]] && containsFold(r["content"], keyword) })
	out["box"] = d.doc.box
	return out, nil
}

func resetGraph(*Kernel, args) (any, error) {
	return map[string]any{"conf": graphConf(args{}, true)}, nil
}

func resetLocalGraph(*Kernel, args) (any, error) {
	return map[string]any{"conf": graphConf(args{}, false)}, nil
}
