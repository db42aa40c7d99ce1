package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateFolder has one certificate for loopback that all servers of a run
// use, so that nobody is spared TLS. An empty path is none.
type certificateFolder struct{ path string }

func (f *certificateFolder) cert() string { return filepath.Join(f.path, "cert.pem") }
func (f *certificateFolder) key() string  { return filepath.Join(f.path, "key.pem") }

// make makes a certificate that is its own authority.
func (f *certificateFolder) make() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "bench"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(f.cert(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(f.key(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// roots are what a client trusts.
func (f *certificateFolder) roots() (*x509.CertPool, error) {
	text, err := os.ReadFile(f.cert())
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", f.cert())
	}
	return pool, nil
}

// tlsOf is a client's configuration.
func tlsOf(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }

// listen listens with TLS, or without where there is no folder.
func (f *certificateFolder) listen(ctx context.Context, address string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil || f.path == "" {
		return ln, err
	}
	c, err := tls.LoadX509KeyPair(f.cert(), f.key())
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{c}}), nil
}
