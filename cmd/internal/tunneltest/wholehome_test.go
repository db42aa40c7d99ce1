package tunneltest

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker/relay"
	"siyuan-broker/cmd/internal/faultproxy"
	homeside "siyuan-broker/connector"
	"siyuan-broker/connector/siyuan/samplekernel"
)

// wholeHome is a complete connector beside a sample kernel, behind a proxy.
type wholeHome struct {
	data  string
	proxy *faultproxy.Proxy
}

func startWholeHome(t *testing.T, change func(*relay.Config)) *wholeHome {
	t.Helper()
	kernel, err := samplekernel.New(samplekernel.Options{Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kernel.Close() })
	siyuan := httptest.NewServer(kernel.Handler())
	t.Cleanup(siyuan.Close)

	w := &wholeHome{data: t.TempDir()}
	key, err := homeside.LoadKey(w.data)
	if err != nil {
		t.Fatal(err)
	}
	pub := key.Public().(ed25519.PublicKey)
	dir := newDirectory(pub)
	id := homeside.Fingerprint(pub)
	dir.records[id] = relay.ConnectorRecord{Tenant: tenant, Instance: instance, ID: id, PublicKey: pub}
	n, p := behindProxy(t, dir, "ws", change)
	w.proxy = p
	cfg := homeside.Config{Broker: n.dial, URL: siyuan.URL, Token: kernel.Token(), Data: w.data}
	cfg.Complete()
	c, err := homeside.New(cfg, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *wholeHome) report() (homeside.Report, error) {
	return homeside.ReadReport(w.data, time.Now())
}

func (w *wholeHome) healthy() bool {
	r, err := w.report()
	return err == nil && r.Healthy()
}

func TestT08AnUnhealthyTunnelShowsInTheStatusFile(t *testing.T) {
	t.Parallel()
	w := startWholeHome(t, scaledNode)
	eventually(t, "a healthy report", w.healthy)
	w.proxy.Refuse(true)
	w.proxy.Set(deadSilence)
	began := time.Now()
	eventually(t, "an unhealthy report", func() bool { return !w.healthy() })
	// What the file adds to the link's own 45 s is its rhythm of 5 s.
	if d := time.Since(began); d > deadLink+5*time.Second+scheduler {
		t.Errorf("took %v", d)
	}
	if r, err := w.report(); err != nil || r.Tunnel == "connected" || r.Problem == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
