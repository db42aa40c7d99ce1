package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// TestLiveSiYuanKeepsHiddenNotebooksHidden asks a real SiYuan the same reads
// before and after the hidden notebook changed under it. It makes notebooks of
// its own, and removes them and their files again.
func TestLiveSiYuanKeepsHiddenNotebooksHidden(t *testing.T) {
	url, token := os.Getenv("SIYUAN_API_URL"), os.Getenv("SIYUAN_TOKEN")
	if url == "" || token == "" {
		t.Skip("SIYUAN_API_URL and SIYUAN_TOKEN name no SiYuan")
	}
	salt := fmt.Sprint(time.Now().UnixNano())
	w := &world{name: "as it was", clock: &clock{now: time.Now()}, dice: []*dice{{}, {}}, logs: &lines{}}
	w.connect(t, url, token)
	var err error
	w.notes, err = build(w.api, salt)
	t.Cleanup(func() { w.tidy(t) })
	check(t, err)
	w.notes.id("dawn")
	w.settle(t)
	w.bind(t)
	asks := w.liveAsks()
	before := w.answers(asks)
	for _, f := range fates() {
		if f.name != "rewritten" && f.name != "closed" && f.name != "removed" {
			continue
		}
		check(t, f.run(w.notes, w.api))
		w.settle(t)
		for i, after := range w.answers(asks) {
			x, y := effort.ReplaceAllString(before[i].normal(), ""), effort.ReplaceAllString(after.normal(), "")
			if x == y {
				continue
			}
			l := leak{ask: asks[i], one: w.name, two: f.name, only: alone(x, y)}
			l.first, l.other = difference(x, y)
			if !known(t, w.notes, asks[i].action.ID(), l.String()) {
				t.Error(l)
			}
		}
	}
}

// liveAsks are reads, and writes that point at nothing the caller may see: a
// write that works would change what the next pass reads.
func (w *world) liveAsks() []ask {
	v := viewers()[0] // to whom notebooks of others do not exist
	var asks []ask
	actions := bound(w, catalogue.Read, catalogue.UI)
	for _, a := range actions {
		for _, args := range newGenerator(w.notes, 0, a.ID()).arguments(a, max(leastAsked, readBudget/len(actions))) {
			asks = append(asks, ask{viewer: v, action: a, args: args})
		}
	}
	for _, a := range bound(w, catalogue.Write, catalogue.Delete) {
		for _, args := range newGenerator(w.notes, 0, a.ID()).arguments(a, leastAsked) {
			targets := targetsOf(a, args)
			if len(targets) > 0 && !slices.ContainsFunc(targets, func(tg target) bool { return w.notes.shows(tg.id) }) {
				asks = append(asks, ask{viewer: v, action: a, args: args})
			}
		}
	}
	return asks
}

// shows reports whether an id is of something readable, or a path of names may
// lead there: what does not begin in the hidden notebook may.
func (n *notes) shows(id string) bool {
	if !contract.IsID(id) {
		return !strings.HasPrefix(id, "/Private/") && !strings.HasPrefix(id, "/"+n.hidden)
	}
	return slices.Contains([]string{n.desk, n.diary, n.shut}, id) || slices.ContainsFunc(n.visible, func(name string) bool { return n.ids[name] == id })
}

func (w *world) answers(asks []ask) []outcome {
	list := make([]outcome, len(asks))
	for i, a := range asks {
		list[i] = w.call(a)
	}
	return list
}

// settle waits until the kernel has indexed what was written. Nothing tells
// when a notebook that is opened or closed is done, so it waits for the rows to
// stay the same for a while.
func (w *world) settle(t *testing.T) {
	t.Helper()
	const quiet, step, longest = 5, time.Second, 60
	last, same := "", 0
	for range longest {
		_, err := w.api.post("sqlite/flushTransaction", map[string]any{})
		check(t, err)
		rows, err := w.api.post("query/sql", map[string]any{"stmt": "SELECT box, count(*) AS n, max(updated) AS u FROM blocks WHERE box IN ('" +
			strings.Join([]string{w.notes.desk, w.notes.diary, w.notes.shut, w.notes.hidden}, "','") + "') GROUP BY box ORDER BY box"})
		check(t, err)
		if same++; string(rows) != last {
			last, same = string(rows), 0
		}
		if same >= quiet {
			return
		}
		<-time.After(step)
	}
	t.Fatal("the kernel's index does not come to rest")
}

// tidy removes everything that build made.
func (w *world) tidy(t *testing.T) {
	n := w.notes
	for _, box := range []string{n.desk, n.diary, n.shut, n.hidden} {
		if box != "" {
			if _, err := w.api.post("notebook/removeNotebook", map[string]any{"notebook": box}); err != nil {
				t.Error(err)
			}
		}
	}
	if deck := n.ids["deck"]; deck != "" {
		if _, err := w.api.post("riff/removeRiffDeck", map[string]any{"deckID": deck}); err != nil {
			t.Error(err)
		}
	}
	files := []string{"data/templates/nightfall-template" + n.salt + ".md", "data/templates/alpha-template" + n.salt + ".md"}
	for _, a := range n.assets() {
		files = append(files, "data/"+a)
	}
	for _, av := range []string{"tasks", "people", "vault"} {
		files = append(files, "data/storage/av/"+n.id(av)+".json")
	}
	for _, f := range files {
		raw, err := w.api.post("file/removeFile", map[string]any{"path": f})
		if err != nil && !strings.Contains(err.Error(), "code 404") {
			t.Errorf("remove %s: %v %s", f, err, json.RawMessage(raw))
		}
	}
}
