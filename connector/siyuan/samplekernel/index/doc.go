// Package index is the SQLite side of the sample kernel: the tables a real
// SiYuan kernel keeps (blocks, spans, refs, attributes, assets and the FTS5
// table over blocks), filled from document trees, and the way it runs
// statements people send to /api/query/sql, oddities included.
//
// It knows nothing of HTTP, files or time: the caller decides when a document
// is indexed, and so how far the index lags behind.
package index
