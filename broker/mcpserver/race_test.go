//go:build race

package mcpserver

// raceShare is what pools forget under the race detector, which drops a part of
// what is put into them.
const raceShare = 0.25
