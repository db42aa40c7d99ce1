package browser

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/pair"
	"siyuan-broker/contract/wire"
)

// machine is a connector that waits for its pairing.
type machine struct {
	*pair.Client
	t     testing.TB
	offer pair.Offer
}

func (w *World) machine(t testing.TB, name string) *machine {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	url, err := pair.ParseBroker(w.URL)
	must(t, err)
	m := &machine{t: t, Client: &pair.Client{Broker: url, Key: key, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}}
	m.offer, err = m.Begin(t.Context(), pair.Machine{Name: name, OS: "linux/amd64", Version: "siyuan-connector 1.0.0"})
	must(t, err)
	return m
}

func (m *machine) fingerprint() string {
	return pair.Fingerprint(m.Key.Public().(ed25519.PublicKey))
}

func (m *machine) await() (wire.Paired, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	return m.Await(ctx, m.offer)
}

func TestAPersonPairsAConnector(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	inEach(t, w, func(t *testing.T, b *Tab) {
		email := strings.ToLower(string(b.lang)) + "@example.org"
		_, tenant := w.Person(email, "Ann")
		first, second, third := w.machine(t, "desk"), w.machine(t, "laptop"), w.machine(t, strings.Repeat("long-name ", 9))

		// The link of the QR code leads through signing in, and carries no code.
		b.Go(first.offer.Page + "?code=" + first.offer.UserCode)
		b.Fill("#email", email)
		b.Fill("#password", Password)
		b.Follow("main form button.btn:not([type])")
		b.Await("#code")
		if got := Eval[string](b, `document.querySelector("#code").value`); got != "" {
			t.Errorf("the code is filled in: %q", got)
		}
		b.Inspect("pair")
		b.Fill("#code", "BBBB-BBBB")
		b.Follow(`form[action="/pair"] button`)
		b.Await(".alert.bad")
		b.Inspect("pair-wrong")

		b.Fill("#code", strings.ToLower(first.offer.UserCode))
		b.Follow(`form[action="/pair"] button`)
		b.See(first.fingerprint())
		b.See("127.0.0.1")
		b.Inspect("machine")
		b.Fill("#name", "书房 Study")
		b.Follow(`button[value="approve"]`)
		b.Await(".alert.good")
		b.See(first.fingerprint())
		b.Inspect("connectors")
		if p, err := first.await(); err != nil || p.InstanceName != "书房 Study" || p.TenantID != tenant.String() {
			t.Errorf("the machine learns %+v, %v", p, err)
		}

		b.Go("/pair")
		b.Fill("#code", second.offer.UserCode)
		b.Follow(`form[action="/pair"] button`)
		b.Press(`label.choice:has(input:not([value$="/new"]))`)
		b.Follow(`button[value="approve"]`)
		b.See(first.fingerprint())
		b.See(second.fingerprint())
		b.Inspect("occupied")
		b.Follow(`button[value="approve"]`)
		b.Await(".alert.good")
		if _, err := second.await(); err != nil {
			t.Error(err)
		}

		b.Go("/pair")
		b.Fill("#code", third.offer.UserCode)
		b.Follow(`form[action="/pair"] button`)
		b.Inspect("machine-choice")
		b.Follow(`button[value="deny"]`)
		b.Await("#code")
		b.Inspect("pair-denied")
		if _, err := third.await(); !errors.Is(err, pair.ErrDenied) {
			t.Errorf("turned down, the machine learns %v", err)
		}

		b.Go("/console/connectors")
		b.Press("details.confirm > summary")
		b.Inspect("connectors-revoke")
		b.Follow(`details.confirm[open] button.danger`)
		b.Await(".alert.good")
		b.Inspect("connectors-revoked")
	})
}
