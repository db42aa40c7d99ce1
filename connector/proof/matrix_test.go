package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

var levels = []contract.Level{contract.None, contract.Read, contract.ReadWrite, contract.ReadWriteDelete}

// TestEveryActionNeedsExactlyItsLevel asks every action with every level in the
// notebooks it is pointed at. What must come of it is worked out from the
// contract alone: the level of the action, the levels of its parameters, and
// which of them name what is moved.
func TestEveryActionNeedsExactlyItsLevel(t *testing.T) {
	whole(t)
	m := newMatrix(t)
	for _, a := range bound(m.home, catalogue.Read, catalogue.Write, catalogue.Delete, catalogue.UI) {
		switch {
		case a.Scope == catalogue.ScopeWorkspace:
			m.workspace(t, a)
		case ownLevels[a.ID()] == "":
			m.notebooks(t, a)
		}
	}
	m.unchanged(t)
}

// matrix is a home with two notebooks that hold the same notes under different
// ids: those of the contract's examples, and their twins.
type matrix struct {
	saved  string
	home   *world
	before []string
	tries  int
	writes int // homes that were written to
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	w := newWorld(t, "matrix", t.TempDir())
	m := &matrix{saved: t.TempDir()}
	check(t, os.CopyFS(m.saved, os.DirFS(w.kernel.Dir())))
	for _, side := range []side{own, other} {
		dir := filepath.Join(m.saved, "data", side.id(exampleNotebook), ".siyuan")
		check(t, os.MkdirAll(dir, 0o755))
		check(t, os.WriteFile(filepath.Join(dir, "conf.json"), []byte(`{"name":"`+side.name()+`","closed":false,"sortMode":15}`), 0o600))
	}
	m.fresh(t)
	for _, side := range []side{own, other} {
		for _, d := range exampleDocs() {
			path := strings.NewReplacer(exampleIDs(side)...).Replace(d.parent + "/" + d.name + ".sy")
			_, err := m.home.api.post("filetree/createDoc", map[string]any{"notebook": side.id(exampleNotebook), "path": path, "title": d.title, "md": side.text(d.text), "sorts": []string{}})
			check(t, err)
		}
		check(t, exampleParts(side, m.home.api))
	}
	check(t, exampleNodes(m.home.api))
	m.saved = t.TempDir()
	check(t, os.CopyFS(m.saved, os.DirFS(m.home.kernel.Dir())))
	m.fresh(t)
	return m
}

// fresh starts a home in which nothing was written yet.
func (m *matrix) fresh(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(m.saved)))
	m.home = newWorld(t, "matrix", dir)
	m.home.notes = &notes{desk: exampleNotebook, hidden: "20990101000000-nothing", ids: map[string]string{}}
	m.home.bind(t)
	var err error
	m.before, err = m.home.api.tree("data")
	check(t, err)
}

// unchanged demands that nothing was written by calls that failed.
func (m *matrix) unchanged(t *testing.T) {
	t.Helper()
	after, err := m.home.api.tree("data")
	check(t, err)
	for _, d := range changed(m.before, after) {
		t.Errorf("a refused call wrote: %s", d)
	}
}

// cell is one place of the matrix: levels in the two notebooks, and where the
// call points.
type cell struct {
	levels map[side]contract.Level
	call   form
}

// notebooks walks the levels of an action that is bounded by them.
func (m *matrix) notebooks(t *testing.T, a *catalogue.Action) {
	forms, err := formsOf(a)
	if err != nil {
		t.Errorf("%s: %v", a.ID(), err)
		return
	}
	if refusedHere[a.ID()] != "" {
		m.refused(t, a, forms)
		return
	}
	worked := false
	for _, f := range forms {
		for _, c := range cells(f) {
			worked = m.try(t, a, c) || worked
		}
	}
	if !worked {
		t.Errorf("%s never succeeded: give it arguments in specialArguments", a.ID())
	}
}

