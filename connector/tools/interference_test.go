package tools_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
)

// otherSecrets is the standard home with a different hidden notebook: other
// titles and text, more documents, and links from it into what is readable.
func otherSecrets() guardtest.Docs {
	notes := guardtest.Notes()
	notes[0].Title = "Alpha small unavailable"
	notes[0].Text = "Nothing of the other text, but ((" + guardtest.Intro + " 'alpha-intro')) #urgent# goals.\n{: id=\"" + guardtest.SecretP + "\" bookmark=\"Review\" name=\"start\"}\n"
	return append(notes, guardtest.Doc{
		Box: guardtest.Private, Path: "/20240104090100-healthd.sy", Title: "Entry", Text: "Alpha goals, small tool, 今天读了一本书, ((" + guardtest.Entry + " \"x\")).\n",
	})
}

var duration = regexp.MustCompile(`"(us|time)":("[^"]*"|\d+)`)

// searchCost: to drop a document that matches only by a hidden title, the guard
// has to read it.
var searchCost = regexp.MustCompile(`"action":"search.fulltext".*"kernel_calls":\d+`)

func normal(log string) string {
	return searchCost.ReplaceAllString(duration.ReplaceAllString(log, ""), "search")
}

func TestHiddenNotesInterfereWithNothing(t *testing.T) {
	t.Parallel()
	one := deskOf(t, guardtest.New(t), policy.Fixed(contract.ReadWriteDelete))
	two := deskOf(t, guardtest.NewWith(t, otherSecrets()), policy.Fixed(contract.ReadWriteDelete))
	ids := []string{
		guardtest.Work, guardtest.Private, guardtest.Archive, guardtest.Projects, guardtest.Alpha, guardtest.Intro, guardtest.Links, guardtest.Embed,
		guardtest.List, guardtest.Secret, guardtest.SecretP, guardtest.EntryP, guardtest.Closed, guardtest.Missing, "20240104090100-healthd",
	}
	var calls [][2]string
	for _, id := range ids {
		calls = append(calls,
			[2]string{"block.get_kramdown", `{"id":"` + id + `"}`},
			[2]string{"document.get_doc", `{"id":"` + id + `","includeBlockIds":true}`},
			[2]string{"document.get_doc", `{"id":"` + id + `","mode":"html"}`},
			[2]string{"document.list_tree", `{"notebook":"` + id + `","path":"/"}`},
			[2]string{"document.list_tree", `{"notebook":"` + guardtest.Work + `","path":"/` + id + `.sy"}`},
			[2]string{"search.fulltext", `{"query":"a","parentId":"` + id + `"}`},
			[2]string{"search.fulltext", `{"query":"` + id + `"}`},
			[2]string{"search.fulltext", `{"query":"a","paths":["` + id + `"]}`},
			[2]string{"block.append", `{"parentID":"` + id + `","dataType":"dom","data":""}`},
			[2]string{"document.create", `{"notebook":"` + id + `","path":"/a/../b"}`},
		)
	}
	for _, word := range []string{"a", "Alpha", "small", "unavailable", "Nightfall", "Operation", "goals Nightfall", "Alpha unavailable", "confidential", "书", "#urgent#", "Review", "start", "See"} {
		for _, more := range []string{``, `,"method":1`, `,"method":3`, `,"orderBy":7`, `,"orderBy":6`, `,"groupBy":1`, `,"orderBy":3`, `,"hasTags":true`, `,"types":{"p":true,"embed":true,"d":true}`, `,"pageSize":2,"page":2`} {
			calls = append(calls, [2]string{"search.fulltext", `{"query":"` + word + `"` + more + `}`})
		}
	}
	for _, c := range calls {
		one.log.Reset()
		two.log.Reset()
		a, b := one.call(writer(), c[0], c[1]), two.call(writer(), c[0], c[1])
		if x, y := shown(a), shown(b); x != y {
			t.Errorf("%s %s\n%s\n%s", c[0], c[1], x, y)
		}
		if x, y := normal(one.log.String()), normal(two.log.String()); x != y {
			t.Errorf("%s %s logs\n%s\n%s", c[0], c[1], x, y)
		}
	}
}

// attrList is a list of attributes, in kramdown or DOM: the kernel writes them in
// random order.
var attrList = regexp.MustCompile(`\{: [^}]*\}|<[a-z]+ [^>]*>`)

func shown(r contract.Result) string {
	text := string(r.Body)
	if r.Err != nil {
		text = string(r.Err.Body())
	}
	return attrList.ReplaceAllStringFunc(text, func(list string) string {
		words := strings.Fields(strings.Trim(list, "{:}<>"))
		slices.Sort(words)
		return strings.Join(words, " ")
	})
}
