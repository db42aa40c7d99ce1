// Package tools is the catalogue: every tool and action this system offers, as
// typed values. One entry yields the JSON Schema, the validation, the
// tools/list descriptor, help, the CLI flags, the console matrix and the
// permission tests, so none of them can disagree.
//
// An action is added by one entry in the file of its tool and one handler in
// connector/tools/<tool>; a test names what is missing. The package knows
// nothing of SiYuan's HTTP API, of transports or of tenants.
package tools
