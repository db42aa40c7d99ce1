// Package home watches the SiYuan that a connector works for: whether it
// answers, whether it is the one that was pinned, and which notebooks it has.
// Calls pass only while it is. The package must not know tunnels or tools.
package home
