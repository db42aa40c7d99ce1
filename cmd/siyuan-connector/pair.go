package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector"
	"siyuan-broker/connector/pair"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// pairing is one run of `pair`.
type pairing struct {
	out   io.Writer
	cfg   connector.Config
	file  pair.File
	old   pair.State // of the pairing that was there; zero: none
	again bool
	noQR  bool
}

func newPair(a *app) *cobra.Command {
	var p pairing
	var run bool
	cmd := &cobra.Command{
		Use:   "pair https://BROKER",
		Short: "Pair this connector with a broker: shows a code that you type in the browser",
		Example: "  siyuan-connector pair https://notes.example\n" +
			"  SIYUAN_TOKEN=… siyuan-connector pair --run https://notes.example",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("one broker, please: siyuan-connector pair https://your-broker")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.broker = args[0]
			}
			c, err := a.config()
			if err != nil {
				return err
			}
			p.out, p.cfg, p.file = cmd.OutOrStdout(), c, pair.FileIn(c.Data)
			if run { // so that nobody approves what could not start afterwards
				if u, err := pair.ParseBroker(c.Broker); err == nil {
					c.Broker = u.String()
				}
				if err := c.Validate(); err != nil {
					return cli.Fail(cli.ExitConfig, err)
				}
			}
			if err := p.pair(cmd.Context()); err != nil || !run {
				return err
			}
			return runHome(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&run, "run", false, "go on with `run` when paired")
	f.BoolVar(&p.again, "again", false, "pair anew, with a new key, although this connector is paired; the old pairing ends")
	f.BoolVar(&p.noQR, "no-qr", false, "show no QR code")
	return cmd
}

func (p *pairing) pair(ctx context.Context) error {
	if p.cfg.Broker == "" {
		return cli.Usagef("name the broker: siyuan-connector pair https://your-broker")
	}
	broker, err := pair.ParseBroker(p.cfg.Broker)
	if err != nil {
		return cli.Fail(cli.ExitUsage, err)
	}
	p.old, err = p.file.Read()
	if err != nil && !errors.Is(err, pair.ErrNotPaired) {
		return err
	}
	if p.old.Broker != "" && !p.old.Revoked && !p.again {
		return fmt.Errorf("this connector is paired already, with %s, %s, at %s (key %s).\nStart it with: siyuan-connector run\nTo pair anew, with a new key, add --again; the old pairing then ends",
			pair.Printable(p.old.TenantName), pair.Printable(p.old.Name), p.old.Broker, p.old.Fingerprint)
	}
	fresh := p.again || p.old.Revoked
	key, err := p.key(fresh)
	if err != nil {
		return err
	}
	client := &pair.Client{Broker: broker, Key: key}
	if err := client.Check(ctx); err != nil {
		return err
	}
	place, err := p.ask(ctx, client)
	if err != nil {
		return err
	}
	return p.keep(ctx, client, place, fresh)
}

// key is the one to be paired. A fresh one is kept only when it is approved, so
// that an attempt that fails changes nothing.
func (p *pairing) key(fresh bool) (ed25519.PrivateKey, error) {
	if fresh {
		return connector.NewKey()
	}
	return connector.LoadKey(p.cfg.Data)
}

// ask shows the code and waits until a person has decided.
func (p *pairing) ask(ctx context.Context, client *pair.Client) (wire.Paired, error) {
	name, err := os.Hostname()
	if err != nil {
		name = "this machine"
	}
	offer, err := client.Begin(ctx, pair.Machine{Name: name, OS: runtime.GOOS + "/" + runtime.GOARCH, Version: "siyuan-connector " + cli.Version})
	var already *pair.AlreadyError
	if errors.As(err, &already) {
		return already.Place, nil
	}
	if err != nil {
		return wire.Paired{}, err
	}
	fmt.Fprintf(p.out, "Open this page, sign in, and type the code:\n\n    %s\n\n    code         %s\n    this machine %s\n    fingerprint  %s\n\n",
		offer.Page, offer.UserCode, name, pair.Fingerprint(client.Key.Public().(ed25519.PublicKey)))
	if !p.noQR && terminal(p.out) {
		if err := drawQR(p.out, offer.Page); err != nil {
			return wire.Paired{}, err
		}
		fmt.Fprintln(p.out)
	}
	fmt.Fprintf(p.out, "The page shows this machine and the fingerprint once more: compare them.\nWaiting for up to %d minutes; Ctrl-C stops.\n", int(offer.Life.Minutes()))
	place, err := client.Await(ctx, offer)
	switch {
	case ctx.Err() != nil:
		return place, errors.New("stopped; nothing was paired. If the code was approved in this moment, revoke the connector in the console, or run pair again")
	case errors.Is(err, pair.ErrDenied):
		return place, cli.Fail(cli.ExitNotFound, err)
	}
	return place, err
}

