package connector

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"siyuan-broker/connector/pair"
)

// KeyFile is the name of the private key in the data folder.
const KeyFile = "connector.key"

// LoadKey reads the connector's private key from its data folder, and makes it
// there at the first time. It never leaves the folder.
func LoadKey(data string) (ed25519.PrivateKey, error) {
	key, err := ReadKey(data)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(filepath.Join(data, KeyFile))
	}
	return key, err
}

// ReadKey is LoadKey without making one: fs.ErrNotExist.
func ReadKey(data string) (ed25519.PrivateKey, error) {
	name := filepath.Join(data, KeyFile)
	text, err := os.ReadFile(name)
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

// NewKey makes a key that is kept nowhere yet; see ReplaceKey.
func NewKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the connector's key: %w", err)
	}
	return key, nil
}

func newKey(name string) (ed25519.PrivateKey, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	err = keepKey(name, key, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return LoadKey(filepath.Dir(name)) // another process was first
	}
	return key, err
}

// ReplaceKey makes key the one of a data folder. After a crash the folder has
// the old key or this one.
func ReplaceKey(data string, key ed25519.PrivateKey) error {
	return keepKey(filepath.Join(data, KeyFile), key, os.Rename)
}

// ForgetKey removes the key of a data folder; it may be gone.
func ForgetKey(data string) error {
	if err := os.Remove(filepath.Join(data, KeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the connector's key: %w", err)
	}
	return nil
}

// keepKey writes a private file and puts it into place.
func keepKey(name string, key ed25519.PrivateKey, place func(from, to string) error) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("keep the connector's key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("make the connector's data folder: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep the connector's key: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	err = pem.Encode(tmp, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("keep the connector's key: %w", err)
	}
	if err := place(tmp.Name(), name); err != nil {
		return fmt.Errorf("keep the connector's key: %w", err)
	}
	return nil
}

// EncodePublic is the public key as people pass it on: 43 characters of
// base64url.
func EncodePublic(key ed25519.PublicKey) string {
	return base64.RawURLEncoding.EncodeToString(key)
}

// Fingerprint names a key, on the wire and to people.
func Fingerprint(key ed25519.PublicKey) string { return pair.Fingerprint(key) }
