package sqlscope

import (
	"slices"
	"strings"
)

// maxStatement bounds the bytes of a statement, and with them the time spent
// judging it.
const maxStatement = 64 << 10

// statement is what the lexer learned about an agent's text.
type statement struct {
	// text means the same as the original to every parser: no comments, no
	// trailing semicolon, LIMIT a, b written as LIMIT b OFFSET a.
	text string
	// ctes are the names the statement defines itself.
	ctes map[string]bool
	// ordered is text with id as the last term of its order, for one SELECT of rows
	// from one table; else "".
	ordered string
	// steady is true when no operator can fail at run time; functions are judged
	// separately.
	steady bool
	// badMatch tells that MATCH is used otherwise than column MATCH 'literal'.
	badMatch bool
}

// parse refuses what preparing the statement would not reveal.
func parse(stmt string) (*statement, *Refusal) {
	if len(stmt) > maxStatement {
		return nil, refuse("The statement is longer than 64 KiB.", "Shorten it, for example by a subquery instead of a list of ids.")
	}
	tokens, refusal := lex(stmt)
	if refusal != nil {
		return nil, refusal
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].operator(";") {
		tokens = tokens[:len(tokens)-1]
	}
	if refusal := checkShape(tokens); refusal != nil {
		return nil, refusal
	}
	if refusal := checkNames(tokens); refusal != nil {
		return nil, refusal
	}
	st := &statement{text: rendered(tokens), ctes: definedNames(tokens), steady: steady(tokens), badMatch: badMatch(tokens)}
	if table := oneTable(tokens); table != "" {
		st.ordered = rendered(orderedByID(tokens, table))
	}
	return st, nil
}

func rendered(tokens []token) string {
	var b strings.Builder
	render(&b, tokens)
	return strings.TrimSpace(b.String())
}

