package oauth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
)

// Document is what a client's metadata document says about it.
type Document struct {
	Name         string
	RedirectURIs []string // as far as they may be used
}

// Documents reads client metadata documents; *Fetcher does. Its errors can be
// told to anybody.
type Documents interface {
	Document(ctx context.Context, id string) (Document, error)
}

// The bounds of fetching a document.
const (
	documentBytes   = 5 << 10
	documentTime    = 5 * time.Second
	documentsAtOnce = 16
	documentsKept   = 1024
	keptLeast       = time.Minute
	keptMost        = 24 * time.Hour
	keptUsually     = time.Hour
	failureKept     = 30 * time.Second // a client that mends its document is not kept waiting long
)

// FetcherOptions are the choices of a Fetcher. Tests set them; zero values are
// what a broker uses.
type FetcherOptions struct {
	Reach func(netip.Addr) bool // addresses that may be dialled; nil: public ones
	TLS   *tls.Config
	Now   func() time.Time
}

// Fetcher reads client metadata documents over https from public addresses and
// keeps them for as long as their server allows, within bounds. What is dialled
// is checked address by address after the name was resolved, so a name that
// points into a private network, now or at the next look-up, leads nowhere.
type Fetcher struct {
	http   *http.Client
	now    func() time.Time
	cache  *lru.Cache[string, kept]
	flight singleflight.Group
	slots  *semaphore.Weighted
}

type kept struct {
	doc   Document
	err   error
	until time.Time
}

// NewFetcher makes a Fetcher.
func NewFetcher(o FetcherOptions) *Fetcher {
	if o.Reach == nil {
		o.Reach = public
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	dialer := &net.Dialer{Timeout: documentTime, Control: func(_, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || !o.Reach(addr.Addr().Unmap()) {
			return errNotPublic
		}
		return nil
	}}
	cache, _ := lru.New[string, kept](documentsKept) // fails only for a size below one
	return &Fetcher{
		now: o.Now, cache: cache, slots: semaphore.NewWeighted(documentsAtOnce),
		http: &http.Client{
			Timeout: documentTime,
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: o.TLS, TLSHandshakeTimeout: documentTime,
				DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10, // no proxy: it would dial for us, unchecked
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
		},
	}
}

var (
	errNotPublic  = errors.New("its host is not on a public address")
	errRedirected = errors.New("its address redirects, which is not followed")
	errFetch      = errors.New("it cannot be fetched")
)

// nowhere are the ranges that look public and are not: shared, documentation,
// benchmarking, relay and translation space, in which an address can stand for
// a private one.
var nowhere = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(list))
	for i, s := range list {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// public reports whether an address is one of the internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, p := range nowhere {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Document returns a client's document, from the cache where it may.
func (f *Fetcher) Document(ctx context.Context, id string) (Document, error) {
	if err := checkDocumentURL(id); err != nil {
		return Document{}, err
	}
	if k, ok := f.cache.Get(id); ok && f.now().Before(k.until) {
		return k.doc, k.err
	}
	// One fetch for all who wait; it does not end because the first one left.
	result := f.flight.DoChan(id, func() (any, error) {
		k := f.fetch(context.WithoutCancel(ctx), id)
		f.cache.Add(id, k)
		return k, nil
	})
	select {
	case <-ctx.Done():
		return Document{}, errFetch
	case r := <-result:
		k := r.Val.(kept)
		return k.doc, k.err
	}
}

// checkDocumentURL admits what a client id may look like.
func checkDocumentURL(id string) error {
	u, err := url.Parse(id)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return errors.New("its address is not an https URL")
	case u.Path == "" || u.Path == "/":
		return errors.New("its address has no path")
	case u.User != nil || strings.Contains(id, "#"):
		return errors.New("its address has a user name or a fragment")
	case strings.Contains(u.Path+"/", "/../") || strings.Contains(u.Path+"/", "/./"):
		return errors.New("its address has dots for folders")
	case plainASCII(id) != id || strings.Contains(id, " "):
		return errors.New("its address is not plain ASCII")
	}
	return nil
}

func (f *Fetcher) fetch(ctx context.Context, id string) kept {
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	failed := func(err error) kept { return kept{err: err, until: f.now().Add(failureKept)} }
	if err := f.slots.Acquire(ctx, 1); err != nil {
		return failed(errFetch)
	}
	defer f.slots.Release(1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return failed(errFetch)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "siyuan-broker")
	resp, err := f.http.Do(req)
	if err != nil { // in words that tell nothing of what is behind an address
		for _, known := range []error{errNotPublic, errRedirected} {
			if errors.Is(err, known) {
				return failed(known)
			}
		}
		return failed(errFetch)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("its server answers %d", resp.StatusCode))
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return failed(errors.New("it is not application/json"))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, documentBytes+1))
	if err != nil {
		return failed(errFetch)
	}
	if len(body) > documentBytes {
		return failed(fmt.Errorf("it is longer than %d bytes", documentBytes))
	}
	doc, err := parseDocument(id, body)
	if err != nil {
		return failed(err)
	}
	return kept{doc: doc, until: f.now().Add(lifeOf(resp.Header.Get("Cache-Control")))}
}

// lifeOf is how long a document may be kept.
func lifeOf(cacheControl string) time.Duration {
	for d := range strings.SplitSeq(strings.ToLower(cacheControl), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		switch name {
		case "no-store", "no-cache":
			return keptLeast
		case "max-age":
			if n, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil && n >= 0 {
				return min(max(time.Duration(min(n, 1<<20))*time.Second, keptLeast), keptMost)
			}
		}
	}
	return keptUsually
}

// parseDocument reads a document. It must name its own address; redirect URIs
// that cannot be used are left out.
func parseDocument(id string, body []byte) (Document, error) {
	var d struct {
		ID           string   `json:"client_id"`
		Name         string   `json:"client_name"`
		RedirectURIs []string `json:"redirect_uris"`
		AuthMethod   string   `json:"token_endpoint_auth_method"`
		Secret       string   `json:"client_secret"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return Document{}, errors.New("it is not JSON of the expected form")
	}
	if d.ID != id {
		return Document{}, errors.New("its client_id is not its own address")
	}
	if d.Secret != "" || strings.HasPrefix(d.AuthMethod, "client_secret") {
		return Document{}, errors.New("a client that is described in public cannot have a secret")
	}
	good, bad := sortRedirects(d.RedirectURIs)
	if len(good) == 0 {
		if len(bad) > 0 {
			return Document{}, fmt.Errorf("redirect URI %q %s", plainASCII(bad[0].URI), bad[0].Reason)
		}
		return Document{}, errors.New("it has no redirect_uris")
	}
	return Document{Name: d.Name, RedirectURIs: good}, nil
}
