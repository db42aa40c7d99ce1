package guard

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"siyuan-broker/connector/siyuan"
)

// Author is whose writes belong together: one agent, in one conversation where
// its client has such.
type Author struct {
	Scope        string `json:"scope"` // tenant, instance, member and agent
	Name         string `json:"name"`  // of the agent, for people
	Conversation string `json:"conversation,omitempty"`
}

// Points is where restore points are kept. What an Author wrote with pauses under
// half an hour is one sitting.
type Points interface {
	// Last is the newest point of a document, not of an order, in the sitting that the
	// author is in, and when any author's newest one was made.
	Last(ctx context.Context, a Author, doc string) (p Point, found bool, newest time.Time, err error)
	// Save makes points, giving them their numbers, or replaces those that have one.
	// They are on disk when it returns.
	Save(ctx context.Context, a Author, points ...*Point) error
	// Note remembers that an action wrote something that no point can bring back.
	Note(ctx context.Context, a Author, action string) error
	// Wrote counts one write of the author's sitting that came to its end.
	Wrote(ctx context.Context, a Author) error
}

// Point is one restore point: how a document, the order of the documents below a
// place, or cells of a database were before an author's writes, and how the last of
// them left it. Of a database every write has a point of its own.
type Point struct {
	ID     int64     `json:"-"`
	Doc    string    `json:"doc"` // or the place that has the order, or the database
	Title  string    `json:"title,omitempty"`
	Action string    `json:"action"` // that wrote first
	Made   time.Time `json:"made"`
	Last   time.Time `json:"last"` // when the newest write began

	Before DocState `json:"before"`
	After  DocState `json:"after"`
	// Open says that After is not known: a write is under way, or the connector
	// ended during one.
	Open bool `json:"open,omitempty"`

	Version string       `json:"version,omitempty"` // path of the kept file; "" when SiYuan kept none
	Seal    string       `json:"seal,omitempty"`    // digest of what that file says
	Attrs   siyuan.Attrs `json:"attrs,omitempty"`   // of the document, before
	Order   *Order       `json:"order,omitempty"`   // instead of the states of a document
	Cells   *Cells       `json:"cells,omitempty"`   // likewise
}

// ofDoc reports whether the point speaks of a document itself.
func (p Point) ofDoc() bool { return p.Order == nil && p.Cells == nil }

// Order is the ids of the documents right below a place.
type Order struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// DocState is a document at one moment. Text and Attrs are digests.
type DocState struct {
	There bool   `json:"there"`
	Text  string `json:"text,omitempty"`
	Attrs string `json:"attrs,omitempty"` // title included
	Place string `json:"place,omitempty"` // notebook and storage path
}

// Created reports whether the document did not exist before.
func (p Point) Created() bool { return p.ofDoc() && !p.Before.There }

// Removed reports whether the document was there before and not afterwards.
func (p Point) Removed() bool { return p.ofDoc() && p.Before.There && !p.After.There && !p.Open }

// Unchanged reports whether the writes came to nothing.
func (p Point) Unchanged() bool {
	if p.Order != nil {
		return slices.Equal(p.Order.Before, p.Order.After)
	}
	if p.Cells != nil {
		return !p.Open && p.Cells.unchanged()
	}
	return !p.Open && p.Before == p.After
}

// docState looks at a document as it is stored, whoever may read it.
func (g *Guard) docState(ctx context.Context, id siyuan.ID) (DocState, siyuan.Attrs, error) {
	at, err := g.r.PathByID(ctx, id)
	if absent(err) || err == nil && !strings.HasSuffix(at.Path, string(id)+".sy") {
		return DocState{}, nil, nil
	}
	if err != nil {
		return DocState{}, nil, err
	}
	text, err := g.r.BlockKramdown(ctx, id, siyuan.KramdownMarkdown)
	if err != nil {
		return DocState{}, nil, err
	}
	body, attrs := cutOwnIAL(text) // SiYuan's other answer about attributes may be older
	if attrs["id"] != string(id) {
		body = text
		if attrs, err = g.r.BlockAttrs(ctx, id); err != nil {
			return DocState{}, nil, err
		}
	}
	own := ownAttrsOf(attrs)
	return DocState{There: true, Text: storedText(body), Attrs: attrsDigest(own), Place: pathMark(at.Notebook, at.Path)}, own, nil
}

// volatileAttrs change without anybody changing a note.
var volatileAttrs = []string{"updated", "type", "id", "av-names", "colgroup", "scroll"}

