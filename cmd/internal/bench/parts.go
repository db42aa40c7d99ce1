package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// parts are benchmarks of the parts of a call, which the packages have
// themselves, and the metrics that the table takes from them.
var parts = []struct{ pkg, pattern, time string }{
	{"./cmd/internal/tunneltest", "^Benchmark(SmallCallsDuringATransfer|Window|SixteenCallers|Hop)$", "1x"},
	{"./broker/mcpserver", "^Benchmark(HotLane|SDKLane)$/^(modern|legacy)$/^200$", "2000x"},
	{"./broker/recorder", "^BenchmarkRecord$", "200000x"},
	{"./connector/siyuan", "^BenchmarkKernelCall$", "2000x"},
}

// metrics are what benchmarks report, by "Benchmark/sub unit".
type metrics map[string]float64

// measureParts runs them; the working directory is the project's.
func measureParts(ctx context.Context) (metrics, error) {
	m := metrics{}
	for _, p := range parts {
		cmd := exec.CommandContext(ctx, "go", "test", p.pkg, "-run", "^$", "-bench", p.pattern, "-benchtime", p.time, "-benchmem", "-timeout", "5m")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return m, fmt.Errorf("%s: %w\n%s", p.pkg, err, out)
		}
		m.read(string(out))
	}
	return m, nil
}

// read takes the lines of `go test -bench`: a name with the number of
// processors, how often, and pairs of a value and its unit.
func (m metrics) read(out string) {
	scan := bufio.NewScanner(strings.NewReader(out))
	for scan.Scan() {
		fields := strings.Fields(scan.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				m[name+" "+fields[i+1]] = v
			}
		}
	}
}
