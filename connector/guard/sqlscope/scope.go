package sqlscope

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Placeholder stands for text that shows something the reader may not see. It
// is the same for hidden, closed and missing targets.
const Placeholder = "[not available]"

// staticText starts the keys under which databases keep a text at a bound block.
const staticText = "custom-sy-av-s-text-"

// Scope is what the statement may see.
type Scope struct {
	// Notebooks are the ids of the readable notebooks. None means no rows.
	Notebooks []string
	// All tells that nothing is hidden from the reader. Notebooks is then
	// ignored, and all of full text, stat and block_embeddings are available.
	All bool
}

// Plan is a statement ready for the kernel.
type Plan struct {
	// SQL is to be sent with mode "readonly" and nothing added. Columns that the
	// statement names twice come back as a and a:1.
	SQL string
	// Check tells whether SQL ran to its end: the kernel leaves out the row on
	// which a function failed and all behind it, and says nothing. Check gives one
	// row if nothing failed and none otherwise. It is "" when nothing can fail.
	Check string
	// Limit is the number of rows to show. SQL asks for one more: if that comes
	// too, the result is truncated.
	Limit int
}

var notebookID = regexp.MustCompile(`^[0-9]{14}-[0-9a-z]{7}$`)

func (s Scope) validate() error {
	for _, id := range s.Notebooks {
		if !notebookID.MatchString(id) {
			return fmt.Errorf("sqlscope: %q is not a notebook id", id)
		}
	}
	return nil
}

// verbatim is never read. The kernel's first parser knows no IS NOT DISTINCT
// FROM, its second is not asked when the text has ||, so SQLite gets our text as
// it is.
const verbatim = `verbatim AS (SELECT 1 WHERE ('' || '') IS NOT DISTINCT FROM '')`

// Verbatim is a SELECT of the connector's own in a form that the kernel hands to
// SQLite without printing it anew.
func Verbatim(stmt string) string { return "WITH " + verbatim + "\n" + stmt }

// builder writes the text around a statement. Judge and kernel get the same
// text, but for the names of the base tables.
type builder struct {
	scope Scope
	// base gives the qualified base table behind a kernel table.
	base func(table string) string
	// fence keeps the statement's expressions away from hidden rows, and the order
	// of the index away from the statement.
	fence bool
}

// wrap puts the text around a statement that parse admitted.
func (w builder) wrap(text string, limit int) string {
	return w.with() + "\nSELECT * FROM (" + text + "\n) LIMIT " + strconv.Itoa(limit+1)
}

// check puts another text around it: an aggregate over all columns of all rows.
// DISTINCT keeps SQLite from leaving out columns that nobody asks for.
func (w builder) check(text string, limit int) string {
	return w.with() + "\nSELECT count(*) AS n FROM (SELECT DISTINCT * FROM (SELECT * FROM (" + text + "\n) LIMIT " + strconv.Itoa(limit+1) + "))"
}

// with is what the statement finds in place of the kernel's tables.
func (w builder) with() string {
	with := []string{verbatim}
	if !w.scope.All {
		with = append(with, w.readable(), w.unseen())
		for _, t := range kernelTables() {
			if !t.hidden {
				with = append(with, w.shadow(t))
			}
		}
	}
	return "WITH RECURSIVE " + strings.Join(with, ",\n")
}

// readable is a CTE with the ids of the readable notebooks.
func (w builder) readable() string {
	if len(w.scope.Notebooks) == 0 {
		return "readable(box) AS (SELECT '' WHERE 0)"
	}
	return "readable(box) AS (VALUES ('" + strings.Join(w.scope.Notebooks, "'), ('") + "'))"
}

// unseen is a CTE of the blocks that full text must not find, after one of those
// that show foreign text. They are written without correlated subqueries, else
// SQLite would look at the statement's terms before it looks here.
func (w builder) unseen() string {
	from := w.base("blocks") + " x WHERE x.box IN readable AND "
	return w.anchors("SELECT x.id, "+afterAnchor("x.markdown")+" FROM "+from+mayAnchor("x.markdown")) +
		",\nforeign_blocks AS MATERIALIZED (" + w.dangling() + "\n UNION ALL SELECT x.id FROM " + from + styled("x.markdown") + ")" +
		",\nunseen AS MATERIALIZED (SELECT id FROM foreign_blocks UNION ALL SELECT x.id FROM " + from + mixes("x") + ")"
}

