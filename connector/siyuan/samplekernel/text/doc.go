// Package text turns SiYuan's three spellings of a block into each other:
// kramdown (what people and agents write), block DOM (what transactions carry)
// and the JSON tree of a .sy file. It wraps github.com/88250/lute, the library
// the real kernel uses as well, and hides what bites about it: one engine per
// call (methods change its options), renderers that take the tree apart (they
// only ever get copies), and panics on malformed ids (they become errors).
//
// It knows nothing of notebooks, paths, indexes or HTTP.
package text
