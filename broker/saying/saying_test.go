package saying

import (
	"strings"
	"testing"
	"unicode"

	"siyuan-broker/broker/page"
	"siyuan-broker/contract/tools"
)

func TestEveryToolAndActionIsSaidInEachLanguage(t *testing.T) {
	t.Parallel()
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	chinese := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
	}
	known := map[string]bool{}
	for _, x := range tools.New().Tools() {
		known[x.Name] = true
		if !chinese(s.Tool(x, page.Chinese)) || s.Tool(x, page.English) != x.Purpose {
			t.Errorf("zh.json: say what %s is for", x.Name)
		}
		for _, a := range x.Actions {
			known[a.ID()] = true
			if !chinese(s.Action(a, page.Chinese)) || s.Action(a, page.English) != a.Summary {
				t.Errorf("zh.json: say what %s does", a.ID())
			}
		}
	}
	for id := range s.chinese {
		if !known[id] {
			t.Errorf("zh.json: there is no %s", id)
		}
	}
}
