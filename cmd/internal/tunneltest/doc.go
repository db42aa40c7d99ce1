// Package tunneltest holds the tests that need both ends of the tunnel: the real
// relay and the real connector over real TCP. Nothing imports it, and broker and
// connector still do not import each other.
package tunneltest
