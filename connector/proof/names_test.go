package proof

import (
	"encoding/json"

	"siyuan-broker/contract/tools"
)

// named are paths of names, or that begin with an id, that a viewer may expect an
// answer for.
func (g *generator) named() []string {
	n := g.n
	return []string{
		"/Desk/Projects/Alpha", "/Desk/Harbour log", "/Desk/Projects", "/Desk", "/", "/日记/Entry", "/日记", "/Desk/Operation Nightfall",
		"/" + n.id("alpha"), "/" + n.desk + "/Projects", "/" + n.id("projects") + "/Beta", "Harbour log", "/Desk/New",
	}
}

// misnamed are paths to what is hidden, shared with something hidden, closed,
// gone or nowhere.
func (g *generator) misnamed() []string {
	n := g.n
	return []string{
		"/Private/Operation Nightfall", "/Operation Nightfall", "/Projects", "/Projects/Alpha", "/Private", "/Private/Projects/Alpha", "/Links of the night",
		"/" + n.hidden, "/" + n.id("secret"), "/" + n.id("nowhere"), "/" + n.hidden + "/Projects", "/" + n.id("secretProjects") + "/Alpha", "/Shut/Shut", "/Shut",
		"/Private/New", "/Desk/Gone", "/Gone", "/Private/Gone", "/" + n.id("gone"), `/Desk/A\/B`, "/Desk/Projects/New", "/Nowhere/New", "/" + n.id("secretP"), "/AGENTS.md", "",
	}
}

// misfiled are paths of files of nothing, and out of the
// folder of files.
func (g *generator) misfiled() []string {
	return []string{
		"assets/nosuch.png", "assets", "assets/", "", "assets/../../conf/conf.json", "assets/%2e%2e/%2e%2e/conf/conf.json", `assets\..\..\conf\conf.json`,
		"/conf/conf.json", "conf/conf.json", "/data/storage/petal/x", "/temp/siyuan.db", "assets/.siyuan/x", "/data/" + g.n.hidden + "/.siyuan/conf.json", "assets/ocr-texts.json",
	}
}

// namedTelling are arguments that no rule would make: texts and orders that are
// there, words that only a hidden title has, and titles that something hidden
// has too.
var namedTelling = map[string][]string{
	"fs.replace": {
		`{"path":"/Desk/Projects/Alpha","old":"details","new":"particulars"}`, `{"path":"/Desk/Harbour log","old":"Last","new":"Final"}`,
		`{"path":"/Desk/Harbour log","old":"Nightfall","new":"x"}`, `{"path":"/Desk/Harbour log","old":"nightfall paragraph","new":"x","replace_all":true}`,
		`{"path":"/Desk/Harbour log","old":"static","new":"fixed"}`, `{"path":"/Desk/Harbour log","old":"words","new":"((${secretP}))"}`,
		`{"path":"/Desk/Harbour log","old":"content like","new":"x"}`, `{"path":"/Desk/Projects/Alpha","old":"- Collect","new":"- Gather ((${goneP} \"x\"))"}`,
	},
	"fs.write": {
		`{"path":"/Desk/Projects","markdown":"new","overwrite":true}`, `{"path":"/Desk/Harbour log","markdown":"new","overwrite":true}`, `{"path":"/Desk/Operation Nightfall","markdown":"new","overwrite":true}`,
		`{"path":"/Desk/Projects/Alpha","markdown":"new","overwrite":true}`, `{"path":"/Desk/New","markdown":"See ((${secretP} \"x\"))"}`, `{"path":"/Desk/Gone","markdown":"x"}`, `{"path":"/日记/Entry","markdown":"x","overwrite":true}`,
	},
	"fs.mv":      {`{"from":"/Desk/Projects/Beta","to":"/Desk/Gone"}`, `{"from":"/Desk/Harbour log","to":"/Desk/Projects/Links of the night"}`, `{"from":"/Desk/Projects/Alpha","to":"/Private/Alpha"}`},
	"fs.rm":      {`{"path":"/Desk/Projects/Beta"}`, `{"path":"/Desk/Harbour log"}`, `{"path":"/Operation Nightfall"}`},
	"fs.reorder": {`{"path":"/Desk/Projects","orderedPaths":["/Desk/Projects/Beta","/Desk/Projects/Alpha"]}`, `{"path":"/Desk/Projects","orderedPaths":["/Desk/Projects/Beta","/Private/Projects/Alpha"]}`},
	"fs.search": {
		`{"path":"/","query":"Operation Nightfall"}`, `{"path":"/","query":"nightfall"}`, `{"path":"/Desk","query":"confidential"}`, `{"path":"/","query":"unavailable"}`,
		`{"path":"/Desk/Harbour log","query":"^.*$","regex":true}`, `{"path":"/","query":"Dynamic .* static","regex":true}`, `{"path":"/","query":"harbour","pageSize":1,"page":2}`,
	},
	"notebook.set_icon": {`{"notebook":"${desk}","icon":"1f4d4"}`}, // few are tried of each
	"fs.tree":           {`{"path":"/"}`, `{"path":"/","maxDepth":0}`},
	"fs.read":           {`{"path":"/Operation Nightfall"}`, `{"path":"/Desk/Harbour log","includeBlockIds":true}`},
}

func (g *generator) namedCorners(a *tools.Action) (list []json.RawMessage) {
	for _, args := range namedTelling[a.ID()] {
		list = append(list, json.RawMessage(g.n.text(args)))
	}
	return list
}
