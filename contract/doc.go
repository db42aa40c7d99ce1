// Package contract holds what broker and connector must agree on: the level
// lattice, the grant, the call envelope and the error vocabulary. It is pure
// (no I/O, no clock of its own) and imports nothing else of the project, so
// that both halves can be built and reviewed without each other.
package contract
