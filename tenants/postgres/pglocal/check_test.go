//go:build unix

package pglocal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckSaysWhatStartWouldSayAndChangesNothing(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "pglocal-check-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "not", "made", "yet")
	major, err := Check(t.Context(), Options{DataDir: data})
	if err != nil || major < MinMajor {
		t.Errorf("version %d, %v", major, err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(data))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made the data folder: %v", err)
	}

	var none *NoBinariesError
	if _, err := Check(t.Context(), Options{DataDir: data, BinDirs: []string{dir}}); !errors.As(err, &none) {
		t.Errorf("without programs: %v", err)
	}
	cluster := filepath.Join(dir, "old", "postgres")
	if err := os.MkdirAll(cluster, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var version *VersionError
	if _, err := Check(t.Context(), Options{DataDir: filepath.Join(dir, "old")}); !errors.As(err, &version) || version.Major != 9 {
		t.Errorf("a cluster of another version: %v", err)
	}
}

func TestCheckNamesTheFolderTheServerMayNotPass(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only as root does the server run as another user")
	}
	dir := t.TempDir() // of root alone
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), Options{DataDir: filepath.Join(dir, "data")}); err == nil {
		t.Error("a folder that cannot be passed was found good")
	}
}
