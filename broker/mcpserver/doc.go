// Package mcpserver is the door for agents: the /mcp endpoint in all protocol
// revisions, from the bearer token to the tool call handed to the relay.
//
// Sessions of the older revisions are its own, not the SDK's: their signed ids
// say all that is needed to go on with them on any node and after a restart, so
// what is kept in memory is a cache. Only what is in flight belongs to one
// node: the answer to a question and the cancelling of a call are handed to it.
//
// It must not know how permissions are decided (admission), how calls reach a
// home (relay), how tokens are made (token, oauth) or what tools exist
// (contract/tools); it joins them. It holds no note contents beyond the call in
// hand.
package mcpserver
