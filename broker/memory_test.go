package broker

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// These tests change the process, so they do not run beside others.
func TestMemoryIsTunedWhereTheEnvironmentSaysNothing(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	for name, c := range map[string]struct {
		gogc, gomemlimit string // "" leaves it unset
		container        memlimit.Provider
		percent          int
		limit            int64
		said             string
	}{
		"in a container": {"", "", memlimit.Limit(1 << 30), 400, 805306368, "gogc=400 gomemlimit=805306368"}, // three quarters of 1073741824
		"without a limit": {"", "", func() (uint64, error) { return 0, memlimit.ErrNoLimit }, 400, math.MaxInt64,
			`gogc=400 gomemlimit=none because="the memory of this container is not limited"`},
		"without cgroups": {"", "", func() (uint64, error) { return 0, errors.New("no cgroups") }, 400, math.MaxInt64, "no cgroups"},
		"GOGC set":        {"50", "", memlimit.Limit(1 << 30), 100, 805306368, "gogc=50 gomemlimit=805306368"}, // 100: read by the runtime at its start only
		"GOMEMLIMIT set":  {"", "1GiB", memlimit.Limit(4 << 30), 400, math.MaxInt64, "gogc=400"},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetGCPercent(100)
			debug.SetMemoryLimit(math.MaxInt64)
			setenv(t, "GOGC", c.gogc)
			setenv(t, "GOMEMLIMIT", c.gomemlimit)
			var out bytes.Buffer
			tuneMemory(slog.New(slog.NewTextHandler(&out, nil)), c.container)
			if got := debug.SetGCPercent(100); got != c.percent {
				t.Errorf("GOGC %d, want %d", got, c.percent)
			}
			if got := debug.SetMemoryLimit(-1); got != c.limit {
				t.Errorf("GOMEMLIMIT %d, want %d", got, c.limit)
			}
			if !strings.Contains(out.String(), c.said) {
				t.Errorf("said %s", out.String())
			}
		})
	}
}

func setenv(t *testing.T, name, value string) {
	t.Helper()
	t.Setenv(name, value) // puts back what was there
	if value == "" {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}
