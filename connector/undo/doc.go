// Package undo takes back what agents did to documents, as far as nobody else
// changed it since: it chooses restore points, judges each against the present,
// tells what would happen, and has the guard do it.
//
// It knows no tunnel and no tools; what the caller may see and change is decided by
// the guard session it is given.
package undo
