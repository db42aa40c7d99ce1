package contract

import (
	"strings"
	"unicode"
)

// Bounds of a FileName.
const (
	maxNameRunes = 80
	maxNameBytes = 160 // with the id that a stored file gets, far below 255
	maxExtension = 16
)

// FileName makes a name of somebody else fit for a file, a header and a command
// line: the part behind the last slash, of letters, digits, dots, dashes and
// underscores, none of them in front, bounded. Nothing usable gives "file".
func FileName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mn, r), unicode.Is(unicode.Mc, r), r == '.', r == '_':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	base, ext := splitExtension(strings.Trim(b.String(), "-."))
	if ext == "" { // SiYuan refuses names with a long one
		base = strings.ReplaceAll(base, ".", "-")
	}
	if base = strings.Trim(cutName(base), "-."); base == "" {
		base = "file"
	}
	return base + ext
}

// splitExtension takes a short ASCII extension off a name; the dot belongs to it.
func splitExtension(name string) (base, ext string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || len(name)-i > maxExtension {
		return name, ""
	}
	for _, r := range name[i+1:] {
		if r > unicode.MaxASCII {
			return name, ""
		}
	}
	return name[:i], name[i:]
}

func cutName(s string) string {
	runes := 0
	for i, r := range s {
		if runes++; runes > maxNameRunes || i+len(string(r)) > maxNameBytes {
			return s[:i]
		}
	}
	return s
}