// refused demands that an action which answers nobody here answers nobody at any
// level.
func (m *matrix) refused(t *testing.T, a *catalogue.Action, forms []form) {
	for _, f := range forms {
		for _, l := range levels {
			v := viewers()[0]
			v.grant = func(*notes) *contract.Grant {
				return &contract.Grant{V: contract.GrantVersion, Default: l, Exp: 1 << 40}
			}
			if o := m.home.call(ask{viewer: v, action: a, args: f.args, n: m.writes}); o.code != contract.Unsupported && o.code != contract.NotFound {
				t.Errorf("%s with %s everywhere: want unsupported or not_found, got %q %s %s", a.ID(), l, o.code, o.Body, o.Err)
			}
		}
	}
}

// cells are the levels worth trying for a form: every level where it points,
// with nothing and with everything in the other notebook, and every pair where
// it points at both.
func cells(f form) []cell {
	var list []cell
	sides := f.sides()
	for _, l := range levels {
		switch {
		case len(sides) < 2:
			for _, elsewhere := range []contract.Level{contract.None, contract.ReadWriteDelete} {
				c := cell{map[side]contract.Level{own: elsewhere, other: elsewhere}, f}
				for s := range sides {
					c.levels[s] = l
				}
				list = append(list, c)
			}
		default:
			for _, l2 := range levels {
				list = append(list, cell{map[side]contract.Level{own: l, other: l2}, f})
			}
		}
	}
	return list
}

// try makes one call and compares it with what the contract says; it reports
// success. Every other time the levels come from the home policy, and the grant
// allows everything.
func (m *matrix) try(t *testing.T, a *catalogue.Action, c cell) bool {
	want := expect(a, c)
	v := viewers()[0]
	set := map[string]contract.Level{own.id(exampleNotebook): c.levels[own], other.id(exampleNotebook): c.levels[other]}
	grant := contract.Grant{V: contract.GrantVersion, Levels: set, Exp: 1 << 40}
	from := "grant"
	if m.tries++; m.tries%2 == 0 {
		from, grant.Levels, grant.Default = "home policy", nil, contract.ReadWriteDelete
		v.name = from
		m.home.exec[v.name] = m.home.executor(t, policyFile(t, set))
	}
	v.grant = func(*notes) *contract.Grant { return &grant }
	o := m.home.call(ask{viewer: v, action: a, args: c.call.args, n: m.writes})
	if bad := want.judge(o, a); bad != "" {
		if report := fmt.Sprintf("%s %s with %s in its notebook and %s in the other, by the %s (%s):\n  %s\n  error %s\n  body %.300s",
			a.ID(), c.call.args, c.levels[own], c.levels[other], from, c.call.name, bad, o.Err, o.Body); !known(t, m.home.notes, a.ID(), report) {
			t.Error(report)
		}
	}
	if o.code == "" && a.Kind.Mutates() || o.code != "" && len(want.refused) == 0 { // the latter may have written halfway
		m.fresh(t)
		m.writes++
	}
	return o.code == ""
}

// expectation is what the contract says about a call.
type expectation struct {
	refused []target // targets the caller may see, but not use like this
	hidden  []target // targets that do not exist for the caller
	sure    bool     // the arguments are known to work
}

func expect(a *catalogue.Action, c cell) expectation {
	e := expectation{sure: c.call.sure}
	for _, tg := range c.call.targets {
		tg.need = needed(a, tg, c.call.targets)
		tg.have = c.levels[tg.side]
		switch {
		case tg.have == contract.None:
			e.hidden = append(e.hidden, tg)
		case !tg.have.Allows(tg.need):
			e.refused = append(e.refused, tg)
		}
	}
	return e
}

// needed is the level the contract demands at a target.
func needed(a *catalogue.Action, tg target, all []target) contract.Level {
	need := a.Level
	if tg.param.Level != nil {
		need = *tg.param.Level
	}
	if slices.Contains(a.Moves, tg.field) && slices.ContainsFunc(all, func(to target) bool { return !slices.Contains(a.Moves, to.field) && to.side != tg.side }) {
		return contract.ReadWriteDelete
	}
	return need
}

// lacksPart is an error of the arguments too: the database is there for the caller,
// and the column, row or view named beside it is of another one.
var lacksPart = regexp.MustCompile(`Database \d{14}-[0-9a-z]{7} has no (row|column|view|template) `)

