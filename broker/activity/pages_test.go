package activity

import (
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

func newPages(t *testing.T) *Pages {
	t.Helper()
	frame, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPages(NewDesk(Config{}), frame, func(*http.Request) (person, tenant tenants.ID, ok bool) { return })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// said is everything that a home can say about documents, and what it cannot.
func said() (all []tools.ChangedDocument) {
	for _, effect := range append(effects, "<b>hacked</b>") {
		d := tools.ChangedDocument{ID: "20261130120000-abcdefg", Title: "<script>x</script>", Effect: effect, Parts: append(parts, "of another version")}
		for _, why := range append(reasons, "of another version") {
			d.Refused = append(d.Refused, tools.Refused{Part: "text", Code: why, Text: "whatever"})
		}
		for _, why := range append(cellReasons, "of another version") {
			d.Refused = append(d.Refused, tools.Refused{Part: "cells", Code: why, Count: 3})
		}
		all = append(all, d)
	}
	all = append(all, tools.ChangedDocument{ID: "20261130120000-abcdefg", Kind: "database", Title: "/Tasks: Tasks", Effect: "restored", Parts: []string{"cells", "rows"}, Cells: 3, Rows: 1})
	return append(all, tools.ChangedDocument{ID: "?", Effect: "restored", Failed: "it broke"})
}

func TestPagesReadWellInEveryLanguage(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	about := about{Agent: "Claude", Instance: "Home", Member: "ann@example.org", List: "/console/agents/a/activity", Undo: "/console/agents/a/undo"}
	ended := about
	ended.Ended = true
	sitting := tools.Sitting{ID: 3, Began: "2026-11-30T14:05:00+01:00", Last: "2026-11-30T14:07:00+01:00", Writes: 7, Undo: true, NotUndoable: []tools.LastingChange{{Action: "tag.rename", At: "2026-11-30T14:06:00+01:00"}}}
	changed := tools.TimelineListChangesOut{Documents: said(), PageOut: tools.PageOut{Total: 60}}
	full := activityPage{about: about, Later: "/x", Earlier: "/y", Sittings: []sittingView{
		showSitting(about.Undo, sitting, changed, nil),
		showSitting(about.Undo, sitting, tools.TimelineListChangesOut{}, nil),
		showSitting(about.Undo, sitting, changed, contract.Fail(contract.ConnectorOffline, "away")),
	}}
	undo, one, done := undoPage{about: about, Choice: Choice{Sitting: 3}}, undoPage{about: about, Choice: Choice{3, "20261130120000-abcdefg"}}, resultPage{about: about}
	undo.take(changed)
	one.take(changed)
	done.take(tools.TimelineUndoOut{Undone: 4, Left: 2, Documents: said(), CutOut: tools.CutOut{Truncated: true}})
	samples := map[string][]any{
		"activity": {activityPage{about: about}, full, activityPage{about: ended}}, "undo": {undo, one, undoPage{about: about}}, "undone": {done, resultPage{about: about, Success: true}, resultPage{about: about, Problem: "problem.unknown", Again: true}},
	}
	for _, problem := range []string{"offline", "closed", "gone", "often", "policy", "owner", "unsupported", "large", "many", "unknown", "failed"} {
		samples["activity"] = append(samples["activity"], activityPage{about: about, Problem: "problem." + problem})
		samples["undo"] = append(samples["undo"], undoPage{about: about, Problem: "problem." + problem})
	}
	for _, problem := range p.set.Check(samples) {
		t.Error(problem)
	}
}

func TestWhatAHomeSaysIsShownInWordsOfOurs(t *testing.T) {
	t.Parallel()
	got := showDocuments([]tools.ChangedDocument{
		{ID: "20261130120000-abcdefg", Title: "A\u202eB\n", Effect: "restored", Parts: []string{"text"}, Refused: []tools.Refused{{Part: "place", Code: "changed_since", Text: "click here"}}},
		{ID: `"><b>`, Title: "x", Effect: "restored"}, {ID: "20261130120000-abcdefg", Title: "y", Effect: "exploded"},
		{ID: "20261130120000-abcdefg", Title: "z", Effect: "removed", Parts: []string{"document"}, Failed: "click here"},
		{ID: "x", Kind: "database", Title: "/T", Effect: "restored", Parts: []string{"cells", "rows"}, Cells: 2, Rows: -1, Refused: []tools.Refused{{Part: "cells", Code: "too_large", Count: 4}, {Part: "rows", Code: "new", Count: 1}}},
	}, "effect.", "/u?sitting=3")
	want := []documentView{
		{Title: "AB", Effect: "effect.restored", Parts: []partView{{"part.text", 0}}, Refused: []refusedView{{partView{"part.place", 0}, "why.changed_since"}}, Changes: true, Path: "/u?sitting=3&document=20261130120000-abcdefg"},
		{Title: "x", Effect: "effect.restored", Changes: true}, {Title: "y", Effect: "effect.nothing"}, {Title: "z", Effect: "effect.removed", Failed: true},
		{Database: true, Title: "/T", Effect: "effect.restored", Parts: []partView{{"part.cells", 2}, {"part.rows", 0}}, Changes: true,
			Refused: []refusedView{{partView{"part.cells", 4}, "why.cells.too_large"}, {partView{"part.rows", 1}, "why.cells.other"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestASittingOffersAnUndoWhereSomethingWouldComeBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		docs  []tools.ChangedDocument
		total int
		want  bool
	}{
		"nothing is left":       {nil, 0, false},
		"all of it is refused":  {[]tools.ChangedDocument{{Effect: "nothing"}}, 1, false},
		"one comes back":        {[]tools.ChangedDocument{{Effect: "nothing"}, {Effect: "returned"}}, 2, true},
		"more than are shown":   {[]tools.ChangedDocument{{Effect: "nothing"}}, 11, true},
		"a page that was empty": {nil, 1, true},
	} {
		v := showSitting("/u", tools.Sitting{ID: 3, Began: "nonsense"}, tools.TimelineListChangesOut{Documents: c.docs, PageOut: tools.PageOut{Total: c.total}}, nil)
		if got := v.Path != ""; got != c.want || !v.Began.Equal(time.Time{}) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestEveryRefusalOfAHomeHasItsWords(t *testing.T) {
	t.Parallel()
	for code, want := range map[contract.Code]string{
		contract.ConnectorOffline: "offline", contract.SiYuanOffline: "offline", contract.SiYuanUnauthorized: "offline", contract.Offline: "offline",
		contract.OutcomeUnknown: "unknown", contract.ActionDisabled: "policy", contract.PermissionDenied: "policy", contract.ConfirmationRequired: "owner",
		contract.Unsupported: "unsupported", contract.UnknownTool: "unsupported", contract.UnknownAction: "unsupported", contract.TooLarge: "large", contract.Internal: "failed",
		contract.ConfirmationInvalid: "failed", contract.RateLimited: "often",
	} {
		if got := problemOf(contract.Fail(code, "x")); got != "problem."+want {
			t.Errorf("%s: %s", code, got)
		}
	}
}

func TestOnlyAWholeChoiceIsTaken(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"sitting=3": true, "sitting=3&document=20261130120000-abcdefg": true,
		"": false, "sitting=": false, "sitting=-1": false, "sitting=3x": false, "document=20261130120000-abcdefg": false, "sitting=3&document=../x": false,
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := chosen(v); ok != want || ok && (c.Sitting != 3 || c.Document != "" && !strings.HasPrefix(c.Document, "2026")) {
			t.Errorf("%q: %+v %v", query, c, ok)
		}
	}
}
