// Package ledger remembers writes, so that a request that is sent again is not
// executed again, also after the connector was killed. It is a small SQLite file
// in the connector's data folder: one row per request that reached the kernel,
// one per kernel write of it, each on disk before the kernel is asked.
//
// It holds ids, digests and times, and the answer of a finished write encrypted
// with a key that is made from the request's own arguments: who has the file but
// not the arguments cannot read it, and who repeats the request has them.
//
// It knows nothing of the kernel. Whether a step happened is for package guard to
// see; what follows from that is for package tools.
package ledger