// ownAttrsOf are the attributes that somebody gave, the title included. Of what
// databases write only the rows count: their cells change with the database.
func ownAttrsOf(attrs siyuan.Attrs) siyuan.Attrs {
	own := maps.Clone(attrs)
	maps.DeleteFunc(own, func(k, v string) bool {
		return v == "" || slices.Contains(volatileAttrs, k) || strings.HasPrefix(k, databaseText)
	})
	return own
}

func attrsDigest(own siyuan.Attrs) string {
	b, err := json.Marshal(own) // sorted by key
	if err != nil {
		return "" // a map of texts always has a JSON form
	}
	return digest(string(b))
}

// storedText is the digest of a kramdown text with the attributes of its blocks.
// Anchors that the kernel fills with their targets' titles are no part of it.
func storedText(text string) string {
	text = outsideFences(withoutZWSP(text), func(part string) string {
		part = ialPattern.ReplaceAllStringFunc(part, func(list string) string {
			attrs := parseIAL(list)
			own := ownAttrsOf(attrs)
			if id := attrs["id"]; id != "" {
				own["id"] = id
			}
			return formatIAL(own)
		})
		return dynamicRef.ReplaceAllString(part, "(($1 ''))")
	})
	return digest(strings.TrimSpace(text))
}

// keep makes, before the first kernel write of a Tx, a restore point of every
// document that it may write to. It is called where all kernel writes pass.
func (tx *Tx) keep(ctx context.Context) error {
	points := tx.s.g.opt.Points
	if tx.kept || points == nil {
		return nil
	}
	tx.kept = true
	for _, id := range slices.Sorted(maps.Keys(tx.docs)) {
		p, err := tx.keepDoc(ctx, id)
		if err != nil {
			return err
		}
		if p != nil {
			tx.points = append(tx.points, p)
		}
	}
	return nil
}

// keepDoc goes on with the point of the sitting while nobody else changed the
// document, and makes one otherwise.
func (tx *Tx) keepDoc(ctx context.Context, id siyuan.ID) (*Point, error) {
	g := tx.s.g
	now, attrs, err := g.docState(ctx, id)
	if err != nil || !now.There {
		return nil, err
	}
	last, found, newest, err := g.opt.Points.Last(ctx, tx.s.author, string(id))
	if err != nil {
		return nil, err
	}
	if found && (!last.Open && last.After == now || last.Open && last.Before == now) {
		last.Open, last.Last = true, g.opt.Now()
		return &last, g.opt.Points.Save(ctx, tx.s.author, &last)
	}
	p := tx.newPoint(string(id))
	p.Title, p.Before, p.Attrs = attrs["title"], now, attrs
	if p.Version, p.Seal, err = g.version(ctx, id, newest); err != nil {
		return nil, err
	}
	p.Made = g.opt.Now() // what comes within the second of this version waits
	return p, g.opt.Points.Save(ctx, tx.s.author, p)
}

func (tx *Tx) newPoint(doc string) *Point {
	now := tx.s.g.opt.Now()
	return &Point{Doc: doc, Action: tx.action, Made: now, Last: now, Open: true}
}

// note adds points that a write makes besides those of its documents: for what it
// creates, for what goes with what it removes, for an order.
func (tx *Tx) note(ctx context.Context, points ...*Point) error {
	if tx.s.g.opt.Points == nil || len(points) == 0 {
		return nil
	}
	if err := tx.s.g.opt.Points.Save(ctx, tx.s.author, points...); err != nil {
		return err
	}
	tx.points = append(tx.points, points...)
	return nil
}

// creates is note for a document that is about to be made.
func (tx *Tx) creates(ctx context.Context, id siyuan.ID) error {
	return tx.note(ctx, tx.newPoint(string(id)))
}

// takesAlong is note for documents that go with one that is removed.
func (tx *Tx) takesAlong(ctx context.Context, d Doc, tree []siyuan.ID) error {
	if err := tx.keep(ctx); err != nil { // the upper document first
		return err
	}
	var points []*Point
	for _, id := range tree {
		if !slices.ContainsFunc(tx.points, func(p *Point) bool { return p.Doc == string(id) }) {
			p := tx.newPoint(string(id))
			p.Before = DocState{There: true, Place: d.nb.ID()}
			points = append(points, p)
		}
	}
	return tx.note(ctx, points...)
}

