package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"siyuan-broker/connector"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
)

// keyOf is the key of the i-th home of a run.
func keyOf(seed string, i int) ed25519.PrivateKey {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", seed, i))
	return ed25519.NewKeyFromSeed(sum[:])
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// starting bounds the homes that are on their way at the first start, which is
// not what is measured.
const starting = 128

// runHomes is the role "homes": any number of connectors, with the connector's
// own tunnel but with a handler that makes exactly one call to the kernel. It
// answers the commands "count" and "drop" (every connection breaks at once).
func runHomes(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("homes", flag.ContinueOnError)
	broker, certificates := flags.String("broker", "", "the broker's URL"), flags.String("tls", "", "folder with the certificate")
	n, seed := flags.Int("n", 1, "number of homes"), flags.String("seed", "", "of their keys")
	kernel, authorization := flags.String("kernel", "", "URL of the one call"), flags.String("authorization", "", "header for it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	roots, err := (&certificateFolder{*certificates}).roots()
	if err != nil {
		return err
	}
	h := &homes{raw: map[net.Conn]struct{}{}}
	work := newBeside(callerOf(*kernel, *authorization))
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range *n {
		key := keyOf(*seed, i)
		c, err := tunnel.New(tunnel.Config{
			BrokerURL: *broker, ConnectorID: connector.Fingerprint(publicOf(key)), Key: key, Software: "bench", Dialer: h,
			TLS: tlsOf(roots), Status: tunnel.Status{Current: ready},
			Handler: tunnel.HandlerFunc(func(ctx context.Context, call contract.Call, _ func(contract.Progress)) contract.Result {
				return work.one(ctx, call)
			}),
		})
		if err != nil {
			return err
		}
		h.clients = append(h.clients, c)
	}
	running.Go(func() {
		for i, c := range h.clients {
			for ctx.Err() == nil && i-h.count() >= starting {
				time.Sleep(20 * time.Millisecond)
			}
			running.Go(func() {
				if err := c.Run(ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			})
		}
	})
	fmt.Println("ready")
	return commands(ctx, map[string]func() any{"count": func() any { return h.count() }, "drop": func() any { return h.drop() }})
}

func ready() contract.HomeStatus {
	return contract.HomeStatus{State: contract.HomeReady, Notebooks: []contract.NotebookInfo{},
		Policy: contract.PolicyEffect{MaxLevel: contract.ReadWriteDelete, Digest: "bench"}}
}

// homes are connectors and their TCP connections.
type homes struct {
	clients []*tunnel.Client
	mu      sync.Mutex
	raw     map[net.Conn]struct{}
	dropped time.Time
}

// counted takes itself out when it is closed.
type counted struct {
	net.Conn
	of *homes
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.raw, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// DialContext implements tunnel.Dialer.
func (h *homes) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &counted{raw, h}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.raw[c] = struct{}{}
	return c, nil
}

// count is how many are connected, and have been since everything was dropped.
func (h *homes) count() int {
	h.mu.Lock()
	dropped := h.dropped
	h.mu.Unlock()
	up := 0
	for _, c := range h.clients {
		if s := c.State(); s.Phase == tunnel.Connected && s.Since.After(dropped) {
			up++
		}
	}
	return up
}

func (h *homes) drop() int {
	h.mu.Lock()
	all := make([]net.Conn, 0, len(h.raw))
	for c := range h.raw {
		all = append(all, c)
	}
	h.dropped = time.Now()
	h.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
	return len(all)
}

// commands answers each line of standard input with a line of JSON until it
// ends or ctx does.
func commands(ctx context.Context, known map[string]func() any) error {
	lines := make(chan string)
	go func() { // ends with the input, at the latest with the process
		defer close(lines)
		scan := bufio.NewScanner(os.Stdin)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	out := json.NewEncoder(os.Stdout)
	for {
		select {
		case <-ctx.Done():
			return nil
		case l, more := <-lines:
			if !more {
				return nil
			}
			run, ok := known[l]
			if !ok {
				return fmt.Errorf("unknown command %q", l)
			}
			if err := out.Encode(run()); err != nil {
				return err
			}
		}
	}
}
