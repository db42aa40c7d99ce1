package home

import "context"

// Folder is the workspace folder of the process that listens on a loopback
// host:port, "" where the system does not tell. Doctor asks before it shows the
// token.
func Folder(ctx context.Context, addr string) string { return listenerAt(ctx, addr) }
