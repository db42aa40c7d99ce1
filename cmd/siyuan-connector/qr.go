package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/piglig/go-qr"
)

// quiet is the margin a scanner needs, in modules.
const quiet = 2

// The colours are named outright: a code in a theme's colours may be light on
// dark, which many scanners do not read.
const (
	blackOnWhite = "\x1b[38;5;16;48;5;231m"
	plainAgain   = "\x1b[0m"
)

// drawQR draws text as a QR code, two modules to a character.
func drawQR(w io.Writer, text string) error {
	code, err := go_qr.EncodeText(text, go_qr.Low)
	if err != nil {
		return fmt.Errorf("draw the QR code: %w", err)
	}
	dark := func(x, y int) bool {
		return x >= 0 && y >= 0 && x < code.Size() && y < code.Size() && code.Module(x, y)
	}
	var b strings.Builder
	for y := -quiet; y < code.Size()+quiet; y += 2 {
		b.WriteString("    " + blackOnWhite)
		for x := -quiet; x < code.Size()+quiet; x++ {
			b.WriteString(half(dark(x, y), dark(x, y+1)))
		}
		b.WriteString(plainAgain + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// half is the character with a dark upper and lower half.
func half(upper, lower bool) string {
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	}
	return " "
}
