package browser

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"siyuan-broker/broker"
	"siyuan-broker/broker/people"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// World is one broker on a database of its own.
type World struct {
	URL    string
	DB     *broker.Database
	Broker *broker.Broker

	t testing.TB
}

// Password is the password of every person that a World makes.
const Password = "seven quiet herons wade"

// passwordHash is made once: hashing is slow on purpose.
var passwordHash = sync.OnceValues(func() (string, error) {
	return people.NewHasher(64, 1, 1, 1).Hash(context.Background(), Password)
})

// Start runs a broker until the test ends. change may be nil.
func Start(t testing.TB, change func(*broker.Config), options ...broker.Option) *World {
	t.Helper()
	db := pgtest.New(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	w := &World{t: t, URL: "http://" + addr}
	logged := &syncBuffer{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	c := broker.Config{
		Listen: addr, DatabaseURL: db.ServiceDSN, DatabaseRecord: db.RecorderDSN, DatabaseDirect: db.ListenDSN,
		MasterKey: base64.StdEncoding.EncodeToString(make([]byte, 32)), Data: t.TempDir(), NodeID: "node-1",
		LogLevel: "info", LogFormat: "text", CallTimeout: 20 * time.Second, ShutdownTimeout: 5 * time.Second,
		MaxRequestBytes: 4 << 20, MaxResultBytes: 8 << 20,
	}
	if change != nil {
		change(&c)
	}
	must(t, c.Validate())
	w.DB, err = broker.OpenDatabase(t.Context(), &c, log)
	must(t, err)
	w.Broker, err = broker.New(c, w.DB, "test", log, options...)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Broker.Run(ctx) }() // received below
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("broker: %v", err)
		}
		must(t, w.DB.Close(context.Background()))
		if t.Failed() {
			t.Logf("log:\n%s", logged)
		}
	})
	select {
	case <-w.Broker.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatalf("broker ended: %v", err)
	}
	return w
}

// Links makes one-time links of this broker.
func (w *World) Links() *people.Links { return people.NewLinks(w.DB, w.URL) }

// Person makes a person with Password and a tenant of their own.
func (w *World) Person(email, name string) (tenants.User, tenants.ID) {
	w.t.Helper()
	hash, err := passwordHash()
	must(w.t, err)
	u, err := w.DB.SignUp(w.t.Context(), tenants.SignUp{User: tenants.User{Email: email, Name: name, PasswordHash: hash}, Tenant: name, Now: time.Now()})
	must(w.t, err)
	all, err := w.DB.MembershipsOf(w.t.Context(), u.ID)
	must(w.t, err)
	return u, all[0].TenantID
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
