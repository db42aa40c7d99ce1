package oauth

import (
	"slices"
	"strings"

	"siyuan-broker/contract"
)

// The scopes. They say in OAuth's words how high a ceiling a client would like;
// the person decides, and the answer tells what was given.
const (
	ScopeRead   = "notes:read"
	ScopeWrite  = "notes:write"
	ScopeDelete = "notes:delete"

	// OfflineAccess is what some clients ask for to get refresh tokens, which
	// everybody gets.
	OfflineAccess = "offline_access"
)

var scopeLevels = []struct {
	scope string
	level contract.Level
}{{ScopeRead, contract.Read}, {ScopeWrite, contract.ReadWrite}, {ScopeDelete, contract.ReadWriteDelete}}

// Scopes are all scopes that mean something, in ascending order.
func Scopes() []string { return strings.Fields(scopeOf(contract.ReadWriteDelete)) }

// scopeOf is the scope of a token under a ceiling.
func scopeOf(ceiling contract.Level) string {
	var all []string
	for _, s := range scopeLevels {
		if ceiling.Allows(s.level) {
			all = append(all, s.scope)
		}
	}
	return strings.Join(all, " ")
}

// askedFor is the highest ceiling that a requested scope covers. A client that
// names none of our scopes leaves it to the person.
func askedFor(scope string) contract.Level {
	named := strings.Fields(scope)
	highest := contract.None
	for _, s := range scopeLevels {
		if slices.Contains(named, s.scope) {
			highest = s.level
		}
	}
	if highest == contract.None {
		return contract.ReadWriteDelete
	}
	return highest
}
