// Package av is the model of a SiYuan database ("attribute view"): the JSON of
// data/storage/av/<id>.json, what adding columns, rows and values does to it,
// and how a table view of it is rendered. It is pure: ids, times and the text
// of bound blocks come from the caller.
package av
