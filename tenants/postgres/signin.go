package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/tenants"
)

// What a person keeps of each; the oldest go.
const (
	sessionsKept = 50
	devicesKept  = 20
)

// BeginConsoleSession stores a new session.
func (s *Store) BeginConsoleSession(ctx context.Context, c tenants.ConsoleSession) error {
	return s.together(ctx, "begin session", func(t pgx.Tx) error {
		_, err := t.Exec(ctx, `
			insert into console_sessions (id_hash, user_id, shown_tenant, address, browser, created_at, seen_at, expires_at)
			values ($1, $2, $3, left($4, 100), left($5, 300), $6, $6, $7)`,
			c.Hash, c.UserID, idOrNull(c.Shown), c.Address, c.Browser, c.CreatedAt, c.ExpiresAt)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `
			delete from console_sessions where id_hash in (
				select id_hash from console_sessions where user_id = $1 order by created_at desc, id_hash offset $2)`, c.UserID, sessionsKept)
		return err
	})
}

// ConsoleSession finds a session that is still good, with its person.
func (s *Store) ConsoleSession(ctx context.Context, hash []byte, now, idleSince time.Time) (c tenants.ConsoleSession, u tenants.User, err error) {
	err = s.service.QueryRow(ctx, `
		select s.id_hash, s.user_id, s.shown_tenant, s.address, s.browser, s.created_at, s.seen_at, s.expires_at,
			u.id, u.email, u.name, u.locale, u.password_hash, u.oidc_issuer, u.oidc_subject, u.created_at
		from console_sessions s join users u on u.id = s.user_id
		where s.id_hash = $1 and s.expires_at > $2 and s.seen_at > $3`, hash, now, idleSince).Scan(
		&c.Hash, &c.UserID, intoID{&c.Shown}, &c.Address, &c.Browser, intoTime{&c.CreatedAt}, intoTime{&c.SeenAt}, intoTime{&c.ExpiresAt},
		&u.ID, &u.Email, &u.Name, &u.Locale, intoText{&u.PasswordHash}, intoText{&u.OIDCIssuer}, intoText{&u.OIDCSubject}, intoTime{&u.CreatedAt})
	if err != nil {
		return c, u, failure(err, "session")
	}
	return c, u, nil
}

// TouchConsoleSession notes that a session was used.
func (s *Store) TouchConsoleSession(ctx context.Context, hash []byte, at time.Time) error {
	return s.do(ctx, "note use of session", `update console_sessions set seen_at = greatest(seen_at, $2) where id_hash = $1`, hash, at)
}

// ShowTenant sets what a session looks at.
func (s *Store) ShowTenant(ctx context.Context, hash []byte, tenant tenants.ID) error {
	return s.do(ctx, "show tenant", `update console_sessions set shown_tenant = $2 where id_hash = $1`, hash, idOrNull(tenant))
}

// EndConsoleSession ends one session.
func (s *Store) EndConsoleSession(ctx context.Context, hash []byte) error {
	return s.do(ctx, "end session", `delete from console_sessions where id_hash = $1`, hash)
}

// EndConsoleSessions ends a person's sessions, all or all but one.
func (s *Store) EndConsoleSessions(ctx context.Context, user tenants.ID, but []byte) error {
	return s.do(ctx, "end sessions of user "+user.String(),
		`delete from console_sessions where user_id = $1 and ($2::bytea is null or id_hash <> $2)`, user, but)
}

// RememberDevice notes that a person signed in in a browser.
func (s *Store) RememberDevice(ctx context.Context, user tenants.ID, hash []byte, at time.Time) error {
	return s.together(ctx, "remember device", func(t pgx.Tx) error {
		_, err := t.Exec(ctx, `insert into known_devices (user_id, device_hash, seen_at) values ($1, $2, $3)
			on conflict (user_id, device_hash) do update set seen_at = excluded.seen_at`, user, hash, at)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `delete from known_devices where user_id = $1 and device_hash in (
			select device_hash from known_devices where user_id = $1 order by seen_at desc, device_hash offset $2)`, user, devicesKept)
		return err
	})
}

// DeviceKnown reports whether a person signed in in a browser before.
func (s *Store) DeviceKnown(ctx context.Context, user tenants.ID, hash []byte) (known bool, err error) {
	err = s.service.QueryRow(ctx, `select exists (select from known_devices where user_id = $1 and device_hash = $2)`, user, hash).Scan(&known)
	if err != nil {
		return false, failure(err, "known device")
	}
	return known, nil
}

// PutLink stores a link in place of the ones it makes needless.
func (s *Store) PutLink(ctx context.Context, l tenants.Link) error {
	return s.together(ctx, "store link", func(t pgx.Tx) error {
		_, err := t.Exec(ctx, `delete from one_time_links where kind = $1 and email = $2 and user_id is not distinct from $3::uuid`,
			string(l.Kind), l.Email, idOrNull(l.UserID))
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `insert into one_time_links (token_hash, kind, email, user_id, expires_at) values ($1, $2, $3, $4, $5)`,
			l.Hash, string(l.Kind), l.Email, idOrNull(l.UserID), l.ExpiresAt)
		return err
	})
}

