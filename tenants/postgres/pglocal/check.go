//go:build unix

package pglocal

import (
	"context"
	"fmt"
	"path/filepath"
)

// Check tells whether Start could work, without changing or starting anything:
// the programs are installed, fit the cluster in the data folder, and the
// account the server would run as can reach it. It returns the major version
// that would be used. Errors: as Start, but never *LockedError.
func Check(ctx context.Context, o Options) (major int, err error) {
	dataDir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return 0, fmt.Errorf("data folder: %w", err)
	}
	all, err := installations(ctx, o.BinDirs)
	if err != nil {
		return 0, err
	}
	cluster := filepath.Join(dataDir, "postgres")
	programs, err := choose(all, cluster)
	if err != nil {
		return 0, err
	}
	as, err := serverAccount()
	if err != nil {
		return 0, err
	}
	if err := as.reach(existing(cluster)); err != nil {
		return 0, err
	}
	return programs.major, nil
}

// existing is the deepest part of a path whose parent exists.
func existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
	return path
}
