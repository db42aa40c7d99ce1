package oauth

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Lengths of names, in runes: kept, and shown.
const (
	longName  = 200
	shownName = 60
)

// plainName makes text of strangers harmless to show: compatibility forms (bold,
// circled, full width) become the letters they stand for, whatever steers
// direction, joins, hides or breaks lines goes, accents do not pile up, and the
// rest is cut.
func plainName(s string, most int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "")
	}
	s = cut(s, 8*longName) // before the work that grows with it
	var kept []rune
	marks, space := 0, false
	for _, r := range norm.NFKC.String(s) {
		switch {
		case unicode.IsSpace(r):
			space = len(kept) > 0
			continue
		case unicode.Is(unicode.M, r):
			if marks++; marks > 1 || len(kept) == 0 {
				continue
			}
		case !unicode.IsGraphic(r), slices.Contains(blank, r):
			continue
		default:
			marks = 0
		}
		if space {
			kept = append(kept, ' ')
			space = false
		}
		if kept = append(kept, r); len(kept) > most {
			return strings.TrimRight(string(kept[:most-1]), " ") + "…"
		}
	}
	return string(kept)
}

// blank are letters and symbols that show nothing.
var blank = []rune{'\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0'}

// imitates reports whether a name has letters that look like Latin ones and are
// not, as a name has that wants to be taken for another.
func imitates(name string) bool {
	for _, r := range name {
		if unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu,
			unicode.Deseret, unicode.Glagolitic, unicode.Canadian_Aboriginal) {
			return true
		}
		if unicode.Is(unicode.Latin, r) && r > 0x24f { // phonetic and other extensions
			return true
		}
	}
	return false
}

// cut keeps the first n runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
