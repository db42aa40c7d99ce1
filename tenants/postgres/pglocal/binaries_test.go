package pglocal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingBinariesNameTheInstallCommandAndTheOtherWayOut(t *testing.T) {
	t.Parallel()
	_, err := installations(t.Context(), []string{t.TempDir()})
	var missing *NoBinariesError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want *NoBinariesError", err)
	}
	if missing.Install == "" || !strings.Contains(err.Error(), missing.Install) || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("message lacks a way out: %s", err)
	}
}

func TestInstallCommandFitsTheSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ goos, release, want string }{
		{"darwin", "", "brew install postgresql@17"},
		{"freebsd", "", "pkg install postgresql17-server"},
		{"linux", "PRETTY_NAME=x\nID=debian\n", "sudo apt install postgresql"},
		{"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt install postgresql"},
		{"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install postgresql-server"},
		{"linux", "ID=alpine\n", "apk add postgresql"},
		{"linux", "ID=plan9\n", "your system's package of the PostgreSQL server"},
		{"linux", "", "your system's package of the PostgreSQL server"},
	} {
		file := filepath.Join(t.TempDir(), "os-release")
		write(t, file, c.release)
		if got := installCommand(c.goos, file); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.goos, c.release, got, c.want)
		}
	}
}

func TestProgramsAreThoseOfTheClustersMajorVersion(t *testing.T) {
	t.Parallel()
	all := []installation{{"/a", 17}, {"/b", 15}}
	cluster := t.TempDir()
	if got, err := choose(all, cluster); err != nil || got.major != 17 {
		t.Errorf("new cluster: got %v, %v, want the newest", got, err)
	}
	write(t, filepath.Join(cluster, "PG_VERSION"), "15\n")
	if got, err := choose(all, cluster); err != nil || got.major != 15 {
		t.Errorf("cluster of 15: got %v, %v", got, err)
	}
}

func TestAClusterOfAnotherMajorVersionIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	cluster := t.TempDir()
	write(t, filepath.Join(cluster, "PG_VERSION"), "12\n")
	_, err := choose([]installation{{"/a", 17}}, cluster)
	var version *VersionError
	if !errors.As(err, &version) || version.Major != 12 {
		t.Fatalf("got %v, want *VersionError of 12", err)
	}
	if _, err := os.Stat(filepath.Join(cluster, "PG_VERSION")); err != nil {
		t.Error("the cluster was touched:", err)
	}
}

func TestAFolderOfOtherFilesIsNotTakenForANewCluster(t *testing.T) {
	t.Parallel()
	cluster := t.TempDir()
	write(t, filepath.Join(cluster, "precious"), "x")
	if _, err := choose([]installation{{"/a", 17}}, cluster); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestLogKeepsTheLastLinesAndBoundsALine(t *testing.T) {
	t.Parallel()
	var l lineLog
	_, _ = l.Write([]byte("one\ntw"))
	_, _ = l.Write([]byte("o\n" + strings.Repeat("x", 3*lineMax)))
	_, _ = l.Write([]byte(strings.Repeat("x", lineMax) + "\n"))
	if want := "one; two; " + strings.Repeat("x", lineMax); l.tail() != want {
		t.Errorf("tail has %d bytes, want %d", len(l.tail()), len(want))
	}
	for range 2 * keptLines {
		_, _ = l.Write([]byte("y\n"))
	}
	if want := strings.TrimSuffix(strings.Repeat("y; ", keptLines), "; "); l.tail() != want {
		t.Errorf("got %q, want %q", l.tail(), want)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
