package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// report is what a run found; parts that were not measured are empty.
type report struct {
	calls, siyuan results
	parts         metrics
	idle          []idleResult
	opponent      string // what calls are compared with
}

// measureAll is a whole run.
func measureAll(ctx context.Context, bin string, s settings, out, note io.Writer) (err error) {
	b, err := newBench(bin, s, note)
	if err != nil {
		return err
	}
	defer b.close()
	began := time.Now()
	r := report{opponent: direct}
	if s.frps != "" {
		r.opponent = throughFRP
	}
	var failures []error
	part := func(section string, do func() error) {
		if !s.wants(section) || ctx.Err() != nil {
			return
		}
		if err := do(); err != nil { // the others are still worth having
			failures = append(failures, fmt.Errorf("%s: %w", section, err))
		}
		b.reset()
	}
	part(sectionCalls, func() (err error) { r.calls, err = b.measureCalls(ctx); return err })
	if s.siyuanURL != "" && s.siyuan != "" {
		part(sectionSiYuan, func() (err error) { r.siyuan, err = b.measureSiYuan(ctx); return err })
	}
	part(sectionParts, func() (err error) { r.parts, err = measureParts(ctx); return err })
	part(sectionIdle, func() error { return r.measureIdle(ctx, b) })

	fmt.Fprintf(out, "%s, %s/%s, %d processors, %d rounds of %v, took %v. Ratios mean something, times do not.\n", time.Now().Format("2006-01-02 15:04"),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.rounds, s.cell, time.Since(began).Round(time.Second))
	r.write(out)
	return errors.Join(append(failures, ctx.Err())...)
}

// reset ends what a section started.
func (b *bench) reset() {
	for i := len(b.running) - 1; i >= 0; i-- {
		b.running[i].stop()
	}
	b.running = nil
}

// measureIdle measures idle homes on both transports, as many as there may be
// file descriptors for.
func (r *report) measureIdle(ctx context.Context, b *bench) error {
	n := b.connectors
	if most := descriptors() - 500; n > most {
		b.say("%d idle connectors need more file descriptors than the %d there are (ulimit -n); taking %d", n, descriptors(), most)
		n = most
	}
	for transport, count := range map[string]int{"tls": n, "wss": n / 5} {
		if count == 0 {
			continue
		}
		b.say("connecting %d homes over %s", count, transport)
		got, err := measureIdle(ctx, b, transport, count)
		if err != nil {
			return err
		}
		r.idle = append(r.idle, got)
	}
	slices.SortFunc(r.idle, func(a, b idleResult) int { return strings.Compare(a.transport, b.transport) })
	return nil
}

// descriptors are how many files a process may have open.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<20))
}

func (r *report) write(out io.Writer) {
	if len(r.calls) > 0 {
		fmt.Fprintf(out, "\nWhole calls. Ratios to %q, round by round; spread over the rounds in brackets.\n", r.opponent)
		writeCalls(out, r.calls, r.opponent, []string{floor, direct, throughFRP, frpLegacy, frpLane, ours, oursLegacy, sdkLane, sdkLegacy, oneCall})
	}
	if len(r.siyuan) > 0 {
		fmt.Fprintf(out, "\nWhole calls into a real SiYuan. Ratios to %q.\n", r.opponent)
		writeCalls(out, r.siyuan, r.opponent, []string{kernelAlone, direct, throughFRP, frpLane, ours})
	}
	r.writeParts(out)
	r.writeIdle(out)
	goals := r.goals()
	if len(goals) == 0 {
		return
	}
	fmt.Fprintln(out, "\nTargets.")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#\twhat\treached\ttarget\tverdict")
	for _, g := range goals {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", g.number, g.what, g.reached, g.wanted, g.verdict())
	}
	_ = t.Flush() // out is a buffer or the terminal
}

func writeCalls(out io.Writer, r results, reference string, names []string) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "bytes\tconns\tsubject\tp50 µs\tp99 µs\tcalls/s\t÷p50\t÷p99\t×calls/s\tCPU µs a call\tfailed")
	var places []cell
	for at := range r {
		places = append(places, at)
	}
	slices.SortFunc(places, func(a, b cell) int {
		return cmpOr(a.size-b.size, a.connections-b.connections, slices.Index(names, a.name)-slices.Index(names, b.name))
	})
	for _, at := range places {
		s, ref := r[at], r.at(at.size, at.connections, reference)
		calls := each(s, rate)
		failed, processes := 0, []string{}
		for _, x := range s {
			failed += x.failed
			for name := range x.cpu {
				if !slices.Contains(processes, name) {
					processes = append(processes, name)
				}
			}
		}
		slices.Sort(processes)
		for i, name := range processes {
			processes[i] = fmt.Sprintf("%s=%.0f", name, each(s, cpuOf(name)).median)
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%.0f\t%.0f\t%.0f [%.0f–%.0f]\t%s\t%s\t%s\t%s\t%d\n", at.size, at.connections, at.name,
			each(s, p50).median, each(s, p99).median, calls.median, calls.least, calls.most,
			ratio(s, ref, p50), ratio(s, ref, p99), ratio(s, ref, rate), strings.Join(processes, " "), failed)
	}
	_ = t.Flush()
}

func cmpOr(values ...int) int {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

func ratio(a, b []sample, value func(sample) float64) string {
	s, ok := over(a, b, value)
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.2f", s.median)
}

func (r *report) writeParts(out io.Writer) {
	if len(r.parts) == 0 {
		return
	}
	fmt.Fprintln(out, "\nParts of a call.")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	names := make([]string, 0, len(r.parts))
	for name := range r.parts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(t, "%s\t%.4g\n", name, r.parts[name])
	}
	_ = t.Flush()
}

func (r *report) writeIdle(out io.Writer) {
	if len(r.idle) == 0 {
		return
	}
	fmt.Fprintln(out, "\nIdle connectors, at one broker with its own PostgreSQL.")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "transport\tconnectors\tKiB each\tgoroutines each\tkeepalive, % of a core\tfirst connect, all\tall back after a break\tbroker CPU a reconnect")
	for _, i := range r.idle {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.2f\t%.1f\t%.1f s\t%.1f s\t%.2f ms\n", i.transport, i.homes, i.memory, i.goroutines, 100*i.keepalive,
			i.first.Seconds(), i.back.Seconds(), micros(i.backCPU)/1000)
	}
	_ = t.Flush()
}
