package tools

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/contract"
)

// Bounds of the leases of strict writes.
const (
	leaseLife     = 10 * time.Minute
	leasesOfScope = 4
	leasesInAll   = 1024
	shortestHash  = 4 // digits
)

// lease is a state hash given out by validateOnly. Its scope is one call of one
// principal: action, arguments and nothing else.
type lease struct {
	scope   string
	hash    string // 64 hexadecimal digits
	expires time.Time
}

// leases are in memory: after a restart a write is validated again.
type leases struct {
	mu  sync.Mutex
	all []lease // the oldest first
}

// give makes a lease, or renews the one of that state, and returns the shortest
// beginning of the hash that tells it from the others of its scope.
func (ls *leases) give(scope, hash string, now time.Time) (prefix string, expires time.Time) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.expire(now)
	hash = strings.TrimPrefix(hash, guard.HashPrefix)
	ls.all = slices.DeleteFunc(ls.all, func(l lease) bool { return l.scope == scope && l.hash == hash })
	if mine := ls.of(scope); len(mine) >= leasesOfScope {
		ls.remove(mine[0])
	}
	if len(ls.all) >= leasesInAll {
		ls.all = slices.Delete(ls.all, 0, 1)
	}
	n := shortestHash
	for _, other := range ls.of(scope) {
		n = max(n, 1+common(hash, other.hash))
	}
	l := lease{scope, hash, now.Add(leaseLife)}
	ls.all = append(ls.all, l)
	return hash[:n], l.expires
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return min(n, len(a)-1)
}

var hashForm = regexp.MustCompile(`^(?:sha256:v1:)?[a-f0-9]{4,64}$`)

// find is the lease that a caller's hash means.
func (ls *leases) find(scope, given string, now time.Time) (lease, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.expire(now)
	given = strings.ToLower(given)
	if !hashForm.MatchString(given) {
		return lease{}, contract.Fail(contract.LeaseInvalid, "The hash must have 4 to 64 hexadecimal digits, with or without sha256:v1: before them.")
	}
	given = strings.TrimPrefix(given, guard.HashPrefix)
	var fits []lease
	for _, l := range ls.of(scope) {
		if strings.HasPrefix(l.hash, given) {
			fits = append(fits, l)
		}
	}
	switch len(fits) {
	case 0:
		return lease{}, contract.Fail(contract.LeaseInvalid, "No validation of this call that is still good has that hash; one is good for %d minutes and one write.", int(leaseLife.Minutes()))
	case 1:
		return fits[0], nil
	}
	least := 0
	for i, l := range fits {
		for _, other := range fits[:i] {
			least = max(least, 1+common(l.hash, other.hash))
		}
	}
	return lease{}, contract.Fail(contract.AmbiguousHash, "%d validations of this call begin with that hash.", len(fits)).
		WithDetail(map[string]any{"minimum_required_length": least})
}

// drop uses a lease up.
func (ls *leases) drop(l lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.remove(l)
}

func (ls *leases) remove(l lease) {
	ls.all = slices.DeleteFunc(ls.all, func(x lease) bool { return x.scope == l.scope && x.hash == l.hash })
}

func (ls *leases) of(scope string) []lease {
	var mine []lease
	for _, l := range ls.all {
		if l.scope == scope {
			mine = append(mine, l)
		}
	}
	return mine
}

func (ls *leases) expire(now time.Time) {
	ls.all = slices.DeleteFunc(ls.all, func(l lease) bool { return !now.Before(l.expires) })
}
