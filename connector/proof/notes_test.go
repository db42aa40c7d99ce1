package proof

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// notes are the notes of a world and the names of everything in them.
type notes struct {
	salt string // makes ids of one run unlike those of another
	// The notebooks: may be written, may be read, readable and closed, hidden.
	desk, diary, shut, hidden string

	ids     map[string]string // by the name used in the texts below
	visible []string          // names of what the viewers may read
	secret  []string          // names of what they may not
	gone    []string          // names of what is nowhere
	rows    []string          // names of databases, columns, rows and decks

	Ingredients map[string]string // name of the ingredient → "in", or why not
}

// id is the id that a name stands for; the same in every world of a run.
func (n *notes) id(name string) string {
	if id, ok := n.ids[name]; ok {
		return id
	}
	h := hash(n.salt, name)
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	tail := make([]byte, 7)
	for i := range tail {
		tail[i] = digits[h%36]
		h /= 36
	}
	h = hash(name, n.salt)
	id := fmt.Sprintf("20240102%02d%02d%02d-%s", 10+h%10, h/10%60, h/600%60, tail)
	n.ids[name] = id
	return id
}

var nameInText = regexp.MustCompile(`\$\{(\w+)\}`)

// text fills in the ids.
func (n *notes) text(s string) string {
	return nameInText.ReplaceAllStringFunc(s, func(m string) string { return n.id(m[2 : len(m)-1]) })
}

// ial is the attribute list that gives a block its id.
func ial(name, more string) string { return "\n{: id=\"${" + name + "}\"" + more + "}\n\n" }

// doc is a document: where it stands, its title and its kramdown with names for
// ids.
type doc struct{ name, parent, title, text string }

// hiddenDocs are the contents of the hidden notebook that all worlds begin
// with. Titles, names, tags, assets and bookmarks repeat those of readable
// notes, and there are links of every kind out of it.
func hiddenDocs() []doc {
	return []doc{
		{"gone", "", "Gone", "Never to be seen." + ial("goneP", "")},
		{"secret", "", "Operation Nightfall",
			"# Nightfall plans" + ial("secretH", ` name="plan"`) +
				"A confidential nightfall paragraph about the harbour. #shared/boat# #orpheus/secret#" + ial("secretP", ` alias="Lantern" memo="nightfall memo" bookmark="Review" custom-phase="two"`) +
				"- {: id=\"${secretI}\"}orpheus item\n  {: id=\"${secretIP}\"}\n{: id=\"${secretL}\"}\n\n" +
				"![pic](assets/shared-${asset}.png) [file](assets/secret-${asset}.txt) [own](assets/own-${asset}.txt)" + ial("secretA", "")},
		{"secretProjects", "", "Projects", "Alpha and Harbour log are mentioned here, with lantern and nightfall." + ial("secretM", ` bookmark="Nightfall list"`)},
		{"secretAlpha", "secretProjects", "Alpha", "Another Alpha, nightfall." + ial("secretAP", "")},
	}
}

// hiddenLinks is the hidden document with links into readable notes; it is made
// after those.
func hiddenLinks() doc {
	return doc{"secretLinks", "", "Links of the night",
		"See ((${alpha} 'Alpha')), ((${intro} \"intro\")), ((${entry} 'Entry')) and ((${links} \"links\")), nightfall." + ial("secretR", "") +
			"## Alpha ((${heading} 'Alpha goals'))" + ial("secretRH", "") +
			"{{select * from blocks where id='${intro}'}}" + ial("secretE", "")}
}

