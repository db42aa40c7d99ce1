package browser

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"siyuan-broker/connector"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// Instance makes an instance of a tenant.
func (w *World) Instance(tenant tenants.ID, name string) tenants.ID {
	w.t.Helper()
	var id tenants.ID
	must(w.t, w.DB.In(w.t.Context(), tenant, func(tx tenants.Tx) error {
		in, err := tx.CreateInstance(w.t.Context(), tenants.Instance{Name: name, DefaultLevel: contract.Read, Enabled: true})
		id = in.ID
		return err
	}))
	return id
}

// Connect runs a connector for an instance, with a sample workspace behind it,
// until stop is called or the test ends, and waits until the broker knows about
// its home.
func (w *World) Connect(t testing.TB, tenant, instance tenants.ID) (stop func()) {
	t.Helper()
	k, err := samplekernel.New(samplekernel.Options{Token: "kernel-token", Sample: true})
	must(t, err)
	server := httptest.NewServer(k.Handler())
	c := connector.Config{Broker: w.URL, URL: server.URL, Token: "kernel-token", Data: t.TempDir()}
	c.Complete()
	must(t, os.WriteFile(c.Policy, []byte("max_level: rwd\n"), 0o600))
	key, err := connector.LoadKey(c.Data)
	must(t, err)
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		_, err := tx.RegisterConnector(t.Context(), tenants.Connector{InstanceID: instance, Name: "desktop", PublicKey: key.Public().(ed25519.PublicKey)})
		return err
	}))
	conn, err := connector.New(c, "test", slog.New(slog.DiscardHandler))
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // waited for by stop
		defer close(ended)
		_ = conn.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(func() {
		stop()
		server.Close()
		_ = k.Close()
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !w.Broker.Reported(tenant, instance) || conn.Home().State != contract.HomeReady; {
		select {
		case <-limit:
			t.Fatalf("the connector does not come up: %+v", conn.Home())
		case <-tick.C:
		}
	}
	return stop
}
