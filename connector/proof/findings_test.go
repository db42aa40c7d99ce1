package proof

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// missingIngredients are links into the hidden notebook that the sample kernel
// cannot imitate yet.
var missingIngredients = []string{}

// accepted is a difference between worlds that is meant to be.
type accepted struct {
	shows  []example // calls that differ
	report *regexp.Regexp
	names  []string // one of which the call or what it found must name, by id; none: any
	reason string
	real   bool // the sample kernel does not show it
}

// example are arguments of an action, with names for ids.
type example struct{ action, args string }

// acceptedDifferences has four entries, of one kind, and should get no other: what
// belongs to several notebooks at once needs the level in all of them.
func acceptedDifferences() []accepted {
	const dom = `"dataType":"dom","data":"<div class=\"av\" data-node-id=\"${freshAV}\" data-type=\"NodeAttributeView\" data-av-id=\"${vault}\" data-av-type=\"table\"></div>"}`
	return []accepted{{
		reason: "a database needs the level in every notebook that shows it or has a row in it, because its rows, columns and views are one; " +
			"while a hidden notebook is among them it is for the caller like an id that is no database, and once none is, it is there",
		report: regexp.MustCompile(`(?s)data-av-id=.*"There is no database \d{14}-[0-9a-z]{7} to show\.\\"`),
		shows: []example{
			{"block.append", `{"parentID":"${alpha}",` + dom}, {"block.prepend", `{"parentID":"${alpha}",` + dom},
			{"block.add_to_daily_note", `{"notebook":"${desk}","position":"append",` + dom},
			{"block.insert", `{"previousID":"${details}",` + dom}, {"block.update", `{"id":"${details}",` + dom},
		},
	}, {
		reason: "the same, where the database itself is asked for",
		report: regexp.MustCompile(`notebook [^:]+: +"[^\n]*There is no database \d{14}-[0-9a-z]{7}\.`),
		names:  []string{"tasks", "vault", "people"},
		shows: []example{
			{"av.get", `{"id":"${tasks}"}`}, {"av.render", `{"id":"${vault}"}`}, {"av.get_attribute_view_keys", `{"id":"${people}"}`},
			{"av.get_attribute_view_filter_sort", `{"id":"${tasks}"}`}, {"av.get_primary_key_values", `{"avID":"${tasks}"}`},
			{"av.add_rows", `{"avID":"${tasks}","primaryKeyTexts":["x"]}`}, {"av.add_column", `{"avID":"${tasks}","keyName":"x","keyType":"text"}`},
			{"av.set_cells", `{"avID":"${tasks}","rowID":"${row_tasks_intro}","columnID":"${tasksNote}","valueType":"text","text":"x"}`},
			{"av.remove_column", `{"avID":"${tasks}","keyID":"${tasksNote}"}`}, {"av.duplicate", `{"avID":"${tasks}"}`},
			{"av.remove_rows", `{"avID":"${tasks}","srcIDs":["${row_tasks_intro}"]}`},
			{"av.duplicate_rows", `{"avID":"${tasks}","sourceRowIDs":["${row_tasks_intro}"]}`},
			{"av.set_column_options", `{"avID":"${tasks}","keyID":"${tasksNote}","options":[]}`},
			{"av.set_relation", `{"avID":"${tasks}","keyID":"${tasksOwner}","itemID":"${row_tasks_intro}","relatedItemIDs":[]}`},
			{"av.configure_rollup", `{"avID":"${tasks}","keyID":"${tasksRoll}","relationKeyID":"${tasksOwner}","destinationKeyID":"${peopleNote}","calc":{"operator":"Count all"}}`},
			{"av.configure_two_way_relation", `{"avID":"${board}","keyID":"${boardFree}","destinationAvID":"${tasks}","backRelationKeyID":"20260131120000-backkey","sourceName":"Free","destinationName":"Board"}`},
			{"av.set_new_item_templates", `{"avID":"${tasks}","blockID":"${tasksBlock}","templates":[],"defaultTemplateID":""}`},
			{"av.create_from_template", `{"avID":"${tasks}","blockID":"${tasksBlock}","templateID":"${boardErrand}"}`},
			{"av.add_view", `{"avID":"${tasks}","blockID":"${tasksBlock}","viewID":"20260131120000-newview","layout":"table","name":"New"}`},
			{"av.set_filters", `{"avID":"${tasks}","blockID":"${tasksBlock}","viewID":"${boardView}","filters":[]}`},
			{"av.set_sorts", `{"avID":"${tasks}","blockID":"${tasksBlock}","viewID":"${boardView}","sorts":[]}`},
			{"av.set_group", `{"avID":"${tasks}","blockID":"${tasksBlock}","viewID":"${boardView}","group":{"field":""}}`},
			{"av.set_column_visibility", `{"avID":"${tasks}","blockID":"${tasksBlock}","viewID":"${boardView}","keyID":"${tasksNote}","hidden":true}`},
			{"av.set_column_order", `{"avID":"${tasks}","blockID":"${tasksBlock}","viewID":"${boardView}","keyIDs":["${tasksNote}"]}`},
		},
	}, {
		reason: "the same, where databases are looked for",
		report: regexp.MustCompile(`\\"avID\\":\\"\d{14}-[0-9a-z]{7}\\",\\"name\\":\\"(Tasks|Vault of nightfall|)\\",\\"blockIDs\\"`),
		names:  []string{"tasks", "vault", "people"},
		shows:  []example{{"av.search", `{"keyword":"Tasks"}`}},
	}, {
		reason: "the text of a file needs the level in every notebook that links to it; while a hidden one is among them the file is not found, " +
			"and once SiYuan knows of no link but readable ones, it is",
		report: regexp.MustCompile(`secret-[0-9a-z-]*\.txt`),
		shows:  []example{{"search.fulltext_asset_content", `{"query":"a"}`}},
		real:   true, // the sample kernel does not read files
	}, {
		reason: "the same, where the file itself is asked for",
		report: regexp.MustCompile(`(?s)assets/(shared|secret)-[0-9a-z-]*\.(png|txt).*There is no such asset\.`),
		shows: []example{
			{"file.get_image_ocr_text", `{"path":"assets/shared-${asset}.png"}`}, {"file.download_asset", `{"path":"assets/shared-${asset}.png"}`},
			{"file.export_resources", `{"paths":["assets/shared-${asset}.png"]}`}, {"file.extract_doc", `{"id":"${links}","download":true}`}, {"file.read_image", `{"id":"${links}","path":"assets/shared-${asset}.png"}`},
		},
	}}
}

