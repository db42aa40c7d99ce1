package connector

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"siyuan-broker/connector/approvals"
	"siyuan-broker/connector/errand"
	"siyuan-broker/connector/folders"
	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/pair"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/connector/tunnel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// ErrRevoked means that the broker will not accept this connector again.
var ErrRevoked = tunnel.ErrRevoked

// Connector is one home. Its parts are wired in New; Run is its life.
type Connector struct {
	cfg    Config
	log    *slog.Logger
	key    ed25519.PrivateKey
	kernel *siyuan.Client
	guard  *guard.Guard
	policy *policy.Policy
	home   *home.Home
	tunnel *tunnel.Client
	ledger *ledger.Ledger
	points *restore.Store
	work   *tools.Executor

	errands *errand.Folder
}

// New wires a connector. It contacts nobody yet; its errors are the owner's to
// correct.
func New(cfg Config, version string, log *slog.Logger) (*Connector, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the connector's data folder: %w", err)
	}
	c := &Connector{cfg: cfg, log: log}
	// A home that was never pinned never worked, so nothing can have been forgotten.
	_, err := os.Stat(string(PinFile(cfg.Data)))
	fresh := errors.Is(err, fs.ErrNotExist)
	if c.key, err = LoadKey(cfg.Data); err != nil {
		return nil, err
	}
	if c.policy, err = policy.Load(cfg.Policy); err != nil {
		return nil, err
	}
	c.home, err = home.New(home.Config{URL: cfg.URL, Pin: PinFile(cfg.Data), Policy: c.policy, Log: log, Tools: c.homeTools})
	if err != nil {
		return nil, err
	}
	c.kernel, err = siyuan.New(siyuan.Config{BaseURL: cfg.URL, Token: siyuan.NewToken(cfg.Token), Dial: c.home.Dial, Logger: log})
	if err != nil {
		return nil, err
	}
	c.home.Watch(c.kernel)
	if c.ledger, c.points, err = openBooks(cfg, fresh); err != nil {
		return nil, err
	}
	c.errands = errand.In(cfg.Data, time.Now)
	if err := c.errands.Clear(); err != nil {
		return nil, errors.Join(err, c.ledger.Close(), c.points.Close())
	}
	c.guard = guard.New(c.kernel.Reader(), c.kernel.Writer(), guard.Options{Points: c.points, Logger: log, Settle: cfg.WriteSettle, Secret: markSecret(c.key), Outside: c.policy.Outside, ToolsChanged: c.home.Look})
	c.work, err = tools.New(tools.Config{Guard: c.guard, Policy: c.policy, Catalogue: catalogue.AtHome(), Ledger: c.ledger, Books: c.points, Folders: Folders(cfg, c.policy),
		Approvals: approvals.In(cfg.Data, time.Now), Logger: log}, handlers.All()...)
	if err != nil {
		return nil, errors.Join(err, c.ledger.Close(), c.points.Close())
	}
	c.tunnel, err = tunnel.New(tunnel.Config{
		BrokerURL: cfg.Broker, ConnectorID: Fingerprint(c.key.Public().(ed25519.PublicKey)), Key: c.key,
		Handler:  whenReady{c.home, c.work},
		Streams:  streamsWhenReady{c.home, c.work},
		Status:   tunnel.Status{Current: c.home.Status, Changed: c.home.Changed()},
		Software: "siyuan-connector " + version, Logger: log,
		Backoff: tunnel.Backoff{Base: time.Second, Cap: cmp.Or(cfg.ReconnectMax, time.Minute)},
	})
	if err != nil {
		return nil, errors.Join(err, c.ledger.Close(), c.points.Close())
	}
	return c, nil
}

// Folders are the folders of this machine that a policy opens to agents, never those
// in which the connector itself keeps something.
func Folders(cfg Config, p *policy.Policy) *folders.Folders {
	return folders.New(folders.Config{Upload: p.Uploads, Export: p.Exports, Private: []string{cfg.Data}})
}

// markSecret is what marks stored files, derived from the connector's key.
func markSecret(key ed25519.PrivateKey) []byte {
	mac := hmac.New(sha256.New, key.Seed())
	mac.Write([]byte("siyuan-connector: marks of stored files"))
	return mac.Sum(nil)
}

// openBooks opens what a home remembers of its writes.
func openBooks(cfg Config, fresh bool) (*ledger.Ledger, *restore.Store, error) {
	l, err := ledger.Open(ledger.Config{
		Path: filepath.Join(cfg.Data, "ledger.db"), Entries: cfg.LedgerEntries, Bytes: int64(cfg.LedgerMB) << 20, Fresh: fresh,
	})
	if err != nil {
		return nil, nil, err
	}
	points, err := restore.Open(restore.Config{
		Path: filepath.Join(cfg.Data, "restore.db"), Keep: time.Duration(cfg.UndoDays) * 24 * time.Hour, Points: cfg.UndoPoints,
	})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, points, nil
}

