package sqlscope

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes statements that the judge must admit.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) statement() string {
	stmt := g.query(2)
	switch g.IntN(6) {
	case 0:
		stmt += " -- done"
	case 1:
		stmt = "/* find ) ' */ " + stmt + ";"
	case 2:
		stmt = strings.ReplaceAll(stmt, " where ", "\n\tWHERE /* ; */ ")
	}
	return stmt
}

func (g generator) query(depth int) string {
	switch g.IntN(9) {
	case 0:
		return fmt.Sprintf("select count(*) n, max(length(%s)) m, group_concat(distinct box) g from %s where %s", g.column("blocks"), "blocks", g.condition("blocks", depth))
	case 1:
		c := g.column("blocks")
		return fmt.Sprintf("select %s k, count(*) n from blocks where %s group by 1 having count(*) > %d order by 1", c, g.condition("blocks", depth), g.IntN(2))
	case 2:
		return fmt.Sprintf("select b.id i, r.id r, r.content c, r.def_block_path p from blocks b %s refs r on r.%s = b.id where b.%s", g.pick("join", "left join", "full join"),
			g.pick("block_id", "def_block_id"), g.condition("blocks", 0))
	case 3:
		return fmt.Sprintf("with found as %s(select id, content, type from blocks where %s) select f.id, f.content, a.value from found f left join attributes a on a.block_id = f.id",
			g.pick("", "materialized ", "not materialized "), g.condition("blocks", depth))
	case 4:
		return fmt.Sprintf("select id, content from blocks where %s %s select id, content from spans where %s",
			g.condition("blocks", depth), g.pick("union", "union all", "except", "intersect"), g.condition("spans", 0))
	case 5:
		return fmt.Sprintf("select id, content from blocks_fts where %s match '%s' %s", g.pick("content", "blocks_fts.content", "fcontent", "name"), g.word(),
			g.pick("", "and "+g.condition(fullText, depth)))
	case 6:
		return fmt.Sprintf("select id, row_number() over (partition by type order by id) n, %s e from blocks where %s", g.pick("content || '!'", "upper(markdown)", "json_quote(content)", "length", "ial"), g.condition("blocks", depth))
	case 7:
		return fmt.Sprintf("select id, %s from blocks where %s order by id limit %s", g.column("blocks"), g.condition("blocks", depth), g.pick("5", "2, 4", "4 offset 2", "-1"))
	}
	t := g.pick("blocks", "spans", "refs", "attributes", "assets", "file_annotation_refs")
	return fmt.Sprintf("select * from %s where %s", t, g.condition(t, depth))
}

func (g generator) column(table string) string {
	switch table {
	case "blocks", fullText:
		return g.pick("id", "content", "fcontent", "markdown", "length", "hash", "ial", "type", "box", "created", "parent_id")
	case "spans", "refs":
		return g.pick("id", "content", "markdown", "type", "block_id", "box")
	}
	return g.pick("id", "block_id", "root_id", "box", "path")
}

func (g generator) word() string {
	return g.pick("alpha", "see", "Secret", "Payroll", "x", "bound", "circle", "May", "static", "plain")
}

func (g generator) condition(table string, depth int) string {
	c := g.column(table)
	if depth == 0 {
		return fmt.Sprintf("%s like '%%%s%%'", c, g.word())
	}
	switch g.IntN(11) {
	case 0:
		return g.condition(table, depth-1) + g.pick(" and ", " or ") + g.condition(table, depth-1)
	case 1:
		return "not (" + g.condition(table, depth-1) + ")"
	case 2:
		return fmt.Sprintf("id in (select %s from %s)", g.pick("block_id", "def_block_id"), "refs")
	case 3:
		return fmt.Sprintf("exists (select 1 from refs r where r.def_block_id = %s.id)", table)
	case 4:
		return fmt.Sprintf("%s regexp '%s.?'", c, g.word())
	case 5:
		return fmt.Sprintf("length(%s) > %d", c, g.IntN(40))
	case 6:
		return fmt.Sprintf("instr(%s, '%s') > 0", c, g.word())
	case 7:
		return fmt.Sprintf("case when json_valid(%s) then json_extract(%s, '$.a') else 1 end", c, c)
	case 8:
		return fmt.Sprintf("%s %s '%s'", c, g.pick("<", ">=", "<>", "="), g.pick(plainID, secretID, "m", "", work, private))
	case 9:
		return fmt.Sprintf("id not in (select id from blocks where %s)", g.condition("blocks", depth-1))
	}
	return fmt.Sprintf("%s glob '*%s*'", c, g.word())
}