// known reports whether a failure is an accepted difference, and logs it.
func known(t *testing.T, n *notes, action, report string) bool {
	t.Helper()
	for _, d := range acceptedDifferences() {
		named := len(d.names) == 0 || slices.ContainsFunc(d.names, func(name string) bool { return strings.Contains(report, n.id(name)) })
		if named && d.report.MatchString(report) && slices.ContainsFunc(d.shows, func(c example) bool { return c.action == action }) {
			t.Logf("accepted: %s: %s", d.reason, report)
			return true
		}
	}
	return false
}

func TestEveryAcceptedDifferenceIsStillThere(t *testing.T) {
	t.Parallel()
	ws := newWorlds(t, nil)
	for _, d := range acceptedDifferences() {
		if d.real {
			continue
		}
		for i, c := range d.shows {
			a := actionOf(t, c.action)
			_, l := ws.compare(ask{viewer: viewers()[i%3], action: a, args: []byte(ws[0].notes.text(c.args)), n: i})
			if l == nil || !known(t, ws[0].notes, c.action, l.String()) {
				t.Errorf("%s differs no more, or in another way: %v", c.action, l)
			}
		}
	}
}

// What is accepted is no more than that: another database, or another answer about
// these, is a leak.
func TestADifferenceOfAnotherDatabaseIsNotAccepted(t *testing.T) {
	t.Parallel()
	n := &notes{ids: map[string]string{}}
	for _, name := range []string{"tasks", "vault", "people", "board", "crew"} {
		n.id(name)
	}
	report := func(asked, one, two string) string {
		return leak{ask: ask{viewer: viewer{name: "writer"}, action: actionOf(t, "av.get"), args: []byte(`{"id":"` + asked + `"}`)}, one: "as it was", two: "removed", first: one, other: two}.String()
	}
	none := func(id string) string { return `"…There is no database ` + id + `.…"` }
	for _, c := range []struct {
		report string
		want   bool
	}{
		{report(n.id("tasks"), none(n.id("tasks")), `"…rows…"`), true},
		{report(n.id("board"), none(n.id("board")), `"…rows…"`), false},
		{report(n.id("board"), `"…\"name\":\"\"…"`, `"…\"name\":\"x\"…"`), false},
		{report(n.id("tasks"), `"…\"name\":\"Tasks\",\"cells\":1…"`, `"…\"name\":\"Tasks\",\"cells\":2…"`), false},
	} {
		if got := known(t, n, "av.get", c.report); got != c.want {
			t.Errorf("accepted %t: %s", got, c.report)
		}
	}
}

// TestADatabaseOfAHiddenNotebookIsLikeNone: the accepted difference says no more
// than that an id is of no use.
func TestADatabaseOfAHiddenNotebookIsLikeNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "with vault", t.TempDir())
	var err error
	w.notes, err = build(w.api, "")
	check(t, err)
	w.bind(t)
	const args = `{"parentID":"${alpha}","dataType":"dom","data":"<div data-node-id=\"${freshAV}\" data-type=\"NodeAttributeView\" data-av-id=\"${DB}\"></div>"}`
	var answers []string
	for _, name := range []string{"vault", "tasks", "nowhere"} {
		id := w.notes.id(name)
		o := w.call(ask{viewer: viewers()[0], action: actionOf(t, "block.append"), args: []byte(w.notes.text(regexp.MustCompile(`DB`).ReplaceAllString(args, name)))})
		if o.code != contract.HiddenReference {
			t.Errorf("%s: %s %s", name, o.Body, o.Err)
		}
		answers = append(answers, regexp.MustCompile(id).ReplaceAllString(fmt.Sprint(o.normal()), "ID"))
	}
	for _, a := range answers[1:] {
		if a != answers[0] {
			x, y := difference(answers[0], a)
			t.Errorf("one answer\n%s\nanother\n%s", x, y)
		}
	}
}

func actionOf(t *testing.T, id string) *catalogue.Action {
	t.Helper()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			if a.ID() == id {
				return a
			}
		}
	}
	t.Fatalf("no action %s", id)
	return nil
}
