package wire

import (
	"encoding/json"
	"fmt"

	"siyuan-broker/contract"
)

// Bounds of a STATUS; what a home has beyond them stays out of its report.
const (
	MaxStatus    = 1 << 20 // bytes of the frame
	MaxNotebooks = 5_000
	MaxVetoed    = 2_000

	maxStatusBody = MaxStatus - 1<<10 // room for prefix and header
)

// Status is the header of a STATUS frame.
type Status struct {
	Omitted int `json:"omitted,omitempty"` // notebooks, caps and vetoes that the body leaves out
}

// FitStatus is a report as STATUS carries it. Where it is too large the last
// notebooks are left out, and the header says how many entries are missing; the
// home enforces its policy whatever it reports.
func FitStatus(s contract.HomeStatus) (Status, []byte, error) {
	entries := func() int { return len(s.Notebooks) + len(s.Policy.Notebooks) + len(s.Policy.Vetoed) }
	before := entries()
	s.Policy.Vetoed = s.Policy.Vetoed[:min(len(s.Policy.Vetoed), MaxVetoed)]
	for fit := MaxNotebooks; ; {
		s.Notebooks = s.Notebooks[:min(len(s.Notebooks), fit)]
		FitCaps(&s, fit)
		body, err := json.Marshal(s)
		switch {
		case err != nil:
			return Status{}, nil, fmt.Errorf("encode status: %w", err)
		case len(body) <= maxStatusBody:
			return Status{Omitted: before - entries()}, body, nil
		case fit == 0:
			return Status{}, nil, fmt.Errorf("status without notebooks has %d bytes: %w", len(body), ErrTooLarge)
		}
		entriesLeft := max(len(s.Notebooks), len(s.Policy.Notebooks))
		fit = min(entriesLeft-1, entriesLeft*maxStatusBody/len(body))
	}
}

// FitCaps leaves at most limit caps in a report: if there are more, those of
// the notebooks it names.
func FitCaps(s *contract.HomeStatus, limit int) {
	if len(s.Policy.Notebooks) <= limit {
		return
	}
	kept := make(map[string]contract.Level, limit)
	for _, n := range s.Notebooks[:min(len(s.Notebooks), limit)] {
		if level, ok := s.Policy.Notebooks[n.ID]; ok {
			kept[n.ID] = level
		}
	}
	s.Policy.Notebooks = kept
}
