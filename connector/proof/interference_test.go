package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// leak is a call whose answers differ between two worlds.
type leak struct {
	ask          ask
	one, two     string // names of the worlds
	first, other string // around the first difference
	only         string // what alone is different, where that is worth telling apart
	moved        bool   // a world may have changed
}

// Differences that no agent sees, but the broker.
const (
	onlyEffort   = "only the number of kernel calls differs"
	onlyNotebook = "only the notebook it is recorded with differs"
)

// recorded is the notebook that a call is recorded with.
var recorded = regexp.MustCompile(`stats \{Notebook:\S*|"trace":"","notebook":"[^"]*"`)

// alone names the difference of two outcomes that have no other.
func alone(x, y string) string {
	x, y = effort.ReplaceAllString(x, ""), effort.ReplaceAllString(y, "")
	switch {
	case x == y:
		return onlyEffort
	case recorded.ReplaceAllString(x, "") == recorded.ReplaceAllString(y, ""):
		return onlyNotebook
	}
	return ""
}

func (l leak) String() string {
	what := ""
	if l.only != "" {
		what = "\n  " + l.only
	}
	return fmt.Sprintf("%s %s%s\n  as %s\n  notebook %-10s %s\n  notebook %-10s %s", l.ask.action.ID(), l.ask.args, what, l.ask.viewer.name, l.one+":", l.first, l.two+":", l.other)
}

// worlds are kernels that differ only in the fate of their hidden notebook.
type worlds []*world

// newWorlds builds a world for each fate. bindings are the handlers of a world;
// nil for all of the connector's.
func newWorlds(t testing.TB, bindings func(w *world) []tools.Binding) worlds {
	t.Helper()
	var ws worlds
	var ids map[string]string
	for _, f := range fates() {
		w := newWorld(t, f.name, t.TempDir())
		var err error
		w.notes, err = build(w.api, "")
		check(t, err)
		if built := maps.Clone(w.notes.ids); ids == nil {
			ids = built
		} else if !maps.Equal(ids, built) {
			t.Fatalf("world %q has other ids than %q", w.name, ws[0].name)
		}
		check(t, f.run(w.notes, w.api))
		_, err = w.api.post("sqlite/flushTransaction", map[string]any{})
		check(t, err)
		w.saved = t.TempDir()
		check(t, still(w.kernel.Dir()))
		check(t, os.CopyFS(w.saved, os.DirFS(w.kernel.Dir())))
		var bound []tools.Binding
		if bindings != nil {
			bound = bindings(w)
		}
		w.bind(t, bound...)
		ws = append(ws, w)
	}
	return ws
}

// still gives every file one time of change: files know only the real clock.
func still(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, worldEpoch, worldEpoch))
	})
}

// again gives the worlds as they were before anything was asked.
func (ws worlds) again(t testing.TB) worlds {
	t.Helper()
	fresh := make(worlds, len(ws))
	for i, old := range ws {
		dir := t.TempDir()
		check(t, os.CopyFS(dir, os.DirFS(old.saved)))
		check(t, still(dir))
		w := newWorld(t, old.name, dir)
		w.notes, w.saved = old.notes, old.saved
		check(t, w.notes.renderEmbeds(w.api))
		w.bind(t)
		fresh[i] = w
	}
	return fresh
}

// compare makes one call in every world and reports the first that answers
// otherwise than the first world.
func (ws worlds) compare(a ask) (outcome, *leak) {
	first := ws[0].call(a)
	moved := first.mayWrite()
	for _, w := range ws[1:] {
		o := w.call(a)
		moved = moved || o.mayWrite()
		if !reflect.DeepEqual(o, first) {
			if x, y := a.comparable(first), a.comparable(o); x != y {
				l := &leak{ask: a, one: ws[0].name, two: w.name, only: alone(x, y), moved: moved}
				l.first, l.other = difference(x, y)
				return first, l
			}
		}
	}
	return first, nil
}

// mayWrite: an answer, or an error that does not come before anything is written.
func (o outcome) mayWrite() bool {
	switch errorType(o) {
	case contract.TypeNotFound, contract.TypeValidation, contract.TypePermission:
		return false
	}
	return true
}

// shrink looks for fewer arguments with the same trouble. It is for reads: the
// worlds must not have moved apart.
func (ws worlds) shrink(l *leak) *leak {
	for again := true; again; {
		again = false
		var args map[string]json.RawMessage
		if json.Unmarshal(l.ask.args, &args) != nil {
			return l
		}
		for name := range args {
			fewer := map[string]any{}
			for other, v := range args {
				if other != name {
					fewer[other] = v
				}
			}
			a := l.ask
			a.args = encode(fewer)
			if _, smaller := ws.compare(a); smaller != nil {
				l, again = smaller, true
				break
			}
		}
	}
	return l
}

// comparable is what of an outcome must be the same in all worlds.
func (a ask) comparable(o outcome) string {
	if a.action.Scope == catalogue.ScopeCollection {
		return effort.ReplaceAllString(o.normal(), "")
	}
	return o.normal()
}

