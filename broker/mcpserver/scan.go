package mcpserver

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"
)

// scanDepth bounds how deep a text may nest that a scanner reads. It is the SDK's
// own bound.
const scanDepth = 1000

// longNumber is a length in bytes that every number of a float64 without an
// exponent may have.
const longNumber = 24

// scanner reads one JSON text without copying and without allocating: members
// and values are slices of it. It accepts RFC 8259 and nothing else, except that
// it does not look at UTF-8; whoever uses it has. After anything else it is bad
// and gives nothing more.
//
//	for key, more := s.enter(); more; key, more = s.next() {
//		value := s.value()
//	}
type scanner struct {
	text  []byte
	at    int
	keyAt int // where the last key began, with its quote
	depth int
	bad   bool
	large bool // a number has an exponent or is long: a float64 may not hold it
}

func (s *scanner) fail() { s.bad, s.at = true, len(s.text) }

// peek is the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take steps over one byte that must come next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		s.fail()
		return false
	}
	s.at++
	return true
}

// end reports whether all of the text was read and found good.
func (s *scanner) end() bool {
	if s.peek() != 0 || s.at != len(s.text) {
		s.fail()
	}
	return !s.bad
}

// enter steps into an object and gives its first key as it is written, without
// the quotes; more is false where there is none.
func (s *scanner) enter() (key []byte, more bool) {
	if !s.take('{') {
		return nil, false
	}
	if s.depth++; s.depth > scanDepth {
		s.fail()
		return nil, false
	}
	if s.peek() == '}' {
		return nil, s.leave()
	}
	return s.key()
}

// next gives the key after a value, or leaves the object.
func (s *scanner) next() (key []byte, more bool) {
	if s.peek() == '}' {
		return nil, s.leave()
	}
	if !s.take(',') {
		return nil, false
	}
	return s.key()
}

func (s *scanner) leave() bool {
	s.at++
	s.depth--
	return false
}

func (s *scanner) key() ([]byte, bool) {
	s.peek()
	s.keyAt = s.at
	quoted := s.str()
	if s.bad || !s.take(':') {
		return nil, false
	}
	return quoted[1 : len(quoted)-1], true
}

// value steps over any value and gives it without the space around it.
func (s *scanner) value() []byte {
	c := s.peek()
	from := s.at
	switch {
	case c == '"':
		return s.str()
	case c == '{':
		for _, more := s.enter(); more; _, more = s.next() {
			s.value()
		}
	case c == '[':
		s.list()
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.fail()
	}
	if s.bad {
		return nil
	}
	return s.text[from:s.at]
}

func (s *scanner) list() {
	s.at++
	if s.depth++; s.depth > scanDepth {
		s.fail()
		return
	}
	if s.peek() != ']' {
		for s.value(); s.peek() == ','; s.value() {
			s.at++
		}
	}
	if s.take(']') {
		s.depth--
	}
}

func (s *scanner) word(w string) {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		s.fail()
		return
	}
	s.at += len(w)
}

func (s *scanner) number() {
	from := s.at
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else {
		s.digits()
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		s.digits()
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		if s.at++; s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		s.digits()
		s.large = true
	}
	s.large = s.large || s.at-from > longNumber
}

func (s *scanner) digits() {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	if s.at == from {
		s.fail()
	}
}

// str steps over a string and gives it with its quotes.
func (s *scanner) str() []byte {
	from := s.at
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		s.fail()
		return nil
	}
	for s.at++; ; {
		s.at += plain(s.text[s.at:])
		if s.at >= len(s.text) {
			s.fail()
			return nil
		}
		switch s.text[s.at] {
		case '"':
			s.at++
			return s.text[from:s.at]
		case '\\':
			if s.escape(); s.bad {
				return nil
			}
		default: // a control character
			s.fail()
			return nil
		}
	}
}

func (s *scanner) escape() {
	rest := s.text[s.at+1:]
	if len(rest) == 0 {
		s.fail()
		return
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
	case 'u':
		if len(rest) < 5 {
			s.fail()
			return
		}
		for _, c := range rest[1:5] {
			if hex := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'; !hex {
				s.fail()
				return
			}
		}
		s.at += 6
	default:
		s.fail()
	}
}

// plain is how many bytes at the start of b are neither a quote, a backslash
// nor a control character. It looks at eight bytes at a time: notes are long.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		if hit := ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8 // the lowest hit is exact, those above it need not be
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// unescaped tells the bytes that encoding/json writes into a string as they are,
// given valid UTF-8. 0xE2 begins U+2028 and U+2029, which it does not.
var unescaped = func() (t [256]bool) {
	for i := range t {
		t[i] = i >= 0x20 && i != '"' && i != '\\' && i != '<' && i != '>' && i != '&' && i != 0xE2
	}
	return t
}()

// appendString appends text as encoding/json writes a string, byte for byte.
func appendString(to, text []byte) []byte {
	if !utf8.Valid(text) {
		quoted, _ := json.Marshal(string(text)) // a string always marshals
		return append(to, quoted...)
	}
	to = append(to, '"')
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if unescaped[c] {
			continue
		}
		if c == 0xE2 && (text[i+1] != 0x80 || text[i+2]&^1 != 0xA8) {
			continue
		}
		to = append(to, text[from:i]...)
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\b':
			to = append(to, '\\', 'b')
		case '\f':
			to = append(to, '\\', 'f')
		case '\n':
			to = append(to, '\\', 'n')
		case '\r':
			to = append(to, '\\', 'r')
		case '\t':
			to = append(to, '\\', 't')
		case 0xE2:
			to = append(to, '\\', 'u', '2', '0', '2', hexDigits[text[i+2]&0xF])
			i += 2
		default:
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		from = i + 1
	}
	to = append(to, text[from:]...)
	return append(to, '"')
}

const hexDigits = "0123456789abcdef"
