package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// consentOf is a consent of the owner of h, fetched by the given secret.
func consentOf(h home, secret string) tenants.OAuthCode {
	return tenants.OAuthCode{
		Hash: tenants.HashSecret(secret), ClientID: "https://app.example/client.json", RedirectURI: "https://app.example/cb",
		Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", Resource: "https://notes.example/mcp", Scope: "notes:read",
		Agent: tenants.Agent{MemberID: h.owner, InstanceID: h.instance, Name: "App", Origin: tenants.FromOAuth, ClientID: "https://app.example/client.json",
			Ceiling: contract.ReadWrite, Tools: []string{"block"}, ExpiresAt: soon()},
		ExpiresAt: soon(),
	}
}

func soon() time.Time { return time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond) }

func TestAConsentIsKeptUntilItIsFetchedAndThenNamesItsAgent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	want := consentOf(h, "code")
	f.in(t, h.tenant, func(tx tenants.Tx) error { return tx.PutOAuthCode(ctx, want) })
	at := time.Now().UTC().Truncate(time.Microsecond)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.OAuthCode(ctx, want.Hash)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		return tx.UseOAuthCode(ctx, want.Hash, h.agent, at)
	})
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.OAuthCode(ctx, want.Hash)
		must(t, err)
		if got.Agent.ID != h.agent || !got.UsedAt.Equal(at) {
			t.Errorf("used: %v %v", got.Agent.ID, got.UsedAt)
		}
		return nil
	})
	err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { return tx.UseOAuthCode(ctx, want.Hash, h.agent, at) })
	wantErr(t, err, tenants.ErrNotFound) // a second time
}

func TestAnotherTenantsConsentsAndTokensAreNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	a, b := f.newHome(t, "a@example.org", home{}), f.newHome(t, "b@example.org", home{})
	hash := tenants.HashSecret("refresh")
	f.in(t, a.tenant, func(tx tenants.Tx) error {
		must(t, tx.PutRefreshToken(ctx, tenants.RefreshToken{Hash: hash, AgentID: a.agent, ExpiresAt: soon()}))
		return tx.PutOAuthCode(ctx, consentOf(a, "code"))
	})
	for name, fn := range map[string]func(tenants.Tx) error{
		"code":  func(tx tenants.Tx) error { _, err := tx.OAuthCode(ctx, tenants.HashSecret("code")); return err },
		"token": func(tx tenants.Tx) error { _, err := tx.RefreshToken(ctx, hash); return err },
		"spend": func(tx tenants.Tx) error { return tx.SpendRefreshToken(ctx, hash, time.Now()) },
		"token of a foreign agent": func(tx tenants.Tx) error {
			return tx.PutRefreshToken(ctx, tenants.RefreshToken{Hash: tenants.HashSecret("x"), AgentID: a.agent, ExpiresAt: soon()})
		},
		"consent of a stranger": func(tx tenants.Tx) error {
			return tx.PutOAuthCode(ctx, consentOf(home{owner: a.owner, instance: b.instance}, "x"))
		},
		"consent for a foreign workspace": func(tx tenants.Tx) error {
			return tx.PutOAuthCode(ctx, consentOf(home{owner: b.owner, instance: a.instance}, "x"))
		},
	} {
		if err := f.In(ctx, b.tenant, fn); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
}

func TestAConsentEndsWithTheMembership(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	guest := f.person(t, "guest@example.org")
	c := consentOf(h, "code")
	c.Agent.MemberID = guest.ID
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.AddMember(ctx, guest.ID, tenants.Member))
		must(t, tx.PutOAuthCode(ctx, c))
		return tx.RemoveMember(ctx, guest.ID)
	})
	err := f.In(ctx, h.tenant, func(tx tenants.Tx) error { _, err := tx.OAuthCode(ctx, c.Hash); return err })
	wantErr(t, err, tenants.ErrNotFound)
}

func TestTheFirstExchangeOfARefreshTokenIsRemembered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	want := tenants.RefreshToken{Hash: tenants.HashSecret("refresh"), AgentID: h.agent, Resource: "https://notes.example/mcp", Scope: "notes:read", ExpiresAt: soon()}
	first := time.Now().UTC().Truncate(time.Microsecond)
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.PutRefreshToken(ctx, want))
		must(t, tx.SpendRefreshToken(ctx, want.Hash, first))
		return tx.SpendRefreshToken(ctx, want.Hash, first.Add(time.Minute))
	})
	want.SpentAt = first
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		got, err := tx.RefreshToken(ctx, want.Hash)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		return nil
	})
}

