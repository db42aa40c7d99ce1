package samplekernel

import (
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

func blockReadRoutes() map[string]route {
	return map[string]route{
		"/api/block/getBlockInfo":          {serve: getBlockInfo},
		"/api/block/getBlockDOM":           {serve: getBlockDOM},
		"/api/block/getBlockDOMs":          {serve: getBlockDOMs},
		"/api/block/getBlockDOMWithEmbed":  {serve: getBlockDOMWithEmbed},
		"/api/block/getBlockDOMsWithEmbed": {serve: getBlockDOMsWithEmbed},
		"/api/block/getBlockKramdown":      {serve: getBlockKramdown},
		"/api/block/getBlockKramdowns":     {serve: getBlockKramdowns},
		"/api/block/getBlockBreadcrumb":    {serve: getBlockBreadcrumb},
		"/api/block/getBlockIndex":         {serve: getBlockIndex},
		"/api/block/getBlocksIndexes":      {serve: getBlocksIndexes},
		"/api/block/getChildBlocks":        {serve: getChildBlocks},
		"/api/block/getTailChildBlocks":    {serve: getTailChildBlocks},
		"/api/block/getBlockSiblingID":     {serve: getBlockSiblingID},
		"/api/block/getBlockRelevantIDs":   {serve: getBlockRelevantIDs},
		"/api/block/getBlockTreeInfos":     {serve: getBlockTreeInfos},
		"/api/block/getUnfoldedParentID":   {serve: getUnfoldedParentID},
		"/api/block/checkBlockExist":       {serve: checkBlockExist},
		"/api/block/checkBlocksExist":      {serve: checkBlocksExist},
		"/api/block/checkBlockFold":        {serve: checkBlockFold},
		"/api/block/getHeadingChildrenIDs": {serve: getHeadingChildrenIDs},
		"/api/block/getHeadingChildrenDOM": {serve: getHeadingChildrenDOM},
		"/api/block/getDOMText":            {serve: getDOMText},
	}
}

func getBlockInfo(k *Kernel, a args) (any, error) {
	id := a.str("id")
	d, ok := k.docOf(id)
	if !ok {
		if !text.ValidID(id) || k.indexing() {
			return nil, failCode(3, msgIndexingBox)
		}
		return nil, fail("Content block with id [" + id + "] not found")
	}
	p, _ := k.block(id)
	top := d.root
	for n := p.node; n != nil && n.Parent != nil; n = n.Parent {
		if n.Parent == d.root {
			top = d.root
		}
	}
	return map[string]any{
		"box": d.box, "path": d.path, "rootChildID": top.ID, "rootID": d.id(),
		"rootIcon": text.Attr(d.root, "icon"), "rootTitle": d.title(), "rootTitleEmpty": d.title() == "",
	}, nil
}

// dom renders a block as getBlockDOM does; that of a document is its children's.
func dom(n *ast.Node) string {
	if n.Type != ast.NodeDocument {
		return text.DOM(n)
	}
	var b strings.Builder
	for _, c := range text.ChildBlocks(n) {
		b.WriteString(text.DOM(c))
	}
	return b.String()
}

func (k *Kernel) domOf(id string) string {
	if p, ok := k.block(id); ok {
		k.shuffle(p.node)
		return dom(p.node)
	}
	return ""
}

// shuffle puts the attributes of all blocks in n in another order: that of a
// real kernel is random from call to call.
func (k *Kernel) shuffle(n *ast.Node) {
	for _, b := range text.Blocks(n) {
		for i := len(b.KramdownIAL) - 1; i > 0; i-- {
			j := k.random(i + 1)
			b.KramdownIAL[i], b.KramdownIAL[j] = b.KramdownIAL[j], b.KramdownIAL[i]
		}
	}
}

func getBlockDOM(k *Kernel, a args) (any, error) {
	id := a.str("id")
	return map[string]any{"id": id, "dom": k.domOf(id)}, nil
}

func getBlockDOMs(k *Kernel, a args) (any, error) {
	return k.eachKnown(a, k.domOf), nil
}

// eachKnown maps the known ones of the ids to something of theirs.
func (k *Kernel) eachKnown(a args, f func(id string) string) map[string]any {
	out := map[string]any{}
	for _, id := range a.strs("ids") {
		if _, ok := k.block(id); ok {
			out[id] = f(id)
		}
	}
	return out
}

func getBlockDOMWithEmbed(k *Kernel, a args) (any, error) {
	id := a.str("id")
	return map[string]any{"id": id, "dom": k.domWithEmbeds(id)}, nil
}

func getBlockDOMsWithEmbed(k *Kernel, a args) (any, error) {
	return k.eachKnown(a, k.domWithEmbeds), nil
}

// domWithEmbeds renders a block with the results of query embeds inside them.
func (k *Kernel) domWithEmbeds(id string) string {
	out := k.domOf(id)
	p, ok := k.block(id)
	if !ok {
		return out
	}
	for _, n := range text.Blocks(p.node) {
		if n.Type != ast.NodeBlockQueryEmbed {
			continue
		}
		plain := text.DOM(n)
		head, tail, cut := strings.Cut(plain, "><div class=\"protyle-attr\"")
		if !cut {
			continue
		}
		var b strings.Builder
		for _, hit := range k.embedHits(embedQuery(n)) {
			b.WriteString(dom(hit.node))
		}
		out = strings.Replace(out, plain, head+" >"+b.String()+"</div><div class=\"protyle-attr\""+tail, 1)
	}
	return out
}

func getBlockKramdown(k *Kernel, a args) (any, error) {
	id, mode := a.str("id"), a.strOr("mode", "md")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	if mode != "md" && mode != "textmark" {
		return nil, fail("Invalid mode")
	}
	return map[string]any{"id": id, "kramdown": k.kramdown(id, mode)}, nil
}

func (k *Kernel) kramdown(id, mode string) string {
	p, ok := k.block(id)
	if !ok {
		return ""
	}
	k.shuffle(p.node)
	return text.Kramdown(p.node, mode == "textmark")
}

// getBlockKramdowns loses all answers to one malformed id.
func getBlockKramdowns(k *Kernel, a args) (any, error) {
	ids, mode := a.strs("ids"), a.strOr("mode", "md")
	out := map[string]any{}
	for _, id := range ids {
		if !text.ValidID(id) {
			return nil, errSwallowed
		}
		if _, ok := k.block(id); ok {
			out[id] = k.kramdown(id, mode)
		}
	}
	return out, nil
}

// crumb is one step of a breadcrumb.
func crumb(n *ast.Node, name string) map[string]any {
	return map[string]any{"id": n.ID, "name": name, "type": n.Type.String(), "subType": text.Subtype(n), "children": nil}
}

func getBlockBreadcrumb(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("id"))
	if !ok {
		return []any{}, nil
	}
	return k.breadcrumb(p), nil
}

