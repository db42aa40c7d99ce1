package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"siyuan-broker/migrations"
)

// ErrAddress means that a database address cannot be read. It is not quoted: it
// may hold a password.
var ErrAddress = errors.New("the database address must have the form postgres://user:password@host:port/database")

// Inspector looks at a database without changing it, for doctor. Each method
// opens its own connection: the point is to find out what cannot be opened.
type Inspector struct {
	ServiceDSN, RecorderDSN string
	OwnerDSN                string // for Schema
	Now                     func() time.Time
}

// ServerInfo is what a server says about itself.
type ServerInfo struct {
	Version string        // such as "15.18"
	Major   int           // such as 15
	Skew    time.Duration // this machine's clock minus the server's, uncertain by Within
	Within  time.Duration
}

// Server asks the server for its version and its clock, as the service.
func (i Inspector) Server(ctx context.Context) (s ServerInfo, err error) {
	err = i.as(ctx, i.ServiceDSN, func(c *pgx.Conn) error {
		var num string
		var at time.Time
		before := i.Now()
		err := c.QueryRow(ctx, `select split_part(current_setting('server_version'), ' ', 1), current_setting('server_version_num'), clock_timestamp()`).
			Scan(&s.Version, &num, &at)
		if err != nil {
			return err
		}
		s.Within = i.Now().Sub(before) / 2
		s.Skew = before.Add(s.Within).Sub(at)
		n, err := strconv.Atoi(num)
		s.Major = n / 10000
		return err
	})
	return s, err
}

// Isolation lists what voids row-level security, each in a sentence with the
// command that puts it right. nil: the roles are as they must be.
func (i Inspector) Isolation(ctx context.Context) (problems []string, err error) {
	err = i.as(ctx, i.ServiceDSN, func(c *pgx.Conn) error {
		problems, err = isolationOf(ctx, c)
		return err
	})
	return problems, err
}

func isolationOf(ctx context.Context, c *pgx.Conn) (problems []string, err error) {
	var role string
	var super, bypass bool
	var owned, open []string
	var visible int
	err = c.QueryRow(ctx, `
		select current_user::text, r.rolsuper, r.rolbypassrls,
			array(select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
				and pg_has_role(current_user, relowner, 'member') order by 1),
			array(select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
				where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
				and not (c.relrowsecurity and c.relforcerowsecurity)
				and (has_table_privilege(c.oid, 'select') or has_table_privilege(c.oid, 'insert')) order by 1)
		from pg_roles r where r.rolname = current_user`).Scan(&role, &super, &bypass, &owned, &open)
	if err != nil {
		return nil, err
	}
	if super || bypass {
		problems = append(problems, fmt.Sprintf("the role %s sees every tenant's rows: an administrator can run: alter role %s nosuperuser nobypassrls", role, quote(role)))
	}
	if len(owned) > 0 && !super {
		problems = append(problems, fmt.Sprintf("the role %s owns %s: give DATABASE_URL the service role's address, not the owner's", role, strings.Join(owned, ", ")))
	}
	if len(open) > 0 {
		problems = append(problems, fmt.Sprintf("row-level security is not forced on %s: run `siyuan-broker migrate`", strings.Join(open, ", ")))
	}
	if err := c.QueryRow(ctx, `select count(*) from instances`).Scan(&visible); err != nil {
		return nil, fmt.Errorf("count instances: %w", err)
	}
	if visible > 0 && len(problems) == 0 {
		problems = append(problems, fmt.Sprintf("the role %s sees %d instances without saying for which tenant: run `siyuan-broker migrate`", role, visible))
	}
	return problems, nil
}

// Recorder lists what is wrong with the role that writes call records: it must be
// able to insert them, to read nothing, and to pass row-level security.
func (i Inspector) Recorder(ctx context.Context) (problems []string, err error) {
	err = i.as(ctx, i.RecorderDSN, func(c *pgx.Conn) error {
		var role string
		var super, bypass, inserts bool
		var readable []string
		err := c.QueryRow(ctx, `
			select current_user::text, r.rolsuper, r.rolbypassrls, has_table_privilege('calls', 'insert'),
				array(select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
					and has_table_privilege(oid, 'select') order by 1)
			from pg_roles r where r.rolname = current_user`).Scan(&role, &super, &bypass, &inserts, &readable)
		if err != nil {
			return err
		}
		switch {
		case super:
			problems = append(problems, fmt.Sprintf("the role %s is a superuser: give DATABASE_RECORDER_URL the recorder role's address", role))
		case len(readable) > 0:
			problems = append(problems, fmt.Sprintf("the role %s may read %s: run `siyuan-broker migrate`, or give DATABASE_RECORDER_URL the recorder role's address", role, strings.Join(readable, ", ")))
		}
		if !bypass && !super {
			problems = append(problems, fmt.Sprintf("the role %s cannot write call records: an administrator can run: alter role %s bypassrls", role, quote(role)))
		}
		if !inserts {
			problems = append(problems, fmt.Sprintf("the role %s may not insert call records: run `siyuan-broker migrate`", role))
		}
		return nil
	})
	return problems, err
}

// Schema compares the database's schema with the one of this program. The
// service may not read the version, so it is asked for by OwnerDSN. Version 0 is
// a database that was never migrated.
func (i Inspector) Schema(ctx context.Context) (version, newest int64, err error) {
	if newest, err = newestMigration(); err != nil {
		return 0, 0, err
	}
	err = i.as(ctx, i.OwnerDSN, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `select coalesce(max(version_id), 0) from goose_db_version where is_applied`).Scan(&version)
	})
	if isCode(err, "42P01") { // undefined_table
		return 0, newest, nil
	}
	return version, newest, err
}

func newestMigration() (newest int64, err error) {
	files, err := fs.Glob(migrations.Files, "*.sql")
	for _, f := range files {
		number, _, _ := strings.Cut(f, "_")
		n, perr := strconv.ParseInt(number, 10, 64)
		err = errors.Join(err, perr)
		newest = max(newest, n)
	}
	return newest, err
}

func (i Inspector) as(ctx context.Context, dsn string, fn func(*pgx.Conn) error) error {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		return ErrAddress
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return fn(conn)
}
