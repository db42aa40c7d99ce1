package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Role is a PostgreSQL role of ours. Without a password it can only be used
// where the server trusts the connection, as on the private socket of pglocal.
type Role struct {
	Name     string
	Password string
}

// Roles are the three roles. Names are cluster-wide: two installations in one
// cluster use different prefixes.
type Roles struct {
	Owner    Role
	Service  Role
	Recorder Role
}

// RolesNamed gives the roles PREFIX_owner, PREFIX_service and PREFIX_recorder
// without passwords. The usual prefix is "siyuan".
func RolesNamed(prefix string) Roles {
	return Roles{
		Owner:    Role{Name: prefix + "_owner"},
		Service:  Role{Name: prefix + "_service"},
		Recorder: Role{Name: prefix + "_recorder"},
	}
}

// DSN is base, a postgres:// address, for this role and another database.
func (r Role) DSN(base, database string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", errors.New("the database address must have the form postgres://user:password@host:port/database") // not quoted: it may hold a password
	}
	u.Path = "/" + database
	u.User = url.User(r.Name)
	if r.Password != "" {
		u.User = url.UserPassword(r.Name, r.Password)
	}
	q := u.Query()
	q.Del("user") // these would win over the ones above
	q.Del("password")
	q.Del("dbname")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// SQL is what an administrator runs where Bootstrap may not: it makes the roles
// and the database. Passwords are left out.
func (r Roles) SQL(database string) string {
	var b strings.Builder
	for _, s := range r.specs() {
		fmt.Fprintf(&b, "create role %s login %s;\n", quote(s.role.Name), s.attributes)
	}
	fmt.Fprintf(&b, "create database %s owner %s;", quote(database), quote(r.Owner.Name))
	return b.String()
}

type roleSpec struct {
	role       Role
	attributes string
	bypassRLS  bool
}

func (r Roles) specs() []roleSpec {
	const plain = "nosuperuser nocreatedb nocreaterole noreplication "
	return []roleSpec{
		{r.Owner, plain + "nobypassrls", false},
		{r.Service, plain + "nobypassrls", false},
		{r.Recorder, plain + "bypassrls", true}, // COPY FROM is refused under row-level security
	}
}

// Bootstrap makes what is missing of roles and database, connected as a
// superuser to any database of the cluster. It may run again, and at the same
// time as another Bootstrap; passwords are set each time when given.
func Bootstrap(ctx context.Context, adminDSN string, roles Roles, database string) error {
	conn, err := pgx.Connect(ctx, adminDSN)
	if err != nil {
		return fmt.Errorf("connect to prepare the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, s := range roles.specs() {
		if err := ensureRole(ctx, conn, s); err != nil {
			return fmt.Errorf("role %s: %w; an administrator can run:\n%s", s.role.Name, err, roles.SQL(database))
		}
	}
	var exists bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, database).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", database, err)
	}
	if exists {
		return nil
	}
	_, err = conn.Exec(ctx, "create database "+quote(database)+" owner "+quote(roles.Owner.Name)+" encoding 'UTF8' template template0")
	if err != nil && !isCode(err, "42P04", "23505") { // made meanwhile by another start
		return fmt.Errorf("create database %s: %w", database, err)
	}
	return nil
}

func ensureRole(ctx context.Context, conn *pgx.Conn, s roleSpec) error {
	_, err := conn.Exec(ctx, "create role "+quote(s.role.Name)+" login "+s.attributes)
	if err != nil && !isCode(err, "42710", "23505") { // exists, or was made meanwhile
		return err
	}
	if s.role.Password == "" {
		return nil
	}
	// ALTER ROLE takes no parameters; quote_literal makes the text safe.
	var literal string
	if err := conn.QueryRow(ctx, `select quote_literal($1::text)`, s.role.Password).Scan(&literal); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "alter role "+quote(s.role.Name)+" password "+literal); err != nil {
		return errors.New("set password: refused") // the server's text could repeat the statement
	}
	return nil
}

// checkRoles refuses roles that would make row-level security void.
func checkRoles(ctx context.Context, conn *pgx.Conn, roles Roles) error {
	for _, s := range roles.specs() {
		var super, bypass bool
		err := conn.QueryRow(ctx, `select rolsuper, rolbypassrls from pg_roles where rolname = $1`, s.role.Name).Scan(&super, &bypass)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("the database has no role %s: an administrator can run:\n%s", s.role.Name, roles.SQL(conn.Config().Database))
		}
		if err != nil {
			return fmt.Errorf("look up role %s: %w", s.role.Name, err)
		}
		if super || bypass != s.bypassRLS {
			return fmt.Errorf("role %s must be %s: an administrator can run: alter role %s %s",
				s.role.Name, s.attributes, quote(s.role.Name), s.attributes)
		}
	}
	for _, name := range []string{roles.Service.Name, roles.Recorder.Name} {
		var member bool
		if err := conn.QueryRow(ctx, `select pg_has_role($1, $2, 'member')`, name, roles.Owner.Name).Scan(&member); err != nil {
			return fmt.Errorf("look up role %s: %w", name, err)
		}
		if member {
			return fmt.Errorf("role %s must not be a member of %s: an administrator can run: revoke %s from %s",
				name, roles.Owner.Name, quote(roles.Owner.Name), quote(name))
		}
	}
	return nil
}

func quote(identifier string) string { return pgx.Identifier{identifier}.Sanitize() }

func isCode(err error, codes ...string) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return false
	}
	for _, c := range codes {
		if pe.Code == c {
			return true
		}
	}
	return false
}
