package main

import (
	"image"
	"image/color"
	"strings"
	"testing"

	"github.com/piglig/go-qr"
)

// What is drawn is read back as a camera sees it: the characters are turned into
// dark and light squares again.
func TestTheDrawnCodeIsReadBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://notes.example/pair", "http://127.0.0.1:8080/pair", "https://" + strings.Repeat("long.", 30) + "example/pair"} {
		var b strings.Builder
		if err := drawQR(&b, text); err != nil {
			t.Fatal(err)
		}
		got, err := go_qr.Decode(camera(t, b.String()))
		if err != nil || got != text {
			t.Errorf("%s is read as %q, %v", text, got, err)
		}
	}
}

func camera(t *testing.T, drawn string) image.Image {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
	const scale = 4
	var img *image.Gray
	for y, line := range lines {
		line, plain := strings.CutSuffix(strings.TrimPrefix(line, "    "+blackOnWhite), plainAgain)
		if !plain {
			t.Fatalf("line %d leaves its colours on", y)
		}
		cells := []rune(line)
		if img == nil {
			img = image.NewGray(image.Rect(0, 0, len(cells)*scale, 2*len(lines)*scale))
		}
		for x, c := range cells {
			for half, dark := range []bool{c == '█' || c == '▀', c == '█' || c == '▄'} {
				shade := color.Gray{Y: 255}
				if dark {
					shade.Y = 0
				}
				for i := range scale * scale {
					img.SetGray(x*scale+i%scale, (2*y+half)*scale+i/scale, shade)
				}
			}
		}
	}
	return img
}
