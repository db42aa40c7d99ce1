// Package consent keeps what people agreed to. A question is about one call: of
// one agent, with these arguments, under these rules. It is answered by a sealed
// state that a client sends back (a form in the client, or the weaker preview), or
// by a person in the console, for which a row waits in the store. Either is good
// once, on all nodes together.
//
// The package knows neither MCP nor pages, and nothing of how a call is carried
// out.
package consent
