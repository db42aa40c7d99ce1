package approvals

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"siyuan-broker/broker/consent"
	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestPagesReadWellInEveryLanguage(t *testing.T) {
	t.Parallel()
	frame, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(nil, frame, func(*http.Request) (person, tenant tenants.ID, ok bool) { return }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pending := consent.Pending{
		Approval: tenants.Approval{ID: tenants.NewID(), Tool: "document", Action: "move", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(5 * time.Minute)},
		Shown: contract.Preview{
			Counts: contract.PreviewCounts{Notebooks: 1, Documents: 2, Blocks: 3, References: 4, Assets: 5, Attributes: 6, Rows: 7}, Uncounted: true, More: 3,
			Named:  []contract.PreviewItem{{Kind: "document", Title: "<b>Plan</b>", Path: "/Work/Plan"}, {Kind: "block", Title: "x"}},
			Target: &contract.PreviewItem{Kind: "notebook", Title: "Archive"}, Find: "a", Replace: "b", Level: "rw", Arguments: `{"times":2}`,
		},
		Agent: "Claude", Member: "ann@example.org", Instance: "Home",
	}
	for _, kind := range contract.PreviewKinds() {
		pending.Shown.Named = append(pending.Shown.Named, contract.PreviewItem{Kind: kind, Title: "y"})
	}
	unknown := pending
	unknown.Unknown = true
	r := httptest.NewRequest("GET", Path, nil)
	full, blank := p.shown(r, tenants.NewID(), pending), p.shown(r, tenants.NewID(), unknown)
	if full.Summary != "Move documents, with all below them, under another document or notebook." || full.Left != 5 {
		t.Errorf("%+v", full)
	}
	r.Header.Set("Accept-Language", "zh-CN")
	if got := p.shown(r, tenants.NewID(), pending).Summary; got != "移动文档及其子文档。" {
		t.Errorf("in Chinese: %q", got)
	}
	for _, problem := range p.set.Check(map[string][]any{"approvals": {[]call(nil), []call{full, blank}}, "approval": {full, blank}}) {
		t.Error(problem)
	}
}