// settlePoints says how a write left what it has points of. What cannot be read
// now stays open.
func (tx *Tx) settlePoints(ctx context.Context) {
	g := tx.s.g
	if g.opt.Points == nil || !tx.kept || tx.doubt != nil {
		return // SiYuan may still be at work on what it never answered
	}
	if tx.sent {
		if err := g.opt.Points.Wrote(ctx, tx.s.author); err != nil {
			g.opt.Logger.Warn("a write was not counted beside the restore points", "action", tx.action, "error", err.Error())
		}
	}
	if tx.sent && (tx.lasting || len(tx.points) == 0) {
		if err := g.opt.Points.Note(ctx, tx.s.author, tx.action); err != nil {
			g.opt.Logger.Warn("a write was not noted beside the restore points", "action", tx.action, "error", err.Error())
		}
	}
	for _, p := range tx.points {
		if err := tx.settlePoint(ctx, p); err != nil {
			g.opt.Logger.Warn("a restore point does not know how the write ended", "document", p.Doc, "error", err.Error())
		}
	}
}

func (tx *Tx) settlePoint(ctx context.Context, p *Point) error {
	if p.Cells != nil {
		return tx.settleCells(ctx, p)
	}
	if p.Order == nil {
		after, attrs, err := tx.s.g.docState(ctx, siyuan.ID(p.Doc))
		if err != nil {
			return err
		}
		if p.After = after; p.Title == "" {
			p.Title = attrs["title"]
		}
	}
	p.Open = false
	return tx.s.g.opt.Points.Save(ctx, tx.s.author, p)
}

// Versions of one document within a second overwrite each other in SiYuan.
const versionEvery = 1100 * time.Millisecond

// How long SiYuan's index of the history is asked for a new version.
const (
	versionLook  = 100 * time.Millisecond
	versionLooks = 30
)

// version has SiYuan keep a document and returns the path of the kept file and
// the digest of what it says; no path when it cannot be found. last is when the
// connector had it kept before.
func (g *Guard) version(ctx context.Context, id siyuan.ID, last time.Time) (path, seal string, err error) {
	if wait := versionEvery - g.opt.Now().Sub(last); wait > 0 {
		if err := g.opt.Sleep(ctx, min(wait, versionEvery)); err != nil {
			return "", "", err
		}
	}
	before, err := g.newestVersion(ctx, id)
	if err != nil {
		return "", "", err
	}
	err = g.w.CreateDocHistory(ctx, id)
	if err != nil && !errors.Is(err, siyuan.Rejected) {
		return "", "", err
	}
	for range versionLooks {
		if err != nil {
			break
		}
		now, err := g.newestVersion(ctx, id)
		if err != nil {
			return "", "", err
		}
		if now != "" && now != before {
			seal, err := g.sealOf(ctx, now)
			return now, seal, err
		}
		if err := g.opt.Sleep(ctx, versionLook); err != nil {
			return "", "", err
		}
	}
	g.opt.Logger.Warn("SiYuan kept no version of a document that can be found", "document", string(id))
	return "", "", nil
}

// newestVersion is the path of the newest kept file of a document, "" for none.
func (g *Guard) newestVersion(ctx context.Context, id siyuan.ID) (string, error) {
	at, err := g.r.PathByID(ctx, id)
	if err != nil {
		return "", err
	}
	return g.keptFile(ctx, Doc{nb: Notebook{id: at.Notebook}, id: id}, "update")
}

// keptFile is the newest file that SiYuan kept of a document under its notebook
// when that was done to it.
func (g *Guard) keptFile(ctx context.Context, d Doc, op string) (string, error) {
	const byID = 3
	q := siyuan.HistoryQuery{Query: string(d.id), Notebook: d.nb.id, Op: op, Type: byID}
	times, err := g.r.SearchHistory(ctx, q, 1)
	if err != nil {
		return "", err
	}
	for _, t := range times.Histories {
		items, err := g.r.HistoryItems(ctx, t, q)
		if err != nil {
			return "", err
		}
		for _, item := range items {
			if ofDoc(item.Path, d) {
				return item.Path, nil
			}
		}
	}
	return "", nil
}

// sealOf is the digest of what a kept file says.
func (g *Guard) sealOf(ctx context.Context, path string) (string, error) {
	kept, err := g.r.HistoryDoc(ctx, path)
	if err != nil {
		return "", err
	}
	if kept.IsLargeDoc {
		return storedText(kept.Content), nil
	}
	return digest(plainDOM(kept.Content)), nil
}

// reorders is note for the order of the documents below a place.
func (tx *Tx) reorders(ctx context.Context, at Place, o Order) error {
	p := tx.newPoint(string(at.id()))
	p.Order, p.Before = &o, DocState{There: true, Place: at.Notebook.ID()}
	return tx.note(ctx, p)
}
