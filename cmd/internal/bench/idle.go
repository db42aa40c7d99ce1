package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// idleResult is what idle homes cost one node.
type idleResult struct {
	transport  string
	homes      int
	first      time.Duration // until all were up for the first time
	memory     float64       // KiB of heap and stacks a home
	goroutines float64       // a home
	keepalive  float64       // share of a core, over what the node uses without homes
	back       time.Duration // until all were up again after all connections broke
	backCPU    time.Duration // of the node, for each of them
}

const (
	keepaliveFor = 20 * time.Second // a ping is due within 18 s
	aloneFor     = 4 * time.Second
	stuckAfter   = 3 * time.Minute // with not one more connected: each may wait for one
)

// measureIdle starts a node and n homes that have nothing to do.
func measureIdle(ctx context.Context, b *bench, transport string, n int) (r idleResult, err error) {
	r = idleResult{transport: transport, homes: n}
	data, err := b.folder("node-" + transport)
	if err != nil {
		return r, err
	}
	listen, seed := freeAddress(), "idle "+transport
	args := []string{"-data", filepath.Join(data, "db"), "-listen", listen, "-tls", b.certificate.path, "-n", fmt.Sprint(n), "-seed", seed}
	if transport == "tls" {
		args = append(args, "-tunnel", freeAddress())
	}
	node, err := b.role(ctx, "node", args...)
	if err != nil {
		return r, err
	}
	defer b.end(node)
	var before, after, idle, storm nodeStats
	if err := node.ask(ctx, "stats", &before); err != nil {
		return r, err
	}
	alone, _ := cpu(node.pid())
	if err := sleep(ctx, aloneFor); err != nil {
		return r, err
	}
	now, _ := cpu(node.pid())
	background := float64(now-alone) / float64(aloneFor)
	began := time.Now()
	crowd, err := b.role(ctx, "homes", "-broker", "https://"+listen, "-tls", b.certificate.path, "-n", fmt.Sprint(n), "-seed", seed)
	if err != nil {
		return r, err
	}
	defer b.end(crowd)
	if err := allUp(ctx, crowd, n); err != nil {
		return r, err
	}
	r.first = time.Since(began)
	if err := sleep(ctx, 3*time.Second); err != nil { // their reports are stored, discovery connections gone
		return r, err
	}
	if err := node.ask(ctx, "stats", &after); err != nil {
		return r, err
	}
	r.memory = float64(after.Memory-before.Memory) / 1024 / float64(n)
	r.goroutines = float64(after.Goroutines-before.Goroutines) / float64(n)

	watched := time.Now()
	if err := sleep(ctx, keepaliveFor); err != nil {
		return r, err
	}
	spent, _ := cpu(node.pid())
	r.keepalive = max(0, float64(spent-after.CPU)/float64(time.Since(watched))-background)

	idle.CPU, _ = cpu(node.pid())
	began = time.Now()
	var dropped int
	if err := crowd.ask(ctx, "drop", &dropped); err != nil {
		return r, err
	}
	if err := allUp(ctx, crowd, n); err != nil {
		return r, err
	}
	r.back = time.Since(began)
	storm.CPU, _ = cpu(node.pid())
	r.backCPU = (storm.CPU - idle.CPU) / time.Duration(n)
	return r, nil
}

func allUp(ctx context.Context, crowd *process, n int) error {
	most, since := -1, time.Now()
	for {
		var up int
		if err := crowd.ask(ctx, "count", &up); err != nil {
			return err
		}
		if up > most {
			most, since = up, time.Now()
		}
		switch {
		case up >= n:
			return nil
		case time.Since(since) > stuckAfter:
			return fmt.Errorf("only %d of %d homes are connected, and for %v not one more\n%s", most, n, stuckAfter, crowd.log)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
