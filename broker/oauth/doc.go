// Package oauth lets agents in: the authorization server that MCP clients talk
// to (OAuth 2.1 with PKCE, device codes, registration by request or by a
// metadata document), the page on which a person says what a client may do, and
// the pages on which agents are listed, connected and taken back.
//
// What comes out is an agent in the tenant's store and tokens that name it; what
// the agent may do from then on is admission's to decide. This package must not
// know how people sign in, how tokens are signed, or anything of MCP.
package oauth
