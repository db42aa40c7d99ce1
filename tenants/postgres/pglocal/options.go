package pglocal

import (
	"fmt"
	"log/slog"
)

// Superuser is the role that initdb makes.
const Superuser = "postgres"

// Options say where the server lives.
type Options struct {
	DataDir string       // made when missing
	Logger  *slog.Logger // gets the server's log; nil: discarded
	BinDirs []string     // where to look for the programs; empty: PATH and the usual places
	// Disposable gives up durability for speed: for tests, whose data nobody
	// wants back.
	Disposable bool
	// Settings are further server parameters, e.g. {"max_connections": "200"}.
	Settings map[string]string
}

// LockedError means that another process runs a server on the data folder.
type LockedError struct {
	DataDir string
	Holder  string // process id, as far as known
}

// Error is written for the person who starts the broker.
func (e *LockedError) Error() string {
	return fmt.Sprintf("the data folder %s is in use by another broker (process %s): stop that one, or choose another data folder", e.DataDir, e.Holder)
}
