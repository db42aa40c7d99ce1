package disclosure

import (
	"encoding/json"
	"strconv"
	"strings"

	"siyuan-broker/contract/tools"
)

// DocURI is where documents are as resources, by id; DocStart begins the way to
// the rest of one.
const (
	DocURI   = "siyuan://doc/"
	DocStart = "?blockStart="
)

// Call is a read under an address: what the resource holds is the answer of
// that call, for a caller who may make it.
type Call struct {
	URI         string
	Name, Title string
	Description string
	Action      *tools.Action
	Args        string // JSON
}

// Calls are the resources that are answers of calls, but for documents, which
// CallAt finds by their ids.
func Calls() []Call {
	return []Call{
		{"siyuan://workspace/info", "workspace", "Where you are", "SiYuan's version, the notebooks you may read with your level, the person's rules, limits.", tools.SystemBootstrap.Action, `{}`},
		{"siyuan://notebooks", "notebooks", "Notebooks", "The notebooks you may read, with your level in each.", tools.NotebookList.Action, `{}`},
		{"siyuan://recent", "recent", "Changed lately", "What changed lately in the notes you may read, by document.", tools.BlockRecentUpdated.Action, `{"count":32}`},
		{"siyuan://help/changelog", "changelog", "What is new", "What changed in siyuan-broker, as of the version at the person's home.", tools.SystemChangelog.Action, `{}`},
		{"siyuan://help/user-rules", "user-rules", "Rules for agents", "What the person wants of agents.", tools.FSRead.Action, `{"path":"/USER_RULES.md"}`},
	}
}

// DocAction reads a document that is addressed as a resource.
func DocAction() *tools.Action { return tools.DocumentGetDoc.Action }

// docTokens is how much of a document a resource holds, in tokens of four
// characters; the rest is at the address with DocStart.
const docTokens = 8_000

// CallAt is the call that a URI stands for, false where it stands for none.
func CallAt(uri string) (Call, bool) {
	for _, c := range Calls() {
		if c.URI == uri {
			return c, true
		}
	}
	rest, ok := strings.CutPrefix(uri, DocURI)
	if !ok {
		return Call{}, false
	}
	id, start, more := strings.Cut(rest, DocStart)
	args := map[string]any{"id": id, "tokenBudget": docTokens, "blockLimit": 200}
	if more {
		n, err := strconv.Atoi(start)
		if err != nil {
			return Call{}, false
		}
		args["blockStart"] = n
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return Call{}, false // text and numbers always have a JSON form
	}
	return Call{URI: uri, Action: DocAction(), Args: string(raw)}, true
}