// deskDocs are the notes of the notebook that may be written. The document
// "links" has every kind of link into the hidden notebook.
func deskDocs() []doc {
	return []doc{
		{"projects", "", "Projects", "Index of projects, with a lantern." + ial("projectsP", "")},
		{"alpha", "projects", "Alpha",
			"# Alpha goals" + ial("heading", "") +
				"Alpha ships a **small** tool to the harbour. #shared/boat#" + ial("intro", ` name="alpha-intro" alias="start" memo="say hi" bookmark="Review" custom-status="draft"`) +
				"- {: id=\"${item}\"}Collect lantern notes\n  {: id=\"${itemP}\"}\n- {: id=\"${item2}\"}Sort them\n  {: id=\"${item2P}\"}\n{: id=\"${list}\"}\n\n" +
				"## Details" + ial("heading2", "") + "Some details, harbour." + ial("details", "") +
				"```go\nfunc lantern() {}\n```" + ial("code", "")},
		{"beta", "projects", "Beta", "Beta waits for ((${intro} 'alpha-intro'))." + ial("betaP", "")},
		{"namesake", "", "Operation Nightfall", "A readable namesake, mentioning Alpha and Entry." + ial("namesakeP", ` name="plan" alias="Nightfall plans"`)},
		{"links", "", "Harbour log",
			"# Plan ((${secret} 'Operation Nightfall')) and ((${secretP} \"static\"))" + ial("linksH", "") +
				"Dynamic ((${secret} 'Operation Nightfall')), ((${secretH} 'plan')), static ((${secretP} \"my words\")), bare ${secretP}, " +
				"[link](siyuan://blocks/${secretP}), same ((${alpha} 'Alpha')), ((${entry} \"Entry\")), gone ((${gone} 'Gone')) ((${goneP} \"gone words\")), shut ((${shutP} 'shut')). #shared/boat#" +
				ial("linksP", ` memo="about ${secretP} Operation Nightfall" alias="Operation Nightfall" name="nightfall" bookmark="Review" custom-link="${secretP}"`) +
				"- {: id=\"${linksI}\"}item ((${secretP} 'A confidential nightfall paragraph'))\n  {: id=\"${linksIP}\"}\n- {: id=\"${linksI2}\"}[ ] task ((${secret} 'Operation Nightfall'))\n  {: id=\"${linksI2P}\"}\n{: id=\"${linksL}\"}\n\n" +
				"> quote ((${secretH} 'plan'))" + "\n> {: id=\"${linksQP}\"}" + ial("linksQ", "") +
				"|a|b|\n|-|-|\n|((${secretP} 'A confidential nightfall paragraph'))|harbour ((${secret} \"cell\"))|" + ial("linksT", "") +
				"{{select * from blocks where id='${secretP}'}}" + ial("linksE1", "") +
				"{{select * from blocks where content like '%nightfall%'}}" + ial("linksE2", "") +
				"{{select * from blocks where id='${intro}'}}" + ial("linksE3", "") +
				"![pic](assets/shared-${asset}.png) [own](assets/desk-${asset}.txt) [theirs](assets/secret-${asset}.txt) ![dot](assets/dot-${asset}.png)" + ial("linksA", "") +
				"## ((${secret} 'Operation Nightfall'))" + ial("linksH2", ` custom-hidden-by="${secret}"`) +
				"Last words." + ial("linksZ", "")},
	}
}

func diaryDocs() []doc {
	return []doc{{"entry", "", "Entry", "今天读了一本书 about Alpha, see ((${alpha} 'Alpha')), ((${secret} 'Operation Nightfall'))." + ial("entryP", "") +
		"Lantern of the diary. #shared/boat# #diary#" + ial("entryQ", ` bookmark="Review"`)}}
}

func shutDocs() []doc {
	return []doc{{"shutDoc", "", "Shut", "In a closed notebook: nightfall, lantern." + ial("shutP", "")}}
}

