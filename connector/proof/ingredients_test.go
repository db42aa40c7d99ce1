package proof

import (
	"encoding/json"
	"fmt"
)

// ingredient is a kind of link into the hidden notebook that needs endpoints a
// sample kernel may not imitate.
type ingredient struct {
	name  string
	needs []string
	add   func(n *notes, k *kernelAPI) error // nil: the notes are enough
}

func ingredients() []ingredient {
	return []ingredient{
		{"rendered query embeds", []string{"search/searchEmbedBlock"}, (*notes).renderEmbeds},
		{"databases with bound rows, relation, rollup and template columns", []string{"av/renderAttributeView", "av/addAttributeViewBlocks", "av/addAttributeViewKey", "av/setAttributeViewBlockAttr", "transactions"}, databases},
		{"flashcards", []string{"riff/createRiffDeck", "riff/addRiffCards"}, flashcards},
		{"templates", []string{"template/docSaveAsTemplate"}, templates},
		{"document history", []string{"history/createDocHistory", "history/searchHistory"}, histories},
		{"snapshots", []string{"repo/initRepoKeyFromPassphrase", "repo/createSnapshot"}, snapshots},
		{"recent documents", []string{"storage/updateRecentDocViewTime", "storage/getRecentDocs"}, recents},
		{"backlinks and mentions", []string{"ref/getBacklink2"}, nil},
		{"bookmark lists", []string{"bookmark/getBookmark"}, nil},
		{"tag lists", []string{"tag/getTag"}, nil},
		{"asset lists", []string{"search/searchAsset", "asset/getUnusedAssets"}, nil},
		{"graph", []string{"graph/getGraph"}, nil},
		{"exports with embeds", []string{"export/exportMdContent"}, nil},
	}
}

// addIngredients adds what the kernel can take and notes what it cannot.
func (n *notes) addIngredients(k *kernelAPI) error {
	for _, in := range ingredients() {
		known, err := k.has(in.needs...)
		switch {
		case err != nil:
			return err
		case !known:
			n.Ingredients[in.name] = "the kernel lacks an endpoint"
			continue
		case in.add == nil:
		default:
			if err := in.add(n, k); err != nil {
				return fmt.Errorf("ingredient %q: %w", in.name, err)
			}
		}
		n.Ingredients[in.name] = "in"
	}
	return nil
}

const builtinDeck = "20230218211946-2kw8jgx"

func flashcards(n *notes, k *kernelAPI) error {
	data, err := k.post("riff/createRiffDeck", map[string]any{"name": "Deck " + n.salt})
	if err != nil {
		return err
	}
	var deck struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(data, &deck); err != nil {
		return err
	}
	n.ids["deck"] = deck.ID
	n.rows = append(n.rows, "deck")
	for _, d := range []string{deck.ID, builtinDeck} {
		blocks := []string{n.id("intro"), n.id("secretP"), n.id("entryP"), n.id("secretAP"), n.id("details")}
		if _, err := k.post("riff/addRiffCards", map[string]any{"deckID": d, "blockIDs": blocks}); err != nil {
			return err
		}
	}
	return nil
}

func templates(n *notes, k *kernelAPI) error {
	for name, title := range map[string]string{"secret": "nightfall-template" + n.salt, "alpha": "alpha-template" + n.salt} {
		if _, err := k.post("template/docSaveAsTemplate", map[string]any{"id": n.id(name), "name": title, "overwrite": true}); err != nil {
			return err
		}
	}
	_, err := k.post("notebook/setNotebookConf", map[string]any{"notebook": n.diary, "conf": map[string]any{"dailyNoteTemplatePath": "/" + n.templates()[1]}})
	return err
}

// templates are the paths of one that no notebook uses, made of a hidden document,
// and one that a readable notebook makes daily notes with.
func (n *notes) templates() []string {
	return []string{"nightfall-template" + n.salt + ".md", "alpha-template" + n.salt + ".md"}
}

