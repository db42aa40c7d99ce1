// Package urldoctor makes the probes of `siyuan-broker doctor URL`: what an agent
// meets at a broker's address before anybody signs in, from wherever the command
// runs. It names the step that fails and what usually makes it fail, which is
// mostly a proxy in between. It needs no configuration and changes nothing.
package urldoctor
