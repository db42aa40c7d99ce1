// Package settings fills a program's typed configuration from its defaults, one
// YAML file and the environment, in that order. The struct is the documentation:
// every field names its key, its environment variable, its default, its meaning
// and whether it is secret. Unknown keys and variables are errors, because a
// misspelt setting that is silently ignored is worse than a program that does
// not start.
package settings
