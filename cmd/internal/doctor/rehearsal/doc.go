// Package rehearsal is the part of `siyuan-broker doctor URL` that signs in: it
// plays what the usual agents do from their first 401 to the end of their access,
// with a test person who agrees in the real pages, and looks at what only a
// request with a token can show (streams, headers). It gives agents the least
// there is and takes back what it made. It knows the broker by its address
// alone: no configuration, no database.
package rehearsal
