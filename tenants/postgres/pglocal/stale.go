//go:build unix

package pglocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clearStale ends a server that an earlier process left on the cluster and then
// removes the files by which PostgreSQL would take a reused process id, or a
// zombie, for a running server. The files stay while any process of the cluster
// lives: they are what keeps a second server off the same data.
func clearStale(ctx context.Context, cluster, socketDir string) error {
	sent, started := syscall.Signal(0), time.Now()
	for {
		pids, err := processesOf(cluster)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		want := syscall.SIGINT
		if time.Since(started) > stopPatience {
			want = syscall.SIGQUIT
		}
		if time.Since(started) > 2*stopPatience {
			return fmt.Errorf("an earlier PostgreSQL server (processes %v) still works on %s and does not stop: end it, then start again", pids, cluster)
		}
		if want != sent {
			signalServer(cluster, pids, want)
			sent = want
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("wait for an earlier PostgreSQL server on %s to stop: %w", cluster, err)
		}
	}
	for _, file := range []string{
		filepath.Join(cluster, "postmaster.pid"),
		filepath.Join(socketDir, socketName),
		filepath.Join(socketDir, socketName+".lock"),
	} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove stale file: %w", err)
		}
	}
	return nil
}

// signalServer signals the postmaster, who tells its backends; without one,
// the backends are told directly.
func signalServer(cluster string, pids []int, sig syscall.Signal) {
	if b, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid")); err == nil {
		first, _, _ := strings.Cut(string(b), "\n")
		if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && slices.Contains(pids, pid) {
			_ = syscall.Kill(pid, sig) // it may end by itself meanwhile
			return
		}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
