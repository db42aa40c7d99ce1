// Package postgres keeps the domain of package tenants in PostgreSQL 15 or newer.
//
// Three roles share the work. The owner makes the schema and does nothing else.
// The service owns nothing and sees one tenant at a time, enforced by row-level
// security that even the owner is under. The recorder may add call records and
// read nothing. Start-up is Bootstrap (as a superuser, where the roles do not
// exist yet), Migrate (as the owner, on a direct connection), Open.
//
// Everything the Store does works behind a transaction-mode pooler: no prepared
// statements, no session state, settings local to a transaction. Only migrations
// and Listen need a direct connection.
//
// The package must not know who calls it or why: permissions of people are
// checked above, in admission and the console.
package postgres
