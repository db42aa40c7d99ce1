// Package siyuanbroker is the root of the module. It holds what is written for
// people and shipped inside the programs too, and no code.
package siyuanbroker

import _ "embed"

// Changelog is CHANGELOG.md, in the form of Keep a Changelog.
//
//go:embed CHANGELOG.md
var Changelog string
