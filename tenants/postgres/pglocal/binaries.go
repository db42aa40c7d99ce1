package pglocal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// MinMajor is the oldest major version of PostgreSQL that is used.
const MinMajor = 15

// NoBinariesError means that no usable PostgreSQL is installed. Its message says
// how to install it here and names the other way out.
type NoBinariesError struct {
	Searched []string // folders looked into
	Install  string   // command for this system, or a general advice
}

// Error is written for the person who starts the broker.
func (e *NoBinariesError) Error() string {
	return fmt.Sprintf("no PostgreSQL %d or newer found (looked for postgres and initdb in PATH and %s): install it with `%s`, or set DATABASE_URL to a PostgreSQL server of your own",
		MinMajor, strings.Join(e.Searched, ", "), e.Install)
}

// VersionError means that the cluster was made by a major version that is not
// installed here. The cluster is left as it is.
type VersionError struct {
	Cluster   string // folder
	Major     int    // that made it
	Installed []int
}

// Error is written for the person who starts the broker.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the database in %s belongs to PostgreSQL %d, installed here: %v. Nothing was changed: install PostgreSQL %d again, or dump the data with it and restore into a new folder (see pg_dumpall)",
		e.Cluster, e.Major, e.Installed, e.Major)
}

// installation is one PostgreSQL on this machine.
type installation struct {
	dir   string // holds postgres and initdb
	major int
}

// usualDirs are where packages put the server programs when they are not on
// PATH: Debian, RPM (PGDG), Alpine, Homebrew (both), Postgres.app, source.
var usualDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
	"/usr/bin",
}

// installations lists what is installed, newest first. When dirs are given only
// those are looked into.
func installations(ctx context.Context, dirs []string) ([]installation, error) {
	searched := dirs
	if len(dirs) == 0 {
		searched = usualDirs
		if p, err := exec.LookPath("postgres"); err == nil {
			if real, err := filepath.EvalSymlinks(p); err == nil {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
		for _, pattern := range usualDirs {
			found, _ := filepath.Glob(pattern) // fails on a malformed pattern only
			dirs = append(dirs, found...)
		}
	}
	var all []installation
	for _, dir := range dirs {
		if slices.ContainsFunc(all, func(i installation) bool { return i.dir == dir }) {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		major, err := majorOf(ctx, filepath.Join(dir, "postgres"))
		if err != nil || major < MinMajor {
			continue
		}
		all = append(all, installation{dir, major})
	}
	if len(all) == 0 {
		return nil, &NoBinariesError{Searched: searched, Install: installCommand(runtime.GOOS, "/etc/os-release")}
	}
	slices.SortStableFunc(all, func(a, b installation) int { return b.major - a.major })
	return all, nil
}

var versionPattern = regexp.MustCompile(`PostgreSQL\) (\d+)`)

func majorOf(ctx context.Context, postgres string) (int, error) {
	out, err := exec.CommandContext(ctx, postgres, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", postgres, err)
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("version of %s not understood: %q", postgres, out)
	}
	return strconv.Atoi(string(m[1]))
}

// choose picks the installation for a cluster: the newest for a new one, the
// one of equal major version for an existing one.
func choose(all []installation, cluster string) (installation, error) {
	b, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if entries, err := os.ReadDir(cluster); err == nil && len(entries) > 0 {
			return installation{}, fmt.Errorf("%s is not empty and not a PostgreSQL cluster: move it away, or choose another data folder", cluster)
		}
		return all[0], nil
	}
	if err != nil {
		return installation{}, fmt.Errorf("read the version of the database: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return installation{}, fmt.Errorf("version of the database in %s not understood: %q", cluster, b)
	}
	var majors []int
	for _, i := range all {
		if i.major == major {
			return i, nil
		}
		majors = append(majors, i.major)
	}
	return installation{}, &VersionError{Cluster: cluster, Major: major, Installed: majors}
}

// installCommand names the package manager's command for the server programs.
func installCommand(goos, osRelease string) string {
	switch goos {
	case "darwin":
		return "brew install postgresql@17"
	case "freebsd":
		return "pkg install postgresql17-server"
	}
	for _, id := range distribution(osRelease) {
		switch id {
		case "debian", "ubuntu":
			return "sudo apt install postgresql"
		case "fedora", "rhel", "centos":
			return "sudo dnf install postgresql-server"
		case "alpine":
			return "apk add postgresql"
		case "arch":
			return "sudo pacman -S postgresql"
		case "suse", "opensuse":
			return "sudo zypper install postgresql-server"
		}
	}
	return "your system's package of the PostgreSQL server"
}

// distribution is ID followed by ID_LIKE of an os-release file.
func distribution(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var id, like []string
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), "=")
		switch words := strings.Fields(strings.Trim(value, `"'`)); key {
		case "ID":
			id = words
		case "ID_LIKE":
			like = words
		}
	}
	return append(id, like...)
}
