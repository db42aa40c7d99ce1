// Package doctor runs the probes of `siyuan-broker doctor` and `siyuan-connector
// doctor` and shows what they found. A probe is a small value with a result; the
// packages below make them. This one must not know what is probed.
package doctor
