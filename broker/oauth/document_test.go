package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// documents is a server of metadata documents and a fetcher that may reach it.
type documents struct {
	url   string
	hits  atomic.Int32
	serve http.HandlerFunc
	f     *Fetcher
	now   atomic.Int64
}

func newDocuments(t *testing.T) *documents {
	t.Helper()
	d := &documents{}
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.hits.Add(1)
		d.serve(w, r)
	}))
	t.Cleanup(ts.Close)
	d.url = ts.URL + "/client.json"
	pool := x509.NewCertPool()
	pool.AddCert(ts.Certificate())
	d.f = NewFetcher(FetcherOptions{Reach: netip.Addr.IsLoopback, TLS: &tls.Config{RootCAs: pool},
		Now: func() time.Time { return time.Unix(d.now.Load(), 0) }})
	d.answer("application/json", fmt.Sprintf(`{"client_id":%q,"client_name":"App","redirect_uris":["https://app.example/cb"]}`, d.url))
	return d
}

func (d *documents) answer(kind, body string) {
	d.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}
}

// ChatGPT's document names keys as its usual way to prove itself; to a server
// that wants no proof it gives none.
func TestADocumentOfAClientThatCouldProveItselfIsRead(t *testing.T) {
	t.Parallel()
	d := newDocuments(t)
	d.answer("application/json", fmt.Sprintf(`{"client_id":%q,"client_name":"ChatGPT","client_uri":"https://chatgpt.com/","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"],
		"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"],"token_endpoint_auth_signing_alg":"RS256",
		"jwks_uri":"https://chatgpt.com/oauth/jwks.json","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`, d.url))
	if doc, err := d.f.Document(t.Context(), d.url); err != nil || doc.Name != "ChatGPT" || len(doc.RedirectURIs) != 1 {
		t.Errorf("got %+v, %v", doc, err)
	}
}