// shadow is the CTE that takes the place of t. Full text needs its CTE merged
// into the statement. The others are in an order of their own: that of the index
// follows what happens to hidden notes. Their LIMIT keeps SQLite from dropping it.
func (w builder) shadow(t table) string {
	mode, order := "NOT MATERIALIZED", ""
	if w.fence && t.name != fullText {
		mode, order = "MATERIALIZED", " ORDER BY "+places(len(t.columns))+" LIMIT -1"
	}
	columns := make([]string, len(t.columns))
	for i, c := range t.columns {
		columns[i] = "b." + c
		if e := column(t.name, c); e != "" {
			columns[i] = e + " AS " + c
		}
	}
	return fmt.Sprintf("%s AS %s (SELECT %s FROM %s b WHERE b.box IN readable%s)",
		t.name, mode, strings.Join(columns, ", "), w.source(t.name), filter(t.name)+order)
}

// places is "1, 2, …", an order by every column.
func places(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i + 1)
	}
	return strings.Join(list, ", ")
}

// source is the base table with flags for column: mixed, foreign and known.
func (w builder) source(table string) string {
	base := w.base(table)
	switch table {
	case "blocks":
		foreign := w.foreign("x.markdown")
		if w.fence { // all blocks are looked at anyway
			foreign = "x.id IN (SELECT id FROM foreign_blocks)"
		}
		return fmt.Sprintf("(SELECT x.*, %s AS mixed, %s AS foreign_text FROM %s x)", mixes("x"), foreign, base)
	case "spans":
		return fmt.Sprintf("(SELECT x.*, %s AS foreign_text FROM %s x)", w.foreign("x.markdown"), base)
	case "refs":
		return fmt.Sprintf("(SELECT x.*, x.type <> 'textmark' OR %s AS foreign_text,\n EXISTS (SELECT 1 FROM %s t WHERE t.id = x.def_block_id AND t.box IN readable) AS known FROM %s x)",
			w.foreign("x.markdown"), w.base("blocks"), base)
	}
	return base
}

// filter is what a table wants of its rows besides a readable notebook.
func filter(table string) string {
	switch table {
	case fullText:
		return " AND b.id NOT IN (SELECT id FROM unseen)"
	case "refs":
		return " AND b.type IN ('textmark', 'query_embed')"
	case "attributes":
		return " AND b.name <> 'custom-avs' AND b.name NOT GLOB '" + staticText + "*'"
	}
	return ""
}

// column gives the expression shown instead of a column, or "".
func column(table, column string) string {
	unless := func(flag, instead string) string {
		return "CASE WHEN " + flag + " THEN " + instead + " ELSE b." + column + " END"
	}
	const placeholder = "'" + Placeholder + "'"
	switch table + "." + column {
	case "blocks.hash", "blocks_fts.hash", "refs.id", "spans.id", "attributes.id", "assets.id", "file_annotation_refs.id":
		return "''"
	case "blocks.content", "blocks.fcontent":
		return unless("b.mixed OR b.foreign_text", placeholder)
	case "blocks.length":
		return unless("b.mixed OR b.foreign_text", "0")
	case "blocks.ial", "blocks_fts.ial":
		return ownAttributes("b.ial")
	case "blocks.markdown", "spans.content", "spans.markdown", "refs.content", "refs.markdown":
		return unless("b.foreign_text", placeholder)
	case "refs.def_block_parent_id", "refs.def_block_root_id", "refs.def_block_path":
		return unless("NOT b.known", "''")
	}
	return ""
}