// effort is how many kernel calls an answer took. A kernel copies the titles of
// hidden notes into the dynamic references of readable ones and then finds other
// candidates for a search; the guard looks at those and drops them, which takes
// more calls as it takes more time.
var effort = regexp.MustCompile(`KernelCalls:\d+|"kernel_calls":\d+`)

// normal is an outcome as one text, attribute lists sorted.
func (o outcome) normal() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "body %s\nerror %s\nstats %+v\nprogress %+v\nlog %s", o.Body, o.Err, o.Stats, o.Progress, o.Log)
	return sortAttributes(b.String())
}

var (
	attributeList = regexp.MustCompile(`(\{:|<[a-z][a-z0-9]*)((?:\s+[\w-]+=\\?"[^"\\]*\\?")+)`)
	attribute     = regexp.MustCompile(`[\w-]+=\\?"[^"\\]*\\?"`)
)

// sortAttributes orders the attributes of kramdown and DOM, also inside JSON
// strings: a kernel gives them in random order.
func sortAttributes(s string) string {
	return attributeList.ReplaceAllStringFunc(s, func(list string) string {
		m := attributeList.FindStringSubmatch(list)
		attrs := attribute.FindAllString(m[2], -1)
		slices.Sort(attrs)
		return m[1] + " " + strings.Join(attrs, " ")
	})
}

// difference cuts two texts to what surrounds their first difference.
func difference(x, y string) (string, string) {
	at := 0
	for at < len(x) && at < len(y) && x[at] == y[at] {
		at++
	}
	cut := func(s string) string {
		from, to := max(0, at-160), min(len(s), at+240)
		return strconv.Quote("…" + strings.ToValidUTF8(s[from:to], "") + "…")
	}
	return cut(x), cut(y)
}

// seeds is how many seeds of fuzzed arguments are run.
func seeds(t testing.TB) int {
	s := os.Getenv("PROOF_SEEDS")
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("PROOF_SEEDS=%q: want a number of seeds", s)
	}
	return n
}

// whole skips a proof under the race detector: it asks thousands of calls of
// five kernels, and no call needs another to run beside it.
func whole(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("too dear under the race detector; run go test ./connector/proof without -race")
	}
	t.Parallel()
}

// What one seed asks besides the corners: about this many reads and writes, split
// over the actions, but of each action at least a few.
const (
	readBudget  = 500
	writeBudget = 300
	leastAsked  = 10
)

// refusedHere are actions that answer nobody in these worlds, with the reason.
var refusedHere = map[string]string{
	"file.list_unused_assets":       "it is refused while anything is hidden",
	"file.remove_unused_assets":     "it is refused while anything is hidden",
	"file.rename_asset":             "it is refused while anything is hidden",
	"file.delete_asset":             "it is refused while anything is hidden",
	"file.create_template":          "it is refused while anything is hidden",
	"file.update_template":          "it is refused while anything is hidden",
	"file.delete_template":          "it is refused while anything is hidden",
	"file.save_doc_as_template":     "it is refused while anything is hidden",
	"search.semantic":               "it is refused while anything is hidden, and the sample kernel has no embedding service",
	"flashcard.review_card":         "the kernel chooses the ids of cards, so none can be named here; connector/tools tries its levels",
	"extension.diagnose_plugin_mcp": "it is refused while anything is hidden",
	"extension.plugin_read":         "it is refused while anything is hidden",
	"extension.plugin_call":         "it is refused while anything is hidden",
	"extension.native_read":         "it is refused while anything is hidden",
	"extension.native_call":         "it is refused while anything is hidden, and the home policy names no such tool",
	"system.conf":                   "it is refused while anything is hidden",
	"system.perform_sync":           "the sample kernel has no sync",
	"tag.rename":                    "it is refused while anything is hidden",
	"timeline.list_changes":         "these homes keep no restore points; connector/tools and connector/undo try what it tells whom",
	"timeline.undo":                 "these homes keep no restore points; connector/tools and connector/undo try what it tells whom",
	"tag.remove":                    "it is refused while anything is hidden",
}

// bound are the actions that have a handler; the others answer unsupported and
// prove nothing.
func bound(w *world, kinds ...catalogue.Kind) []*catalogue.Action {
	unbound := w.exec[viewers()[0].name].Unbound()
	var list []*catalogue.Action
	for _, t := range catalogue.AtHome().Tools() {
		for _, a := range t.Actions {
			if slices.Contains(kinds, a.Kind) && !slices.Contains(unbound, a.ID()) {
				list = append(list, a)
			}
		}
	}
	return list
}

func TestHiddenNotebooksInterfereWithNoRead(t *testing.T) {
	whole(t)
	for seed := range seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			ws := newWorlds(t, nil)
			actions := bound(ws[0], catalogue.Read, catalogue.UI)
			for _, a := range actions {
				ws.read(t, a, contract.MethodCall, uint64(seed), max(leastAsked, readBudget/len(actions)))
			}
		})
	}
}