const linkColumns = `token_hash, kind, email, user_id, expires_at`

func scanLink(r pgx.Row) (l tenants.Link, err error) {
	err = r.Scan(&l.Hash, &l.Kind, &l.Email, intoID{&l.UserID}, intoTime{&l.ExpiresAt})
	return l, err
}

// Link finds a link that can be used.
func (s *Store) Link(ctx context.Context, hash []byte, now time.Time) (tenants.Link, error) {
	l, err := scanLink(s.service.QueryRow(ctx, `select `+linkColumns+` from one_time_links where token_hash = $1 and expires_at > $2`, hash, now))
	if err != nil {
		return l, failure(err, "link")
	}
	return l, nil
}

// queryer is the pool or a transaction.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func takeLink(ctx context.Context, q queryer, hash []byte, now time.Time, kinds ...tenants.LinkKind) (tenants.Link, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return scanLink(q.QueryRow(ctx, `delete from one_time_links where token_hash = $1 and expires_at > $2 and kind = any($3)
		returning `+linkColumns, hash, now, names))
}

// TakeLink uses a link up.
func (s *Store) TakeLink(ctx context.Context, hash []byte, kind tenants.LinkKind, now time.Time) (tenants.Link, error) {
	l, err := takeLink(ctx, s.service, hash, now, kind)
	if err != nil {
		return l, failure(err, "link")
	}
	return l, nil
}

// ResetPassword uses a reset link up.
func (s *Store) ResetPassword(ctx context.Context, hash []byte, passwordHash string, now time.Time) (u tenants.User, err error) {
	err = s.together(ctx, "reset password", func(t pgx.Tx) error {
		l, err := takeLink(ctx, t, hash, now, tenants.LinkReset)
		if err != nil {
			return err
		}
		rows, err := t.Query(ctx, `update users set password_hash = $2 where id = $1 returning `+userColumns, l.UserID, passwordHash)
		if err != nil {
			return err
		}
		if u, err = pgx.CollectExactlyOneRow(rows, scanUser); err != nil {
			return err
		}
		_, err = t.Exec(ctx, `delete from console_sessions where user_id = $1`, l.UserID)
		return err
	})
	return u, err
}

// SignUp makes a person and their tenant.
func (s *Store) SignUp(ctx context.Context, up tenants.SignUp) (made tenants.User, err error) {
	email, err := tenants.NormalizeEmail(up.User.Email)
	if err != nil {
		return made, err
	}
	up.User.Email = email
	tenant := tenants.NewID()
	err = s.In(ctx, tenant, func(in tenants.Tx) error {
		t := in.(*tx)
		if up.Link != nil {
			if err := t.redeem(ctx, up); err != nil {
				return err
			}
		}
		rows, err := t.db.Query(ctx, insertUser, userValues(up.User)...)
		if err == nil {
			made, err = pgx.CollectExactlyOneRow(rows, scanUser)
		}
		if err != nil {
			return failure(err, "create user")
		}
		if err := t.run(ctx, "create tenant", `insert into tenants (id, name) values ($1, $2)`, tenant, up.Tenant); err != nil {
			return err
		}
		return t.AddMember(ctx, made.ID, tenants.Owner)
	})
	return made, err
}

// redeem uses the link of a sign-up up.
func (t *tx) redeem(ctx context.Context, up tenants.SignUp) error {
	l, err := takeLink(ctx, t.db, up.Link, up.Now, tenants.LinkInvite, tenants.LinkOperator)
	if err != nil {
		return failure(err, "link")
	}
	if l.Kind == tenants.LinkInvite && l.Email != up.User.Email {
		return fmt.Errorf("invitation for another address: %w", tenants.ErrNotFound)
	}
	if l.Kind == tenants.LinkOperator {
		var someone bool
		if err := t.db.QueryRow(ctx, `select exists (select from users)`).Scan(&someone); err != nil {
			return failure(err, "look for people")
		}
		if someone {
			return fmt.Errorf("the installation has people already: %w", tenants.ErrConflict)
		}
	}
	return nil
}

// Users lists people by address, for operators.
func (s *Store) Users(ctx context.Context, after string, limit int) ([]tenants.User, error) {
	rows, err := s.service.Query(ctx, `select `+userColumns+` from users where email > $1 order by email limit $2`, after, page(limit))
	if err != nil {
		return nil, failure(err, "list users")
	}
	all, err := pgx.CollectRows(rows, scanUser)
	if err != nil {
		return nil, failure(err, "list users")
	}
	return all, nil
}

// do runs one statement of the installation that may touch no row.
func (s *Store) do(ctx context.Context, what, sql string, args ...any) error {
	if _, err := s.service.Exec(ctx, sql, args...); err != nil {
		return failure(err, "%s", what)
	}
	return nil
}

// together runs several in one transaction.
func (s *Store) together(ctx context.Context, what string, fn func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.service, fn); err != nil {
		return failure(err, "%s", what)
	}
	return nil
}
