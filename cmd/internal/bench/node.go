package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"siyuan-broker/broker"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// nodeStats is what a node says of itself.
type nodeStats struct {
	Memory     int64 // bytes of live heap and of stacks, after collections
	Goroutines int
	CPU        time.Duration // since its start; 0 where the system does not tell
}

// perTenant is how many homes a tenant has here; a node takes 200 of one.
const perTenant = 200

// runNode is the role "node": the broker, wired as the released one is, in a
// process that can be asked what it holds. It registers n homes first.
func runNode(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	data, listen, tunnel := flags.String("data", "", "folder"), flags.String("listen", "", "address"), flags.String("tunnel", "", "address of the raw tunnel; empty: WebSocket only")
	certificates, n, seed := flags.String("tls", "", "folder with the certificate"), flags.Int("n", 0, "homes"), flags.String("seed", "", "of their keys")
	if err := flags.Parse(args); err != nil {
		return err
	}
	certificate := &certificateFolder{*certificates}
	c := broker.Config{Listen: *listen, TunnelListen: *tunnel, TLSCert: certificate.cert(), TLSKey: certificate.key(), Data: *data,
		NodeID: "bench", LogLevel: "error", LogFormat: "text", CallTimeout: time.Minute, ShutdownTimeout: 5 * time.Second,
		MaxRequestBytes: 4 << 20, MaxResultBytes: 8 << 20, HotLane: true}
	if err := c.Validate(); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	broker.TuneMemory(log)
	db, err := broker.OpenDatabase(ctx, &c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	if err := register(ctx, db, *n, *seed); err != nil {
		return err
	}
	b, err := broker.New(c, db, "bench", log)
	if err != nil {
		return err
	}
	runCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(runCtx) }()
	defer func() { cancel(); err = errors.Join(err, <-ended) }()
	select {
	case <-b.Ready():
	case err := <-ended:
		ended <- nil
		return err
	}
	fmt.Println("ready")
	return commands(ctx, map[string]func() any{"stats": func() any { return statsOf() }})
}

func statsOf() nodeStats {
	for range 6 { // pools keep over one, and each halves stacks that were deep once
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	spent, _ := cpu(os.Getpid())
	return nodeStats{Memory: int64(m.HeapAlloc + m.StackInuse), Goroutines: runtime.NumGoroutine(), CPU: spent}
}

// registering is how many tenants are made at once.
const registering = 6

// register makes tenants with an instance for each home.
func register(ctx context.Context, store tenants.Store, n int, seed string) error {
	var g errgroup.Group
	g.SetLimit(registering)
	for first := 0; first < n; first += perTenant {
		g.Go(func() error {
			if err := registerTenant(ctx, store, first, min(n, first+perTenant), seed); err != nil {
				return fmt.Errorf("register homes %d and on: %w", first, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func registerTenant(ctx context.Context, store tenants.Store, first, end int, seed string) error {
	owner, err := store.CreateUser(ctx, tenants.User{Email: fmt.Sprintf("owner-%d@example.org", first), Name: "Owner"})
	if err != nil {
		return err
	}
	t, err := store.CreateTenant(ctx, "Bench", owner.ID)
	if err != nil {
		return err
	}
	return store.In(ctx, t.ID, func(tx tenants.Tx) error {
		for i := first; i < end; i++ {
			in, err := tx.CreateInstance(ctx, tenants.Instance{Name: fmt.Sprint("Home ", i), DefaultLevel: contract.Read, Enabled: true})
			if err != nil {
				return err
			}
			if _, err := tx.RegisterConnector(ctx, tenants.Connector{InstanceID: in.ID, Name: "bench", PublicKey: publicOf(keyOf(seed, i))}); err != nil {
				return err
			}
		}
		return nil
	})
}
