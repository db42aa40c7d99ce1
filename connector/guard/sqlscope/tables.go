package sqlscope

import "strings"

// table is one table of the kernel's index that statements may name.
type table struct {
	name    string
	columns []string
	// hidden marks tables that tell about the whole corpus, by statistics or by
	// text without a notebook. They exist only while nothing is hidden.
	hidden bool
}

const fullText = "blocks_fts"

// kernelTables lists the tables with their columns in the order of the kernel,
// so that SELECT * means the same.
func kernelTables() []table {
	const blocks = "id parent_id root_id hash box path hpath name alias memo tag content fcontent markdown length type subtype ial sort created updated"
	return []table{
		{name: "blocks", columns: strings.Fields(blocks)},
		{name: fullText, columns: strings.Fields(blocks)},
		{name: "spans", columns: strings.Fields("id block_id root_id box path content markdown type ial")},
		{name: "refs", columns: strings.Fields("id def_block_id def_block_parent_id def_block_root_id def_block_path block_id root_id box path content markdown type")},
		{name: "attributes", columns: strings.Fields("id name value type block_id root_id box path")},
		{name: "assets", columns: strings.Fields("id block_id root_id box docpath path name title hash")},
		{name: "file_annotation_refs", columns: strings.Fields("id file_path annotation_id block_id root_id box path content type")},
		{name: "stat", columns: strings.Fields("key value"), hidden: true},
		{name: "block_embeddings", columns: strings.Fields("id root_id box path embedding model content_len updated fail_count last_tried ignored_type"), hidden: true},
	}
}

// matchable are the columns full text may ask for. The index has ial too, which
// holds the names of databases that may belong to a hidden notebook.
func matchable(column string) bool {
	switch column {
	case "name", "alias", "memo", "tag", "content", "fcontent":
		return true
	}
	return false
}

// create returns the definition of t under the given name. Indexes are left
// out: they change how a statement runs, not whether it may.
func (t table) create(name string) string {
	if t.name != fullText {
		return "CREATE TABLE " + name + "(" + strings.Join(t.columns, ", ") + ");"
	}
	columns := make([]string, len(t.columns))
	for i, c := range t.columns {
		columns[i] = c
		if !matchable(c) && c != "ial" {
			columns[i] += " UNINDEXED"
		}
	}
	return "CREATE VIRTUAL TABLE " + name + " USING fts5(" + strings.Join(columns, ", ") + ");"
}
