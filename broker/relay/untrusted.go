package relay

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"siyuan-broker/contract"
	"siyuan-broker/contract/wire"
)

// Bounds of what a connector may say in one field, in bytes.
const (
	maxID      = 64
	maxName    = 1024
	maxMessage = 2000
	maxDetail  = 64 << 10
	maxVetoed  = 2000
)

var homeStates = []contract.HomeState{contract.HomeReady, contract.HomeOffline, contract.HomeUnauthorized,
	contract.HomeWrongWorkspace, contract.HomeIndexing}

// checkStatus bounds a report. A state this broker does not know, from a newer
// connector, counts as SiYuan being offline.
func checkStatus(s *contract.HomeStatus, notebooks int) error {
	if len(s.Notebooks) > notebooks || len(s.Policy.Notebooks) > notebooks || len(s.Policy.Vetoed) > maxVetoed {
		return wire.Violation("status with %d notebooks, %d caps, %d vetoes", len(s.Notebooks), len(s.Policy.Notebooks), len(s.Policy.Vetoed))
	}
	for i := range s.Notebooks {
		n := &s.Notebooks[i]
		if n.ID == "" || len(n.ID) > maxID {
			return wire.Violation("status with a notebook id of %d bytes", len(n.ID))
		}
		n.Name, n.Icon = clip(n.Name, maxName), clip(n.Icon, maxName)
	}
	for id := range s.Policy.Notebooks {
		if len(id) > maxID {
			return wire.Violation("status with a notebook id of %d bytes", len(id))
		}
	}
	for _, v := range s.Policy.Vetoed {
		if len(v) > 2*maxID {
			return wire.Violation("status with a vetoed action of %d bytes", len(v))
		}
	}
	if !slices.Contains(homeStates, s.State) {
		s.State = contract.HomeOffline
	}
	s.SiYuanVersion, s.Policy.Digest = clip(s.SiYuanVersion, maxID), clip(s.Policy.Digest, 2*maxID)
	return nil
}

// checkError makes sure that an error from a home is one of the vocabulary.
func checkError(e *contract.Error) *contract.Error {
	if e == nil {
		return contract.Fail(contract.Internal, "The connector failed without saying how.")
	}
	table := contract.Vocabulary()
	i := slices.IndexFunc(table, func(row contract.Entry) bool { return row.Code == contract.CodeOf(e) && row.Type == e.Type })
	if i < 0 {
		return contract.Fail(contract.Internal, "The connector failed in a way this broker does not know.")
	}
	e.Message, e.Hint, e.RequestID = clip(e.Message, maxMessage), clip(e.Hint, maxMessage), clip(e.RequestID, 2*maxID)
	if e.Retry != contract.RetryNo && e.Retry != contract.RetrySame && e.Retry != contract.RetryAfter {
		e.Retry = table[i].Retry
	}
	e.RetryAfterS = max(0, min(e.RetryAfterS, 3600))
	if len(e.Detail) > maxDetail {
		e.Detail = nil
	}
	return e
}

// checkStats bounds what goes into the call record.
func checkStats(s contract.Stats) contract.Stats {
	s.Notebook = clip(s.Notebook, maxID)
	s.KernelCalls = max(0, s.KernelCalls)
	s.KernelUS, s.TotalUS = max(0, s.KernelUS), max(0, s.TotalUS)
	return s
}

// clip shortens s to at most n bytes of whole runes and drops control
// characters.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