// checkShape wants one SELECT with balanced parentheses.
func checkShape(tokens []token) *Refusal {
	if len(tokens) == 0 {
		return refuse("The statement is empty.", "Write one SELECT, for example: SELECT id, content FROM blocks WHERE type = 'd'.")
	}
	if !tokens[0].is("select") && !tokens[0].is("with") {
		return refuse("Only reading is possible here: the statement must start with SELECT or WITH.", otherWay(tokens[0]))
	}
	depth := 0
	for _, t := range tokens {
		switch {
		case t.operator("("):
			depth++
		case t.operator(")"):
			depth--
		case t.operator(";"):
			return refuse("Only one statement can be run at a time.", "Send the statements one by one, or join them with UNION ALL.")
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return refuse("The parentheses of the statement do not match.", "Close every ( with one ).")
	}
	return nil
}

func otherWay(first token) string {
	switch first.name {
	case "explain":
		return "Run the SELECT itself."
	case "pragma":
		return "The tables and columns are described in the help of this action."
	case "values":
		return "Write SELECT * FROM (VALUES …)."
	case "insert", "update", "delete", "replace", "create", "drop", "alter":
		return "To change notes use the block and document tools."
	}
	return ""
}

// checkNames refuses the names of schemas. The scratch database has no tables
// behind main's names, but temp would reach its views.
func checkNames(tokens []token) *Refusal {
	for i := 0; i+1 < len(tokens); i++ {
		if t := tokens[i]; t.nameLike() && tokens[i+1].operator(".") {
			if t.kind == tokenString || t.name == "main" || t.name == "temp" {
				return refuse("Names with a schema in front, such as main.blocks or temp.blocks, are not allowed.",
					"Write the table alone: FROM blocks; give it another alias than main or temp.")
			}
		}
	}
	return nil
}

// definedNames collects what stands before AS ( … ), with or without a list of
// columns: common table expressions and named windows.
func definedNames(tokens []token) map[string]bool {
	names := map[string]bool{}
	for i, t := range tokens {
		if !t.is("as") || !opensBody(tokens[i+1:]) {
			continue
		}
		at := i - 1
		if at > 0 && tokens[at].operator(")") {
			for depth := 1; depth > 0 && at > 0; {
				at--
				switch {
				case tokens[at].operator(")"):
					depth++
				case tokens[at].operator("("):
					depth--
				}
			}
			at--
		}
		if at >= 0 && tokens[at].nameLike() {
			names[tokens[at].name] = true
		}
	}
	return names
}

func opensBody(tokens []token) bool {
	for _, t := range tokens {
		if !t.is("not") && !t.is("materialized") {
			return t.operator("(")
		}
	}
	return false
}

// oneTable gives the name of the table in a SELECT of rows from one table and no
// more; else "". Groups and what stands for several rows are no such rows.
func oneTable(tokens []token) string {
	from := -1
	for i, t := range tokens {
		switch {
		case t.is("with"), t.is("select") && i > 0, t.is("from") && from >= 0,
			t.is("union"), t.is("except"), t.is("intersect"), t.is("values"),
			t.is("distinct"), t.is("group"), t.is("having"), t.is("over"):
			return ""
		case t.is("from"):
			from = i
		}
	}
	rest := tokens[from+1:]
	if from < 0 || len(rest) == 0 || !rest[0].nameLike() {
		return ""
	}
	name, rest := rest[0], rest[1:]
	if len(rest) > 0 && rest[0].is("as") {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].nameLike() && !startsClause(rest[0]) {
		name, rest = rest[0], rest[1:]
	}
	if name.kind == tokenString || len(rest) > 0 && !startsClause(rest[0]) {
		return ""
	}
	return name.text
}

// orderedByID lets the id decide where the order of the statement does not. Rows
// that are equal to it would come, and be cut by its LIMIT, as they lie in the
// index.
func orderedByID(tokens []token, table string) []token {
	end, by := len(tokens), []token{{kind: tokenWord, space: "\n", text: "ORDER"}, {kind: tokenWord, space: " ", text: "BY"}}
	depth := 0
	for i, t := range tokens {
		switch {
		case t.operator("("):
			depth++
		case t.operator(")"):
			depth--
		case depth == 0 && t.is("order"):
			by = []token{{kind: tokenOperator, text: ","}}
		case depth == 0 && t.is("limit"):
			end = i
		}
	}
	by = append(by, token{kind: tokenWord, space: " ", text: table + ".id"})
	return slices.Concat(tokens[:end], by, tokens[end:])
}

func startsClause(t token) bool {
	return t.is("where") || t.is("group") || t.is("order") || t.is("limit")
}

// steady reports that no operator can fail on a value. Patterns must be short
// literals: SQLite refuses long ones and odd escapes at run time.
func steady(tokens []token) bool {
	const maxPattern = 1000
	for i, t := range tokens {
		switch {
		case t.operator("||"), t.operator("->"), t.operator("->>"), t.is("escape"), t.is("regexp"):
			return false
		case t.is("like"), t.is("glob"):
			if i+1 == len(tokens) || tokens[i+1].kind != tokenString || len(tokens[i+1].text) > maxPattern {
				return false
			}
			if i+2 < len(tokens) && tokens[i+2].operator("(") {
				return false
			}
		}
	}
	return true
}

func badMatch(tokens []token) bool {
	for i, t := range tokens {
		if !t.is("match") {
			continue
		}
		if i == 0 || i+1 == len(tokens) || tokens[i+1].kind != tokenString {
			return true
		}
		if left := tokens[i-1]; left.kind == tokenString || !left.nameLike() || !matchable(left.name) {
			return true
		}
	}
	return false
}

// render writes the tokens with their white space and turns comma limits into
// the form that the kernel does not misread.
func render(b *strings.Builder, tokens []token) {
	for i := 0; i < len(tokens); i++ {
		b.WriteString(tokens[i].space)
		b.WriteString(tokens[i].text)
		if !tokens[i].is("limit") {
			continue
		}
		comma, end := limitComma(tokens[i+1:])
		if comma < 0 {
			continue
		}
		rest := tokens[i+1:]
		b.WriteString(" ")
		render(b, rest[comma+1:end])
		b.WriteString(" OFFSET ")
		render(b, rest[:comma])
		i += end
	}
}

// limitComma finds the comma of "a, b" after LIMIT and where the clause ends;
// the comma is -1 when there is none.
func limitComma(tokens []token) (comma, end int) {
	comma, depth := -1, 0
	for i, t := range tokens {
		switch {
		case t.operator("("):
			depth++
		case t.operator(")"):
			depth--
		case t.operator(",") && depth == 0 && comma < 0:
			comma = i
		}
		if depth < 0 {
			return comma, i
		}
	}
	return comma, len(tokens)
}