// keep makes the pairing last, ends the one before, and says how to go on.
func (p *pairing) keep(ctx context.Context, client *pair.Client, place wire.Paired, fresh bool) error {
	before, _ := connector.ReadKey(p.cfg.Data) // none: nothing to end
	if fresh {
		if err := connector.ReplaceKey(p.cfg.Data, client.Key); err != nil {
			return err
		}
	}
	err := p.file.Write(pair.State{Broker: client.Broker.String(), Connector: place.ConnectorID, Tenant: place.TenantID, TenantName: place.TenantName,
		Instance: place.InstanceID, Name: place.InstanceName, Fingerprint: pair.Fingerprint(client.Key.Public().(ed25519.PublicKey)), At: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\nPaired.\n\n    tenant       %s\n    instance     %s\n    broker       %s\n\n", pair.Printable(place.TenantName), pair.Printable(place.InstanceName), client.Broker)
	if p.again && before != nil && !p.old.Revoked {
		p.endOld(ctx, before)
	}
	return p.tellNext()
}

// endOld takes the old key's access back, as far as its broker can be reached.
func (p *pairing) endOld(ctx context.Context, key ed25519.PrivateKey) {
	broker, err := pair.ParseBroker(p.old.Broker)
	if err != nil {
		return // registered by hand, where we do not know
	}
	ctx, cancel := context.WithTimeout(ctx, unpairTimeout)
	defer cancel()
	err = (&pair.Client{Broker: broker, Key: key}).Unpair(ctx)
	if err != nil && !errors.Is(err, pair.ErrUnknown) {
		fmt.Fprintf(p.out, "The old pairing could not be ended: %v.\nRevoke the connector with the fingerprint %s in the console of %s.\n\n", err, p.old.Fingerprint, p.old.Broker)
	}
}

// tellNext says how to start and, while agents may only read here, how to
// change that.
func (p *pairing) tellNext() error {
	fmt.Fprintln(p.out, "Start it with: siyuan-connector run")
	home, err := policy.Load(p.cfg.Policy)
	if err != nil {
		return cli.Fail(cli.ExitConfig, err)
	}
	if home.Effect(nil).MaxLevel == contract.Read {
		fmt.Fprintf(p.out, "Agents may read but not write here. To change that, put this line into %s:\n\n    max_level: rw\n", p.cfg.Policy)
	}
	return nil
}

// terminal reports whether a stream is one.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device too
	return err != nil || !os.SameFile(info, null)
}

const unpairTimeout = 15 * time.Second

func newUnpair(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "unpair",
		Short: "End the pairing: take this connector's access back and remove its key",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			return unpair(cmd, c, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&a.broker, "broker", "", "the broker's URL, for a key that was registered by hand (CONNECTOR_BROKER)")
	return cmd
}

func unpair(cmd *cobra.Command, c connector.Config, yes bool) error {
	out, file := cmd.OutOrStdout(), pair.FileIn(c.Data)
	s, err := file.Read()
	if errors.Is(err, pair.ErrNotPaired) && c.Broker != "" { // registered by hand
		s, err = pair.State{Broker: c.Broker, TenantName: "?", Name: "?"}, nil
	}
	if err != nil {
		return cli.Fail(cli.ExitNotFound, err)
	}
	if !yes {
		fmt.Fprintf(out, "End the pairing with %s, %s, at %s? A running connector ends, agents no longer reach this SiYuan. Type yes: ",
			pair.Printable(s.TenantName), pair.Printable(s.Name), s.Broker)
		answer, _ := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 100)).ReadString('\n') // nothing is no
		if strings.TrimSpace(answer) != "yes" {
			return cli.Fail(cli.ExitConfirmation, errors.New("nothing was changed"))
		}
	}
	told := tellBroker(cmd.Context(), c, s)
	if err := errors.Join(file.Forget(), connector.ForgetKey(c.Data)); err != nil {
		return err
	}
	if told != nil {
		fmt.Fprintf(out, "Removed here: the pairing and the key.\n")
		return fmt.Errorf("but the broker was not told: %w.\nThe key is gone, so nobody can use it; the console still lists the connector %s until somebody revokes it there", told, s.Fingerprint)
	}
	_, err = fmt.Fprintln(out, "Unpaired. The broker has taken the access back; the pairing and the key are removed here. The policy file and the pinned workspace stay.")
	return err
}

// tellBroker revokes this connector at its broker.
func tellBroker(ctx context.Context, c connector.Config, s pair.State) error {
	if s.Revoked {
		return nil
	}
	key, err := connector.ReadKey(c.Data)
	if err != nil {
		return err
	}
	broker, err := pair.ParseBroker(s.Broker)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, unpairTimeout)
	defer cancel()
	err = (&pair.Client{Broker: broker, Key: key}).Unpair(ctx)
	if errors.Is(err, pair.ErrUnknown) {
		return nil
	}
	return err
}
