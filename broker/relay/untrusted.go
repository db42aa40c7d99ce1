package relay

import (
	"maps"
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
)

var homeStates = []contract.HomeState{contract.HomeReady, contract.HomeOffline, contract.HomeUnauthorized,
	contract.HomeWrongWorkspace, contract.HomeIndexing}

// checkStatus bounds a report and returns how many entries that cost it. A state
// this broker does not know, from a newer connector, counts as SiYuan being
// offline.
func checkStatus(s *contract.HomeStatus, notebooks int) (omitted int) {
	entries := func() int {
		return len(s.Notebooks) + len(s.Policy.Notebooks) + len(s.Policy.Vetoed) + len(s.Policy.Tools)
	}
	before := entries()
	s.Policy.Tools = contract.CleanHomeTools(s.Policy.Tools)
	s.Notebooks = slices.DeleteFunc(s.Notebooks, func(n contract.NotebookInfo) bool { return n.ID == "" || len(n.ID) > maxID })
	s.Notebooks = s.Notebooks[:min(len(s.Notebooks), notebooks)]
	for i := range s.Notebooks {
		n := &s.Notebooks[i]
		n.Name, n.Icon = clip(n.Name, maxName), clip(n.Icon, maxName)
	}
	s.Policy.Vetoed = slices.DeleteFunc(s.Policy.Vetoed, func(v string) bool { return len(v) > 2*maxID })
	s.Policy.Vetoed = s.Policy.Vetoed[:min(len(s.Policy.Vetoed), wire.MaxVetoed)]
	maps.DeleteFunc(s.Policy.Notebooks, func(id string, _ contract.Level) bool { return len(id) > maxID })
	wire.FitCaps(s, notebooks)
	if !slices.Contains(homeStates, s.State) {
		s.State = contract.HomeOffline
	}
	s.SiYuanVersion, s.Policy.Digest = clip(s.SiYuanVersion, maxID), clip(s.Policy.Digest, 2*maxID)
	return before - entries()
}

// brokersOwn are the codes for what only this end can know. Others decide by
// them that a call never reached the home, so a home cannot say them.
var brokersOwn = []contract.Code{contract.Offline, contract.ConnectorOffline, contract.TunnelReplaced}

// checkError makes sure that an error from a home is one of the vocabulary.
func checkError(e *contract.Error) *contract.Error {
	if e == nil {
		return contract.Fail(contract.Internal, "The connector failed without saying how.")
	}
	table := contract.Vocabulary()
	i := slices.IndexFunc(table, func(row contract.Entry) bool { return row.Code == contract.CodeOf(e) && row.Type == e.Type })
	if i < 0 || slices.Contains(brokersOwn, contract.CodeOf(e)) {
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
