// Package homedoctor makes the probes of `siyuan-connector doctor`: the home's own
// files, SiYuan, and every step of the way to the broker. Its probes change
// nothing, and it shows SiYuan's token to nobody the system knows to be another
// workspace. A running connector is left in peace.
package homedoctor