// mixes is the condition that content holds rendered rows: embeds, databases
// and whatever can contain one. {{{ opens a super block, {{ an embed.
func mixes(alias string) string {
	const leaves = "'d', 'h', 'p', 'c', 'm', 't', 'tb', 'html', 'iframe', 'video', 'audio', 'widget'"
	return fmt.Sprintf("(%[1]s.type IN ('query_embed', 'av') OR %[1]s.type NOT IN (%[2]s)"+
		" AND (instr(replace(%[1]s.markdown, '{{{', ''), '{{') OR instr(%[1]s.markdown, 'NodeAttributeView')))", alias, leaves)
}

// foreign is the condition that a markdown text shows a dynamic anchor whose
// text is not the reader's to see.
func (w builder) foreign(markdown string) string {
	return fmt.Sprintf("(%s AND EXISTS (WITH RECURSIVE %s %s) OR %s)", mayAnchor(markdown),
		w.anchors("SELECT 0, "+afterAnchor(markdown)), w.dangling(), styled(markdown))
}

// mayAnchor is a cheap condition that every text with a dynamic anchor meets.
func mayAnchor(markdown string) string { return markdown + " GLOB '*((* ''*'" }

// styled is the condition that an anchor stands as HTML in the text, as those
// with further formatting may. Their targets are not looked up.
func styled(markdown string) string { return "instr(" + markdown + `, 'data-subtype="d"')` }

func afterAnchor(text string) string {
	return fmt.Sprintf("substr(%[1]s, instr(%[1]s, '((') + 2)", text)
}

// anchors is a CTE anchor(id, rest) of all that follows a "((" in the texts of
// the seed, and in the texts that their dynamic anchors repeat. A repeated text
// that mixes notebooks counts as an anchor without target.
func (w builder) anchors(seed string) string {
	lost := mixes("t") + " OR " + styled("t.markdown")
	return fmt.Sprintf(`anchor(id, rest) AS (%[1]s
 UNION SELECT id, %[2]s FROM anchor WHERE instr(rest, '((')
 UNION SELECT anchor.id, CASE WHEN %[3]s THEN ' ''' ELSE %[4]s END FROM anchor JOIN %[5]s t ON t.id = substr(rest, 1, 22)
  WHERE substr(rest, 23, 2) = ' ''' AND t.box IN readable AND (%[3]s OR %[6]s))`,
		seed, afterAnchor("rest"), lost, afterAnchor("t.markdown"), w.base("blocks"), mayAnchor("t.markdown"))
}

// dangling selects from anchor the ids of texts with a dynamic anchor that has
// no readable target or, if it starts with its text, no target at all.
func (w builder) dangling() string {
	return fmt.Sprintf(`SELECT a.id FROM anchor a LEFT JOIN %s t ON t.id = substr(a.rest, 1, 22) AND t.box IN readable
  WHERE substr(a.rest, 1, 2) = ' ''' OR substr(a.rest, 23, 2) = ' ''' AND t.id IS NULL`, w.base("blocks"))
}

// ownAttributes removes from an attribute list what databases write into it:
// their ids, their names, and texts under a key that ends in their id. Each is
// marked with char(1), then cut from the mark to its second double quote:
// values are HTML-escaped and hold none.
func ownAttributes(ial string) string {
	marked := ial
	for _, name := range []string{"av-names", "custom-avs"} {
		marked = fmt.Sprintf(`replace(%s, ' %s="', char(1) || '"')`, marked, name)
	}
	marked = fmt.Sprintf("replace(%s, ' %s', char(1))", marked, staticText)
	afterQuote := func(text string) string { return fmt.Sprintf(`substr(%[1]s, instr(%[1]s, '"') + 1)`, text) }
	const mark = "instr(a, char(1))"
	return fmt.Sprintf(`CASE WHEN instr(%[1]s, ' av-names=') OR instr(%[1]s, ' custom-avs=') OR instr(%[1]s, ' %[2]s') THEN (
 WITH RECURSIVE own(a) AS (SELECT %[3]s UNION ALL SELECT substr(a, 1, %[4]s - 1) || %[5]s FROM own WHERE %[4]s)
 SELECT a FROM own WHERE NOT %[4]s) ELSE %[1]s END`,
		ial, staticText, marked, mark, afterQuote(afterQuote("substr(a, "+mark+")")))
}
