// Package tenants is the domain of the hosted half: who owns notes (tenants and
// their instances), who may work in them (members, teams, agents), what they may
// do there (levels, shares, toggles, switches), and what has been taken back
// (revocations). It also names the store these live in.
//
// It does no I/O and must not know how the store works, how a caller proved who
// it is, or how a call reaches home. Deciding what a principal may do is
// admission's job; this package only hands over the facts, as one Snapshot.
package tenants
