package people

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// The bounds of a password, in characters and bytes.
const (
	PasswordMin  = 10
	passwordMost = 1024
)

// Why a password is not taken.
var (
	ErrShort  = errors.New("password too short")
	ErrLong   = errors.New("password too long")
	ErrCommon = errors.New("password is among the first that are tried")
)

// Hasher makes and checks argon2id hashes in PHC form. Each takes Memory, so only
// some run at a time; others wait, and are refused when too many wait.
type Hasher struct {
	Memory  uint32 // KiB
	Time    uint32
	Threads uint8

	slots   chan struct{}
	waiting chan struct{}
}

// DefaultHasher has the parameters OWASP names first for argon2id: 46 MiB, one
// pass.
func DefaultHasher() *Hasher { return NewHasher(47104, 1, 1, max(2, runtime.GOMAXPROCS(0))) }

// NewHasher makes a Hasher of which atOnce run at a time.
func NewHasher(memory, time uint32, threads uint8, atOnce int) *Hasher {
	return &Hasher{Memory: memory, Time: time, Threads: threads, slots: make(chan struct{}, atOnce), waiting: make(chan struct{}, 16*atOnce)}
}

// errBusy means that too many passwords are being checked already.
var errBusy = errors.New("too many passwords are being checked at the moment")

// take waits for a slot. The caller gives it back with release.
func (h *Hasher) take(ctx context.Context) (release func(), err error) {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return nil, errBusy
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Hash hashes a password.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	release, err := h.take(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	return h.phc(salt, argon2.IDKey([]byte(password), salt, h.Time, h.Memory, h.Threads, 32)), nil
}

func (h *Hasher) phc(salt, key []byte) string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.Memory, h.Time, h.Threads, b.EncodeToString(salt), b.EncodeToString(key))
}

// decoy is a hash that no password fits and that takes as long to check.
func (h *Hasher) decoy() string {
	b := make([]byte, 48)
	_, _ = rand.Read(b) // never fails
	return h.phc(b[:16], b[16:])
}

// Check reports whether a password fits a hash. old says that the hash was made
// with other parameters than today's and should be made anew.
func (h *Hasher) Check(ctx context.Context, hash, password string) (ok, old bool, err error) {
	var version int
	var used Hasher
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return false, false, errors.New("stored password hash is not argon2id in PHC form")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &used.Memory, &used.Time, &used.Threads); err != nil {
		return false, false, fmt.Errorf("stored password hash: %w", err)
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	want, keyErr := base64.RawStdEncoding.DecodeString(parts[5])
	if err := errors.Join(saltErr, keyErr); err != nil || len(want) < 16 || version != argon2.Version || used.Time < 1 || used.Threads < 1 || used.Memory > 1<<18 || used.Time > 64 {
		return false, false, fmt.Errorf("stored password hash cannot be used: %w", err)
	}
	release, err := h.take(ctx)
	if err != nil {
		return false, false, err
	}
	defer release()
	got := argon2.IDKey([]byte(password), salt, used.Time, used.Memory, used.Threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, used.Memory != h.Memory || used.Time != h.Time || used.Threads != h.Threads, nil
}

//go:embed common.txt
var commonFile []byte

var common = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for s := bufio.NewScanner(bytes.NewReader(commonFile)); s.Scan(); {
		if line := s.Text(); !strings.HasPrefix(line, "#") {
			all[line] = true
		}
	}
	return all
})

// judge says whether a password may be chosen, by somebody of that address and
// name: ErrShort, ErrLong or ErrCommon.
func judge(password, email, name string) error {
	switch {
	case utf8.RuneCountInString(password) < PasswordMin:
		return ErrShort
	case len(password) > passwordMost:
		return ErrLong
	}
	plain := strings.ToLower(strings.TrimSpace(password))
	core := strings.Trim(plain, "0123456789!?.,-_*#$@ ")
	local, _, _ := strings.Cut(strings.ToLower(email), "@")
	switch {
	case common()[plain], common()[core], len(core) < 4 && monotone(plain):
		return ErrCommon
	case plain == strings.ToLower(email), len(local) > 3 && core == local, len(name) > 3 && core == strings.ToLower(name):
		return ErrCommon
	case fewLetters(plain):
		return ErrCommon
	}
	return nil
}

// monotone reports whether every character follows the one before it, or equals
// it: 1234567890, 9876543210, abcdefghij.
func monotone(s string) bool {
	for _, step := range []int{1, -1, 0} {
		fits := true
		for i := 1; i < len(s); i++ {
			d := int(s[i]) - int(s[i-1])
			if d != step && !(s[i-1] == '9' && s[i] == '0') && !(s[i-1] == '0' && s[i] == '9') {
				fits = false
				break
			}
		}
		if fits {
			return true
		}
	}
	return false
}

// fewLetters reports whether a password has fewer than four different
// characters, or repeats a piece of up to four throughout.
func fewLetters(s string) bool {
	seen := map[rune]bool{}
	for _, c := range s {
		seen[c] = true
	}
	if len(seen) < 4 {
		return true
	}
	for n := 1; n <= 4 && n < len(s); n++ {
		if strings.HasPrefix(strings.Repeat(s[:n], len(s)/n+1), s) {
			return true
		}
	}
	return false
}
