package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/contract"
)

func home(notebooks, nameBytes, caps, vetoed int) contract.HomeStatus {
	s := contract.HomeStatus{State: contract.HomeReady, Policy: contract.PolicyEffect{Digest: "d", Notebooks: map[string]contract.Level{}}}
	for i := range notebooks {
		s.Notebooks = append(s.Notebooks, contract.NotebookInfo{ID: fmt.Sprintf("n%06d", i), Name: strings.Repeat("x", nameBytes)})
	}
	for i := range caps {
		s.Policy.Notebooks[fmt.Sprintf("n%06d", i)] = contract.Read
	}
	for range vetoed {
		s.Policy.Vetoed = append(s.Policy.Vetoed, "block.delete")
	}
	return s
}

func TestAStatusFitsItsFrameAndSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in                      contract.HomeStatus
		notebooks, caps, vetoed int // kept; -1: fewer than there were
	}{
		"small":               {home(3, 10, 2, 1), 3, 2, 1},
		"at every limit":      {home(5000, 10, 5000, 2000), 5000, 5000, 2000},
		"too many notebooks":  {home(5001, 10, 10, 0), 5000, 10, 0},
		"too many caps":       {home(10, 10, 5001, 0), 10, 10, 0},
		"too many vetoes":     {home(1, 10, 0, 2001), 1, 0, 2000},
		"long names":          {home(4000, 1000, 4000, 5), -1, -1, 5},
		"one enormous name":   {home(1, 2<<20, 1, 0), 0, 0, 0},
		"many megabyte names": {home(9, 1<<20, 3, 0), 0, 0, 0},
	} {
		head, body, err := FitStatus(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got contract.HomeStatus
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		n, k, v := len(got.Notebooks), len(got.Policy.Notebooks), len(got.Policy.Vetoed)
		fits := func(got, want, had int) bool { return got == want || want < 0 && got > 0 && got < had }
		if !fits(n, c.notebooks, len(c.in.Notebooks)) || !fits(k, c.caps, len(c.in.Policy.Notebooks)) || v != c.vetoed {
			t.Errorf("%s: kept %d notebooks, %d caps, %d vetoes", name, n, k, v)
		}
		if had := len(c.in.Notebooks) + len(c.in.Policy.Notebooks) + len(c.in.Policy.Vetoed); head.Omitted != had-n-k-v {
			t.Errorf("%s: says %d are missing of %d, kept %d", name, head.Omitted, had, n+k+v)
		}
		w := NewWriter(new(strings.Builder), Limits{Frame: MaxStatus, Header: 256 << 10})
		if err := w.Write(FrameStatus, head, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n > 0 && got.Notebooks[0].ID != "n000000" {
			t.Errorf("%s: the first notebook is %s", name, got.Notebooks[0].ID)
		}
	}
}

func TestLongNamesCostNoMoreNotebooksThanTheyMust(t *testing.T) {
	t.Parallel()
	_, body, err := FitStatus(home(4000, 1000, 0, 0))
	if err != nil || len(body) < MaxStatus*9/10 {
		t.Errorf("only %d bytes are used, %v", len(body), err)
	}
}

func TestAStatusThatCannotFitIsAnError(t *testing.T) {
	t.Parallel()
	s := home(1, 1, 1, 0)
	s.SiYuanVersion = strings.Repeat("9", 2<<20)
	if _, _, err := FitStatus(s); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestFitStatusLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	s := home(10, 200<<10, 10, 2001)
	if _, _, err := FitStatus(s); err != nil || len(s.Notebooks) != 10 || len(s.Policy.Notebooks) != 10 || len(s.Policy.Vetoed) != 2001 {
		t.Errorf("%d notebooks, %d caps, %v", len(s.Notebooks), len(s.Policy.Notebooks), err)
	}
}
