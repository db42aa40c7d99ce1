package samplekernel

import (
	"path"
	"strings"
	"unicode/utf8"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/ast"
)

// maxTitle is the longest document title and notebook name, in characters.
const maxTitle = 512

// newDoc is a document about to be created.
type newDoc struct {
	box, path, title, markdown, tags string
}

// create writes a new document at the end of its level.
func (k *Kernel) create(n newDoc) (*document, error) {
	id := strings.TrimSuffix(path.Base(n.path), ".sy")
	if _, exists := k.docs[id]; exists {
		return nil, fail("Duplicated filename")
	}
	blocks, err := k.parse(n.markdown)
	if err != nil {
		return nil, errSwallowed
	}
	root := k.newDocNode(id, n.title)
	text.SetAttr(root, "tags", n.tags)
	if len(blocks) == 0 {
		blocks = []*ast.Node{k.emptyParagraph()}
	}
	d := &document{box: n.box, path: n.path, root: root}
	for _, b := range blocks {
		root.AppendChild(b)
	}
	k.docs[id] = d
	k.adoptBlocks(d, blocks)
	d.hpath = k.hpath(d)
	if err := k.save(d); err != nil {
		return nil, err
	}
	return d, k.sortLast(d)
}

// sortLast gives a new document the next manual place among its siblings.
func (k *Kernel) sortLast(d *document) error {
	n := k.notebooks[d.box]
	last := 0
	for _, s := range k.children(d.box, path.Dir(d.path)) {
		last = max(last, n.sort[s.id()])
	}
	n.sort[d.id()] = last + 1
	return k.saveSort(n)
}

// parse turns markdown into blocks.
func (k *Kernel) parse(markdown string) ([]*ast.Node, error) {
	dom, err := text.MarkdownToDOM(markdown, k.newID)
	if err != nil {
		return nil, err
	}
	return text.DOMToBlocks(dom)
}

// adoptBlocks makes new blocks fit into a document: an id that is taken is
// exchanged, and a reference to a block nobody knows loses its id.
func (k *Kernel) adoptBlocks(d *document, blocks []*ast.Node) {
	fresh := map[string]bool{}
	for _, b := range blocks {
		for _, n := range text.Blocks(b) {
			if p, taken := k.block(n.ID); n.ID == "" || fresh[n.ID] || taken && p.node != n {
				text.SetID(n, k.newID())
			}
			fresh[n.ID] = true
			if n.IALAttr("updated") == "" {
				n.SetIALAttr("updated", n.ID[:14])
			}
		}
	}
	known := func(id string) bool {
		_, ok := k.block(id)
		_, isDoc := k.docs[id]
		return ok || isDoc || fresh[id]
	}
	for _, b := range blocks {
		forgetUnknown(b, known)
	}
}

func forgetUnknown(b *ast.Node, known func(string) bool) {
	ast.Walk(b, func(n *ast.Node, entering bool) ast.WalkStatus {
		if entering && n.Type == ast.NodeTextMark && n.IsTextMarkType("block-ref") && !known(n.TextMarkBlockRefID) {
			n.TextMarkBlockRefID, n.TextMarkBlockRefSubtype = "", "d"
		}
		return ast.WalkContinue
	})
}

func createDoc(k *Kernel, a args) (any, error) {
	box, p, title, md := a.str("notebook"), a.str("path"), a.str("title"), a.str("md")
	if _, ok := k.openBox(box); !ok {
		return nil, failToast(msgNoNotebook, 7000)
	}
	if utf8.RuneCountInString(title) > maxTitle {
		return nil, failToast(msgTooLong, 7000)
	}
	if !strings.HasSuffix(p, ".sy") {
		p += ".sy"
	}
	if parent := path.Dir(p); parent != "/" {
		if _, ok := k.docAt(box, parent+".sy"); !ok {
			return nil, failToast(msgNoBlock, 7000)
		}
	}
	if title = cleanName(title); title == "" {
		title = "Untitled"
	}
	d, err := k.create(newDoc{box: box, path: p, title: title, markdown: md})
	if err != nil {
		return nil, toast(err, 7000)
	}
	if sorts := a.strsOr("sorts"); len(sorts) > 0 {
		n := k.notebooks[box]
		for i, id := range sorts {
			n.sort[strings.TrimSuffix(path.Base(id), ".sy")] = i + 1
		}
		if err := k.saveSort(n); err != nil {
			return nil, err
		}
	}
	return map[string]any{"id": d.id()}, nil
}

