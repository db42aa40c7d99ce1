// Package redisnet is cluster.Net over Redis. Redis holds nothing that could not
// be lost: routes are announced again, counters start anew, events say when some
// were missed. Every exchange has a small budget; one that fails marks Redis as
// away, after which callers are answered at once and a single goroutine asks
// until it is back.
//
// Keys that hold a tenant's data start with the tenant, after the prefix of the
// installation. The package must not know what routes, limits and events are
// for.
package redisnet
