package fspath

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The virtual files. They stand beside the notebooks at the root, belong to the
// caller and not to the home, and win over a notebook of the same name.
const (
	Memory = "AGENTS.md"     // what the agent wants to remember; it may write it
	Rules  = "USER_RULES.md" // what the person wants of agents; read-only for them
)

// Path is the names on the way to something: a notebook, then document titles.
// The empty path is the root. A name is never empty; it may hold any characters,
// a slash too.
type Path []string

// maxNames bounds the depth of a path; SiYuan itself nests far fewer.
const maxNames = 64

// Parse reads a path. Slashes separate names, and as many as you like count as
// one; the first and the last may be left out. Inside a name a slash is written
// \/ and a backslash \\; a backslash before anything else is itself. Space
// around the whole path is dropped, inside it counts. Names like . and .. have
// no meaning of their own.
func Parse(text string) (Path, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("a path must not be empty; / is the list of notebooks")
	}
	var path Path
	var name strings.Builder
	end := func() {
		if name.Len() > 0 {
			path = append(path, name.String())
			name.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '\\'):
			i++
			name.WriteByte(text[i])
		case c == '/':
			end()
		default:
			name.WriteByte(c)
		}
	}
	end()
	if len(path) > maxNames {
		return nil, fmt.Errorf("a path must have at most %d levels", maxNames)
	}
	return path, nil
}

var escaper = strings.NewReplacer(`\`, `\\`, `/`, `\/`)

// String writes the path so that Parse gives it back. A last name that ends in
// space is followed by a slash, because space at the end of a path is dropped.
func (p Path) String() string {
	if len(p) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, name := range p {
		b.WriteByte('/')
		b.WriteString(escaper.Replace(name))
	}
	if last, _ := utf8.DecodeLastRuneInString(p[len(p)-1]); unicode.IsSpace(last) {
		b.WriteByte('/')
	}
	return b.String()
}

// Child is the path of something right below.
func (p Path) Child(name string) Path { return append(p[:len(p):len(p)], name) }

// Split is the path of what is right above, and the last name. The root has
// none: it gives itself and "".
func (p Path) Split() (parent Path, name string) {
	if len(p) == 0 {
		return nil, ""
	}
	return p[:len(p)-1], p[len(p)-1]
}

// Virtual is the virtual file that the path names, "" when it names none.
func (p Path) Virtual() string {
	if len(p) == 1 && (p[0] == Memory || p[0] == Rules) {
		return p[0]
	}
	return ""
}
