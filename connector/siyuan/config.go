package siyuan

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"
)

// Config says where the kernel is and how patient to be. The zero value of
// every field but BaseURL means its default.
type Config struct {
	// BaseURL is the kernel's address, such as http://127.0.0.1:6806. A path is
	// kept as a prefix, for kernels behind a reverse proxy.
	BaseURL string
	// Token is sent with every call but [Client.Version] and
	// [Client.BootProgress], which need none.
	Token Token
	// Dial opens connections; default a net.Dialer. Proxies of the environment
	// are never used, because the token would pass through them.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS is for https base URLs; default the system's roots.
	TLS *tls.Config
	// Timeouts bound the phases of a call.
	Timeouts Timeouts
	// Retry bounds the repetition of reads.
	Retry Retry
	// MaxResponseBytes bounds one answer; default 64 MiB.
	MaxResponseBytes int64
	// Logger receives one debug line per call: endpoint, kind, duration, never
	// contents. Default: nothing is logged.
	Logger *slog.Logger
	// Clock is the source of time and of waiting between retries.
	Clock Clock
	// Random is in [0,1) and jitters retries; default math/rand/v2.
	Random func() float64
}

// Timeouts are the longest durations of the phases of a call.
type Timeouts struct {
	Connect time.Duration // opening a connection; default 1 s
	Read    time.Duration // one attempt of an ordinary read; default 10 s
	Write   time.Duration // an ordinary write; default 30 s
	Slow    time.Duration // exports, snapshots, replacements, file transfers; default 2 min
}

// Retry is the policy for reads, and for writes whose connection never opened.
type Retry struct {
	Attempts int           // attempts in all, the first included; default 3, 1 turns retries off
	Base     time.Duration // the first wait is between half of this and all of it; default 100 ms
	Max      time.Duration // waits double up to this; default 1 s
}

// Clock is time as the client sees it.
type Clock interface {
	Now() time.Time
	// Sleep waits, or returns the context's error as soon as that ends.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c Config) withDefaults() Config {
	fill(&c.Timeouts.Connect, time.Second)
	fill(&c.Timeouts.Read, 10*time.Second)
	fill(&c.Timeouts.Write, 30*time.Second)
	fill(&c.Timeouts.Slow, 2*time.Minute)
	fill(&c.Retry.Attempts, 3)
	fill(&c.Retry.Base, 100*time.Millisecond)
	fill(&c.Retry.Max, time.Second)
	fill(&c.MaxResponseBytes, 64<<20)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return c
}

func fill[T comparable](field *T, standard T) {
	var zero T
	if *field == zero {
		*field = standard
	}
}

// parseBase accepts http and https URLs without anything that could carry a
// secret or change the meaning of an appended path.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error repeats the input, which may hold a password.
		return nil, errors.New("SiYuan's address is not a URL: want one like http://127.0.0.1:6806")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("SiYuan's address has scheme %q: want http or https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("SiYuan's address names no host: want one like http://127.0.0.1:6806")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("SiYuan's address must have no user, query or fragment: give the token separately")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}
