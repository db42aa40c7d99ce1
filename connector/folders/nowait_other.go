//go:build !unix

package folders

const noWait = 0
