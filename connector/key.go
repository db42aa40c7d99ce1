package connector

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFile is the name of the private key in the data folder.
const KeyFile = "connector.key"

// LoadKey reads the connector's private key from its data folder, and makes it
// there at the first time. It never leaves the folder.
func LoadKey(data string) (ed25519.PrivateKey, error) {
	name := filepath.Join(data, KeyFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the connector's key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is damaged: it is not PEM; restore it, or delete it and register the new key with the broker", name)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := k.(ed25519.PrivateKey); ok && err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("%s is damaged: it holds no Ed25519 key; restore it, or delete it and register the new key with the broker", name)
}

func newKey(name string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the connector's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make the connector's key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, fmt.Errorf("make the connector's data folder: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".key-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("keep the connector's key: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	err = pem.Encode(tmp, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, fmt.Errorf("keep the connector's key: %w", err)
	}
	if err := os.Link(tmp.Name(), name); errors.Is(err, fs.ErrExist) {
		return LoadKey(filepath.Dir(name)) // another process was first
	} else if err != nil {
		return nil, fmt.Errorf("keep the connector's key: %w", err)
	}
	return key, nil
}

// EncodePublic is the public key as people pass it on: 43 characters of
// base64url.
func EncodePublic(key ed25519.PublicKey) string {
	return base64.RawURLEncoding.EncodeToString(key)
}

// Fingerprint names a key, on the wire and to people: the RFC 7638 thumbprint
// of its JWK.
func Fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + EncodePublic(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
