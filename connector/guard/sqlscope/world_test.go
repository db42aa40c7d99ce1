package sqlscope

import (
	"fmt"
	"maps"
)

// Ids of blocks that other blocks point at.
const (
	plainID   = "20240102110001-plain01"
	foreignID = "20240102110004-foreig4"
	embedID   = "20240102110009-embed09"
	secretID  = "20240104090000-secretd"
	missingID = "20240199000000-missing"
)

// secrets is what differs between two workspaces that must look alike.
type secrets struct {
	title, text, database string
	// blocks is the number of further hidden blocks, linked tells whether
	// hidden notes and databases point at readable ones, gone whether the
	// target of the readable references is missing.
	blocks int
	linked bool
	gone   bool
}

func plainSecrets() secrets {
	return secrets{title: "Secret plan", text: "launch in May", database: "Payroll"}
}

func otherSecrets() secrets {
	return secrets{title: "x", text: `{"a":`, database: `Rivals "and" more`, blocks: 40, linked: true}
}

func goneSecrets() secrets {
	return secrets{title: "Was here", text: "alpha beta", database: "D", gone: true}
}

// world returns the index of a workspace and what of it a reader of work and
// diary is to see, written down by hand. Nothing in seen may depend on s.
func world(s secrets) (all, seen fixture) {
	all, seen = fixture{}, fixture{}
	add := func(table string, r, change row) {
		all[table] = append(all[table], r)
		if change == nil {
			change = row{}
		}
		r = maps.Clone(r)
		maps.Copy(r, change)
		if table == "blocks" {
			r["hash"] = ""
		} else {
			r["id"] = "" // made anew whenever the kernel indexes the document again
		}
		seen[table] = append(seen[table], r)
	}
	addReadableBlocks(s, func(r, change row) { add("blocks", r, change) })
	addReadableRows(s, add)
	addHidden(s, all)
	return all, seen
}

func blockRow(id, box, kind, content, markdown string) row {
	return row{
		"id": id, "parent_id": plainID, "root_id": "20240102100000-rootdoc", "hash": "h" + id[len(id)-3:], "box": box,
		"path": "/20240102100000-rootdoc.sy", "hpath": "/Root", "name": "", "alias": "", "memo": "", "tag": "",
		"content": content, "fcontent": content, "markdown": markdown, "length": len(content), "type": kind, "subtype": "",
		"ial": `{: id="` + id + `" updated="20240102110000"}`, "sort": 10, "created": id[:14], "updated": id[:14],
	}
}

