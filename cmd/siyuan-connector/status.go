package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"siyuan-broker/cmd/internal/cli"
	"siyuan-broker/connector"
	"siyuan-broker/connector/pair"
)

// statusView is what `status` prints: what this connector is paired with, and
// how it works while it runs.
type statusView struct {
	State       string      `json:"state"` // running, stopped, or revoked
	Fingerprint string      `json:"fingerprint"`
	Pairing     *pair.State `json:"pairing"` // null: registered by hand, or not at all
	*connector.Report
}

func newStatus(a *app) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell what this connector is paired with, and how tunnel and SiYuan are",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			v, err := look(c, time.Now())
			if check {
				if err == nil && !v.Healthy() {
					err = fmt.Errorf("tunnel %s, SiYuan %s. %s", v.Tunnel, v.SiYuan, v.Problem)
				}
				return cli.Fail(cli.ExitOffline, err)
			}
			return errors.Join(cli.PrintJSON(cmd.OutOrStdout(), v), cli.Fail(cli.ExitOffline, err))
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "print nothing when all is well, else exit with code 4")
	return cmd
}

// look gathers the status. Its error says why nothing runs.
func look(c connector.Config, now time.Time) (statusView, error) {
	v := statusView{State: "stopped"}
	s, err := pair.FileIn(c.Data).Read()
	switch {
	case err == nil:
		v.Pairing = &s
	case !errors.Is(err, pair.ErrNotPaired):
		return v, err
	}
	if key, err := connector.ReadKey(c.Data); err == nil {
		v.Fingerprint = connector.Fingerprint(key.Public().(ed25519.PublicKey))
	}
	r, err := connector.ReadReport(c.Data, now)
	if err == nil {
		v.State, v.Report = "running", &r
		return v, nil
	}
	if s.Revoked {
		v.State = "revoked"
		err = fmt.Errorf("%w; pair again with: siyuan-connector pair %s", connector.ErrRevoked, s.Broker)
	}
	return v, err
}