// toast adds how long the front end would show an error.
func toast(err error, ms int) error {
	if e, ok := err.(*apiError); ok && e.data == nil {
		return failToast(e.msg, ms)
	}
	return err
}

func createDocWithMd(k *Kernel, a args) (any, error) {
	box, err := boxArg(a, "notebook")
	if err != nil {
		return nil, err
	}
	hpath, md := a.str("path"), a.str("markdown")
	if _, ok := k.openBox(box); !ok {
		return nil, fail(msgNoNotebook)
	}
	id := a.strOr("id", "")
	if id == "" {
		id = k.newID()
	}
	folder, title, err := k.makeParents(box, hpath, a.strOr("parentID", ""))
	if err != nil {
		return nil, err
	}
	d, err := k.create(newDoc{box: box, path: path.Join(folder, id+".sy"), title: title, markdown: md, tags: a.strOr("tags", "")})
	if err != nil {
		return nil, err
	}
	return d.id(), nil
}

// titlesOf splits a path of titles as createDocWithMd does.
func titlesOf(hpath string) []string {
	hpath = strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(hpath)
	trailing := strings.HasSuffix(hpath, "/") && strings.Trim(hpath, "/") != ""
	switch strings.Trim(hpath, "/") {
	case "":
		if hpath == "" {
			return []string{"."}
		}
		return []string{"Untitled"}
	}
	clean := strings.Trim(path.Clean("/"+hpath), "/")
	titles := strings.Split(clean, "/")
	if trailing {
		titles = append(titles, titles[len(titles)-1])
	}
	for i, t := range titles {
		if r := []rune(t); len(r) > maxTitle {
			titles[i] = string(r[:maxTitle])
		}
	}
	return titles
}

// makeParents finds or makes the documents above the last title and returns
// their folder. A parent id settles which of several documents of one title
// is meant when it stands where the path says.
func (k *Kernel) makeParents(box, hpath, parentID string) (folder, title string, err error) {
	titles := titlesOf(hpath)
	folder = "/"
	for i, t := range titles[:len(titles)-1] {
		d := k.childTitled(box, folder, t)
		if p, ok := k.docs[parentID]; ok && i == len(titles)-2 && p.box == box && p.title() == t {
			d = p
		}
		if d == nil {
			d, err = k.create(newDoc{box: box, path: path.Join(folder, k.newID()+".sy"), title: t})
			if err != nil {
				return "", "", err
			}
		}
		folder = d.folder()
	}
	return folder, titles[len(titles)-1], nil
}

func (k *Kernel) childTitled(box, folder, title string) *document {
	for _, d := range k.children(box, folder) {
		if d.title() == title {
			return d
		}
	}
	return nil
}

func createDailyNote(k *Kernel, a args) (any, error) {
	d, err := k.dailyNote(a.str("notebook"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": d.id()}, nil
}

// dailyNote finds or makes today's note. It carries its day as an attribute,
// which is how it is found again under any title.
func (k *Kernel) dailyNote(box string) (*document, error) {
	n, ok := k.openBox(box)
	if !ok {
		return nil, failCode(1, "notebook not found")
	}
	today := "custom-dailynote-" + k.now().Format("20060102")
	for _, id := range sortedKeys(k.docs) {
		if d := k.docs[id]; d.box == box && d.root.IALAttr(today) != "" {
			return d, nil
		}
	}
	hpath, err := k.sprig(n.conf.DailyNoteSavePath)
	if err != nil {
		return nil, failCode(1, err.Error())
	}
	folder, title, err := k.makeParents(box, hpath, "")
	if err != nil {
		return nil, err
	}
	d := k.childTitled(box, folder, title)
	if d == nil {
		if d, err = k.create(newDoc{box: box, path: path.Join(folder, k.newID()+".sy"), title: title}); err != nil {
			return nil, err
		}
	}
	text.SetAttr(d.root, today, k.now().Format("20060102"))
	return d, k.save(d)
}