func addReadableBlocks(s secrets, add func(r, change row)) {
	n := 20
	block := func(kind, content, markdown string, change row) row {
		n++
		r := blockRow(fmt.Sprintf("202401021100%02d-block%02d", n, n), []string{work, diary}[n%2], kind, content, markdown)
		add(r, change)
		return r
	}
	hide := row{"content": Placeholder, "fcontent": Placeholder, "markdown": Placeholder, "length": 0, "unindexed": true}
	mixed := row{"content": Placeholder, "fcontent": Placeholder, "length": 0, "unindexed": true}
	dynamic := fmt.Sprintf("see ((%s '%s'))", secretID, s.title)

	root := blockRow("20240102100000-rootdoc", work, "d", "Root", "")
	root["hash"] = s.title // a document's hash covers its anchors
	add(root, nil)
	add(blockRow(plainID, work, "p", "alpha plain", "alpha plain"), nil)
	add(blockRow(foreignID, work, "p", "see "+s.title, dynamic), hide)
	add(blockRow(embedID, work, "query_embed", s.text, "{{select * from blocks where content like '%May%'}}"), mixed)
	block("p", "a static my words", fmt.Sprintf(`a static ((%s "my words"))`, secretID), nil)
	block("p", "a dynamic alpha plain", fmt.Sprintf("a dynamic ((%s 'alpha plain'))", plainID), nil)
	block("p", "repeats see "+s.title, fmt.Sprintf("repeats ((%s 'see %s'))", foreignID, s.title), hide)
	block("p", "cites old title", fmt.Sprintf("cites ((%s 'old title'))", missingID), hide)
	block("p", "lost gone", "lost (( 'gone'))", hide)
	block("p", "two alpha plain "+s.title, fmt.Sprintf("two ((%s 'alpha plain')) ((%s '%s'))", plainID, secretID, s.title), hide)
	block("p", "shows "+s.text, fmt.Sprintf("shows ((%s '%s'))", embedID, s.text), hide)
	block("i", " see "+s.title, "- "+dynamic, hide)
	block("l", " see "+s.title+" more", "- "+dynamic+"\n- more", hide)
	block("s", " x"+s.text, "{{{row\n{{select * from blocks}}\n\nx\n\n}}}", mixed)
	block("s", " left alpha", "{{{row\nleft\n\nalpha\n\n}}}", nil)
	block("av", s.database+" "+s.text, `<div data-type="NodeAttributeView" data-av-id="20240102100710-avtasks" data-av-type="table"></div>`, mixed)
	block("b", s.database, `> <div data-type="NodeAttributeView" data-av-id="20240102100710-avtasks"></div>`, mixed)
	html := block("p", "styled "+s.title, `styled <span data-type="strong block-ref" data-subtype="d" data-id="`+secretID+`">`+s.title+`</span>`, hide)
	block("p", "again styled "+s.title, fmt.Sprintf("again ((%s 'styled %s'))", html["id"], s.title), hide)
	block("c", "{{title}} (( x", "```\n{{title}} (( x\n```", nil)
	block("p", `{"a":1}`, `{"a":1}`, nil)
	block("p", "it's alpha, ((not a ref)) 'quoted'", "it's alpha, ((not a ref)) 'quoted'", nil)
	a, b := "20240102120001-circle1", "20240102120002-circle2"
	add(blockRow(a, work, "p", "alpha circle", fmt.Sprintf("alpha ((%s 'circle'))", b)), nil)
	add(blockRow(b, diary, "p", "circle alpha", fmt.Sprintf("circle ((%s 'alpha'))", a)), nil)

	bound := blockRow("20240102120003-bound03", work, "p", "bound alpha", "bound alpha")
	own := `{: bookmark="Review" id="20240102120003-bound03" memo="a &quot;b&quot; avs="}`
	bound["ial"] = own
	if s.linked {
		bound["ial"] = `{: bookmark="Review" custom-avs="20240104100000-secreta,20240104100001-secretb" av-names="&lt;span&gt;` + "Payroll" +
			`&lt;/span&gt;" custom-sy-av-s-text-20240104100000-secreta="Pay" custom-sy-av-s-text-20240104100001-secretb="" id="20240102120003-bound03" memo="a &quot;b&quot; avs="}`
	}
	add(bound, row{"ial": own})
}

func addReadableRows(s secrets, add func(table string, r, change row)) {
	hide := row{"content": Placeholder, "markdown": Placeholder}
	at := row{"block_id": foreignID, "root_id": "20240102100000-rootdoc", "box": work, "path": "/20240102100000-rootdoc.sy"}
	with := func(r row) row { out := maps.Clone(at); maps.Copy(out, r); return out }

	target := row{"def_block_id": secretID, "def_block_parent_id": secretID, "def_block_root_id": secretID, "def_block_path": "/" + s.title + ".sy"}
	if s.gone {
		target = row{"def_block_id": secretID, "def_block_parent_id": "", "def_block_root_id": "", "def_block_path": ""}
	}
	unknown := row{"def_block_parent_id": "", "def_block_root_id": "", "def_block_path": ""}
	ref := func(id, content, markdown, kind string, def, change row) {
		r := with(row{"id": id, "content": content, "markdown": markdown, "type": kind})
		maps.Copy(r, def)
		add("refs", r, change)
	}
	hideRef := maps.Clone(unknown)
	maps.Copy(hideRef, hide)
	ref("r1", s.title, fmt.Sprintf("((%s '%s'))", secretID, s.title), "textmark", target, hideRef)
	ref("r2", "my words", fmt.Sprintf(`((%s "my words"))`, secretID), "textmark", target, unknown)
	known := row{"def_block_id": plainID, "def_block_parent_id": "20240102100000-rootdoc", "def_block_root_id": "20240102100000-rootdoc", "def_block_path": "/20240102100000-rootdoc.sy"}
	ref("r3", "alpha plain", fmt.Sprintf("((%s 'alpha plain'))", plainID), "textmark", known, nil)
	ref("r4", s.text, "{{"+s.text+"}}", "query_embed", target, hideRef)

	span := func(id, content, markdown, kind string, change row) {
		add("spans", with(row{"id": id, "content": content, "markdown": markdown, "type": kind, "ial": ""}), change)
	}
	span("s1", s.title, fmt.Sprintf("((%s '%s'))", secretID, s.title), "textmark block-ref", hide)
	span("s2", s.title, fmt.Sprintf("**((%s '%s'))**", secretID, s.title), "textmark strong block-ref", hide)
	span("s3", "my words", fmt.Sprintf(`((%s "my words"))`, secretID), "textmark block-ref", nil)
	span("s4", "alpha plain", fmt.Sprintf("((%s 'alpha plain'))", plainID), "textmark block-ref", nil)
	span("s5", "see "+s.title, fmt.Sprintf("((%s 'see %s'))", foreignID, s.title), "textmark block-ref", hide)
	span("s6", "urgent", "#urgent#", "textmark tag", nil)

	add("attributes", with(row{"id": "a1", "name": "custom-status", "value": "draft", "type": "b"}), nil)
	add("attributes", with(row{"id": "a2", "name": "bookmark", "value": "Review", "type": "b"}), nil)
	add("assets", with(row{"id": "as1", "docpath": "/x.sy", "name": "dot.png", "title": "red dot", "hash": "F"}), nil)
	add("file_annotation_refs", with(row{"id": "f1", "file_path": "assets/x.pdf", "annotation_id": "20240102", "content": "note", "type": "t"}), nil)
}

