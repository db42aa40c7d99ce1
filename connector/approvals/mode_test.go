//go:build unix

package approvals

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyTheOwnerReadsAndAnswers(t *testing.T) {
	t.Parallel()
	o := newOwner(t)
	q := o.asked(t, aCall())
	o.decided(t, q.ID, Declined)
	folder := filepath.Join(o.data, "approvals")
	for name, want := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, q.ID+".json"): 0o600, filepath.Join(folder, q.ID+".declined"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", filepath.Base(name), info.Mode().Perm(), err, want)
		}
	}
}
