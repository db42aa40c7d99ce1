package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"siyuan-broker/connector/siyuan"
)

// Look names a way to look at the kernel that tells whether a step happened.
type Look string

// The looks. What they see is an id, a word or a digest, never text.
const (
	LookThere    Look = "there"    // whether a block or document exists: yes or no
	LookText     Look = "text"     // the kramdown of a block, without attribute lists
	LookWords    Look = "words"    // its letters and digits: what survives the kernel's own spelling
	LookDOMWords Look = "domwords" // the same, of its DOM
	LookAttrs    Look = "attrs"    // its attributes, but for those the kernel computes
	LookChildren Look = "children" // the ids of its children, in order
	LookTail     Look = "tail"     // the id of its last child
	LookPlace    Look = "place"    // its parent and the block before it
	LookTask     Look = "task"     // the marker of a task item
	LookPath     Look = "path"     // notebook and storage path of a document
	LookTitle    Look = "title"    // of a document
	LookBelow    Look = "below"    // how many documents are right below a place, given as LookPath gives one
	LookCites    Look = "cites"    // whether a block cites another, given as both: yes or no
	LookNamed    Look = "named"    // how many notebooks have the name of that digest
	LookListed   Look = "listed"   // whether a notebook exists: yes or no
	LookName     Look = "name"     // of a notebook
	LookIcon     Look = "icon"     // of a notebook
	LookOpen     Look = "open"     // whether a notebook is open: yes or no
	LookConf     Look = "conf"     // where a notebook puts new notes
	LookReps     Look = "reps"     // how often a card was reviewed, given as deck and card
	LookTag      Look = "tag"      // whether a block has the tag of that digest: yes or no
	LookTags     Look = "tags"     // the same, or a tag below it
	LookDatabase Look = "database" // whether a database has a file: yes or no
	LookDBName   Look = "dbname"   // of a database
	LookRow      Look = "row"      // whether a database has a row, given as both: yes or no
	LookColumn   Look = "column"   // whether a database has a column, given as both: yes or no
	LookCell     Look = "cell"     // a cell, given as database, column and row
	LookNever    Look = "never"    // nothing: what became of the step cannot be seen
	LookNode     Look = "node"     // whether a snapshot has that name: yes or no
	LookFile     Look = "file"     // the size of a file below assets
	LookFileSum  Look = "filesum"  // its SHA-256
	LookRows     Look = "rows"     // how many rows a database has
	LookView     Look = "view"     // a part of a view, given as database, view and the part's name
	LookKey      Look = "key"      // what a column is, given as database and column
	LookPresets  Look = "presets"  // a database's templates for new rows
	LookTemplate Look = "template" // the SHA-256 of a template's text
	LookSaved    Look = "saved"    // whether there is a template: yes or no
)

const (
	yes = "yes"
	no  = "no"
)

func yesNo(b bool) string {
	if b {
		return yes
	}
	return no
}

// Verdict says whether a step happened.
type Verdict uint8

// The verdicts.
const (
	Unclear Verdict = iota // the state is neither that before nor that after
	NotDone                // everything is as it was before
	Done                   // everything is as it was to be
	Pending                // as it was before, but SiYuan may still be at work on it
)

// settleTime is how long a kernel that answers again needs at least for what it
// had before it.
const settleTime = time.Second

// Decide looks whether a step happened. One that did not counts as not done only
// when its request is so old that SiYuan cannot have it in its hands any more, and
// SiYuan has answered for a while; it waits for that where the context has the
// time, and says Pending where not. An error means that the kernel could not be
// asked.
func (g *Guard) Decide(ctx context.Context, st Step) (Verdict, error) {
	if st.Repeatable != "" {
		return NotDone, nil
	}
	v, err := g.decideNow(ctx, st)
	if err != nil || v != NotDone {
		return v, err
	}
	wait := g.unsettled(st)
	if end, bound := ctx.Deadline(); bound && time.Until(end) < wait {
		return Pending, nil
	}
	if err := g.opt.Sleep(ctx, wait); err != nil {
		return Unclear, err
	}
	return g.decideNow(ctx, st)
}

// unsettled is how long a step is to be waited for.
func (g *Guard) unsettled(st Step) time.Duration {
	age := g.opt.Now().Sub(time.UnixMilli(st.At))
	return max(settleTime, min(g.opt.Settle, g.opt.Settle-age))
}

