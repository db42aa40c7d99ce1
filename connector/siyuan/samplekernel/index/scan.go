package index

import (
	"regexp"
	"strings"
)

// token is a piece of a statement: a word, a quoted string or name (with its
// quotes), a comment, white space or a single other byte.
type token struct {
	text    string
	comment bool
}

var tokenPattern = regexp.MustCompile(`(?s)^(?:--[^\n]*|/\*.*?(?:\*/|$)|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|` + "`[^`]*`?" + `|\[[^\]]*\]?|[A-Za-z_\x{80}-\x{10ffff}][A-Za-z0-9_$\x{80}-\x{10ffff}]*|\s+|.)`)

func scan(stmt string) (tokens []token) {
	for stmt != "" {
		t := tokenPattern.FindString(stmt)
		if t == "" {
			t = stmt
		}
		tokens = append(tokens, token{t, strings.HasPrefix(t, "--") || strings.HasPrefix(t, "/*")})
		stmt = stmt[len(t):]
	}
	return tokens
}

func join(tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.text)
	}
	return b.String()
}

// splitStatements cuts at semicolons and drops parts without a statement.
// Comments become a space, so that text can be put behind a statement.
func splitStatements(stmt string) (parts []string) {
	var cur []token
	flush := func() {
		if s := strings.TrimSpace(join(cur)); s != "" {
			parts = append(parts, s)
		}
		cur = nil
	}
	for _, t := range scan(stmt) {
		switch {
		case t.comment:
			cur = append(cur, token{text: " "})
		case t.text == ";":
			flush()
		default:
			cur = append(cur, t)
		}
	}
	flush()
	return parts
}

func firstWord(stmt string) string {
	for _, t := range scan(stmt) {
		if !t.comment && strings.TrimSpace(t.text) != "" {
			return strings.ToLower(t.text)
		}
	}
	return ""
}

// hasWord looks for a word outside parentheses.
func hasWord(stmt, word string) bool {
	depth := 0
	for _, t := range scan(stmt) {
		switch {
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		case depth == 0 && strings.EqualFold(t.text, word):
			return true
		}
	}
	return false
}

func writing(stmt string) bool {
	return hasWord(stmt, "returning") || hasWord(stmt, "update") || hasWord(stmt, "delete") || hasWord(stmt, "insert")
}

var commaLimit = regexp.MustCompile(`(?i)\blimit\s+(-?\d+)\s*,\s*(-?\d+)\s*$`)

// swapLimit is the kernel's misreading of LIMIT offset, count.
func swapLimit(stmt string) string {
	return commaLimit.ReplaceAllString(stmt, "LIMIT $1 OFFSET $2")
}

// quoteWord makes strings of a name where it stands in double quotes and, with
// bare set, where it stands alone.
func quoteWord(stmt, word string, bare bool) string {
	tokens := scan(stmt)
	for i, t := range tokens {
		if t.text == `"`+word+`"` || bare && strings.EqualFold(t.text, word) {
			tokens[i].text = "'" + strings.Trim(t.text, `"`) + "'"
		}
	}
	return join(tokens)
}

// spellMatches rewrites the literal behind every MATCH for the index, which
// holds one token per character.
func spellMatches(stmt string) string {
	tokens, after := scan(stmt), false
	for i, t := range tokens {
		switch {
		case strings.EqualFold(t.text, "match"):
			after = true
		case strings.TrimSpace(t.text) == "" || t.comment:
		default:
			if after && strings.HasPrefix(t.text, "'") && strings.HasSuffix(t.text, "'") && len(t.text) > 1 {
				q := strings.ReplaceAll(t.text[1:len(t.text)-1], "''", "'")
				tokens[i].text = "'" + strings.ReplaceAll(SpellQuery(q), "'", "''") + "'"
			}
			after = false
		}
	}
	return join(tokens)
}

var queryToken = regexp.MustCompile(`(?s)^(?:"(?:[^"]|"")*"?|[A-Za-z0-9_\x{80}-\x{10ffff}]+|\s+|.)`)

// SpellQuery rewrites the words and phrases of an FTS5 query expression as
// phrases of single characters; operators and column filters stay.
func SpellQuery(q string) string {
	var b strings.Builder
	inFilter := false
	for q != "" {
		t := queryToken.FindString(q)
		q = q[len(t):]
		switch {
		case t == "{":
			inFilter = true
		case t == "}":
			inFilter = false
		case inFilter:
		case len(t) > 1 && t[0] == '"' && t[len(t)-1] == '"':
			t = Phrase(strings.ReplaceAll(t[1:len(t)-1], `""`, `"`))
		case t == "AND" || t == "OR" || t == "NOT" || t == "NEAR":
		case strings.HasPrefix(strings.TrimLeft(q, " "), ":") && isWord(t):
		case isWord(t):
			t = Phrase(t)
		}
		b.WriteString(t)
	}
	return b.String()
}

var wordStart = regexp.MustCompile(`^[A-Za-z0-9_\x{80}-\x{10ffff}]`)

func isWord(t string) bool { return strings.TrimSpace(t) != "" && wordStart.MatchString(t) }
