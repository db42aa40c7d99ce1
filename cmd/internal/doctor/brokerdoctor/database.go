package brokerdoctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/tenants/postgres"
	"siyuan-broker/tenants/postgres/pglocal"
)

// programs looks for the server programs of the broker's own PostgreSQL.
func (d *Doctor) programs(ctx context.Context) doctor.Finding {
	if d.Config.DatabaseURL != "" {
		return doctor.Nothing("the database is elsewhere")
	}
	major, err := pglocal.Check(ctx, pglocal.Options{DataDir: d.Config.Data})
	if err != nil {
		return doctor.Misconfigured("", "%v", err)
	}
	return doctor.Good("PostgreSQL %d is installed and fits the data folder", major)
}

func (d *Doctor) server(ctx context.Context) doctor.Finding {
	in, _, err := d.inspector()
	if err != nil {
		return doctor.Nothing("%v", err)
	}
	s, err := in.Server(ctx)
	if err != nil && d.Config.DatabaseURL == "" {
		return ownServerAway(err)
	}
	if err != nil {
		return refusedBy("DATABASE_URL", err)
	}
	if s.Major < pglocal.MinMajor {
		return doctor.Bad("update the server", "PostgreSQL %s is too old: %d or newer is needed", s.Version, pglocal.MinMajor)
	}
	return doctor.Good("PostgreSQL %s answers", s.Version)
}

// ownServerAway says why the broker's own PostgreSQL does not let us in. It runs
// only while the broker does.
func ownServerAway(err error) doctor.Finding {
	if errors.Is(err, fs.ErrPermission) {
		return doctor.Bad("run doctor as the user the broker runs as, or as root", "the broker's own PostgreSQL lets in only the user it runs as")
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return doctor.Nothing("the broker's own PostgreSQL is not running: it runs while the broker does (`siyuan-broker up` or `serve`)")
	}
	return doctor.Bad("", "the broker's own PostgreSQL does not answer: %v", err)
}

// refusedBy says why a database address does not work, without repeating what
// may be a password.
func refusedBy(setting string, err error) doctor.Finding {
	var pe *pgconn.PgError
	switch {
	case errors.Is(err, postgres.ErrAddress):
		return doctor.Misconfigured("", "%s: %v", setting, err)
	case errors.As(err, &pe):
		next := map[string]string{
			"28P01": "correct the password in " + setting + "; `siyuan-broker migrate` with DATABASE_ADMIN_URL sets it",
			"28000": "pg_hba.conf of the server must let this role in from here",
			"3D000": "run `siyuan-broker migrate` with DATABASE_ADMIN_URL: it makes the database",
			"53300": "raise max_connections of the server, or put a pooler in front",
			"57P03": "the server is starting or stopping; try again",
		}[pe.Code]
		f := doctor.Bad(next, "%s: the server refuses: %s", setting, pe.Message)
		f.Config = strings.HasPrefix(pe.Code, "28") || pe.Code == "3D000"
		return f
	}
	f := doctor.Unreachable(err)
	f.Found = setting + ": " + f.Found
	return f
}

func (d *Doctor) clock(ctx context.Context) doctor.Finding {
	in, _, err := d.inspector()
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	s, err := in.Server(ctx)
	if err != nil {
		return doctor.Bad("", "%v", err)
	}
	return doctor.Skew("the database's", s.Skew, s.Within)
}
