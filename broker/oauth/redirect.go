package oauth

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// redirectKind says where a redirect URI leads, as far as it matters to the
// person who is asked.
type redirectKind string

const (
	toSite    redirectKind = "site"    // an https host
	toMachine redirectKind = "machine" // a program on the person's own machine
	toApp     redirectKind = "app"     // whatever opens a private scheme there
)

// target is a redirect URI that was checked.
type target struct {
	uri  string
	kind redirectKind
	show string // host with port, or scheme
	form string // source for the page's form-action
}

const maxRedirect = 2048

// schemes a browser or an operating system gives a meaning of its own: a code
// sent there would be run, mailed or handed to whoever asks.
var reservedSchemes = []string{
	"javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "jar", "res",
	"ws", "wss", "ftp", "ftps", "sftp", "ssh", "telnet", "ldap", "ldaps", "smb", "nfs", "gopher", "git", "svn",
	"mailto", "tel", "sms", "sip", "sips", "xmpp", "irc", "magnet", "urn", "cid", "mid", "tag", "news", "nntp",
	"chrome", "chrome-extension", "moz-extension", "edge", "resource", "intent", "market", "itms-apps", "android-app",
	"ms-msdt", "search-ms", "search", "shell", "ms-officecmd", "ms-appinstaller", "ms-settings", "x-apple.systempreferences",
}

// parseRedirect checks a redirect URI: https anywhere, http on the loopback
// host, or a private scheme, which PKCE protects.
func parseRedirect(raw string) (target, error) {
	if raw == "" || len(raw) > maxRedirect {
		return target{}, errors.New("must have 1 to 2048 characters")
	}
	for _, c := range raw {
		if c <= ' ' || c >= 0x7f || strings.ContainsRune(`\<>"^{|}`+"`", c) {
			return target{}, errors.New("must be plain ASCII without spaces, quotes, brackets or backslashes; write other host names in punycode")
		}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme == "":
		return target{}, errors.New("must be an absolute URI")
	case strings.Contains(raw, "#"):
		return target{}, errors.New("must not have a fragment")
	case u.User != nil:
		return target{}, errors.New("must not have a user name")
	case strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/..") || strings.Contains(u.Path, "/./"):
		return target{}, errors.New("must not have dots for folders in its path")
	case hasAnswer(u.Query()):
		return target{}, errors.New("must not have parameters of its own called code, state, iss or error")
	case u.Scheme == "https":
		if u.Hostname() == "" {
			return target{}, errors.New("must name a host")
		}
		return target{raw, toSite, strings.ToLower(u.Host), "https://" + strings.ToLower(u.Host)}, nil
	case u.Scheme == "http":
		if !loopbackHost(u.Hostname()) {
			return target{}, errors.New("must be https; plain http is for localhost, 127.0.0.1 and [::1]")
		}
		return target{raw, toMachine, strings.ToLower(u.Host), "http://" + strings.ToLower(u.Host)}, nil
	case slices.Contains(reservedSchemes, u.Scheme):
		return target{}, errors.New("has a scheme that is not an app's own")
	case u.Opaque != "":
		return target{}, errors.New("must have a slash after its scheme")
	}
	return target{raw, toApp, u.Scheme + ":", u.Scheme + ":"}, nil
}

// hasAnswer reports whether parameters could be mistaken for our answer's.
func hasAnswer(q url.Values) bool {
	return q.Has("code") || q.Has("state") || q.Has("iss") || q.Has("error")
}

func loopbackHost(host string) bool {
	return host == "127.0.0.1" || host == "::1" || strings.EqualFold(host, "localhost")
}

// sameRedirect reports whether a redirect URI is the registered one: byte for
// byte, except that programs on the person's own machine take any port (RFC
// 8252, 7.3), and leave out the slash that is the whole path.
func sameRedirect(registered, asked string) bool {
	if registered == asked {
		return true
	}
	a, err := url.Parse(registered)
	b, berr := url.Parse(asked)
	if err != nil || berr != nil || a.Scheme != "http" || b.Scheme != "http" {
		return false
	}
	return loopbackHost(a.Hostname()) && strings.EqualFold(a.Hostname(), b.Hostname()) &&
		orSlash(a.EscapedPath()) == orSlash(b.EscapedPath()) && a.RawQuery == b.RawQuery && a.ForceQuery == b.ForceQuery
}

func orSlash(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// with adds the parameters of an answer to the URI's own.
func (t target) with(params url.Values) string {
	base, query, has := strings.Cut(t.uri, "?")
	if has && query != "" {
		return base + "?" + query + "&" + params.Encode()
	}
	return base + "?" + params.Encode()
}
