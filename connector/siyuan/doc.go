// Package siyuan is the typed client of the SiYuan kernel's HTTP API (3.7).
//
// It is the one place for every trap of that API: request bodies are always
// complete, answers are checked for shape, a null where data is due is an
// error and not a success, an id that is not an id never leaves the process,
// reads are retried and writes are not, every answer is bounded in size and
// time, and a read from the lagging index first waits for our own writes.
// Kernel messages are localized text that may name files of the machine, so no
// decision is ever made on them and [Error.Error] never prints them.
//
// The API is split by type: a [Reader] cannot change anything, a [Writer] can.
//
// The package knows nothing about grants, levels, actions or agents. It trusts
// its caller to have decided who may see what; only the guard, the doctor and
// the identity probe may import it.
package siyuan
