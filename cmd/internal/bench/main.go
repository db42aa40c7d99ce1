package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// roles are what this program is when it is started by itself: the processes
// beside the released ones.
var roles = map[string]func(ctx context.Context, args []string) error{
	"kernel": runKernel,
	"echo":   runEcho,
	"sdk":    runSDK,
	"lane":   runLane,
	"homes":  runHomes,
	"node":   runNode,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if role, ok := roles[args[0]]; ok {
			return role(ctx, args[1:])
		}
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "folder with siyuan-broker and siyuan-connector (make build)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := settingsFrom(os.Getenv)
	if err != nil {
		return err
	}
	return measureAll(ctx, *bin, s, os.Stdout, os.Stderr)
}
