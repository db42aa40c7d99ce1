package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/broker"
	"siyuan-broker/broker/people"
	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
)

// readyWithin bounds how long `up` waits for the connector's first report; a
// SiYuan that is not running yet does not stop it.
const readyWithin = 20 * time.Second

// offlineWithin is how long it waits for a SiYuan that does not answer.
const offlineWithin = 3 * time.Second

// upFlags are what a person says to `up`.
type upFlags struct {
	data, listen, url, token, allow string
	json                            bool
}

func newUp(a *app) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything on this machine: database, broker, connector",
		Long: "Run a database, a broker and a connector in one process, for one person. With --url the agent works\n" +
			"in that SiYuan (SIYUAN_TOKEN must be set), without it in a built-in sample workspace.",
		Example: "  siyuan-broker up\n  SIYUAN_TOKEN=… siyuan-broker up --url http://127.0.0.1:6806 --allow rw",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runUp(cmd.Context(), a, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.data, "data", "", "data folder; empty: the user's data folder, as root /var/lib/siyuan-broker")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the broker")
	fl.StringVar(&f.url, "url", "", "SiYuan's address, such as http://127.0.0.1:6806; empty: the sample workspace")
	fl.StringVar(&f.token, "token", "", "SiYuan's API token; better set SIYUAN_TOKEN, other programs can read command lines")
	fl.StringVar(&f.allow, "allow", "r", "what agents may do in your SiYuan: r, rw or rwd")
	fl.BoolVar(&f.json, "json", false, "print one line of JSON when ready; logs go to stderr")
	return cmd
}

// upLine is what `up --json` prints once agents can connect.
type upLine struct {
	MCPURL     string `json:"mcp_url"`
	AgentToken string `json:"agent_token"`
	ConsoleURL string `json:"console_url"`
	SiYuan     string `json:"siyuan"` // "sample" or the address
	Data       string `json:"data"`
}

