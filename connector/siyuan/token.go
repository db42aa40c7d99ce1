package siyuan

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Token is SiYuan's API token. It is all-powerful, so its value can be sent to
// the kernel and to nowhere else: every way of printing, logging or marshalling
// a Token yields "[redacted]".
type Token struct {
	// A func, because fmt looks into unexported fields of structs that hold a
	// Token without asking its methods, and can print no more than its address.
	reveal func() string
}

// NewToken wraps the token's text.
func NewToken(value string) Token {
	if value == "" {
		return Token{}
	}
	return Token{reveal: func() string { return value }}
}

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.reveal == nil }

// String hides the value.
func (t Token) String() string { return redacted }

// Format hides the value from every verb, also from %#v and %x.
func (t Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText hides the value from every encoder.
func (t Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the value from slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(redacted) }