// breadcrumb leads from the document through headings and containers to the
// block, whose own name is left empty.
func (k *Kernel) breadcrumb(p place) []any {
	steps := []any{crumb(p.node, "")}
	for n := p.node; n != p.doc.root; {
		if n = text.LogicalParent(n); n == nil {
			break
		}
		name := text.Content(n)
		if n == p.doc.root {
			name = k.fullHPath(p.doc)
		} else if n.IsContainerBlock() {
			name = text.FirstContent(n)
		}
		steps = append(steps, crumb(n, name))
	}
	slices.Reverse(steps)
	return steps
}

func blockIndex(n *ast.Node) int {
	i := 1
	for s := text.PreviousBlock(n); s != nil; s = text.PreviousBlock(s) {
		i++
	}
	return i
}

func (k *Kernel) indexOf(id string) int {
	p, ok := k.block(id)
	if !ok {
		return 0
	}
	return blockIndex(p.node)
}

func getBlockIndex(k *Kernel, a args) (any, error) { return k.indexOf(a.str("id")), nil }

func getBlocksIndexes(k *Kernel, a args) (any, error) {
	out := map[string]any{}
	for _, id := range a.strs("ids") {
		out[id] = k.indexOf(id)
	}
	return out, nil
}

// childBlock is an element of getChildBlocks.
type childBlock struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	SubType  string `json:"subType,omitempty"`
	Content  string `json:"content,omitempty"`
	Markdown string `json:"markdown"`
}

func newChildBlock(n *ast.Node) childBlock {
	return childBlock{n.ID, text.Code(n), text.Subtype(n), text.Content(n), text.Markdown(n)}
}

// childrenOf lists child blocks; those of a heading are its section.
func (k *Kernel) childrenOf(id string) []*ast.Node {
	p, ok := k.block(id)
	switch {
	case !ok:
		return nil
	case p.node.Type == ast.NodeHeading:
		return text.Section(p.node)
	case !p.node.IsContainerBlock() && p.node.Type != ast.NodeDocument:
		return nil
	}
	return text.ChildBlocks(p.node)
}

