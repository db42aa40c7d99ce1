//go:build unix && !solaris && !aix && !openbsd && !netbsd

package brokerdoctor

import (
	"fmt"
	"syscall"
)

// freeSpace is what an ordinary user may still write below a folder.
func freeSpace(folder string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", folder, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}