func runUp(ctx context.Context, a *app, f upFlags, out, errOut io.Writer) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	level, err := contract.ParseLevel(f.allow)
	if err != nil || level == contract.None {
		return cli.Usagef("--allow: want r, rw or rwd, not %q", f.allow)
	}
	var admin string // DATABASE_URL is an administrator's here, unless a recorder's says that it is not
	c, err := a.config(func(c *broker.Config) {
		c.Listen = f.listen
		if f.data != "" {
			c.Data = f.data
		}
		if c.DatabaseRecord == "" {
			admin, c.DatabaseURL = c.DatabaseURL, ""
		}
	})
	if err != nil {
		return err
	}
	if c.Data, err = filepath.Abs(c.Data); err != nil {
		return err
	}
	h, err := homeOf(f, level, c.Data, errOut)
	if err != nil {
		return err
	}
	log := cli.Logger(errOut, c.LogLevel, "text")
	broker.TuneMemory(log)

	db, err := openForUp(ctx, &c, admin, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	b, err := broker.New(c, db, cli.Version, log.With("part", "broker"))
	if err != nil {
		return cli.Fail(cli.ExitConfig, err)
	}
	if h.sample {
		stop, err := h.startSample(log.With("part", "sample"))
		if err != nil {
			return err
		}
		defer stop()
	}

	var work sync.WaitGroup
	defer work.Wait()
	defer cancel(nil)
	part := func(ctx context.Context, run func(context.Context) error) {
		work.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	brokerCtx, stopBroker := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBroker()
	part(brokerCtx, b.Run)
	select {
	case <-b.Ready():
	case <-ctx.Done():
		return inUse(context.Cause(ctx))
	}

	token, err := h.enrol(ctx, c, db)
	if err != nil {
		return err
	}
	console, err := people.NewLinks(db, c.PublicURLs[0]).SignIn(ctx, h.ownerID)
	if err != nil {
		return err
	}
	home, err := connector.New(h.config(c.PublicURLs[0]), cli.Version, log.With("part", "connector"))
	if err != nil {
		return cli.Fail(cli.ExitConfig, err)
	}
	homeDone := make(chan struct{})
	part(ctx, func(ctx context.Context) error { // ends first: its calls finish while the broker still serves
		defer close(homeDone)
		return home.Run(ctx)
	})
	state := awaitHome(ctx, home, func() bool { return b.Reported(h.tenantID, h.instanceID) })
	line := upLine{MCPURL: c.Resource(), AgentToken: token, ConsoleURL: console, SiYuan: h.name(), Data: c.Data}
	if ctx.Err() == nil {
		if why := h.trouble(state); why != "" {
			log.Warn(why)
		}
		if err := announce(out, f, line, h, state); err != nil {
			cancel(err)
		}
	}
	<-ctx.Done()
	<-homeDone
	stopBroker()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// openForUp opens the database. From an administrator's address everything else
// follows: roles with a password of their own, the database, a master key.
func openForUp(ctx context.Context, c *broker.Config, admin string, log *slog.Logger) (*broker.Database, error) {
	if admin == "" {
		return openServing(ctx, c, log)
	}
	if err := os.MkdirAll(c.Data, 0o711); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	password, err := keep(filepath.Join(c.Data, "database.password"), rand.Text)
	if err != nil {
		return nil, err
	}
	if c.MasterKey == "" {
		c.MasterKey, err = keep(filepath.Join(c.Data, "database.masterkey"), func() string {
			key := make([]byte, 32)
			_, _ = rand.Read(key) // never fails
			return base64.StdEncoding.EncodeToString(key)
		})
		if err != nil {
			return nil, err
		}
	}
	c.DatabaseURL = admin
	if err := broker.AdoptDatabase(ctx, c, password); err != nil {
		return nil, err
	}
	return openServing(ctx, c, log)
}

// keep returns the content of a private file, which is made at the first time.
func keep(name string, make func() string) (string, error) {
	b, err := os.ReadFile(name)
	if err == nil {
		return string(b), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	s := make()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", err
	}
	return s, os.WriteFile(name, []byte(s), 0o600)
}

// inUse adds the way out to an address that another program has.
func inUse(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w --listen chooses another address", err)
	}
	return err
}

// awaitHome waits until SiYuan was looked at and the broker knows about it.
func awaitHome(ctx context.Context, c *connector.Connector, reported func() bool) contract.HomeState {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		switch s := c.Home().State; s {
		case contract.HomeReady, contract.HomeUnauthorized, contract.HomeWrongWorkspace:
			if reported() {
				return s
			}
		case contract.HomeOffline:
			if time.Since(began) > offlineWithin && reported() {
				return s
			}
		}
		select {
		case <-ctx.Done():
			return c.Home().State
		case <-tick.C:
		}
	}
}

// startSample serves the sample kernel on a port of its own, over the same HTTP
// that a real SiYuan speaks.
func (h *upHome) startSample(log *slog.Logger) (stop func(), err error) {
	token, err := keep(filepath.Join(h.data, "sample.token"), rand.Text)
	if err != nil {
		return nil, err
	}
	k, err := samplekernel.New(samplekernel.Options{Token: token, Dir: filepath.Join(h.data, "workspace"), Sample: true})
	if err != nil {
		return nil, fmt.Errorf("sample workspace: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sample workspace: %w", err), k.Close())
	}
	srv := &http.Server{Handler: k.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { // ended by stop
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the sample workspace stopped", "error", err)
		}
	}()
	h.url, h.token = "http://"+l.Addr().String(), token
	return func() {
		_ = srv.Close()
		<-done
		if err := k.Close(); err != nil {
			log.Error("the sample workspace was not closed cleanly", "error", err)
		}
	}, nil
}

// announce tells the person, or the program, how to connect.
func announce(out io.Writer, f upFlags, line upLine, h *upHome, state contract.HomeState) error {
	if f.json {
		return json.NewEncoder(out).Encode(line)
	}
	return announceText(out, line, h, state)
}
