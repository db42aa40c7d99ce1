package siyuan

import (
	"fmt"
	"io"
	"time"
)

// ID names a block, document, notebook, database, column, row, view, deck or
// card. All share one form: 14 digits (a local time, yyyyMMddHHmmss), a dash
// and 7 characters of [a-z0-9]. IDs in answers are taken as they come (the
// kernel lets oddly named files in); an ID in a request is checked again before
// it is sent.
type ID string

const (
	idStamp  = "20060102150405"
	idLen    = len(idStamp) + 1 + idSuffix
	idSuffix = 7
	idChars  = "0123456789abcdefghijklmnopqrstuvwxyz"
)

// ParseID accepts exactly the kernel's form of an id. The error does not repeat
// the input, which may be note text.
func ParseID(s string) (ID, error) {
	if !ID(s).Valid() {
		return "", fmt.Errorf("malformed id of %d bytes: want 14 digits, a dash and 7 of [a-z0-9]", len(s))
	}
	return ID(s), nil
}

// Valid reports whether the id has the kernel's form. The digits need not be a
// date: the kernel does not ask for one either.
func (id ID) Valid() bool {
	if len(id) != idLen || id[len(idStamp)] != '-' {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch digit := '0' <= c && c <= '9'; {
		case i == len(idStamp), digit:
		case i < len(idStamp), c < 'a', c > 'z':
			return false
		}
	}
	return true
}

// NewID makes an id from a time and 7 characters drawn from random, so that the
// id of a new block can be written to a ledger before the kernel is asked.
func NewID(now time.Time, random io.Reader) (ID, error) {
	// 252 is the greatest multiple of 36 below 256: bytes above it would favour
	// the first characters.
	const fair = 252
	suffix := make([]byte, 0, idSuffix)
	buf := make([]byte, 16)
	for len(suffix) < idSuffix {
		if _, err := io.ReadFull(random, buf); err != nil {
			return "", fmt.Errorf("new id: %w", err)
		}
		for _, b := range buf {
			if b < fair && len(suffix) < idSuffix {
				suffix = append(suffix, idChars[int(b)%len(idChars)])
			}
		}
	}
	return ID(now.Format(idStamp) + "-" + string(suffix)), nil
}
