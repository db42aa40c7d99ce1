package memory

import (
	"testing"
	"time"

	"siyuan-broker/broker/page"
	"siyuan-broker/tenants"
)

func TestThePageRendersInEveryLanguage(t *testing.T) {
	t.Parallel()
	pages, err := page.New(page.Options{PublicURLs: []string{"https://notes.example"}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := load(pages)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	homes := []remembering{
		{ID: tenants.NewID(), Name: "Home", Versions: []version{{3, "", "Claude", now}, {2, "two", "", now}, {1, "", "Claude", now}}, Rules: tenants.Rules{All: "a", Own: "o"}},
		{ID: tenants.NewID(), Name: "家", Versions: []version{{1, "text", "", now}}}, {ID: tenants.NewID(), Name: "Empty"},
	}
	for _, p := range set.Check(map[string][]any{"memory": {
		memoryPage{}, memoryPage{Belongs: true, Tenant: "T"}, memoryPage{Belongs: true, Tenant: "T", Homes: homes, MaxRules: 10}, memoryPage{Belongs: true, Manages: true, Tenant: "T", Homes: homes},
	}}) {
		t.Error(p)
	}
}
