package peer

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	alpn     = "siyuan-peer/1"
	keyLabel = "siyuan-broker peer key v1"
)

// Identity is what makes a process a node of an installation: the key derived
// from its master key. Every node has the same one.
type Identity struct {
	cert    tls.Certificate
	trusted []ed25519.PublicKey
}

// NewIdentity derives the keys from the current master key and those it
// replaces, which are accepted from nodes that still use them.
func NewIdentity(master []byte, old ...[]byte) (*Identity, error) {
	id := &Identity{}
	for i, m := range append([][]byte{master}, old...) {
		if len(m) < 32 {
			return nil, fmt.Errorf("peer identity: a master key of %d bytes, 32 are needed", len(m))
		}
		seed, err := hkdf.Key(sha256.New, m, nil, keyLabel, ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("derive peer key: %w", err)
		}
		key := ed25519.NewKeyFromSeed(seed)
		id.trusted = append(id.trusted, key.Public().(ed25519.PublicKey))
		if i == 0 {
			if id.cert, err = selfSigned(key); err != nil {
				return nil, err
			}
		}
	}
	return id, nil
}

// selfSigned wraps a key for TLS. Only the key counts; nobody looks at the rest.
func selfSigned(key ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "siyuan-broker node"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no expiry
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make peer certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

var errStranger = errors.New("the other end does not hold this installation's master key")

// config is for both ends. TLS makes the peer prove that it holds the key of the
// certificate it shows; whose key that is, is checked here instead of by names
// and authorities.
func (id *Identity) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, Certificates: []tls.Certificate{id.cert},
		InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 || cs.NegotiatedProtocol != alpn {
				return errStranger
			}
			for _, k := range id.trusted {
				if k.Equal(cs.PeerCertificates[0].PublicKey) {
					return nil
				}
			}
			return errStranger
		},
	}
}
