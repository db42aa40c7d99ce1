// Package token makes and checks the access tokens that agents present: signed
// JWTs of the RFC 9068 kind, the keys behind them, and the installation's list
// of what has been taken back.
//
// It answers one question: is this string a token that we issued, for this
// resource, still in force? It must not know what the bearer may do (admission),
// how the token came to be given out (oauth) or how it travels (mcpserver).
package token
