package policy

import _ "embed"

// Example is a commented policy file; it parses, and docs and `config` show it.
//
//go:embed testdata/policy.example.yaml
var Example string