func histories(n *notes, k *kernelAPI) error {
	for _, name := range []string{"secret", "alpha", "secretAlpha", "links", "entry"} {
		if _, err := k.post("history/createDocHistory", map[string]any{"id": n.id(name)}); err != nil {
			return err
		}
	}
	return nil
}

func recents(n *notes, k *kernelAPI) error {
	for _, name := range []string{"alpha", "secret", "links", "secretAlpha", "entry", "secretProjects"} {
		if _, err := k.post("storage/updateRecentDocViewTime", map[string]any{"rootID": n.id(name)}); err != nil {
			return err
		}
	}
	return nil
}

// databases makes six: "board" in Alpha binds readable blocks alone, and relates to
// "crew", which can be read, and to "dark", which only the hidden notebook shows;
// "tasks" binds readable and hidden blocks and
// relates to "people", which has a row in each notebook. The hidden notebook
// shows a third, "vault", that a readable document mirrors.
func databases(n *notes, k *kernelAPI) error {
	show := func(av, block, after string) error {
		dom := fmt.Sprintf(`<div class="av" data-node-id="%s" data-type="NodeAttributeView" data-av-id="%s" data-av-type="table"></div>`, n.id(block), n.id(av))
		if _, err := k.post("block/insertBlock", map[string]any{"dataType": "dom", "previousID": n.id(after), "data": dom}); err != nil {
			return err
		}
		_, err := k.post("av/renderAttributeView", map[string]any{"id": n.id(av), "blockID": n.id(block)})
		return err
	}
	key := func(av, key, name, kind string) error {
		_, err := k.post("av/addAttributeViewKey", map[string]any{"avID": n.id(av), "keyID": n.id(key), "keyName": name, "keyType": kind, "keyIcon": "", "previousKeyID": ""})
		return err
	}
	bind := func(av, block, show string) error {
		_, err := k.post("av/addAttributeViewBlocks", map[string]any{"avID": n.id(av), "blockID": n.id(show), "srcs": []map[string]any{
			{"id": n.id(block), "itemID": n.id("row_" + av + "_" + block), "isDetached": false}}})
		n.rows = append(n.rows, "row_"+av+"_"+block)
		return err
	}
	set := func(av, key, block string, value map[string]any) error {
		_, err := k.post("av/setAttributeViewBlockAttr", map[string]any{"avID": n.id(av), "keyID": n.id(key), "itemID": n.id("row_" + av + "_" + block), "value": value})
		return err
	}
	run := func(ops ...map[string]any) error {
		_, err := k.post("transactions", map[string]any{"reqId": 1, "app": "proof", "session": "proof", "transactions": []any{map[string]any{"doOperations": ops, "undoOperations": []any{}}}})
		return err
	}
	n.rows = append(n.rows, "board", "boardNote", "boardNumber", "boardPick", "boardDay", "boardSprig", "tasks", "people", "vault", "tasksNote", "tasksOwner", "tasksRoll", "tasksSprig", "peopleNote")
	n.rows = append(n.rows, "boardOwner", "boardDark", "boardRoll", "boardDarkRoll", "boardFree", "boardView", "boardErrand", "boardDocs", "boardDarkDocs", "row_board_loose",
		"crew", "crewAge", "crewBack", "row_crew_loose", "dark", "darkNote", "darkBack", "row_dark_loose")
	n.visible = append(n.visible, "boardBlock", "tasksBlock", "peopleBlock", "vaultMirror", "crewBlock")
	n.secret = append(n.secret, "vaultBlock", "darkBlock")
	text := func(s string) map[string]any { return map[string]any{"text": map[string]any{"content": s}} }
	steps := []func() error{
		func() error { return show("board", "boardBlock", "heading2") },
		func() error { return show("people", "peopleBlock", "projectsP") },
		func() error { return show("tasks", "tasksBlock", "details") },
		func() error { return show("vault", "vaultBlock", "secretA") },
		func() error { return show("vault", "vaultMirror", "betaP") },
		func() error { return key("people", "peopleNote", "Note", "text") },
		func() error { return key("tasks", "tasksNote", "Note", "text") },
		func() error { return key("tasks", "tasksOwner", "Owner", "relation") },
		func() error { return key("tasks", "tasksRoll", "Roll", "rollup") },
		func() error { return key("tasks", "tasksSprig", "Sprig", "template") },
		func() error { return bind("people", "entry", "peopleBlock") },
		func() error { return bind("people", "secret", "peopleBlock") },
		func() error { return bind("tasks", "intro", "tasksBlock") },
		func() error { return bind("tasks", "secretP", "tasksBlock") },
		func() error { return bind("tasks", "beta", "tasksBlock") },
		func() error { return bind("vault", "secretAP", "vaultBlock") },
		func() error { return bind("vault", "details", "vaultMirror") },
		func() error { return set("people", "peopleNote", "secret", text("nightfall person")) },
		func() error { return set("tasks", "tasksNote", "secretP", text("nightfall task")) },
		func() error { return set("tasks", "tasksNote", "intro", text("lantern task")) },
		func() error {
			return run(map[string]any{"action": "updateAttrViewColRelation", "avID": n.id("tasks"), "keyID": n.id("tasksOwner"), "id": n.id("people"), "isTwoWay": false, "backRelationKeyID": "", "format": "Owner"},
				map[string]any{"action": "setAttrViewName", "id": n.id("tasks"), "data": "Tasks"}, map[string]any{"action": "setAttrViewName", "id": n.id("vault"), "data": "Vault of nightfall"},
				map[string]any{"action": "updateAttrViewColRollup", "avID": n.id("tasks"), "id": n.id("tasksRoll"), "parentID": n.id("tasksOwner"), "keyID": n.id("peopleNote"), "data": map[string]any{"calc": nil}},
				map[string]any{"action": "updateAttrViewColTemplate", "avID": n.id("tasks"), "id": n.id("tasksSprig"), "data": `.action{ (index (queryBlocks "SELECT * FROM blocks WHERE content LIKE '%nightfall%'") 0).Content }`})
		},
		func() error {
			return set("tasks", "tasksOwner", "intro", map[string]any{"relation": map[string]any{"blockIDs": []string{n.id("row_people_secret"), n.id("row_people_entry")}, "contents": []any{}}})
		},
	}
	for _, k := range [][2]string{{"boardNote", "text"}, {"boardNumber", "number"}, {"boardPick", "select"}, {"boardDay", "date"}, {"boardSprig", "template"}} {
		steps = append(steps, func() error { return key("board", k[0], k[0], k[1]) })
	}
	steps = append(steps,
		func() error { return bind("board", "intro", "boardBlock") },
		func() error { return bind("board", "details", "boardBlock") },
		func() error { return bind("board", "beta", "boardBlock") },
		func() error { return set("board", "boardNote", "intro", text("lantern row")) },
		func() error {
			return run(map[string]any{"action": "setAttrViewName", "id": n.id("board"), "data": "Board"},
				map[string]any{"action": "updateAttrViewColTemplate", "avID": n.id("board"), "id": n.id("boardSprig"), "data": `.action{ (index (queryBlocks "SELECT * FROM blocks WHERE content LIKE '%nightfall%'") 0).Content }`})
		},
	)
	steps = append(steps, relations(n, k, databaseKit{show, key, set, run})...)
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// databaseKit are ways to make databases out of names.
type databaseKit struct {
	show func(av, block, after string) error
	key  func(av, key, name, kind string) error
	set  func(av, key, row string, value map[string]any) error
	run  func(ops ...map[string]any) error
}

// relations ties board to a database that can be read and to one that is hidden
// whatever becomes of the hidden notebook, with rollups, a view and templates.
func relations(n *notes, k *kernelAPI, d databaseKit) []func() error {
	loose := func(av, show, content string) error {
		_, err := k.post("av/addAttributeViewBlocks", map[string]any{"avID": n.id(av), "blockID": n.id(show), "srcs": []map[string]any{
			{"id": n.id("loose_" + av), "itemID": n.id("row_" + av + "_loose"), "isDetached": true, "content": content}}})
		return err
	}
	relate := func(column, av, back string) map[string]any {
		return map[string]any{"action": "updateAttrViewColRelation", "avID": n.id("board"), "keyID": n.id(column), "id": n.id(av), "isTwoWay": true, "backRelationKeyID": n.id(back), "format": column, "name": back}
	}
	roll := func(column, relation, key string) map[string]any {
		return map[string]any{"action": "updateAttrViewColRollup", "avID": n.id("board"), "id": n.id(column), "parentID": n.id(relation), "keyID": n.id(key), "data": map[string]any{"calc": nil}}
	}
	document := func(id, box string) map[string]any {
		return map[string]any{"id": n.id(id), "name": id, "targetType": "document", "saveLocation": map[string]any{"boxID": box, "pathTemplate": "/Made/Lantern"}}
	}
	relation := func(row string) map[string]any {
		return map[string]any{"relation": map[string]any{"blockIDs": []string{n.id(row)}, "contents": []any{}}}
	}
	number := map[string]any{"number": map[string]any{"content": 7, "isNotEmpty": true}}
	steps := []func() error{
		func() error { return d.show("crew", "crewBlock", "betaP") },
		func() error { return d.show("dark", "darkBlock", "secretA") },
		func() error { return d.key("crew", "crewAge", "Age", "number") },
		func() error { return d.key("dark", "darkNote", "Note", "text") },
	}
	for _, c := range [][2]string{{"boardOwner", "relation"}, {"boardDark", "relation"}, {"boardRoll", "rollup"}, {"boardDarkRoll", "rollup"}, {"boardFree", "relation"}} {
		steps = append(steps, func() error { return d.key("board", c[0], c[0], c[1]) })
	}
	return append(steps,
		func() error { return loose("crew", "crewBlock", "lantern bearer") },
		func() error { return loose("dark", "darkBlock", "nightfall bearer") },
		func() error { return loose("board", "boardBlock", "lantern errand") },
		func() error {
			return d.run(relate("boardOwner", "crew", "crewBack"), relate("boardDark", "dark", "darkBack"), roll("boardRoll", "boardOwner", "crewAge"), roll("boardDarkRoll", "boardDark", "darkNote"),
				map[string]any{"action": "updateAttrViewColOptions", "avID": n.id("board"), "id": n.id("boardPick"), "data": []any{map[string]any{"name": "Open", "color": "2", "desc": ""}}},
				map[string]any{"action": "addAttrViewView", "avID": n.id("board"), "id": n.id("boardView"), "blockID": n.id("boardBlock"), "layout": "table"},
				map[string]any{"action": "setAttrViewNewItemTemplates", "avID": n.id("board"), "data": map[string]any{"defaultTemplateID": "", "templates": []any{
					map[string]any{"id": n.id("boardErrand"), "name": "Errand", "targetType": "detached", "fieldValues": map[string]any{n.id("boardNote"): map[string]any{"mode": "static", "value": map[string]any{"type": "text", "text": map[string]any{"content": "by bike"}}}}},
					document("boardDocs", n.desk), document("boardDarkDocs", n.hidden),
				}}})
		},
		func() error { return d.set("crew", "crewAge", "loose", number) },
		func() error {
			return d.set("dark", "darkNote", "loose", map[string]any{"text": map[string]any{"content": "nightfall note"}})
		},
		func() error { return d.set("board", "boardOwner", "intro", relation("row_crew_loose")) },
		func() error { return d.set("board", "boardDark", "intro", relation("row_dark_loose")) },
		func() error { return n.learnColumns(k) },
	)
}

// learnColumns notes the ids that the kernel chose for columns of board.
func (n *notes) learnColumns(k *kernelAPI) error {
	raw, err := k.post("av/getAttributeViewKeysByAvID", map[string]any{"avID": n.id("board")})
	if err != nil {
		return err
	}
	var keys []struct{ ID, Type, Name string }
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	for _, c := range keys {
		switch {
		case c.Type == "block":
			n.ids["boardTitle"] = c.ID
		case c.Name == "Select":
			n.ids["boardSelect"] = c.ID
		}
	}
	return nil
}
