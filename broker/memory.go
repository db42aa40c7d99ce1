package broker

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// What the garbage collector is told where the environment says nothing. A
// broker's live heap is small and most of what it allocates lives for one call,
// so collecting less often saves more CPU than the memory is worth; the limit
// makes it collect in time where memory is short.
const (
	gcPercent   = 400
	memoryShare = 0.75 // of the container; the rest is for stacks, buffers and the kernel
)

// TuneMemory sets the garbage collector for a process that is a broker: GOGC to 400 and GOMEMLIMIT to 75 % of the container's memory.
// Either variable in the environment keeps what it says.
func TuneMemory(log *slog.Logger) { tuneMemory(log, memlimit.FromCgroup) }

func tuneMemory(log *slog.Logger, container memlimit.Provider) {
	percent, set := os.LookupEnv("GOGC")
	if !set {
		debug.SetGCPercent(gcPercent)
	}
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare), memlimit.WithProvider(container))
	attrs := []any{"gogc", gcPercent}
	if set {
		attrs[1] = percent
	}
	switch {
	case err != nil: // no cgroups, or none that can be read
		attrs = append(attrs, "gomemlimit", "none", "because", err)
	case limit == math.MaxInt64:
		attrs = append(attrs, "gomemlimit", "none", "because", "the memory of this container is not limited")
	default:
		attrs = append(attrs, "gomemlimit", limit)
	}
	log.Info("garbage collector", attrs...)
}