func TestAMetadataDocumentIsReadAndKept(t *testing.T) {
	t.Parallel()
	d := newDocuments(t)
	for range 3 {
		doc, err := d.f.Document(t.Context(), d.url)
		if err != nil || doc.Name != "App" || len(doc.RedirectURIs) != 1 {
			t.Fatalf("got %+v, %v", doc, err)
		}
	}
	d.now.Add(int64(keptUsually / time.Second))
	if _, err := d.f.Document(t.Context(), d.url); err != nil {
		t.Fatal(err)
	}
	if n := d.hits.Load(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
}

func TestManyWhoAskAtOnceMakeOneFetch(t *testing.T) {
	t.Parallel()
	d := newDocuments(t)
	begun, release := make(chan struct{}, 9), make(chan struct{})
	inner := d.serve
	d.serve = func(w http.ResponseWriter, r *http.Request) { begun <- struct{}{}; <-release; inner(w, r) }
	impatient, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := d.f.Document(impatient, d.url); err == nil {
			t.Error("who left got an answer")
		}
	})
	<-begun
	for range 8 {
		wg.Go(func() {
			if _, err := d.f.Document(t.Context(), d.url); err != nil {
				t.Error(err) // although the first one left
			}
		})
	}
	leave()
	close(release)
	wg.Wait()
	if n := d.hits.Load(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

func TestADocumentThatCannotBeUsedIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ kind, body, want string }{
		"another client's": {"application/json", `{"client_id":"https://other.example/c","redirect_uris":["https://app.example/cb"]}`, "not its own address"},
		"no client_id":     {"application/json", `{"redirect_uris":["https://app.example/cb"]}`, "not its own address"},
		"no redirects":     {"application/json", `{"client_id":"SELF"}`, "no redirect_uris"},
		"bad redirects":    {"application/json", `{"client_id":"SELF","redirect_uris":["javascript:alert(1)"]}`, "not an app's own"},
		"a secret":         {"application/json", `{"client_id":"SELF","redirect_uris":["https://app.example/cb"],"client_secret":"x"}`, "secret"},
		"secret method":    {"application/json", `{"client_id":"SELF","redirect_uris":["https://app.example/cb"],"token_endpoint_auth_method":"client_secret_post"}`, "secret"},
		"a page":           {"text/html", `{"client_id":"SELF","redirect_uris":["https://app.example/cb"]}`, "application/json"},
		"no JSON":          {"application/json", `<html>`, "not JSON"},
		"too long":         {"application/json", `{"client_id":"SELF","redirect_uris":["https://app.example/cb"],"x":"` + strings.Repeat("a", documentBytes) + `"}`, "longer than 5120"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDocuments(t)
			d.answer(x.kind, strings.ReplaceAll(x.body, "SELF", d.url))
			_, err := d.f.Document(t.Context(), d.url)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}

func TestADocumentOfJustTheLengthIsRead(t *testing.T) {
	t.Parallel()
	d := newDocuments(t)
	body := fmt.Sprintf(`{"client_id":%q,"redirect_uris":["https://app.example/cb"],"x":""}`, d.url)
	d.answer("application/client+json", strings.Replace(body, `"x":"`, `"x":"`+strings.Repeat("a", documentBytes-len(body)), 1))
	if _, err := d.f.Document(t.Context(), d.url); err != nil {
		t.Error(err)
	}
}

func TestRedirectsAndErrorsOfADocumentsServerAreNotFollowed(t *testing.T) {
	t.Parallel()
	d := newDocuments(t)
	d.serve = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }
	if _, err := d.f.Document(t.Context(), d.url); !errors.Is(err, errRedirected) {
		t.Errorf("redirect: %v", err)
	}
	if n := d.hits.Load(); n != 1 {
		t.Errorf("%d requests: the redirect was followed", n)
	}
	// A failure is kept only for a moment.
	d.answer("application/json", fmt.Sprintf(`{"client_id":%q,"redirect_uris":["https://app.example/cb"]}`, d.url))
	if _, err := d.f.Document(t.Context(), d.url); !errors.Is(err, errRedirected) {
		t.Errorf("within the moment: %v", err)
	}
	d.now.Add(int64(failureKept / time.Second))
	if _, err := d.f.Document(t.Context(), d.url); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestADocumentIsFetchedFromPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	d := newDocuments(t)
	strict := NewFetcher(FetcherOptions{TLS: d.f.http.Transport.(*http.Transport).TLSClientConfig})
	port := d.url[strings.LastIndex(strings.TrimSuffix(d.url, "/client.json"), ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"} {
		if _, err := strict.Document(t.Context(), "https://"+host+port); err == nil {
			t.Errorf("%s was reached", host)
		}
	}
	if n := d.hits.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	if _, err := strict.Document(t.Context(), d.url); !errors.Is(err, errNotPublic) {
		t.Errorf("got %v, want %v", err, errNotPublic)
	}
}

func TestOnlyTheInternetIsPublic(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"} {
		if !public(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	for _, a := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.2.1",
		"198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:a9fe:a9fe::1", "2001::1", "100::1",
	} {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
}

func TestClientIDsThatAreNoDocumentAddressAreNotFetched(t *testing.T) {
	t.Parallel()
	f := NewFetcher(FetcherOptions{})
	for _, id := range []string{
		"https://app.example", "https://app.example/", "http://app.example/c", "https:///c", "https://user@app.example/c", "https://app.example/c#f", "https://app.example/c#",
		"https://app.example/a/../c", "https://app.example/./c", "https://app.example/..", "https://аpp.example/c", "https://app.example/c d", "ftp://app.example/c",
	} {
		if _, err := f.Document(t.Context(), id); err == nil || errors.Is(err, errFetch) || errors.Is(err, errNotPublic) {
			t.Errorf("%s: got %v", id, err)
		}
	}
}

func TestHowLongADocumentIsKept(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": time.Hour, "max-age=600": 10 * time.Minute, "public, Max-Age=0": time.Minute, "max-age=99999999999999999999": time.Hour, "max-age=1000000": 24 * time.Hour,
		"no-store": time.Minute, "max-age=-5": time.Hour, `max-age="7200"`: 2 * time.Hour,
	} {
		if got := lifeOf(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
