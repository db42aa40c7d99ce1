package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"siyuan-broker/connector/ledger"
	"siyuan-broker/contract"
)

const (
	statusFile  = "status.json"
	statusEvery = 5 * time.Second
	statusLook  = 500 * time.Millisecond // a change is written by then
	statusStale = 30 * time.Second       // no running connector is silent that long
)

// Report is what a running connector leaves in its data folder for `status`
// and for supervisors.
type Report struct {
	At      time.Time              `json:"at"`
	PID     int                    `json:"pid"`
	Tunnel  string                 `json:"tunnel"` // connected, connecting, waiting
	Since   time.Time              `json:"since"`
	Broker  string                 `json:"broker"`
	RTT     string                 `json:"round_trip,omitempty"`
	Problem string                 `json:"problem,omitempty"` // of the last failed attempt
	SiYuan  contract.HomeState     `json:"siyuan"`
	Version string                 `json:"siyuan_version,omitempty"`
	Policy  *contract.PolicyEffect `json:"policy"`
	Ledger  *ledger.Stats          `json:"ledger,omitempty"` // of writes
}

// ErrNotRunning means that no connector reports from the data folder.
var ErrNotRunning = errors.New("no connector is running with this data folder; start it with: siyuan-connector run")

// ReadReport returns the report of the connector that runs on a data folder, or
// ErrNotRunning.
func ReadReport(data string, now time.Time) (Report, error) {
	var r Report
	b, err := os.ReadFile(filepath.Join(data, statusFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNotRunning
	}
	if err != nil {
		return r, fmt.Errorf("read status: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil || now.Sub(r.At) > statusStale {
		return r, ErrNotRunning
	}
	return r, nil
}

// Healthy reports whether agents can work through the connector.
func (r Report) Healthy() bool { return r.Tunnel == "connected" && r.SiYuan == contract.HomeReady }

func (c *Connector) report() Report {
	t, h := c.tunnel.State(), c.home.Status()
	r := Report{At: time.Now(), PID: os.Getpid(), Tunnel: string(t.Phase), Since: t.Since, Broker: t.Broker, Problem: t.LastError,
		SiYuan: h.State, Version: h.SiYuanVersion, Policy: &h.Policy}
	if t.RTT > 0 {
		r.RTT = t.RTT.Round(100 * time.Microsecond).String()
	}
	if c.Connected() {
		r.Problem = ""
	}
	if st, err := c.ledger.Stats(); err == nil {
		r.Ledger = &st
	} else if r.Problem == "" {
		r.Problem = "the ledger of writes: " + err.Error()
	}
	return r
}

// keepReporting writes the report, at once when it says something new, until ctx
// ends, and then removes it.
func (c *Connector) keepReporting(ctx context.Context) {
	name := filepath.Join(c.cfg.Data, statusFile)
	tick := time.NewTicker(statusLook)
	defer tick.Stop()
	var last Report
	for {
		now := c.report()
		news := now
		news.At, news.RTT = last.At, last.RTT // which change all the time
		if now.At.Sub(last.At) >= statusEvery || !reflect.DeepEqual(news, last) {
			if err := replaceFile(name, now); err != nil {
				c.log.Warn("status file not written", "error", err)
			}
			last = now
		}
		select {
		case <-ctx.Done():
			_ = os.Remove(name) // a stale one is told by its time
			return
		case <-tick.C:
		}
	}
}

func replaceFile(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".status-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}
