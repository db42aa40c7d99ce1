package people

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

func TestAPasswordFitsItsHashOnly(t *testing.T) {
	t.Parallel()
	h := NewHasher(64, 1, 1, 2)
	hash, err := h.Hash(t.Context(), "correct")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Errorf("not in PHC form: %s", hash)
	}
	for password, want := range map[string]bool{"correct": true, "Correct": false, "": false, "correct ": false} {
		if ok, old, err := h.Check(t.Context(), hash, password); ok != want || old || err != nil {
			t.Errorf("%q: %v %v %v", password, ok, old, err)
		}
	}
	if again, _ := h.Hash(t.Context(), "correct"); again == hash {
		t.Error("no salt")
	}
	if ok, old, err := NewHasher(128, 1, 1, 2).Check(t.Context(), hash, "correct"); !ok || !old || err != nil {
		t.Errorf("a hash of former parameters: %v %v %v", ok, old, err)
	}
	if ok, _, err := h.Check(t.Context(), h.decoy(), ""); ok || err != nil {
		t.Errorf("the decoy: %v %v", ok, err)
	}
	for _, bad := range []string{"", "plain", "$argon2i$v=19$m=64,t=1,p=1$AAAA$AAAA", "$argon2id$v=19$m=99999999,t=1,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=64,t=0,p=0$AAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if ok, _, err := h.Check(t.Context(), bad, "x"); ok || err == nil {
			t.Errorf("%q is taken for a hash", bad)
		}
	}
}

// The reference is the argon2 command line tool:
// printf password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 32 -e
func TestAHashOfAnotherProgramIsUnderstood(t *testing.T) {
	t.Parallel()
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, _, err := NewHasher(64, 1, 1, 1).Check(t.Context(), reference, "password"); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestOnlySomePasswordsAreHashedAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(8, 1, 1, 1)
		release, err := h.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 16)
		for range 16 {
			go func() {
				_, err := h.Hash(ctx, "x")
				ended <- err
			}()
		}
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("one did not wait")
		}
		if _, err := h.Hash(ctx, "x"); !errors.Is(err, errBusy) {
			t.Errorf("one too many: %v", err)
		}
		cancel()
		for range 16 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("one who gave up: %v", err)
			}
		}
		release()
		if _, err := h.Hash(t.Context(), "x"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestPasswordsThatAreTriedFirstAreRefused(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]error{
		"four odd sheep walk":        nil,
		"Tr0ub4dor&3 and more":       nil,
		"十个汉字组成的一个密码":                nil,
		"x7Kq-93mVw":                 nil,
		"short":                      ErrShort,
		"ninechars":                  ErrShort,
		strings.Repeat("ab1!x", 300): ErrLong,
		"password123":                ErrCommon,
		"PASSWORD123!":               ErrCommon,
		"1234567890":                 ErrCommon,
		"0987654321":                 ErrCommon,
		"aaaaaaaaaaaa":               ErrCommon,
		"abcabcabcabc":               ErrCommon,
		"qwertyuiop":                 ErrCommon,
		"1q2w3e4r5t6y":               ErrCommon,
		"sunshine2026":               ErrCommon,
		"woaini1314":                 ErrCommon,
		"annabelle@example.org":      ErrCommon,
		"annabelle1":                 ErrCommon,
		"Wonderland99":               ErrCommon,
	} {
		if err := judge(password, "annabelle@example.org", "Wonderland"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", password, err, want)
		}
	}
	if n := len(common()); n < 3000 {
		t.Errorf("the list has %d passwords", n)
	}
}

func FuzzAHashIsReadWithoutHarm(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAA")
	h := NewHasher(8, 1, 1, 1)
	f.Fuzz(func(t *testing.T, hash string) {
		if strings.Contains(hash, "m=") && len(hash) > 60 { // what is slow on purpose
			return
		}
		if ok, _, _ := h.Check(t.Context(), hash, "no such password, surely"); ok {
			t.Errorf("%q fits", hash)
		}
	})
}
