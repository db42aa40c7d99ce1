// Package connector is the home half: it dials out to a broker and carries out
// aggregated actions beside SiYuan, as far as the home owner's policy and the
// caller's grant allow. Everything is wired top to bottom in New. It must not
// import the broker.
package connector
