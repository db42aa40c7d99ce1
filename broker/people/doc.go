// Package people is how people get in and stay in: passwords, the installation's
// identity provider, one-time links, sign-up and server-side sessions. It asks
// the store and sets cookies; it must not know what pages look like, nor agents
// and connectors, who have credentials of their own.
package people
