package token

import "strings"

// CanonicalResource is the form in which resource URLs are compared: without a
// trailing slash, with scheme and host in lower case. Clients write both
// https://HOST/mcp and https://HOST/mcp/.
func CanonicalResource(url string) string {
	url = strings.TrimRight(url, "/")
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, hasPath := strings.Cut(rest, "/")
	url = strings.ToLower(scheme) + "://" + strings.ToLower(host)
	if hasPath {
		url += "/" + path
	}
	return url
}