// What a person is shown before they agree is read with their agent's rights.
func TestHiddenNotebooksInterfereWithNoPreview(t *testing.T) {
	whole(t)
	ws := newWorlds(t, nil)
	for _, a := range bound(ws[0], catalogue.Write, catalogue.Delete) {
		if a.Dangerous {
			ws.read(t, a, contract.MethodPreview, 0, 3*leastAsked)
		}
	}
}

// read asks one reading action, or for the previews of a writing one.
func (ws worlds) read(t *testing.T, a *catalogue.Action, method string, seed uint64, budget int) {
	asked, answers := 0, 0
	g := newGenerator(ws[0].notes, seed, a.ID())
	all := viewers()
	for i, args := range g.arguments(a, budget) {
		o, l := ws.compare(ask{viewer: all[i%len(all)], action: a, method: method, args: args, n: i})
		if asked++; o.code == "" {
			answers++
		}
		if l != nil && !known(t, ws[0].notes, a.ID(), l.String()) {
			t.Errorf("%s", ws.shrink(l))
		}
		if o.code == contract.Internal {
			t.Errorf("%s %s\n  %s\n  %s", a.ID(), args, o.Err, o.Log)
		}
	}
	t.Logf("%s: %d of %d calls answered", a.ID(), answers, asked)
	if answers == 0 && refusedHere[a.ID()] == "" {
		t.Errorf("%s never answered: nothing is proven about it", a.ID())
	}
}

func TestHiddenNotebooksInterfereWithNoWrite(t *testing.T) {
	whole(t)
	for seed := range seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			ws := newWorlds(t, nil)
			actions := bound(ws[0], catalogue.Write, catalogue.Delete)
			for _, a := range actions {
				ws = ws.write(t, a, uint64(seed), max(leastAsked, writeBudget/len(actions)))
			}
		})
	}
}

// write asks one writing action. It gives the worlds to go on with: new ones, because these have changed.
func (ws worlds) write(t *testing.T, a *catalogue.Action, seed uint64, budget int) worlds {
	before := ws.hidden(t)
	asked, answers := 0, 0
	g := newGenerator(ws[0].notes, seed, a.ID())
	all := viewers()
	for i, args := range g.arguments(a, budget) {
		o, l := ws.compare(ask{viewer: all[i%len(all)], action: a, args: args, n: i})
		if asked++; o.code == "" {
			answers++
		}
		if o.code == contract.Internal {
			t.Errorf("%s %s\n  %s\n  %s", a.ID(), args, o.Err, o.Log)
		}
		if l == nil {
			continue
		}
		if !known(t, ws[0].notes, a.ID(), l.String()) {
			t.Errorf("%s", l)
		}
		if !l.moved {
			continue
		}
		ws.compareHidden(t, a, before)
		ws = ws.again(t) // these have moved apart
		before = ws.hidden(t)
	}
	ws.compareHidden(t, a, before)
	t.Logf("%s: %d of %d calls wrote", a.ID(), answers, asked)
	if answers == 0 && refusedHere[a.ID()] == "" {
		t.Errorf("%s never wrote: nothing is proven about it", a.ID())
	}
	return ws.again(t)
}

// compareHidden demands that no file of the hidden notebook has changed.
func (ws worlds) compareHidden(t *testing.T, a *catalogue.Action, before [][]string) {
	for i, after := range ws.hidden(t) {
		for _, d := range changed(before[i], after) {
			t.Errorf("%s wrote to a hidden notebook (%s): %s", a.ID(), ws[i].name, d)
		}
	}
}

// hidden lists the files of the hidden notebook in every world.
func (ws worlds) hidden(t testing.TB) [][]string {
	t.Helper()
	var all [][]string
	for _, w := range ws {
		files, err := w.api.tree("data/" + w.notes.hidden)
		check(t, err)
		all = append(all, files)
	}
	return all
}

// changed says what is different between two lists of files.
func changed(before, after []string) []string {
	var list []string
	for _, f := range before {
		if !slices.Contains(after, f) {
			list = append(list, "was "+f)
		}
	}
	for _, f := range after {
		if !slices.Contains(before, f) {
			list = append(list, "is "+f)
		}
	}
	return list
}

func TestIngredientsAreInTheNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ingredients", t.TempDir())
	n, err := build(w.api, "")
	if errors.Is(err, errNoEndpoint) {
		t.Fatalf("the kernel lacks what the notes cannot do without: %v", err)
	}
	check(t, err)
	for _, in := range ingredients() {
		switch state := n.Ingredients[in.name]; {
		case state == "in":
		case slices.Contains(missingIngredients, in.name):
			t.Logf("not in: %s: %s", in.name, state)
		default:
			t.Errorf("not in: %s: %s", in.name, state)
		}
	}
	for _, name := range missingIngredients {
		if n.Ingredients[name] == "in" {
			t.Errorf("%s is in now: take it out of missingIngredients", name)
		}
	}
}
