package pglocal

import (
	"context"
	"errors"
)

// Server cannot run on Windows.
type Server struct{}

// Start says that Windows needs a server of its own: the private socket folder
// and the death signal that keep this one safe do not exist there.
func Start(context.Context, Options) (*Server, error) {
	return nil, errors.New("the broker runs its own PostgreSQL on Linux, macOS and the BSDs only: on Windows set DATABASE_URL to a PostgreSQL server")
}

// Running says the same.
func Running(string) (dsn func(role, database string) string, err error) {
	_, err = Start(context.Background(), Options{})
	return nil, err
}

// DSN is empty.
func (*Server) DSN(role, database string) string { return "" }

// Done is nil: there is nothing to wait for.
func (*Server) Done() <-chan struct{} { return nil }

// PID is 0.
func (*Server) PID() int { return 0 }

// Stop does nothing.
func (*Server) Stop(context.Context) error { return nil }

// Check says the same as Start.
func Check(ctx context.Context, o Options) (major int, err error) {
	_, err = Start(ctx, o)
	return 0, err
}
