package main_test

// killRepeatable are kernel writes that change nothing when they are carried out
// again.
var killRepeatable = []string{"filetree/createDailyNote"}

// doc makes a document with three paragraphs and gives its id and theirs.
func (d *doomed) doc(title string) (string, []any) {
	d.t.Helper()
	doc := d.sure(map[string]any{"tool": "document", "action": "create", "notebook": d.book, "path": "/" + title, "markdown": ""})["id"].(string)
	return doc, blocksOf(d.sure(map[string]any{"tool": "block", "action": "append", "parentID": doc, "dataType": "markdown", "data": "one\n\ntwo\n\nthree"}))
}

// blocksOf and notebookOf read an answer, also one that was found out later.
func blocksOf(made map[string]any) (ids []any) {
	if ids, ok := made["ids"].([]any); ok {
		return ids
	}
	for _, step := range made["done"].([]any) {
		more, _ := step.(map[string]any)["new"].([]any)
		ids = append(ids, more...)
	}
	return ids
}

func notebookOf(made map[string]any) string {
	if n, ok := made["notebook"].(map[string]any); ok {
		return n["id"].(string)
	}
	return made["id"].(string)
}

// deeds are the kinds of write: each makes what it needs and gives its call.
var deeds = []struct {
	name string
	args func(d *doomed, n string) map[string]any
}{
	{"append", func(d *doomed, n string) map[string]any {
		doc, _ := d.doc(n)
		return map[string]any{"tool": "block", "action": "append", "parentID": doc, "dataType": "markdown", "data": "a\n\n- b\n- c"}
	}},
	{"prepend", func(d *doomed, n string) map[string]any {
		doc, _ := d.doc(n)
		return map[string]any{"tool": "block", "action": "prepend", "parentID": doc, "dataType": "markdown", "data": "first"}
	}},
	{"insert several", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "insert", "blocks": []map[string]any{
			{"dataType": "markdown", "data": "x", "previousID": b[0]}, {"dataType": "markdown", "data": "y", "nextID": b[2]}}}
	}},
	{"update", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "update", "id": b[1], "dataType": "markdown", "data": "two and a **half**"}
	}},
	{"update several", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "update", "items": []map[string]any{
			{"id": b[0], "dataType": "markdown", "data": "uno"}, {"id": b[1], "dataType": "markdown", "data": "due"}}}
	}},
	{"attributes", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "set_attrs", "id": b[1], "attrs": map[string]any{"custom-a": "1", "name": "n" + n}}
	}},
	{"delete", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "delete", "id": b[1]}
	}},
	{"move blocks", func(d *doomed, n string) map[string]any {
		doc, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "move", "ids": []any{b[1], b[2]}, "parentID": doc}
	}},
	{"create with parents and icon", func(d *doomed, n string) map[string]any {
		return map[string]any{"tool": "document", "action": "create", "notebook": d.book, "path": "/a" + n + "/b/c", "markdown": "text", "icon": "1f4d4"}
	}},
	{"rename a document", func(d *doomed, n string) map[string]any {
		doc, _ := d.doc(n)
		return map[string]any{"tool": "document", "action": "rename", "id": doc, "title": "renamed " + n}
	}},
	{"move documents", func(d *doomed, n string) map[string]any {
		one, _ := d.doc(n + "-1")
		two, _ := d.doc(n + "-2")
		return map[string]any{"tool": "document", "action": "move", "fromIDs": []string{one}, "toID": two}
	}},
	{"remove documents", func(d *doomed, n string) map[string]any {
		one, _ := d.doc(n + "-1")
		two, _ := d.doc(n + "-2")
		return map[string]any{"tool": "document", "action": "remove", "ids": []string{one, two}}
	}},
	{"create a notebook", func(_ *doomed, n string) map[string]any {
		return map[string]any{"tool": "notebook", "action": "create", "name": "Book " + n, "icon": "1f4d4"}
	}},
	{"notebook settings", func(d *doomed, n string) map[string]any {
		made := d.sure(map[string]any{"tool": "notebook", "action": "create", "name": "Set " + n})
		return map[string]any{"tool": "notebook", "action": "set_conf", "notebook": notebookOf(made),
			"conf": map[string]any{"dailyNoteSavePath": "/day " + n, "name": "Set again " + n}}
	}},
	{"remove a notebook", func(d *doomed, n string) map[string]any {
		made := d.sure(map[string]any{"tool": "notebook", "action": "create", "name": "Gone " + n})
		return map[string]any{"tool": "notebook", "action": "remove", "notebook": notebookOf(made)}
	}},
	{"replace in a block", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "block", "action": "replace", "id": b[1], "old": "two", "new": "zwei"}
	}},
	{"transfer references", func(d *doomed, n string) map[string]any {
		doc, b := d.doc(n)
		from, to := b[0].(string), b[1].(string)
		citing := d.sure(map[string]any{"tool": "block", "action": "append", "parentID": doc, "dataType": "markdown", "data": "see ((" + from + " 'one'))"})["id"]
		return map[string]any{"tool": "block", "action": "transfer_references", "fromID": from, "toID": to, "refIDs": []any{citing}}
	}},
	{"add to the daily note", func(d *doomed, n string) map[string]any {
		return map[string]any{"tool": "block", "action": "add_to_daily_note", "notebook": d.book, "dataType": "markdown", "data": "called " + n, "position": "append"}
	}},
	{"duplicate a document", func(d *doomed, n string) map[string]any {
		doc, _ := d.doc(n)
		return map[string]any{"tool": "document", "action": "duplicate", "id": doc}
	}},
	{"a heading becomes a document", func(d *doomed, n string) map[string]any {
		doc, _ := d.doc(n)
		h := d.sure(map[string]any{"tool": "block", "action": "append", "parentID": doc, "dataType": "markdown", "data": "# Head " + n})["id"]
		return map[string]any{"tool": "document", "action": "heading_to_doc", "headingID": h, "targetNotebook": d.book}
	}},
	{"a document becomes a heading", func(d *doomed, n string) map[string]any {
		one, _ := d.doc(n + "-1")
		two, _ := d.doc(n + "-2")
		return map[string]any{"tool": "document", "action": "doc_to_heading", "srcID": one, "targetID": two}
	}},
	{"make link targets", func(d *doomed, n string) map[string]any {
		doc, _ := d.doc(n)
		return map[string]any{"tool": "document", "action": "ensure_link_targets", "notebook": d.book, "parentId": doc, "mode": "create",
			"targets": []any{map[string]any{"key": "a", "title": "A " + n}, map[string]any{"key": "b", "title": "B " + n}}}
	}},
	{"write a file", func(_ *doomed, n string) map[string]any {
		return map[string]any{"tool": "fs", "action": "write", "path": "/Doomed/file " + n, "markdown": "text"}
	}},
	{"write over a file", func(d *doomed, n string) map[string]any {
		d.doc(n)
		return map[string]any{"tool": "fs", "action": "write", "path": "/Doomed/" + n, "markdown": "all new", "overwrite": true}
	}},
	{"replace in a file", func(d *doomed, n string) map[string]any {
		d.doc(n)
		return map[string]any{"tool": "fs", "action": "replace", "path": "/Doomed/" + n, "old": "two", "new": "zwei"}
	}},
	{"move and rename a file", func(d *doomed, n string) map[string]any {
		d.doc(n)
		d.doc(n + "-2")
		return map[string]any{"tool": "fs", "action": "mv", "from": "/Doomed/" + n, "to": "/Doomed/" + n + "-2/new " + n}
	}},
	{"remove a file", func(d *doomed, n string) map[string]any {
		d.doc(n)
		return map[string]any{"tool": "fs", "action": "rm", "path": "/Doomed/" + n}
	}},
	{"find and replace", func(d *doomed, n string) map[string]any {
		_, b := d.doc(n)
		return map[string]any{"tool": "search", "action": "find_replace", "k": "t", "r": "T", "ids": []any{b[1], b[2]}}
	}},
}
