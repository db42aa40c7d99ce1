package transfers

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"siyuan-broker/contract"
)

// disposition is a Content-Disposition that makes browsers keep a file rather than
// show it (RFC 6266), with its name in the old form and in that of RFC 8187.
func disposition(name string) string {
	name = contract.FileName(name)
	plain := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '_'
		}
		return r
	}, name)
	if plain == name {
		return fmt.Sprintf(`attachment; filename="%s"`, plain)
	}
	return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, plain, url.PathEscape(name))
}

// mediaType is what a file is called on the way: never what browsers would show.
func mediaType(name string) string {
	switch {
	case strings.HasSuffix(name, ".md"):
		return "text/markdown; charset=utf-8"
	case strings.HasSuffix(name, ".zip"):
		return "application/zip"
	}
	return "application/octet-stream"
}
