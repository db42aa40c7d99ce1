package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// frp is a pair of frps and frpc that publishes local ports, with the settings
// it comes with: TLS and multiplexing between the two.
type frp struct {
	server, client *process
	port           map[string]string // published, by the local address
}

// startFRP publishes addresses, each under the port that is given for it.
func (b *bench) startFRP(ctx context.Context, published map[string]string) (*frp, error) {
	dir, err := b.folder("frp")
	if err != nil {
		return nil, err
	}
	control := freeAddress()
	server := fmt.Sprintf("bindAddr = \"127.0.0.1\"\nbindPort = %s\nauth.token = \"bench\"\nlog.level = \"warn\"\n", port(control))
	var client strings.Builder
	fmt.Fprintf(&client, "serverAddr = \"127.0.0.1\"\nserverPort = %s\nauth.token = \"bench\"\nlog.level = \"warn\"\n", port(control))
	for local, public := range published {
		fmt.Fprintf(&client, "\n[[proxies]]\nname = \"p%s\"\ntype = \"tcp\"\nlocalIP = \"127.0.0.1\"\nlocalPort = %s\nremotePort = %s\n", port(local), port(local), port(public))
	}
	f := &frp{port: published}
	for _, p := range []struct {
		name, program, config string
		into                  **process
	}{{"frps", b.frps, server, &f.server}, {"frpc", b.frpc, client.String(), &f.client}} {
		file := filepath.Join(dir, p.name+".toml")
		if err := os.WriteFile(file, []byte(p.config), 0o600); err != nil {
			return nil, err
		}
		if *p.into, err = b.keep(start(p.name, p.program, nil, "-c", file)); err != nil {
			return nil, err
		}
		if p.name == "frps" {
			if err := accepts(ctx, f.server, control); err != nil {
				return nil, err
			}
		}
	}
	for _, public := range published {
		if err := accepts(ctx, f.client, public); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// accepts waits until an address takes connections.
func accepts(ctx context.Context, p *process, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		if failure := p.failure(); failure != nil {
			return failure
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("%s does not listen on %s: %w\n%s", p.name, address, err, p.log)
		}
	}
}
