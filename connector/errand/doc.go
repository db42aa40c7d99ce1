// Package errand lets a command of the home owner have something done by the
// connector that runs on the same data folder: the command leaves an errand there as
// a file, the connector answers by another. Who may write to that folder may ask, and
// nobody else can; there is no socket and no way in from the broker.
//
// An errand that is begun is renamed first, so it is begun at most once, whatever
// ends whenever; one that is not begun within Life never is. The package does not know
// what errands say or do.
package errand
