package pairing

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"unicode"

	"siyuan-broker/contract/wire"
)

// codeLetters are RFC 8628's: no vowels, so that no words come out, and nothing
// that looks like something else.
const (
	codeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	codeLen     = 8
)

// newUserCode draws a code evenly, as it is stored: without the hyphen.
func newUserCode(random io.Reader) (string, error) {
	code := make([]byte, 0, codeLen)
	b := make([]byte, 1)
	for len(code) < codeLen {
		if _, err := io.ReadFull(random, b); err != nil {
			return "", fmt.Errorf("draw a code: %w", err)
		}
		if int(b[0]) < 256-256%len(codeLetters) { // else the first letters would be likelier
			code = append(code, codeLetters[int(b[0])%len(codeLetters)])
		}
	}
	return string(code), nil
}

// showCode is a code as people read it.
func showCode(code string) string { return code[:codeLen/2] + "-" + code[codeLen/2:] }

// typedCode reads a code as people type it: in any case, with or without the
// hyphen, with spaces, in full-width letters. ok is false for what is none.
func typedCode(s string) (code string, ok bool) {
	if len(s) > 100 {
		return "", false
	}
	var b strings.Builder
	for _, r := range s {
		if r >= 'Ａ' && r <= 'Ｚ' || r >= 'ａ' && r <= 'ｚ' {
			r -= 'Ａ' - 'A'
		}
		switch r = unicode.ToUpper(r); {
		case strings.ContainsRune(codeLetters, r):
			b.WriteRune(r)
		case unicode.IsSpace(r) || unicode.Is(unicode.Pd, r):
		default:
			return "", false
		}
	}
	return b.String(), b.Len() == codeLen
}

func newDeviceCode(random io.Reader) (string, error) {
	b := make([]byte, 32)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("draw a device code: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// shown makes what a stranger's machine says fit to be shown: one line of at
// most max characters, nothing invisible, nothing that turns text around.
func shown(s string, max int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "") {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' {
			continue
		}
		if n++; n > max {
			return strings.TrimSpace(b.String()) + "…"
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// origin is the network by which an address is counted: an IPv6 customer has at
// least a /64 to choose from.
func origin(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return shown(address, 60)
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64) // cannot fail: 64 bits of 128
	return p.String()
}

// clean makes a request fit to be shown and stored.
func clean(q *wire.PairRequest) {
	q.Name, q.OS, q.Version = shown(q.Name, 64), shown(q.OS, 64), shown(q.Version, 64)
	if q.Name == "" {
		q.Name = "?"
	}
}
