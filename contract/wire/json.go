package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// CheckJSON reports whether b is one well-formed JSON value in valid UTF-8 that
// nests at most depth arrays and objects. It looks at every byte once and
// allocates only for the depth, which makes it fit for results of megabytes.
func CheckJSON(b []byte, depth int) error {
	if !utf8.Valid(b) {
		return errors.New("not valid UTF-8")
	}
	c := checker{b: b, max: depth}
	if err := c.value(); err != nil {
		return err
	}
	if c.space(); c.i < len(b) {
		return c.bad("end of input")
	}
	return nil
}

// checker is iterative: the nesting lives in open, so that hostile depth costs
// an error and no stack.
type checker struct {
	b    []byte
	i    int
	max  int
	open []byte // '}' or ']' for every value still open
}

func (c *checker) bad(want string) error {
	return fmt.Errorf("malformed JSON at byte %d: want %s", c.i, want)
}

func (c *checker) peek() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

func (c *checker) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// value reads one value with everything inside it.
func (c *checker) value() error {
	for {
		c.space()
		switch ch := c.peek(); ch {
		case '{', '[':
			entered, err := c.enter(ch)
			if err != nil {
				return err
			}
			if entered {
				continue
			}
		default:
			if err := c.scalar(ch); err != nil {
				return err
			}
		}
		more, err := c.leave()
		if err != nil || !more {
			return err
		}
	}
}

// enter steps into an array or object up to its first value; an empty one is
// passed over and reported as not entered.
func (c *checker) enter(ch byte) (entered bool, err error) {
	if len(c.open) == c.max {
		return false, fmt.Errorf("JSON nested deeper than %d", c.max)
	}
	end := ch + 2 // '{'+2 is '}', '['+2 is ']'
	c.i++
	if c.space(); c.peek() == end {
		c.i++
		return false, nil
	}
	c.open = append(c.open, end)
	if end == '}' {
		return true, c.key()
	}
	return true, nil
}

// leave closes what ends here and reports whether another value follows.
func (c *checker) leave() (more bool, err error) {
	for len(c.open) > 0 {
		end := c.open[len(c.open)-1]
		c.space()
		switch c.peek() {
		case end:
			c.i++
			c.open = c.open[:len(c.open)-1]
		case ',':
			c.i++
			if end == '}' {
				return true, c.key()
			}
			return true, nil
		default:
			return false, c.bad("comma or " + string(end))
		}
	}
	return false, nil
}

func (c *checker) key() error {
	if c.space(); c.peek() != '"' {
		return c.bad("a key")
	}
	if err := c.text(); err != nil {
		return err
	}
	if c.space(); c.peek() != ':' {
		return c.bad("colon")
	}
	c.i++
	return nil
}

func (c *checker) scalar(ch byte) error {
	switch {
	case ch == '"':
		return c.text()
	case ch == '-' || ch >= '0' && ch <= '9':
		return c.number()
	case ch == 't':
		return c.word("true")
	case ch == 'f':
		return c.word("false")
	case ch == 'n':
		return c.word("null")
	}
	return c.bad("a value")
}

func (c *checker) word(w string) error {
	if len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		return c.bad(w)
	}
	c.i += len(w)
	return nil
}

func (c *checker) text() error {
	for c.i++; c.i < len(c.b); c.i++ {
		switch ch := c.b[c.i]; {
		case ch == '"':
			c.i++
			return nil
		case ch == '\\':
			if err := c.escape(); err != nil {
				return err
			}
		case ch < ' ':
			return c.bad("no control character in a string")
		}
	}
	return c.bad("closing quote")
}

// escape leaves i on the last byte of the escape sequence.
func (c *checker) escape() error {
	c.i++
	switch c.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			c.i++
			if !isHex(c.peek()) {
				return c.bad("hexadecimal digit")
			}
		}
		return nil
	}
	return c.bad("escape sequence")
}

func isHex(ch byte) bool {
	return ch >= '0' && ch <= '9' || ch >= 'a' && ch <= 'f' || ch >= 'A' && ch <= 'F'
}

func (c *checker) number() error {
	if c.peek() == '-' {
		c.i++
	}
	if c.peek() == '0' {
		c.i++
	} else if !c.digits() {
		return c.bad("digit")
	}
	if c.peek() == '.' {
		if c.i++; !c.digits() {
			return c.bad("digit")
		}
	}
	if ch := c.peek(); ch == 'e' || ch == 'E' {
		c.i++
		if ch := c.peek(); ch == '+' || ch == '-' {
			c.i++
		}
		if !c.digits() {
			return c.bad("digit")
		}
	}
	return nil
}

func (c *checker) digits() bool {
	from := c.i
	for ch := c.peek(); ch >= '0' && ch <= '9'; ch = c.peek() {
		c.i++
	}
	return c.i > from
}
