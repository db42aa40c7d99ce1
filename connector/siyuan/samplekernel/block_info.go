package samplekernel

import (
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan/samplekernel/text"
)

func blockInfoRoutes() map[string]route {
	return map[string]route{
		"/api/block/getDocInfo":                  {serve: getDocInfo},
		"/api/block/getDocsInfo":                 {serve: getDocsInfo},
		"/api/block/getRefIDs":                   {serve: getRefIDs},
		"/api/block/getRefText":                  {serve: getRefText},
		"/api/block/getTreeStat":                 {serve: getTreeStat},
		"/api/block/getBlocksWordCount":          {serve: getBlocksWordCount},
		"/api/block/getContentWordCount":         {serve: getContentWordCount},
		"/api/block/getRecentUpdatedBlocks":      {serve: getRecentUpdatedBlocks, noBody: true},
		"/api/block/checkBlockRef":               {serve: checkBlockRef},
		"/api/block/getBlockDefIDsByRefText":     {serve: getBlockDefIDsByRefText},
		"/api/block/getRefIDsByFileAnnotationID": {serve: getRefIDsByFileAnnotationID},
	}
}

// maxAnchor is how long a dynamic anchor text may get, in characters.
const maxAnchor = 96

// docInfo describes the document of a block. References count for the block
// asked about, which for a document is everything in it.
func (k *Kernel) docInfo(id string) (map[string]any, bool) {
	p, ok := k.block(id)
	if !ok {
		return nil, false
	}
	condition := "def_block_id = ?"
	if p.node == p.doc.root {
		condition = "def_block_root_id = ?"
	}
	ids := k.citing(condition, id)
	if ids == nil {
		ids = []string{}
	}
	return map[string]any{
		"id": id, "rootID": p.doc.id(), "name": p.doc.title(), "refCount": len(ids), "refIDs": ids,
		"subFileCount": k.subFileCount(p.doc), "ial": text.Attrs(p.doc.root), "icon": text.Attr(p.doc.root, "icon"), "attrViews": k.boundDatabases(p.doc),
	}, true
}

// subFileCount is 0 here for every document that is not a root document's.
func (k *Kernel) subFileCount(d *document) int { return len(k.children(d.box, d.folder())) }

func getDocInfo(k *Kernel, a args) (any, error) {
	id := a.str("id")
	info, ok := k.docInfo(id)
	if !ok {
		if k.indexing() {
			return nil, fail(msgIndexing)
		}
		return nil, fail("Content block with id [" + id + "] not found")
	}
	return info, nil
}

func getDocsInfo(k *Kernel, a args) (any, error) {
	ids := a.strs("ids")
	_, _ = as[bool](a, "refCount"), as[bool](a, "av")
	out := []any{}
	for _, id := range ids {
		if info, ok := k.docInfo(id); ok {
			out = append(out, info)
		}
	}
	if len(out) == 0 {
		return nil, fail("Content block with id [[" + strings.Join(ids, " ") + "]] not found")
	}
	return out, nil
}

type refDef struct {
	RefID  string   `json:"refID"`
	DefIDs []string `json:"defIDs"`
}

func getRefIDs(k *Kernel, a args) (any, error) {
	id := a.str("id")
	condition := "def_block_id = ?"
	if p, ok := k.block(id); ok && p.node == p.doc.root {
		condition = "def_block_root_id = ?"
	}
	defs := []*refDef{}
	byRef := map[string]*refDef{}
	for _, row := range k.rows("SELECT block_id, def_block_id FROM refs WHERE "+condition+" ORDER BY rowid DESC", id) {
		d := byRef[row["block_id"]]
		if d == nil {
			d = &refDef{RefID: row["block_id"]}
			byRef[d.RefID] = d
			defs = append(defs, d)
		}
		d.DefIDs = append(d.DefIDs, row["def_block_id"])
	}
	return map[string]any{"refDefs": defs, "originalRefBlockIDs": map[string]any{}}, nil
}

// refText is what a dynamic anchor to a block shows.
func (k *Kernel) refText(p place) string {
	if name := text.Attr(p.node, "name"); name != "" {
		return name
	}
	s := text.Content(p.node)
	if p.node.IsContainerBlock() && p.node != p.doc.root {
		s = text.FirstContent(p.node)
	}
	if s = strings.TrimSpace(s); s == "" {
		return p.node.ID
	}
	if utf8.RuneCountInString(s) > maxAnchor {
		s = string([]rune(s)[:maxAnchor]) + "..."
	}
	return s
}

func getRefText(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	p, ok := k.block(id)
	if !ok {
		return msgNoBlock, nil
	}
	return k.refText(p), nil
}

func stat(s text.Stat) map[string]any {
	return map[string]any{"reqId": nil, "stat": s}
}

func getTreeStat(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("id"))
	if !ok {
		return map[string]any{"reqId": nil, "stat": nil}, nil
	}
	return stat(text.StatOf(p.doc.root)), nil
}

func getBlocksWordCount(k *Kernel, a args) (any, error) {
	var sum text.Stat
	for _, id := range a.strs("ids") {
		if p, ok := k.block(id); ok {
			sum = sum.Add(text.StatOf(p.node))
		}
	}
	return stat(sum), nil
}

func getContentWordCount(_ *Kernel, a args) (any, error) {
	return stat(text.StatOfText(a.str("content"))), nil
}

// getRecentUpdatedBlocks lists the 16 newest leaf blocks and documents.
func getRecentUpdatedBlocks(k *Kernel, _ args) (any, error) {
	out := []*blockView{}
	for _, row := range k.rows("SELECT " + viewColumns + " FROM blocks WHERE type = 'p' AND length > 1 ORDER BY updated DESC LIMIT 16") {
		out = append(out, viewOf(row))
	}
	return out, nil
}

func checkBlockRef(k *Kernel, a args) (any, error) {
	for _, id := range a.strs("ids") {
		if k.refCount(id) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// getBlockDefIDsByRefText finds blocks whose text is the anchor.
func getBlockDefIDsByRefText(k *Kernel, a args) (any, error) {
	defs := []*refDef{}
	for _, row := range k.rows("SELECT DISTINCT def_block_id FROM refs WHERE content = ?", a.str("anchor")) {
		defs = append(defs, &refDef{RefID: row["def_block_id"], DefIDs: []string{}})
	}
	return map[string]any{"refDefs": defs}, nil
}

func getRefIDsByFileAnnotationID(_ *Kernel, a args) (any, error) {
	_ = a.str("id")
	return map[string]any{"refDefs": []any{}}, nil
}
