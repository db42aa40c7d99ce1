package tools_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
)

// FuzzEditsKeepWhatTheyDoNotName: in documents of every kind of block and mark,
// an edit leaves every line alone that it did not name, attributes and
// references included; or it is refused and leaves all of them alone.
func FuzzEditsKeepWhatTheyDoNotName(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	h := guardtest.New(f)
	var made atomic.Uint64 // a document may be written for one seed twice
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := deskOf(t, h, policy.Fixed(contract.ReadWriteDelete))
		text := &scribe{Rand: rand.New(rand.NewPCG(seed, 7)), stem: fmt.Sprintf("%06d", made.Add(1)%1_000_000)}
		doc := text.id("d")
		h.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + doc + ".sy", Title: "Keep " + text.stem, Text: text.document()})
		for _, e := range text.edits(doc) {
			d.keeps(t, doc, e)
		}
	})
}

// edit is a call with what it does to the lines of a document.
type edit struct {
	action, args string
	old, new     string // of the one line that changes; old "" for one that only adds
	sure         bool   // it must not be refused
	rewrites     bool   // the line with old in it is written anew
	whole        bool   // the document is written anew, where that takes away nothing people set
}

// keeps makes an edit and compares the document before and after.
func (d *desk) keeps(t *testing.T, doc string, e edit) {
	t.Helper()
	before := lines(d.kramdown(t, doc))
	r := d.call(full(), e.action, e.args)
	after := lines(d.kramdown(t, doc))
	switch {
	case r.Err != nil:
		if e.sure {
			t.Errorf("%s %s: %v", e.action, e.args, r.Err)
		}
		if !slices.Equal(before, after) {
			t.Errorf("%s %s was refused (%v) and wrote:\n%s\nbefore\n%s", e.action, e.args, r.Err, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		return
	case e.whole:
		for _, line := range before {
			if lost := peoples.FindString(line); lost != "" {
				t.Errorf("%s %s took away %s", e.action, e.args, lost)
			}
		}
		if !strings.Contains(strings.Join(after, "\n"), e.new) {
			t.Errorf("%s %s did not write:\n%s", e.action, e.args, strings.Join(after, "\n"))
		}
		return
	case e.rewrites:
		rewritten := func(line string) bool { return strings.Contains(line, e.old) }
		if !slices.Equal(slices.DeleteFunc(before, rewritten), slices.DeleteFunc(after, rewritten)) {
			t.Errorf("%s %s:\n%s\nbefore\n%s", e.action, e.args, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		return
	case e.old != "":
		for i := range before {
			before[i] = strings.ReplaceAll(before[i], e.old, e.new)
		}
		if !slices.Equal(before, after) {
			t.Errorf("%s %s:\n%s\nwant\n%s", e.action, e.args, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		return
	}
	left := after
	for _, line := range before {
		at := slices.Index(left, line)
		if at < 0 {
			t.Errorf("%s %s lost or moved %q:\n%s\nbefore\n%s", e.action, e.args, line, strings.Join(after, "\n"), strings.Join(before, "\n"))
			return
		}
		left = left[at+1:]
	}
}

var (
	rule        = regexp.MustCompile(`-{3,}`) // of a table: as wide as its texts
	changedAt   = regexp.MustCompile(` updated="\d*"`)
	attrsOfLine = regexp.MustCompile(`\{:((?: [\w-]+="[^"]*")+)\}`)
	peoples     = regexp.MustCompile(`\b(?:name|alias|memo|bookmark|custom-[\w-]+)="[^"]*"`)
	oneAttr     = regexp.MustCompile(`[\w-]+="[^"]*"`)
)

// lines are those of kramdown that are not empty, without times of change and
// with the attributes of each list in one order, which a kernel does not keep.
func lines(kramdown string) []string {
	kramdown = rule.ReplaceAllString(kramdown, "---")
	kramdown = attrsOfLine.ReplaceAllStringFunc(changedAt.ReplaceAllString(kramdown, ""), func(list string) string {
		attrs := oneAttr.FindAllString(list, -1)
		slices.Sort(attrs)
		return "{: " + strings.Join(attrs, " ") + "}"
	})
	return slices.DeleteFunc(strings.Split(kramdown, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}

// scribe writes random documents.
type scribe struct {
	*rand.Rand
	stem   string
	blocks int
	words  []string // one of a kind each, in plain text
	top    []string // ids of blocks of the document itself
	own    []string // ids of paragraphs and headings, each with the word at the same place in said
	said   []string
}

func (s *scribe) id(kind string) string {
	s.blocks++
	return fmt.Sprintf("20240401%s-%s%06d", s.stem, kind, s.blocks)
}

// word is a text that the document has once.
func (s *scribe) word() string {
	w := fmt.Sprintf("wort%s海%d尾", s.stem, len(s.words))
	s.words = append(s.words, w)
	return w
}

// span is a mark of some kind, or a word.
func (s *scribe) span() string {
	marks := []string{"**bold**", "*leaning*", "`x := 1`", "~~gone~~", "==lit==", "#tag#", "#标签/深#", "((" + guardtest.Intro + ` "anchor"))`, "((" + guardtest.Heading + " 'goals'))", "[link](https://example.org/?a=b)", "$a+b$", "<u>under</u>", "<kbd>Ctrl</kbd>", "H~2~O", "x^2^", "![alt](assets/a-20240101090000-abcdefg.png)"}
	return marks[s.IntN(len(marks))]
}

func (s *scribe) sentence() string {
	parts := []string{s.word()}
	for range s.IntN(4) {
		parts = append(parts, s.span(), "and")
	}
	return strings.Join(parts, " ")
}

// text is a sentence with the attribute list of its block, parted by between.
func (s *scribe) text(list, between string) string {
	sentence := s.sentence()
	s.own, s.said = append(s.own, idOf(list)), append(s.said, s.words[len(s.words)-1])
	return sentence + between + list
}

func idOf(list string) string { return oneAttr.FindString(list)[4:26] }

func (s *scribe) ial(kind string) string {
	id := s.id(kind)
	more := []string{"", ` custom-k="v &quot;w&quot;"`, ` name="n` + id[15:] + `"`, ` alias="a" memo="见 me"`, ` bookmark="Review"`}
	return fmt.Sprintf("{: id=%q%s}", id, more[s.IntN(len(more))])
}

func (s *scribe) document() string {
	var b strings.Builder
	for range 4 + s.IntN(5) {
		at := s.ial("b")
		s.top = append(s.top, idOf(at))
		switch s.IntN(7) {
		case 0:
			fmt.Fprintf(&b, "## %s\n\n", s.text(at, "\n"))
		case 1:
			fmt.Fprintf(&b, "- %s%s\n\n  - %s%s\n  %s\n%s\n\n", s.ial("i"), s.text(s.ial("p"), "\n  "), s.ial("i"), s.text(s.ial("p"), "\n    "), s.ial("l"), at)
		case 2:
			fmt.Fprintf(&b, "|%s|b|\n|-|-|\n|%s|%s|\n%s\n\n", s.word(), s.word(), s.span(), at)
		case 3:
			fmt.Fprintf(&b, "> %s\n%s\n\n", s.text(s.ial("p"), "\n> "), at)
		case 4:
			fmt.Fprintf(&b, "```go\n%s := \"# no heading\"\n```\n%s\n\n", s.word(), at)
		default:
			fmt.Fprintf(&b, "%s\n\n", s.text(at, "\n"))
		}
	}
	return b.String()
}

// edits are one of each kind.
func (s *scribe) edits(doc string) []edit {
	anew := func(w string) string { return "neu" + w[4:] }
	block := func() string { return s.top[s.IntN(len(s.top))] }
	add := func(action, place, id, data string) edit {
		return edit{action: action, args: fmt.Sprintf(`{%q:%q,"dataType":"markdown","data":%q}`, place, id, data), sure: true}
	}
	word := s.words[s.IntN(len(s.words))]
	list := []edit{
		{action: "fs.replace", args: fmt.Sprintf(`{"path":"/%s","old":%q,"new":%q}`, doc, word, anew(word)), old: word, new: anew(word)},
		add("block.append", "parentID", doc, "tail **x**"),
		add("block.prepend", "parentID", doc, "- head\n- more"),
		add("block.insert", "previousID", block(), "between"),
		{action: "block.set_attrs", args: fmt.Sprintf(`{"id":%q,"attrs":{"custom-none":""}}`, block()), sure: true},
	}
	for i := range s.own {
		if i%2 == 0 && s.said[i] != word {
			list = append(list, edit{action: "block.replace", args: fmt.Sprintf(`{"id":%q,"old":%q,"new":%q}`, s.own[i], s.said[i], anew(s.said[i])), old: s.said[i], new: anew(s.said[i]), sure: true})
		} else if i%2 == 1 && s.said[i] != word {
			list = append(list, edit{action: "block.update", args: fmt.Sprintf(`{"id":%q,"dataType":"markdown","data":%q}`, s.own[i], "all new "+s.said[i]), old: s.said[i], rewrites: true})
		}
	}
	at := "/Work/Keep " + s.stem
	return append(list,
		edit{action: "fs.write", args: fmt.Sprintf(`{"path":%q,"markdown":"beside"}`, at+"/Below"), sure: true},
		edit{action: "fs.write", args: fmt.Sprintf(`{"path":%q,"markdown":"over it"}`, at)}, // refused: it is there
		edit{action: "fs.write", args: fmt.Sprintf(`{"path":%q,"markdown":"all anew","overwrite":true}`, at), new: "all anew", whole: true})
}
