package system

import _ "embed"

// ours is CHANGELOG.md of the module, which cannot be embedded from here; a test
// keeps the copy true.
//
//go:embed changelog.md
var ours string
