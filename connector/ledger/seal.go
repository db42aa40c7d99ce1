package ledger

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MaxAnswer bounds a kept answer; of a longer one only the steps are kept.
const MaxAnswer = 64 << 10

// aead is the cipher for the answer of a request. Its key is made from the
// arguments, which the ledger does not hold.
func (r Request) aead() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, r.Args, []byte(r.key()), "siyuan-connector ledger answer of "+r.Action, 32)
	if err != nil {
		return nil, fmt.Errorf("make the key of an answer: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of an answer: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (r Request) seal(answer []byte) ([]byte, error) {
	a, err := r.aead()
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, answer, nil), nil
}

var errUnreadable = errors.New("a kept answer cannot be read")

func (r Request) unseal(sealed []byte) ([]byte, error) {
	a, err := r.aead()
	if err != nil {
		return nil, err
	}
	plain, err := a.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return plain, nil
}
