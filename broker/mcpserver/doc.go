// Package mcpserver is the door for agents: the /mcp endpoint in all protocol
// revisions, from the bearer token to the tool call handed to the relay.
//
// It must not know how permissions are decided (admission), how calls reach a
// home (relay), how tokens are made (token, oauth) or what tools exist
// (contract/tools); it joins them. It holds no note contents beyond the call in
// hand.
package mcpserver