func (g *Guard) decideNow(ctx context.Context, st Step) (Verdict, error) {
	if err := g.r.Flush(ctx); err != nil { // deletions wait in a queue
		return Unclear, err
	}
	before, after := 0, 0 // marks that prove it; -1 once one proves the contrary
	for _, m := range st.Marks {
		now, err := g.look(ctx, m.Look, siyuan.ID(m.ID))
		if err != nil {
			return Unclear, err
		}
		before, after = tally(before, m.Before, now), tally(after, m.After, now)
	}
	switch {
	case before > 0:
		return NotDone, nil
	case after > 0:
		return Done, nil
	}
	return Unclear, nil
}

func tally(n int, want, now string) int {
	switch {
	case want == "" || n < 0:
		return n
	case want == now:
		return n + 1
	}
	return -1
}

// look is what there is to see now; something that is gone looks like "gone".
func (g *Guard) look(ctx context.Context, l Look, id siyuan.ID) (string, error) {
	seen, err := g.lookAt(ctx, l, id)
	if errors.Is(err, siyuan.Missing) || errors.Is(err, siyuan.Rejected) {
		return goneMark, nil
	}
	return seen, err
}

func (g *Guard) lookAt(ctx context.Context, l Look, id siyuan.ID) (string, error) {
	switch l {
	case LookNever:
		return "", nil
	case LookThere:
		there, err := g.r.BlockExists(ctx, id)
		return yesNo(there), err
	case LookText, LookWords, LookTask:
		text, err := g.r.BlockKramdown(ctx, id, siyuan.KramdownMarkdown)
		switch l {
		case LookWords:
			return wordsMark(text), err
		case LookTask:
			return taskMark(taskMarker(text)), err
		}
		return textMark(text), err
	case LookDOMWords:
		dom, err := g.r.BlockDOM(ctx, id)
		return wordsMark(domText(dom)), err
	case LookAttrs, LookTitle:
		attrs, err := g.r.BlockAttrs(ctx, id)
		if l == LookTitle {
			return digest(attrs["title"]), err
		}
		return attrsMark(attrs), err
	case LookChildren:
		children, err := g.r.ChildBlocks(ctx, id)
		return childrenMark(children), err
	case LookTail:
		last, err := g.r.TailChildBlocks(ctx, id, 1)
		if err != nil || len(last) == 0 {
			return tailMark(""), err
		}
		return tailMark(last[0].ID), nil
	case LookPlace:
		infos, err := g.r.BlockTreeInfos(ctx, []siyuan.ID{id})
		return placeMark(infos[id].ParentID, infos[id].PreviousID), err
	case LookPath:
		at, err := g.r.PathByID(ctx, id)
		return pathMark(at.Notebook, at.Path), err
	case LookBelow:
		box, path, _ := strings.Cut(string(id), "/")
		files, err := g.r.Docs(ctx, siyuan.ID(box), "/"+path)
		files = slices.DeleteFunc(files, func(f siyuan.DocFile) bool { return string(f.ID) == box })
		return belowMark(len(files)), err
	case LookCites:
		citing, cited, _ := strings.Cut(string(id), " ")
		text, err := g.r.BlockKramdown(ctx, siyuan.ID(citing), siyuan.KramdownMarkdown)
		return yesNo(cites(text, siyuan.ID(cited))), err
	case LookReps:
		return g.lookAtReps(ctx, string(id))
	case LookNode:
		return g.lookAtNode(ctx, string(id))
	case LookTag, LookTags:
		return g.lookAtTags(ctx, string(id), l == LookTags)
	case LookDatabase, LookDBName, LookRow, LookColumn, LookCell, LookRows, LookView, LookKey, LookPresets:
		return g.lookAtDatabase(ctx, l, string(id))
	case LookFile:
		st, err := g.r.StatAsset(ctx, string(id))
		return fileMark(st.Size), err
	case LookFileSum:
		_, sum, err := g.digestFile(ctx, string(id))
		return sum, err
	case LookTemplate, LookSaved:
		f, err := g.r.GetFile(ctx, templatesDir+"/"+string(id))
		if l == LookSaved && (err == nil || errors.Is(err, siyuan.Missing)) {
			return yesNo(err == nil), nil
		}
		return digest(string(f.Data)), err
	case LookConf:
		conf, err := g.r.NotebookConf(ctx, id)
		return confMark(conf), err
	}
	return g.lookAtNotebook(ctx, l, id)
}

