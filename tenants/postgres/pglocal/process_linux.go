package pglocal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// interruptWithParent asks for a fast, clean shutdown of the server when the
// thread that started it ends, which the caller keeps alive (see Server.run).
func interruptWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// processesOf lists the live processes that work in the cluster: postmaster and
// backends. Their working directory tells, also when process ids were reused;
// zombies have none.
func processesOf(cluster string) ([]int, error) {
	cwds, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, cwd := range cwds {
		target, err := os.Readlink(cwd)
		if err != nil || target != cluster { // not ours to read: not our server
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(cwd)))
		if err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
