package sqlscope

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenWord   tokenKind = iota // bare keyword or identifier
	tokenQuoted                  // "x", [x] or `x`
	tokenString                  // 'x'; SQLite also takes it where a name is wanted
	tokenNumber
	tokenOperator
)

// token is one lexical element with the white space that came before it.
// Comments count as one blank.
type token struct {
	kind  tokenKind
	space string
	text  string
	// name is the unquoted lower-case text of words, quoted names and strings.
	name string
}

func (t token) is(word string) bool     { return t.kind == tokenWord && t.name == word }
func (t token) operator(op string) bool { return t.kind == tokenOperator && t.text == op }
func (t token) nameLike() bool {
	return t.kind == tokenWord || t.kind == tokenQuoted || t.kind == tokenString
}

// lex splits a statement the way SQLite's tokenizer does. It is stricter: what
// tokenizers are known to disagree on is refused.
func lex(stmt string) ([]token, *Refusal) {
	if !utf8.ValidString(stmt) || strings.ContainsRune(stmt, 0) {
		return nil, refuse("The statement is not valid UTF-8 text.", "Send plain text without NUL bytes.")
	}
	var tokens []token
	space := ""
	for i := 0; i < len(stmt); {
		if n := blank(stmt[i:]); n > 0 {
			space += stmt[i : i+n]
			i += n
			continue
		}
		if n := comment(stmt[i:]); n > 0 {
			space += " "
			i += n
			continue
		}
		t, n, refusal := element(stmt[i:])
		if refusal != nil {
			return nil, refusal
		}
		t.space, space = space, ""
		tokens = append(tokens, t)
		i += n
	}
	return tokens, nil
}

func blank(s string) int {
	return len(s) - len(strings.TrimLeft(s, " \t\n\f\r"))
}

func comment(s string) int {
	switch {
	case strings.HasPrefix(s, "--"):
		if end := strings.IndexByte(s, '\n'); end >= 0 {
			return end
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		if end := strings.Index(s[2:], "*/"); end >= 0 {
			return end + 4
		}
		return len(s)
	}
	return 0
}

func element(s string) (token, int, *Refusal) {
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case strings.ContainsRune("'\"`[", r):
		return quoted(s)
	case r >= '0' && r <= '9':
		n := span(s, func(r rune) bool { return r < utf8.RuneSelf && (wordRune(r) || r == '.') })
		return token{kind: tokenNumber, text: s[:n]}, n, nil
	case wordRune(r) && r != '$':
		n := span(s, wordRune)
		return token{kind: tokenWord, text: s[:n], name: strings.ToLower(s[:n])}, n, nil
	case strings.ContainsRune("?:@$#", r):
		return token{}, 0, refuse("Parameters (?, :name, @name, $name) are not supported: there is nothing to bind them to.",
			"Write the value into the statement, text in single quotes.")
	}
	for _, op := range []string{"->>", "->", "||", "<=", "<>", "<<", ">=", ">>", "==", "!="} {
		if strings.HasPrefix(s, op) {
			return token{kind: tokenOperator, text: op}, len(op), nil
		}
	}
	if strings.ContainsRune("()+-*/%=<>&|~,.;", r) {
		return token{kind: tokenOperator, text: s[:1]}, 1, nil
	}
	return token{}, 0, refuse("The statement has a character that SQL does not know outside of quotes.",
		"Use plain spaces and ASCII punctuation; put text in single quotes.")
}

func wordRune(r rune) bool {
	if r >= utf8.RuneSelf {
		return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
	}
	return r == '_' || r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func span(s string, in func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !in(r) }); n >= 0 {
		return n
	}
	return len(s)
}

// quoted reads a string or a quoted name. A doubled quote stands for itself,
// except in brackets.
func quoted(s string) (token, int, *Refusal) {
	kind, end := tokenQuoted, s[0]
	switch s[0] {
	case '\'':
		kind = tokenString
	case '[':
		end = ']'
	}
	for i := 1; i < len(s); i++ {
		if s[i] != end {
			continue
		}
		if end != ']' && i+1 < len(s) && s[i+1] == end {
			i++
			continue
		}
		body := s[1:i]
		if end != ']' {
			body = strings.ReplaceAll(body, s[:1]+s[:1], s[:1])
		}
		return token{kind: kind, text: s[:i+1], name: strings.ToLower(body)}, i + 1, nil
	}
	return token{}, 0, refuse("A quote is not closed.", "Close it; a quote inside quotes is doubled: 'it''s'.")
}
