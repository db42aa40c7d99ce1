package pair_test

import (
	"errors"
	"testing"

	"siyuan-broker/connector/pair"
)

func TestOnlyThePairingOfARevokedKeyIsMarked(t *testing.T) {
	t.Parallel()
	f := pair.FileIn(t.TempDir())
	if err := f.MarkRevoked("key"); err != nil {
		t.Errorf("without a pairing: %v", err)
	}
	if _, err := f.Read(); !errors.Is(err, pair.ErrNotPaired) {
		t.Errorf("marking made a pairing: %v", err)
	}
	want := pair.State{Broker: "https://notes.example", TenantName: "家", Name: "Study", Fingerprint: "key"}
	if err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := f.MarkRevoked("an earlier key"); err != nil {
		t.Error(err)
	}
	if got, err := f.Read(); err != nil || got != want {
		t.Errorf("another key's end changed it: %+v %v", got, err)
	}
	want.Revoked = true
	for range 2 {
		if err := f.MarkRevoked("key"); err != nil {
			t.Error(err)
		}
		if got, err := f.Read(); err != nil || got != want {
			t.Errorf("%+v %v", got, err)
		}
	}
}