// judge says what is wrong with an outcome; "" if nothing is.
func (e expectation) judge(o outcome, a *catalogue.Action) string {
	if reason, ok := perItem[a.ID()]; ok {
		return e.judgeItems(o, reason)
	}
	switch {
	case len(e.hidden) > 0 && o.code == contract.NotFound:
		return e.tellsNothing(o)
	case len(e.refused) > 0 && o.code == contract.PermissionDenied:
		return e.detail(o)
	case len(e.hidden)+len(e.refused) > 0:
		return fmt.Sprintf("want not_found for %d targets or permission_denied for %d", len(e.hidden), len(e.refused))
	case o.code == "":
		return ""
	case e.sure:
		return "want success"
	}
	if lacksPart.MatchString(o.Err) {
		return ""
	}
	if entry := errorType(o); entry != contract.TypeValidation && entry != contract.TypeConflict {
		return "want success or an error of the arguments"
	}
	return ""
}

// tellsNothing checks that an error repeats no more than the caller said.
func (e expectation) tellsNothing(o outcome) string {
	for _, h := range e.hidden {
		if id := h.side.id(exampleNotebook); strings.Contains(o.Err, id) && h.id != id {
			return "the error names a hidden notebook"
		}
	}
	return ""
}

// detail checks that a refusal says which level is needed where.
func (e expectation) detail(o outcome) string {
	var body struct {
		Error struct {
			Detail struct {
				Notebook string         `json:"notebook"`
				Level    contract.Level `json:"level"`
				Required contract.Level `json:"required"`
			} `json:"detail"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(o.Err), &body); err != nil {
		return "the error has no detail: " + err.Error()
	}
	d := body.Error.Detail
	for _, r := range e.refused {
		if d.Notebook == r.side.id(exampleNotebook) && d.Level == r.have && d.Required == r.need {
			return ""
		}
	}
	r := e.refused[0]
	return fmt.Sprintf("detail names %s in %s, needed %s; want %s in %s, needed %s", d.Level, d.Notebook, d.Required, r.have, r.side.id(exampleNotebook), r.need)
}

// judgeItems is for actions whose entries fail one by one.
func (e expectation) judgeItems(o outcome, reason string) string {
	if o.code != "" {
		return "want success, because " + reason
	}
	var body struct {
		Items []struct {
			ID    string          `json:"id"`
			OK    bool            `json:"ok"`
			Error *contract.Error `json:"error"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(o.Body), &body); err != nil {
		return err.Error()
	}
	for _, item := range body.Items {
		hidden := slices.ContainsFunc(e.hidden, func(t target) bool { return t.id == item.ID })
		if item.OK == hidden || hidden && (item.Error == nil || item.Error.Type != contract.TypeNotFound) {
			return fmt.Sprintf("entry %s: ok %v, error %v", item.ID, item.OK, item.Error)
		}
	}
	return ""
}

func errorType(o outcome) contract.ErrorType {
	var body struct {
		Error struct {
			Type contract.ErrorType `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(o.Err), &body) != nil {
		return ""
	}
	return body.Error.Type
}

// workspace checks an action that needs a switch, and the home policy's level.
func (m *matrix) workspace(t *testing.T, a *catalogue.Action) {
	forms, err := formsOf(a)
	if err != nil {
		t.Errorf("%s: %v", a.ID(), err)
		return
	}
	for _, on := range []bool{false, true} {
		v := viewers()[0]
		v.grant = func(*notes) *contract.Grant {
			g := &contract.Grant{V: contract.GrantVersion, Default: contract.ReadWriteDelete, Exp: 1 << 40, Switches: slices.DeleteFunc(contract.Switches(), func(s contract.Switch) bool { return s == a.Switch })}
			if on {
				g.Switches = append(g.Switches, a.Switch)
			}
			return g
		}
		o := m.home.call(ask{viewer: v, action: a, args: forms[0].args, n: m.writes})
		switch {
		case !on && o.code != contract.PermissionDenied:
			t.Errorf("%s %s without the switch %s: want permission_denied, got %q %.300s %s", a.ID(), forms[0].args, a.Switch, o.code, o.Body, o.Err)
		case on && o.code != "" && !(refusedHere[a.ID()] != "" && o.code == contract.Unsupported):
			t.Errorf("%s %s with the switch %s: want success, got %s", a.ID(), forms[0].args, a.Switch, o.Err)
		}
		if o.code == "" && a.Kind.Mutates() {
			m.fresh(t)
			m.writes++
		}
	}
}
