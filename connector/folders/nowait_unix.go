//go:build unix

package folders

import "syscall"

const noWait = syscall.O_NONBLOCK
