//go:build unix && !linux

package pglocal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// interruptWithParent does nothing: only Linux has a parent death signal.
// Elsewhere the next start ends a server that was left behind.
func interruptWithParent(*syscall.SysProcAttr) {}

// processesOf is the postmaster named in postmaster.pid, if that process still
// runs and was started for this cluster.
func processesOf(cluster string) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if err != nil {
		return nil, nil // no server
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || pid == os.Getpid() {
		return nil, nil
	}
	command, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || !strings.Contains(string(command), cluster) {
		return nil, nil // gone, or the id belongs to somebody else now
	}
	return []int{pid}, nil
}
