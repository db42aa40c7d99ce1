//go:build !race

package mcpserver

const raceShare = 0
