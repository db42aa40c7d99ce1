//go:build unix

package errand

import (
	"os"
	"testing"
)

func TestOnlyTheOwnerReadsErrandsAndAnswers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := os.MkdirAll(h.path, 0o755); err != nil { // as somebody may have made it
		t.Fatal(err)
	}
	done := h.left(t, "tell")
	h.turned(t)
	waits := h.left(t, "tell")
	for name, want := range map[string]os.FileMode{h.path: 0o700, h.file(done.ID, answered): 0o600, h.file(waits.ID, waiting): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