func (g *Guard) lookAtNotebook(ctx context.Context, l Look, id siyuan.ID) (string, error) {
	all, _, err := g.r.Notebooks(ctx)
	if err != nil {
		return "", err
	}
	if l == LookNamed {
		return namedMark(all, string(id)), nil
	}
	i := slices.IndexFunc(all, func(n siyuan.Notebook) bool { return n.ID == id })
	if l == LookListed {
		return yesNo(i >= 0), nil
	}
	if i < 0 {
		return "gone", nil
	}
	switch l {
	case LookName:
		return digest(all[i].Name), nil
	case LookIcon:
		return digest(all[i].Icon), nil
	case LookOpen:
		return yesNo(!all[i].Closed), nil
	}
	return "", errors.New("guard: unknown look " + string(l))
}

func (g *Guard) lookAtDatabase(ctx context.Context, l Look, id string) (string, error) {
	parts := append(strings.Fields(id), "", "")
	av, err := g.r.AttributeView(ctx, siyuan.ID(parts[0]))
	if errors.Is(err, siyuan.Missing) && (l == LookDatabase || l == LookRow || l == LookColumn) {
		return no, nil
	}
	if err != nil {
		return "", err
	}
	part := siyuan.ID(parts[1])
	switch l {
	case LookDBName:
		return digest(av.Name), nil
	case LookRow:
		return yesNo(cellOf(av, primary(av).Key.ID, part) != nil), nil
	case LookColumn:
		_, has := Database{file: av}.key(part)
		return yesNo(has), nil
	case LookCell:
		return cellMark(cellOf(av, part, siyuan.ID(parts[2]))), nil
	case LookRows:
		return rowsMark(len(primary(av).Values)), nil
	case LookView:
		return viewMark(av, part, parts[2]), nil
	case LookKey:
		k, _ := Database{file: av}.key(part)
		return keyMark(k), nil
	case LookPresets:
		return presetsMark(av.NewItemTemplates, av.DefaultTemplateID), nil
	}
	return yes, nil
}

// partMark is the mark of a row or column that is made or taken away.
func partMark(l Look, av, part siyuan.ID, before, after bool) Mark {
	return Mark{l, string(av + " " + part), yesNo(before), yesNo(after)}
}

func rowsMark(n int) string { return strconv.Itoa(n) }

// thereMark is the mark of something that is made or taken away.
func thereMark(id siyuan.ID, before, after bool) Mark {
	return Mark{LookThere, string(id), yesNo(before), yesNo(after)}
}

func textMark(kramdown string) string { return digest(strings.TrimSpace(withoutZWSP(body(kramdown)))) }

// wordsMark is what the kernel keeps of a text whatever form it stores it in.
func wordsMark(text string) string {
	return digest(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, body(text)))
}

func taskMark(marker string) string { return "task " + strings.ToUpper(marker) }

// attrsMark leaves out what the kernel makes and databases write.
func attrsMark(attrs siyuan.Attrs) string {
	own := maps.Clone(attrs)
	for _, k := range computedAttrs {
		delete(own, k)
	}
	maps.DeleteFunc(own, func(k, v string) bool { return v == "" || databaseAttr(k) })
	b, err := json.Marshal(own) // sorted by key
	if err != nil {
		return "" // a map of texts always has a JSON form
	}
	return digest(string(b))
}

func childrenMark(children []siyuan.ChildBlock) string {
	var ids strings.Builder
	for _, c := range children {
		ids.WriteString(string(c.ID) + " ")
	}
	return digest(ids.String())
}

func tailMark(id siyuan.ID) string { return "last " + string(id) }

func placeMark(parent, previous siyuan.ID) string {
	return "in " + string(parent) + " after " + string(previous)
}

func belowMark(n int) string { return strconv.Itoa(n) }

func citesMark(citing, cited siyuan.ID) string { return string(citing) + " " + string(cited) }

func pathMark(box siyuan.ID, path string) string { return string(box) + path }

func namedMark(all []siyuan.Notebook, nameDigest string) string {
	return strconv.Itoa(namedCount(all, nameDigest))
}

func namedCount(all []siyuan.Notebook, nameDigest string) int {
	n := 0
	for _, nb := range all {
		if digest(nb.Name) == nameDigest {
			n++
		}
	}
	return n
}

func confMark(c siyuan.NotebookConf) string {
	return digest(strings.Join([]string{
		samePath(c.RefCreateSavePath), samePath(c.DocCreateSavePath), samePath(c.DailyNoteSavePath), samePath(c.DailyNoteTemplatePath),
	}, "\n"))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
