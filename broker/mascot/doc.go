// Package mascot is the cat: its coins, which all calls of a tenant's agents earn,
// and its shop. It answers the calls of the mascot tool, so that they never leave
// the broker. It must not know how calls reach a home, nor protocols.
package mascot
