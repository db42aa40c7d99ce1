package undo_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/restore"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/undo"
	"siyuan-broker/contract"
)

// desk is a home whose guard keeps restore points.
type desk struct {
	*guardtest.Home
	store  *restore.Store
	config restore.Config
	live   bool // in front of a real SiYuan
}

// sessionOf is a session of an agent that may do everything it can see.
func (d *desk) sessionOf(t *testing.T, agent string) *guard.Session {
	t.Helper()
	if d.live {
		return d.liveAs(t, agent)
	}
	return d.as(t, agent)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{}
	d.Home = guardtest.NewKeeping(t, func(now func() time.Time) guard.Points {
		d.config = restore.Config{Path: filepath.Join(t.TempDir(), "restore.db"), Now: now}
		d.reopen(t)
		return d.store
	})
	t.Cleanup(func() { fine(t, d.store.Close()) })
	return d
}

// reopen is what a new run of the connector does.
func (d *desk) reopen(t *testing.T) {
	t.Helper()
	store, err := restore.Open(d.config)
	fine(t, err)
	d.store = store
}

// plan judges a choice of points for one who may do everything.
func (d *desk) plan(t *testing.T, c restore.Choice) undo.Plan {
	t.Helper()
	points, err := d.store.Points(c)
	fine(t, err)
	p, err := undo.Make(context.Background(), d.as(t, "owner"), points, c.Since)
	fine(t, err)
	return p
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", guard.Public(err), err)
	}
}

// as is a session of an agent that may do everything but see Private.
func (d *desk) as(t *testing.T, agent string) *guard.Session {
	t.Helper()
	w, err := d.Guard.Workspace(context.Background())
	fine(t, err)
	g := guardtest.Grant(map[string]contract.Level{guardtest.Work: contract.ReadWriteDelete, guardtest.Diary: contract.ReadWriteDelete})
	g.Agent = contract.AgentRef{ID: agent, Name: agent}
	return d.Guard.Session(w, g)
}

// write lets an agent write to a document, or with folder into its notebook too.
func (d *desk) write(t *testing.T, agent, doc string, tree bool, do func(ctx context.Context, s *guard.Session, tx *guard.Tx, doc guard.Doc) error) {
	t.Helper()
	s := d.as(t, agent)
	ctx := context.Background()
	at, err := s.Doc(ctx, doc, contract.ReadWrite)
	fine(t, err)
	in := guard.Intent{Action: "test", Targets: []guard.Target{at}}
	if tree {
		diary, err := s.Notebook(guardtest.Diary, contract.ReadWrite)
		fine(t, err)
		in.Targets = append(in.Targets, at.Notebook(), diary)
	}
	fine(t, s.Write(ctx, in, func(ctx context.Context, tx *guard.Tx) error { return do(ctx, s, tx, at) }))
}

// undo takes back what a choice of points says.
func (d *desk) undo(t *testing.T, c restore.Choice) undo.Plan {
	t.Helper()
	ctx := context.Background()
	points, err := d.store.Points(c)
	fine(t, err)
	s := d.sessionOf(t, "owner")
	p, err := undo.Make(ctx, s, points, c.Since)
	fine(t, err)
	fine(t, p.Apply(ctx, s, guard.Intent{Action: "undo"}, d.store, nil))
	for _, doc := range p.Documents {
		if doc.Failed != "" {
			t.Errorf("document %s: %s", doc.ID, doc.Failed)
		}
	}
	return p
}

func scopeOf(agent string) string { return "t/i//" + agent }

// look is everything of the home's readable documents that an undo must bring
// back: notebook, path, title, attributes, blocks with ids and attributes.
func (d *desk) look(t *testing.T) map[string]string {
	t.Helper()
	ctx := context.Background()
	r := d.Client.Reader()
	fine(t, r.Flush(ctx))
	seen := map[string]string{}
	var walk func(box siyuan.ID, path string)
	walk = func(box siyuan.ID, path string) {
		files, err := r.Docs(ctx, box, path)
		fine(t, err)
		for i, f := range files {
			text, err := r.BlockKramdown(ctx, f.ID, siyuan.KramdownMarkdown)
			fine(t, err)
			attrs, err := r.BlockAttrs(ctx, f.ID)
			fine(t, err)
			seen[string(f.ID)] = fmt.Sprintf("%s%s at %d\n%s\n%s", box, f.Path, i, plainAttrs(attrs), plainText(text))
			if f.SubFileCount > 0 {
				walk(box, f.Path)
			}
		}
	}
	walk(guardtest.Work, "/")
	walk(guardtest.Diary, "/")
	return seen
}

func plainAttrs(a siyuan.Attrs) string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if k != "updated" {
			lines = append(lines, k+"="+a[k])
		}
	}
	return strings.Join(lines, " ")
}

