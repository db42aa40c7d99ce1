package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"siyuan-broker/broker/cluster"
	"siyuan-broker/contract"
)

func aTransfer(args string, size int64) contract.Transfer {
	return contract.Transfer{Call: aCall(args), Size: size}
}

func TestATransferPassesThroughANodeAndItsStreamIsUsedAgain(t *testing.T) {
	t.Parallel()
	c, _, to := pair(t, &home{echo})
	for i, size := range []int64{0, 1, 100_000, 3 << 20} {
		announced := size
		if i%2 == 1 {
			announced = contract.UnknownSize
		}
		s, err := c.OpenStream(t.Context(), to, aTransfer(`{}`, announced), false)
		if err != nil {
			t.Fatal(err)
		}
		body := bytes.Repeat([]byte("0123456789"), int(size/10)+1)[:size]
		go func() {
			if len(body) > 0 {
				if _, err := s.Write(body); err != nil {
					t.Error(err)
				}
			}
			if err := s.CloseWrite(); err != nil {
				t.Error(err)
			}
		}()
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes came back as %d, %v", len(body), len(got), err)
		}
		if size > 0 && s.Size() != announced {
			t.Errorf("announced %d, want %d", s.Size(), announced)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if res, err := c.Call(t.Context(), to, aCall(`{"b":1}`), true, nil); err != nil || string(res.Body) != `{"b":1}` {
		t.Errorf("a call on the same link: %s, %v", res.Body, err)
	}
	c.mu.Lock()
	n := c.peers["n2"]
	c.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.idle) == 0 || len(n.idle) > 2 {
		t.Errorf("%d streams are idle", len(n.idle))
	}
}

func TestWhatTheOtherNodeSaysOfATransferArrives(t *testing.T) {
	t.Parallel()
	c, _, to := pair(t, &home{echo})
	if _, err := c.OpenStream(t.Context(), to, aTransfer(`"refused"`, 0), false); contract.CodeOf(err) != contract.RateLimited {
		t.Errorf("refused: %v", err)
	}
	s, err := c.OpenStream(t.Context(), to, aTransfer(`"broken"`, 3), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	_ = s.CloseWrite()
	if got, err := io.ReadAll(s); string(got) != "abc" || contract.CodeOf(err) != contract.NotFound {
		t.Errorf("%s, %v", got, err)
	}
	elsewhere := to
	elsewhere.Instance = "other"
	if _, err := c.OpenStream(t.Context(), elsewhere, aTransfer(`{}`, 0), false); !errors.Is(err, cluster.ErrElsewhere) {
		t.Errorf("not there: %v", err)
	}
	if _, err := c.OpenStream(t.Context(), to, contract.Transfer{}, false); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("without a grant: %v", err)
	}
}

func TestATransferEndsWithItsCallerAndWithItsNode(t *testing.T) {
	t.Parallel()
	c, srv, to := pair(t, &home{echo})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.OpenStream(ctx, to, aTransfer(`{}`, contract.UnknownSize), true)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Read(make([]byte, 1)); contract.CodeOf(err) != contract.Timeout {
		t.Errorf("cancelled: %v", err)
	}
	_ = s.Close()
	s, err = c.OpenStream(t.Context(), to, aTransfer(`{}`, contract.UnknownSize), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now, stop := context.WithCancel(t.Context())
	stop()
	srv.Stop(now)
	if _, err := s.Read(make([]byte, 1)); contract.CodeOf(err) != contract.OutcomeUnknown && contract.CodeOf(err) != contract.Offline {
		t.Errorf("the node is gone: %v", err)
	}
}

func TestTransfersBetweenTwoNodesAreLimited(t *testing.T) {
	t.Parallel()
	_, to := serve(t, &home{echo}, options(t, "n2", masterKey))
	o := options(t, "n1", masterKey)
	o.Limits.Transfers = 1
	c := client(t, o)
	s, err := c.OpenStream(t.Context(), to, aTransfer(`{}`, contract.UnknownSize), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenStream(t.Context(), to, aTransfer(`{}`, 0), true); contract.CodeOf(err) != contract.RateLimited {
		t.Errorf("the second: %v", err)
	}
	_ = s.Close()
	s, err = c.OpenStream(t.Context(), to, aTransfer(`{}`, 0), true)
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	_ = s.Close()
}
