//go:build unix

package pglocal

import (
	"fmt"
	"net/url"
	"path/filepath"
)

// Running addresses the server that another process runs on the data folder;
// Start said LockedError. Only root and the server's own account are let in.
func Running(dataDir string) (dsn func(role, database string) string, err error) {
	dir, err := filepath.Abs(dataDir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	socket := socketDir(dir)
	return func(role, database string) string { return address(socket, role, database) }, nil
}

func address(socketDir, role, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database}
	u.RawQuery = url.Values{"host": {socketDir}, "port": {"5432"}, "sslmode": {"disable"}}.Encode()
	return u.String()
}