var (
	listPattern = regexp.MustCompile(`\{:[^}\n]*\}`)
	attrPattern = regexp.MustCompile(`[a-z-]+="[^"]*"`)
)

// plainText has the attributes of every list sorted, without times.
func plainText(text string) string {
	return listPattern.ReplaceAllStringFunc(text, func(list string) string {
		attrs := attrPattern.FindAllString(list, -1)
		attrs = slices.DeleteFunc(attrs, func(a string) bool { return strings.HasPrefix(a, "updated=") })
		slices.Sort(attrs)
		return strings.Join(attrs, " ")
	})
}

func same(t *testing.T, before, after map[string]string) {
	t.Helper()
	for id := range before {
		if before[id] != after[id] {
			t.Errorf("document %s was\n%s\nand is\n%s", id, before[id], after[id])
		}
	}
	for id := range after {
		if _, was := before[id]; !was {
			t.Errorf("document %s was not there:\n%s", id, after[id])
		}
	}
}

func markdown(s string) guard.Text { return guard.Text{Data: s} }

// kinds are the writes on documents, each by itself.
var kinds = []struct {
	name string
	doc  string
	tree bool
	do   func(ctx context.Context, s *guard.Session, tx *guard.Tx, d guard.Doc) error
}{
	{"append", guardtest.Alpha, false, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, d guard.Doc) error {
		_, err := tx.Append(ctx, d.Block(), markdown("one\n\n- two"))
		return err
	}},
	{"update a block with attributes", guardtest.Alpha, false, func(ctx context.Context, s *guard.Session, tx *guard.Tx, _ guard.Doc) error {
		b, err := s.Block(ctx, guardtest.Intro, contract.ReadWrite)
		if err == nil {
			_, err = tx.Update(ctx, []guard.Update{{Block: b, Text: markdown("Rewritten.")}})
		}
		return err
	}},
	{"delete a list", guardtest.Alpha, false, func(ctx context.Context, s *guard.Session, tx *guard.Tx, _ guard.Doc) error {
		b, err := s.Block(ctx, guardtest.List, contract.ReadWriteDelete)
		if err == nil {
			err = tx.Delete(ctx, b)
		}
		return err
	}},
	{"change the attributes of a block", guardtest.Alpha, false, func(ctx context.Context, s *guard.Session, tx *guard.Tx, _ guard.Doc) error {
		b, err := s.Block(ctx, guardtest.Intro, contract.ReadWrite)
		if err == nil {
			_, err = tx.SetAttrs(ctx, b, map[string]string{"custom-status": "done", "bookmark": ""})
		}
		return err
	}},
	{"set an icon", guardtest.Alpha, false, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, d guard.Doc) error {
		icon := "1f600"
		_, err := tx.SetLook(ctx, d, &icon, nil)
		return err
	}},
	{"rename", guardtest.Alpha, true, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, d guard.Doc) error {
		return tx.RenameDoc(ctx, d, "Omega")
	}},
	{"move to another notebook", guardtest.Alpha, true, func(ctx context.Context, s *guard.Session, tx *guard.Tx, d guard.Doc) error {
		n, err := s.Notebook(guardtest.Diary, contract.ReadWrite)
		if err == nil {
			_, err = tx.MoveDocs(ctx, []guard.Doc{d}, guard.Place{Notebook: n})
		}
		return err
	}},
	{"create with levels above", guardtest.Projects, true, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, d guard.Doc) error {
		_, err := tx.CreateDoc(ctx, guard.NewDoc{Notebook: d.Notebook(), Parent: &d, Above: []string{"New level"}, Title: "New", Markdown: "text", IfExists: guard.Fail})
		return err
	}},
	{"duplicate", guardtest.Projects, true, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, d guard.Doc) error {
		_, err := tx.DuplicateDoc(ctx, d)
		return err
	}},
	{"remove with a document below", guardtest.Projects, true, func(ctx context.Context, _ *guard.Session, tx *guard.Tx, d guard.Doc) error {
		_, err := tx.RemoveDocs(ctx, []guard.Doc{d})
		return err
	}},
	{"make a heading a document", guardtest.Alpha, true, func(ctx context.Context, s *guard.Session, tx *guard.Tx, d guard.Doc) error {
		b, err := s.Block(ctx, guardtest.Heading, contract.ReadWrite)
		if err == nil {
			_, err = tx.HeadingToDoc(ctx, b, guard.Place{Notebook: d.Notebook()}, nil)
		}
		return err
	}},
}

func TestUndoBringsBackWhatAnyWriteToADocumentChanged(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			before := d.look(t)
			d.write(t, "a", k.doc, k.tree, k.do)
			if maps.Equal(before, d.look(t)) {
				t.Fatal("the write changed nothing")
			}
			p := d.undo(t, restore.Choice{})
			if p.Refused > 0 {
				t.Errorf("refused: %+v", p.Documents)
			}
			same(t, before, d.look(t))
		})
	}
}