// build makes the notes: the hidden ones first, because a kernel forgets the
// target of a reference to what is not there.
func build(k *kernelAPI, salt string) (*notes, error) {
	n := &notes{salt: salt, ids: map[string]string{}, Ingredients: map[string]string{}}
	for _, box := range []struct {
		name string
		id   *string
	}{{"Desk", &n.desk}, {"日记", &n.diary}, {"Shut", &n.shut}, {"Private", &n.hidden}} {
		data, err := k.post("notebook/createNotebook", map[string]any{"name": box.name})
		if err != nil {
			return n, err
		}
		var made struct {
			Notebook struct {
				ID string `json:"id"`
			} `json:"notebook"`
		}
		if err := json.Unmarshal(data, &made); err != nil {
			return n, err
		}
		*box.id = made.Notebook.ID
	}
	n.ids["desk"], n.ids["diary"], n.ids["shut"], n.ids["hidden"] = n.desk, n.diary, n.shut, n.hidden
	n.id("nowhere")
	n.gone = []string{"nowhere"}
	for _, part := range []struct {
		box   string
		docs  []doc
		names *[]string
	}{
		{n.hidden, hiddenDocs(), &n.secret}, {n.shut, shutDocs(), &n.secret}, {n.diary, diaryDocs()[:0], &n.visible},
	} {
		if err := n.add(k, part.box, part.docs, part.names); err != nil {
			return n, err
		}
	}
	if err := n.files(k); err != nil {
		return n, err
	}
	// Entry and Alpha cite each other; Entry exists first, and gets its text last.
	if err := n.add(k, n.diary, []doc{{"entry", "", "Entry", ""}}, &n.visible); err != nil {
		return n, err
	}
	if err := n.add(k, n.desk, deskDocs(), &n.visible); err != nil {
		return n, err
	}
	for _, d := range diaryDocs() {
		if _, err := k.post("block/appendBlock", map[string]any{"parentID": n.id(d.name), "dataType": "markdown", "data": n.text(d.text)}); err != nil {
			return n, err
		}
	}
	n.visible = append(n.visible, "entryP", "entryQ")
	if err := n.add(k, n.hidden, []doc{hiddenLinks()}, &n.secret); err != nil {
		return n, err
	}
	if err := n.addIngredients(k); err != nil {
		return n, err
	}
	if _, err := k.post("filetree/removeDocByID", map[string]any{"id": n.id("gone")}); err != nil {
		return n, err
	}
	n.secret = slices.DeleteFunc(n.secret, func(name string) bool { return strings.HasPrefix(name, "gone") })
	n.gone = append(n.gone, "gone", "goneP")
	if _, err := k.post("notebook/closeNotebook", map[string]any{"notebook": n.shut}); err != nil {
		return n, err
	}
	_, err := k.post("sqlite/flushTransaction", map[string]any{})
	return n, err
}

// add makes documents and remembers the names in them.
func (n *notes) add(k *kernelAPI, box string, docs []doc, names *[]string) error {
	for _, d := range docs {
		text := n.text(d.text)
		if _, err := k.post("filetree/createDoc", map[string]any{"notebook": box, "path": n.path(d), "title": d.title, "md": text, "sorts": []string{}}); err != nil {
			return fmt.Errorf("document %s: %w", d.name, err)
		}
		*names = append(*names, d.name)
		for _, m := range regexp.MustCompile(`\{: id="\$\{(\w+)\}"`).FindAllStringSubmatch(d.text, -1) {
			*names = append(*names, m[1])
		}
	}
	return nil
}

func (n *notes) path(d doc) string {
	if d.parent == "" {
		return "/" + n.id(d.name) + ".sy"
	}
	return "/" + n.id(d.parent) + "/" + n.id(d.name) + ".sy"
}

