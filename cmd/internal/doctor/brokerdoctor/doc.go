// Package brokerdoctor makes the probes of `siyuan-broker doctor`: configuration,
// data folder, database and roles, keys, clock, Redis, and the way in from
// outside. Its probes change nothing: they start no server, migrate no schema
// and make no key.
package brokerdoctor
