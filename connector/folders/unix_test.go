//go:build unix

package folders_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"siyuan-broker/contract"
)

// A pipe without a writer would keep an opener waiting for ever.
func TestDevicesAndPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	if err := syscall.Mkfifo(filepath.Join(d.allowed, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := d.Open("pipe"); contract.CodeOf(err) != contract.PermissionDenied {
		t.Errorf("%v", err)
	}
}

func TestAHugeFileIsRefusedUnread(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	huge := filepath.Join(d.allowed, "huge.bin")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 512<<20+1); err != nil { // takes no room
		t.Fatal(err)
	}
	if _, err := d.Open("huge.bin"); contract.CodeOf(err) != contract.TooLarge {
		t.Errorf("%v", err)
	}
}

// Someone exchanges a folder for a link to another while files are read from it:
// what is read is what was there, or nothing.
func TestAFolderExchangedUnderUsLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	sub, real := filepath.Join(d.allowed, "sub"), filepath.Join(d.allowed, "sub2")
	d.write(t, "other/c.txt", "secret")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			for _, step := range []func() error{
				func() error { return os.Rename(sub, real) },
				func() error { return os.Symlink(filepath.Join(d.above, "other"), sub) },
				func() error { return os.Remove(sub) },
				func() error { return os.Rename(real, sub) },
			} {
				if err := step(); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for range 2000 {
		s, err := d.Open("sub/c.txt")
		if err != nil {
			continue
		}
		b := make([]byte, 16)
		n, _ := s.Read(b)
		_ = s.Close()
		if string(b[:n]) != "c" {
			t.Fatalf("read %q", b[:n])
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
