package tools

import "sync"

// Planned is the catalogue with every defined action, also those that the
// tools do not offer yet.
var Planned = sync.OnceValue(func() *Catalogue {
	more := map[string][]*Action{}
	var planned []*Tool
	for _, offered := range New().Tools() {
		t := *offered
		t.Actions = append([]*Action{}, offered.Actions...)
		for _, a := range more[t.Name] {
			if _, ok := offered.Action(a.Name); !ok {
				a.Tool = t.Name
				t.Actions = append(t.Actions, a)
			}
		}
		planned = append(planned, &t)
	}
	return &Catalogue{planned}
})
