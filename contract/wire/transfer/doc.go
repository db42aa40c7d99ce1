// Package transfer runs the two ends of a STREAM on a multiplexed stream: Caller
// at the end that asked for the transfer, Served at the end that carries it out.
// Bodies are handed on frame by frame, each waiting for its reader, so memory
// stays constant and a slow end slows the other down. It must not know sessions,
// pools, nodes or what is transferred.
package transfer