// PinFile is where a connector keeps the workspace it belongs to.
func PinFile(data string) home.PinFile { return home.PinFile(filepath.Join(data, "pin.json")) }

// Run works until ctx ends or the credential is revoked (ErrRevoked). It does
// not end because SiYuan or the broker is away.
func (c *Connector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	effect := c.policy.Effect(nil)
	c.log.Info("connector is up", "broker", c.cfg.Broker, "siyuan", c.cfg.URL, "max_level", effect.MaxLevel.String(), "policy", c.cfg.Policy)
	if effect.MaxLevel == contract.Read {
		c.log.Info("agents may read but not write; to change that, put this line into the policy file: max_level: rw", "policy", c.cfg.Policy)
	}
	var work sync.WaitGroup
	work.Go(func() { c.home.Run(ctx) })
	work.Go(func() { c.keepReporting(ctx) })
	work.Go(func() { c.recover(ctx) })
	work.Go(func() { c.discover(ctx) })
	work.Go(func() { c.errands.Serve(ctx, c.log, c.doErrand) })
	err := c.tunnel.Run(ctx)
	if errors.Is(err, ErrRevoked) {
		c.noteRevoked()
	}
	cancel()
	work.Wait()
	c.kernel.Close()
	if err := c.ledger.Close(); err != nil {
		c.log.Warn("the ledger of writes did not close", "error", err)
	}
	if err := c.points.Close(); err != nil {
		c.log.Warn("the restore points did not close", "error", err)
	}
	if err := c.guard.Close(); err != nil {
		c.log.Warn("the judge of SQL did not close", "error", err)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// noteRevoked lets the next pair begin without being asked twice. A pairing that
// took this one's place meanwhile has another key and stays.
func (c *Connector) noteRevoked() {
	if err := pair.FileIn(c.cfg.Data).MarkRevoked(Fingerprint(c.key.Public().(ed25519.PublicKey))); err != nil {
		c.log.Warn("the end of the pairing was not noted", "error", err)
	}
}

// recoverEvery is the wait between attempts to ask SiYuan about writes that were
// under way when the connector ended.
const recoverEvery = 2 * time.Second

// recover decides the writes of an earlier run as soon as SiYuan can be asked.
func (c *Connector) recover(ctx context.Context) {
	tick := time.NewTicker(recoverEvery)
	defer tick.Stop()
	for {
		if c.home.Ready() == nil {
			err := c.work.Recover(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			c.log.Warn("writes of an earlier run are not decided yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// discoverEvery is the wait between looks at what SiYuan's plugins offer.
const discoverEvery = 20 * time.Second

// discover keeps the list of plugins' tools. A SiYuan that does not answer such a
// look keeps the list it had: its other tools have nothing to do with it.
func (c *Connector) discover(ctx context.Context) {
	tick := time.NewTicker(recoverEvery)
	defer tick.Stop()
	for {
		if c.home.Ready() == nil {
			if err := c.guard.Discover(ctx); err != nil && ctx.Err() == nil {
				c.log.Debug("the tools of SiYuan's plugins could not be listed", "error", err)
			}
			tick.Reset(discoverEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// homeTools are the tools of SiYuan's plugins as known now.
func (c *Connector) homeTools() []contract.HomeTool {
	if c.guard == nil { // not wired yet
		return nil
	}
	return c.guard.HomeTools()
}

// Home tells how SiYuan is.
func (c *Connector) Home() contract.HomeStatus { return c.home.Status() }

// whenReady lets calls through while SiYuan is recognised and answers.
type whenReady struct {
	home *home.Home
	next tunnel.Handler
}

func (w whenReady) Handle(ctx context.Context, call contract.Call, progress func(contract.Progress)) contract.Result {
	if err := w.home.Ready(); err != nil {
		w.home.Lost() // look again now rather than at the next turn
		e := *err
		e.RequestID = call.RequestID
		return contract.Result{Err: &e}
	}
	r := w.next.Handle(ctx, call, progress)
	if r.Err != nil && contract.CodeOf(r.Err) == contract.SiYuanOffline {
		w.home.Lost()
	}
	return r
}

// streamsWhenReady is whenReady for transfers.
type streamsWhenReady struct {
	home *home.Home
	next tunnel.StreamHandler
}

func (w streamsWhenReady) HandleStream(ctx context.Context, t contract.Transfer, in io.Reader, out contract.BodyWriter) error {
	if err := w.home.Ready(); err != nil {
		w.home.Lost()
		return err
	}
	err := w.next.HandleStream(ctx, t, in, out)
	if contract.CodeOf(err) == contract.SiYuanOffline {
		w.home.Lost()
	}
	return err
}

// Connected reports whether the tunnel stands.
func (c *Connector) Connected() bool { return c.tunnel.State().Phase == tunnel.Connected }
