package samplekernel

import (
	"strconv"
	"strings"

	"siyuan-broker/connector/siyuan/samplekernel/text"

	"github.com/88250/lute/parse"
)

// blockView is a block as search, backlinks, bookmarks and others list it.
type blockView struct {
	Box        string            `json:"box"`
	Path       string            `json:"path"`
	HPath      string            `json:"hPath"`
	ID         string            `json:"id"`
	RootID     string            `json:"rootID"`
	ParentID   string            `json:"parentID"`
	Name       string            `json:"name"`
	Alias      string            `json:"alias"`
	Memo       string            `json:"memo"`
	Tag        string            `json:"tag"`
	Content    string            `json:"content"`
	FContent   string            `json:"fcontent"`
	Markdown   string            `json:"markdown"`
	Folded     bool              `json:"folded"`
	Type       string            `json:"type"`
	SubType    string            `json:"subType"`
	RefText    string            `json:"refText"`
	Refs       []any             `json:"refs"`
	DefID      string            `json:"defID"`
	DefPath    string            `json:"defPath"`
	IAL        map[string]string `json:"ial"`
	Children   []*blockView      `json:"children"`
	Depth      int               `json:"depth"`
	Count      int               `json:"count"`
	RefCount   int               `json:"refCount"`
	Sort       int               `json:"sort"`
	Created    string            `json:"created"`
	Updated    string            `json:"updated"`
	RiffCardID string            `json:"riffCardID"`
	RiffCard   any               `json:"riffCard"`
}

// pathView is a node of outlines and backlink lists.
type pathView struct {
	ID       string       `json:"id"`
	Box      string       `json:"box"`
	Name     string       `json:"name"`
	HPath    string       `json:"hPath"`
	Type     string       `json:"type"`
	NodeType string       `json:"nodeType"`
	SubType  string       `json:"subType"`
	Blocks   []*blockView `json:"blocks,omitempty"`
	Children []*pathView  `json:"children,omitempty"`
	Depth    int          `json:"depth"`
	Count    int          `json:"count"`
	Folded   bool         `json:"folded"`
	Updated  string       `json:"updated"`
	Created  string       `json:"created"`
}

const viewColumns = "id, parent_id, root_id, box, path, hpath, name, alias, memo, tag, content, fcontent, markdown, type, subtype, ial, sort, created, updated"

// rows runs a statement of our own against the index.
func (k *Kernel) rows(stmt string, values ...any) []map[string]string {
	rows, err := k.index.Rows(stmt, values...)
	if err != nil {
		panic(err) // our own SQL: a bug, not a condition
	}
	return rows
}

// viewOf makes a view of a row of the blocks table.
func viewOf(row map[string]string) *blockView {
	rank, _ := strconv.Atoi(row["sort"])
	v := &blockView{
		Box: row["box"], Path: row["path"], HPath: row["hpath"], ID: row["id"], RootID: row["root_id"], ParentID: row["parent_id"],
		Name: row["name"], Alias: row["alias"], Memo: row["memo"], Tag: row["tag"], Content: row["content"], FContent: row["fcontent"],
		Markdown: row["markdown"], Type: text.TypeName(row["type"]), SubType: row["subtype"], IAL: parseIAL(row["ial"]), Sort: rank,
	}
	v.Folded = v.IAL["fold"] == "1"
	return v
}

// parseIAL reads the ial column; values stay escaped, as a real kernel leaves them.
func parseIAL(ial string) map[string]string {
	m := map[string]string{}
	for _, kv := range parse.Tokens2IAL([]byte(ial)) {
		m[kv[0]] = kv[1]
	}
	if v, ok := m["av-names"]; ok {
		m["av-names"] = strings.TrimSpace(v)
	}
	return m
}

func (k *Kernel) refCount(id string) int {
	return len(k.citing("def_block_id = ?", id))
}

// citing lists the blocks citing a definition, each once, in index order.
func (k *Kernel) citing(condition string, value string) (ids []string) {
	for _, row := range k.rows("SELECT DISTINCT block_id FROM refs WHERE "+condition, value) {
		ids = append(ids, row["block_id"])
	}
	return ids
}
