// Package pglocal runs a private PostgreSQL server inside a data folder, for
// installations that bring none. The server listens on a Unix socket in a
// private folder only, ends with this process, survives any kind of death of
// either, and is never shared by two processes.
//
// It finds the installed PostgreSQL programs but installs nothing, and it must
// not know what the databases are for: roles and schema are the caller's.
//
// The data folder holds
//
//	postgres.lock   flock held as long as the server may run
//	postgres/       the cluster; never deleted by this package
//	postgres.new/   a cluster being made; renamed when complete
//	run/            the socket, unless the path is too long for one
package pglocal
