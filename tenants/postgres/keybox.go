package postgres

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"

	"siyuan-broker/tenants"
)

// keyBox seals secrets with AES-256-GCM. A sealed text is the nonce followed by
// the ciphertext; the name it is stored under is authenticated with it, so that
// one key cannot be passed off as another.
type keyBox struct {
	seals cipher.AEAD
	opens []cipher.AEAD // the current key first
}

func newKeyBox(current []byte, old [][]byte) (*keyBox, error) {
	b := &keyBox{}
	for _, key := range append([][]byte{current}, old...) {
		if len(key) != 32 {
			return nil, fmt.Errorf("the master key has %d bytes, 32 are needed: make one with `openssl rand -base64 32`", len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("master key: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("master key: %w", err)
		}
		b.opens = append(b.opens, aead)
	}
	b.seals = b.opens[0]
	return b, nil
}

func (b *keyBox) seal(name string, secret []byte) []byte {
	nonce := make([]byte, b.seals.NonceSize(), b.seals.NonceSize()+len(secret)+b.seals.Overhead())
	_, _ = rand.Read(nonce) // never fails (Go 1.24)
	return b.seals.Seal(nonce, nonce, secret, []byte(name))
}

func (b *keyBox) open(name string, sealed []byte) ([]byte, error) {
	for _, aead := range b.opens {
		if len(sealed) < aead.NonceSize() {
			break
		}
		nonce, text := sealed[:aead.NonceSize()], sealed[aead.NonceSize():]
		if secret, err := aead.Open(nil, nonce, text, []byte(name)); err == nil {
			return secret, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, tenants.ErrSealed)
}

// Seal keeps a short-lived secret that leaves this program: what is sealed under
// one name opens under no other, and on every node with the same master key.
func (s *Store) Seal(name string, secret []byte) []byte { return s.box.seal("state: "+name, secret) }

// Unseal opens what Seal made; tenants.ErrSealed.
func (s *Store) Unseal(name string, sealed []byte) ([]byte, error) {
	return s.box.open("state: "+name, sealed)
}