func getChildBlocks(k *Kernel, a args) (any, error) {
	id := a.str("id")
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	out := []childBlock{}
	for _, n := range k.childrenOf(id) {
		out = append(out, newChildBlock(n))
	}
	return out, nil
}

func getTailChildBlocks(k *Kernel, a args) (any, error) {
	id, n := a.str("id"), a.intOr("n", 7)
	if !text.ValidID(id) {
		return nil, fail(msgBadID)
	}
	out := []childBlock{}
	kids := k.childrenOf(id)
	slices.Reverse(kids)
	for _, c := range kids[:min(max(n, 0), len(kids))] {
		out = append(out, newChildBlock(c))
	}
	return out, nil
}

func idOf(n *ast.Node) string {
	if n == nil {
		return ""
	}
	return n.ID
}

func typeOf(n *ast.Node) string {
	if n == nil {
		return ""
	}
	return n.Type.String()
}

// around gives the real parent and the neighbours of a block.
func around(p place) (parent, previous, next *ast.Node) {
	if p.node == nil || p.node == p.doc.root {
		return nil, nil, nil
	}
	return p.node.Parent, text.PreviousBlock(p.node), text.NextBlock(p.node)
}

func getBlockSiblingID(k *Kernel, a args) (any, error) {
	p, _ := k.block(a.str("id"))
	parent, previous, next := around(p)
	return map[string]any{"parent": idOf(parent), "previous": idOf(previous), "next": idOf(next)}, nil
}

func getBlockRelevantIDs(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("id"))
	if !ok {
		return nil, failToast(k.notFoundText(), 7000)
	}
	parent, previous, next := around(p)
	return map[string]any{"parentID": idOf(parent), "previousID": idOf(previous), "nextID": idOf(next)}, nil
}

func getBlockTreeInfos(k *Kernel, a args) (any, error) {
	out := map[string]any{}
	for _, id := range a.strs("ids") {
		p, ok := k.block(id)
		if !ok {
			continue
		}
		parent, previous, next := around(p)
		out[id] = map[string]any{
			"id": id, "type": typeOf(p.node), "parentID": idOf(parent), "parentType": typeOf(parent),
			"previousID": idOf(previous), "previousType": typeOf(previous), "nextID": idOf(next), "nextType": typeOf(next),
		}
	}
	return out, nil
}

func folded(n *ast.Node) bool { return n.IALAttr("fold") == "1" }

// getUnfoldedParentID is the outermost folded block around a block, or itself.
func getUnfoldedParentID(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("id"))
	if !ok {
		return map[string]any{"parentID": ""}, nil
	}
	found := p.node
	for n := p.node; n != nil && n != p.doc.root; n = text.LogicalParent(n) {
		if folded(n) {
			found = n
		}
	}
	return map[string]any{"parentID": found.ID}, nil
}

func checkBlockExist(k *Kernel, a args) (any, error) {
	_, ok := k.docOf(a.str("id"))
	return ok, nil
}

func checkBlocksExist(k *Kernel, a args) (any, error) {
	out := map[string]any{}
	for _, id := range a.strs("ids") {
		if text.ValidID(id) {
			_, out[id] = k.docOf(id)
		}
	}
	return out, nil
}

func checkBlockFold(k *Kernel, a args) (any, error) {
	p, ok := k.block(a.str("id"))
	return map[string]any{"isFolded": ok && folded(p.node), "isRoot": ok && p.node == p.doc.root}, nil
}

func (k *Kernel) heading(id string) (place, bool) {
	p, ok := k.block(id)
	return p, ok && p.node.Type == ast.NodeHeading
}

func getHeadingChildrenIDs(k *Kernel, a args) (any, error) {
	p, ok := k.heading(a.str("id"))
	if !ok {
		return nil, nil
	}
	var ids []string
	for _, n := range text.Section(p.node) {
		ids = append(ids, n.ID)
	}
	return ids, nil
}

func getHeadingChildrenDOM(k *Kernel, a args) (any, error) {
	p, ok := k.heading(a.str("id"))
	if !ok {
		return "", nil
	}
	var b strings.Builder
	for _, n := range append([]*ast.Node{p.node}, text.Section(p.node)...) {
		b.WriteString(text.DOM(n))
	}
	return b.String(), nil
}

func getDOMText(_ *Kernel, a args) (any, error) {
	blocks, err := text.DOMToBlocks(a.str("dom"))
	if err != nil {
		return "", nil //nolint:nilerr // the real answer to nonsense is an empty text too
	}
	var b strings.Builder
	for _, n := range blocks {
		b.WriteString(n.Text())
	}
	return b.String(), nil
}
