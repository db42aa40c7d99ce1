// Package migrations holds the database schema as numbered goose files, and the
// grants that are applied after them. It only embeds text: running it is the
// store's job, and it must not know how.
//
// Rules for a new file: every table of a tenant's data has tenant_id, a primary
// key that starts with it, and `select isolate('table')`; a table that decides
// about a snapshot gets the policy trigger; nothing names a role, grants.sql
// does that. Never change a file that was released.
package migrations

import "embed"

// Files are the numbered migrations.
//
//go:embed *.sql
var Files embed.FS

// Grants gives the service and the recorder their rights, by the names in the
// settings siyuan.service and siyuan.recorder. It runs after every migration
// and takes away whatever it does not name.
//
//go:embed grants/grants.sql
var Grants string