func TestRegistrationsAreFoundUntilTheyExpire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	uris := []string{"https://app.example/cb"}
	made, err := f.CreateOAuthClient(ctx, tenants.OAuthClient{ID: "a", Name: "App", RedirectURIs: uris, ExpiresAt: soon()})
	must(t, err)
	_, err = f.CreateOAuthClient(ctx, tenants.OAuthClient{ID: "a", Name: "Other", RedirectURIs: uris})
	wantErr(t, err, tenants.ErrConflict)
	must2(t)(f.CreateOAuthClient(ctx, tenants.OAuthClient{ID: "old", ExpiresAt: time.Now().Add(-time.Minute)}))
	must2(t)(f.CreateOAuthClient(ctx, tenants.OAuthClient{ID: "ours", Name: "Ours"}))

	later := soon().Add(time.Hour)
	must(t, f.KeepOAuthClient(ctx, "a", later))
	must(t, f.KeepOAuthClient(ctx, "a", soon()))    // never closer
	must(t, f.KeepOAuthClient(ctx, "ours", soon())) // which never ends
	made.ExpiresAt = later
	got, err := f.OAuthClient(ctx, "a")
	must(t, err)
	if d := cmp.Diff(made, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	_, err = f.OAuthClient(ctx, "old")
	wantErr(t, err, tenants.ErrNotFound)
	all, err := f.OAuthClients(ctx)
	must(t, err)
	if len(all) != 1 || all[0].ID != "ours" {
		t.Errorf("lasting registrations: %v", all)
	}
	must(t, f.DeleteOAuthClient(ctx, "ours"))
	wantErr(t, f.DeleteOAuthClient(ctx, "ours"), tenants.ErrNotFound)
}

func TestADeviceIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	d := tenants.DeviceRequest{Hash: tenants.HashSecret("device"), UserCode: "BCDFGHJK", ClientID: "a", Scope: "notes:read", Resource: "r", ExpiresAt: soon()}
	must(t, f.CreateDeviceRequest(ctx, d))
	other := d
	other.Hash = tenants.HashSecret("other")
	wantErr(t, f.CreateDeviceRequest(ctx, other), tenants.ErrConflict)
	got, err := f.DeviceRequest(ctx, d.UserCode)
	must(t, err)
	if diff := cmp.Diff(d, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	at := time.Now().UTC().Truncate(time.Microsecond)
	first, err := f.PollDevice(ctx, d.Hash, at)
	must(t, err)
	second, err := f.PollDevice(ctx, d.Hash, at.Add(time.Second))
	must(t, err)
	if !first.PolledAt.IsZero() || !second.PolledAt.Equal(at) || second.Answered() {
		t.Errorf("polls: %v, then %v, answered %v", first.PolledAt, second.PolledAt, second.Answered())
	}

	tenant := tenants.NewID()
	must(t, f.AnswerDevice(ctx, d.Hash, tenant))
	wantErr(t, f.AnswerDevice(ctx, d.Hash, tenants.ID{}), tenants.ErrNotFound)
	_, err = f.DeviceRequest(ctx, d.UserCode)
	wantErr(t, err, tenants.ErrNotFound)
	answered, err := f.PollDevice(ctx, d.Hash, at)
	must(t, err)
	if answered.TenantID != tenant || answered.Denied {
		t.Errorf("answer: %+v", answered)
	}
}

func TestWhatLetsAgentsSignInIsForgottenWhenItHasExpired(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	h := f.newHome(t, "a@example.org", home{})
	now := time.Now()
	code := func(secret string, expires time.Time) tenants.OAuthCode {
		c := consentOf(h, secret)
		c.ExpiresAt = expires
		return c
	}
	f.in(t, h.tenant, func(tx tenants.Tx) error {
		must(t, tx.PutOAuthCode(ctx, code("long ago", now.Add(-25*time.Hour))))
		must(t, tx.PutOAuthCode(ctx, code("just expired", now.Add(-time.Minute)))) // a replay is still recognised
		must(t, tx.PutRefreshToken(ctx, tenants.RefreshToken{Hash: tenants.HashSecret("old"), AgentID: h.agent, ExpiresAt: now.Add(-time.Minute)}))
		return tx.PutRefreshToken(ctx, tenants.RefreshToken{Hash: tenants.HashSecret("new"), AgentID: h.agent, ExpiresAt: now.Add(time.Minute)})
	})
	must2(t)(f.CreateOAuthClient(ctx, tenants.OAuthClient{ID: "old", ExpiresAt: now.Add(-time.Minute)}))
	must2(t)(f.CreateOAuthClient(ctx, tenants.OAuthClient{ID: "new", ExpiresAt: now.Add(time.Minute)}))
	must(t, f.CreateDeviceRequest(ctx, tenants.DeviceRequest{Hash: tenants.HashSecret("d"), UserCode: "BCDFGHJK", ClientID: "a", ExpiresAt: now.Add(-time.Minute)}))
	must(t, f.Maintain(ctx, now, 1))
	admin := f.conn(t, f.db.AdminDSN)
	for table, want := range map[string]int{"oauth_codes": 1, "oauth_refresh_tokens": 1, "oauth_clients": 1, "oauth_devices": 0} {
		if n := count(t, admin, table); n != want {
			t.Errorf("%s: %d rows left, want %d", table, n, want)
		}
	}
}
