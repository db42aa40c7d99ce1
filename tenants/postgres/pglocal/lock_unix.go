//go:build unix

package pglocal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lock takes the exclusive lock on the data folder. The system gives it back
// when the process ends in whatever way; children do not inherit it.
func lock(dataDir, file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32)) // only informs
		_ = f.Close()
		return nil, &LockedError{DataDir: dataDir, Holder: strings.TrimSpace(string(holder))}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock data folder %s: %w", dataDir, err)
	}
	if err := f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("write lock file: %w", err)
		}
	}
	return f, nil
}
