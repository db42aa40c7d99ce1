// Package console is the web pages for people: getting in, their account and
// their homes. Handlers decode, ask and render; what is allowed is decided by
// broker/people and the store. It must not know how tunnels or agents work: what
// it shows of them it is given.
package console
