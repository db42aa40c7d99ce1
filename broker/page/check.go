package page

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Check renders every page of a set in every language, with the sample data
// given by the page's name (nil where a page needs none), and reports what a
// person or a browser would stumble over: a page that fails, text that looks
// like a missing value, a field without a label, an id that is there twice, a
// form without its hidden field. It is for the tests of packages that have pages.
func (s *Set) Check(samples map[string][]any) (problems []string) {
	for _, name := range s.Names() {
		list, ok := samples[name]
		if !ok {
			problems = append(problems, name+": no sample data")
			continue
		}
		for i, data := range list {
			for _, l := range Langs() {
				v := NewView(l, &Viewer{Name: "Ann", Tenant: "Home"}, data)
				var b bytes.Buffer
				if err := s.Execute(&b, v, name, "layout"); err != nil {
					problems = append(problems, fmt.Sprintf("%s[%d] %s: %v", name, i, l, err))
					continue
				}
				for _, p := range inspect(b.String()) {
					problems = append(problems, fmt.Sprintf("%s[%d] %s: %s", name, i, l, p))
				}
			}
		}
	}
	return problems
}

var (
	formStart = regexp.MustCompile(`(?s)<form\b[^>]*method="post"[^>]*>(.{0,200})`)
	inputTag  = regexp.MustCompile(`(?s)<(?:input|select|textarea)\b[^>]*>`)
	idAttr    = regexp.MustCompile(`\sid="([^"]+)"`)
	labelFor  = regexp.MustCompile(`<label\b[^>]*\sfor="([^"]+)"`)
)

func inspect(html string) (problems []string) {
	for _, form := range formStart.FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(form[1], `<input type="hidden" name="`+formField+`"`) {
			problems = append(problems, "a form without its hidden field: "+form[0])
		}
	}
	for _, bad := range []string{"<no value>", "ZgotmplZ", "%!", "&lt;nil&gt;"} {
		if strings.Contains(html, bad) {
			problems = append(problems, "contains "+bad)
		}
	}
	seen, labelled := map[string]bool{}, map[string]bool{}
	for _, m := range idAttr.FindAllStringSubmatch(html, -1) {
		if seen[m[1]] {
			problems = append(problems, "the id "+m[1]+" is there twice")
		}
		seen[m[1]] = true
	}
	for _, m := range labelFor.FindAllStringSubmatch(html, -1) {
		labelled[m[1]] = true
	}
	for _, at := range inputTag.FindAllStringIndex(html, -1) {
		tag := html[at[0]:at[1]]
		id := idAttr.FindStringSubmatch(tag)
		inLabel := strings.LastIndex(html[:at[0]], "<label") > strings.LastIndex(html[:at[0]], "</label")
		if !strings.Contains(tag, `type="hidden"`) && !inLabel && !strings.Contains(tag, "aria-label") && (id == nil || !labelled[id[1]]) {
			problems = append(problems, "a field without a label: "+tag)
		}
	}
	return problems
}
