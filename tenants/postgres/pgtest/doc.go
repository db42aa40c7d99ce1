// Package pgtest gives every test its own migrated database, in about 50 ms.
//
// A test binary starts one private server on first use and ends it in Main. With
// TEST_DATABASE_URL, a superuser's address, it uses that server instead; with
// TEST_DATABASE_POOLER (host:port, or a socket folder) too, service and recorder connect through a
// transaction-mode pooler that stands before the same server.
//
// It is for tests only and must not know what they test.
package pgtest