// files writes the assets.
func (n *notes) files(k *kernelAPI) error {
	for i, text := range []string{"\x89PNG\r\n\x1a\n", "harbour lantern\n", "orpheus nightfall\n", "nightfall only\n", "\x89PNG\r\n\x1a\n"} {
		if err := k.putFile("/data/"+n.assets()[i], []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// assets are a file of both notebooks, one of the readable notes, one of the
// hidden notes that a readable one links to, one of the hidden notes alone, and an
// image of the readable notes.
func (n *notes) assets() []string {
	return []string{n.text("assets/shared-${asset}.png"), n.text("assets/desk-${asset}.txt"), n.text("assets/secret-${asset}.txt"), n.text("assets/own-${asset}.txt"), n.text("assets/dot-${asset}.png")}
}

// fate is what becomes of the hidden notebook.
type fate struct {
	name string
	run  func(n *notes, k *kernelAPI) error
}

// fates are the five ways in which the worlds differ; the first is the one the
// others are compared with.
func fates() []fate {
	return []fate{
		{"as it was", func(*notes, *kernelAPI) error { return nil }},
		{"rewritten", rewrite},
		{"emptied", func(n *notes, k *kernelAPI) error {
			for _, d := range append(hiddenDocs()[1:3], hiddenLinks()) {
				if _, err := k.post("filetree/removeDocByID", map[string]any{"id": n.id(d.name)}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"closed", func(n *notes, k *kernelAPI) error {
			_, err := k.post("notebook/closeNotebook", map[string]any{"notebook": n.hidden})
			return err
		}},
		{"removed", func(n *notes, k *kernelAPI) error {
			_, err := k.post("notebook/removeNotebook", map[string]any{"notebook": n.hidden})
			return err
		}},
	}
}

// rewrite changes everything about the hidden notebook but the ids that
// readable notes cite: names that now repeat readable ones, text with other
// words, more recent blocks than any limit lists, links the other way.
func rewrite(n *notes, k *kernelAPI) error {
	type step struct {
		path string
		body map[string]any
	}
	flood := strings.Repeat("Daybreak harbour lantern Alpha Entry nightfall. #daybreak# #shared/boat#\n\n", 80)
	steps := []step{
		{"notebook/renameNotebook", map[string]any{"notebook": n.hidden, "name": "Desk"}},
		{"filetree/renameDocByID", map[string]any{"id": n.id("secret"), "title": "Alpha small unavailable"}},
		{"block/updateBlock", map[string]any{"id": n.id("secretP"), "dataType": "markdown", "data": n.text("Daybreak instead, ((${intro} 'alpha-intro')) #daybreak/new# lantern.\n{: name=\"alpha-intro\" bookmark=\"Review\" custom-status=\"draft\"}")}},
		{"block/updateBlock", map[string]any{"id": n.id("secretH"), "dataType": "markdown", "data": "## Daybreak"}},
		{"block/deleteBlock", map[string]any{"id": n.id("secretL")}},
		{"filetree/removeDocByID", map[string]any{"id": n.id("secretProjects")}},
		{"filetree/createDoc", map[string]any{"notebook": n.hidden, "path": n.path(doc{name: "dawn"}), "title": "Beta", "md": n.text("Beta and Harbour log, ((${beta} 'Beta')), ((${links} \"x\")), ((${betaP} 'y')), ((${heading2} 'Details')).\n\n" + flood), "sorts": []string{}}},
		{"sqlite/flushTransaction", map[string]any{}},
	}
	for _, s := range steps {
		if _, err := k.post(s.path, s.body); err != nil {
			return err
		}
	}
	return n.renderEmbeds(k)
}

// renderEmbeds shows the readable query embeds once, as SiYuan's window does:
// from then on the index has the text of their results.
func (n *notes) renderEmbeds(k *kernelAPI) error {
	for name, stmt := range map[string]string{
		"linksE1": n.text("select * from blocks where id='${secretP}'"), "linksE2": "select * from blocks where content like '%nightfall%'",
		"linksE3": n.text("select * from blocks where id='${intro}'"),
	} {
		_, err := k.post("search/searchEmbedBlock", map[string]any{"embedBlockID": n.id(name), "stmt": stmt, "excludeIDs": []string{}, "headingMode": 0, "breadcrumb": false})
		if err != nil {
			return err
		}
	}
	return nil
}
