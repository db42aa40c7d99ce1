// Package proof holds the two proofs that no action can get around: that hidden
// notebooks interfere with nothing, and that every action gives exactly what
// its level in the contract says. Both walk the catalogue, so an action is in
// them by being in the contract; arguments are generated from its parameters.
//
// # Non-interference
//
// Several sample kernels are built alike: same ids, clock and random numbers,
// and a readable notebook with every kind of link into a hidden one. Then the
// hidden notebook of each is given another fate: it stays, it is rewritten, its
// documents are deleted, it is closed, it is removed. Whatever a caller without
// rights in it asks, in the five worlds the results, errors, progress messages
// and log lines must be byte-equal. Writes are asked too, and must leave the
// hidden files alone.
//
// Two differences are meant to be, about databases and about files that hidden
// notebooks share with readable ones; see acceptedDifferences. A test demands
// that what the sample kernel shows of them is still there.
//
// Normalised are only the durations and, because a real kernel shuffles them on
// every call, the order of attributes. The number of kernel calls, which goes to
// the broker with every result, is compared where a call names its targets:
// asking for something hidden must take what asking for nothing takes. It is a
// duration like others where the kernel searches, because what it finds and the
// guard drops again differs: a kernel writes the titles of hidden notes into the
// dynamic references of readable ones. Agents see neither.
//
// # Environment
//
// PROOF_SEEDS=n runs n seeds of fuzzed arguments instead of one. With
// SIYUAN_API_URL and SIYUAN_TOKEN the non-interference proof also runs against
// that SiYuan, in notebooks of its own that it removes again.
//
// The package consists of tests; nothing links it. It knows the contract, the
// executor and the kernel's HTTP interface, and nothing of how handlers or the
// guard come to their answers.
package proof