// addHidden adds the rows of the hidden notebook, and those that it puts beside
// readable blocks.
func addHidden(s secrets, all fixture) {
	at := row{"block_id": secretID, "root_id": secretID, "box": private, "path": "/" + secretID + ".sy"}
	with := func(r row) row { out := maps.Clone(at); maps.Copy(out, r); return out }
	if !s.gone {
		all["blocks"] = append(all["blocks"], blockRow(secretID, private, "d", s.title, ""))
	}
	for i := range s.blocks {
		r := blockRow(fmt.Sprintf("202401041000%02d-hidden%d", i, i%10), private, "p", fmt.Sprintf("%s alpha %d", s.text, i), s.text)
		r["root_id"], r["name"] = "20240102100000-rootdoc", "alpha"
		all["blocks"] = append(all["blocks"], r)
	}
	all["spans"] = append(all["spans"], with(row{"id": "hs", "content": s.text, "markdown": s.text, "type": "textmark tag", "ial": ""}))
	all["attributes"] = append(all["attributes"], with(row{"id": "ha", "name": "bookmark", "value": s.title, "type": "b"}))
	all["assets"] = append(all["assets"], with(row{"id": "has", "docpath": "/x.sy", "name": s.title, "title": s.text, "hash": "F"}))
	all["file_annotation_refs"] = append(all["file_annotation_refs"], with(row{"id": "hf", "file_path": s.title, "annotation_id": "1", "content": s.text, "type": "t"}))
	if !s.linked {
		return
	}
	all["refs"] = append(all["refs"], with(row{"id": "hr", "content": "alpha plain", "markdown": "((" + plainID + " 'alpha plain'))", "type": "textmark",
		"def_block_id": plainID, "def_block_parent_id": "", "def_block_root_id": "", "def_block_path": ""}))
	beside := row{"block_id": plainID, "root_id": "20240102100000-rootdoc", "box": work, "path": "/20240102100000-rootdoc.sy"}
	avs := maps.Clone(beside)
	maps.Copy(avs, row{"id": "hv", "name": "custom-avs", "value": "20240104100000-secreta", "type": "b"})
	all["attributes"] = append(all["attributes"], avs)
	static := maps.Clone(beside)
	maps.Copy(static, row{"id": "ht", "name": "custom-sy-av-s-text-20240104100000-secreta", "value": "Pay", "type": "b"})
	all["attributes"] = append(all["attributes"], static)
	avref := maps.Clone(beside)
	maps.Copy(avref, row{"id": "hq", "content": s.text, "markdown": s.text, "type": "av", "def_block_id": plainID, "def_block_parent_id": "", "def_block_root_id": "", "def_block_path": ""})
	all["refs"] = append(all["refs"], avref)
}
