package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// dailyAttr begins the attribute by which SiYuan finds the daily note of a day.
const dailyAttr = "custom-dailynote-"

// maxDailyNotes bounds the daily notes of three days in one notebook.
const maxDailyNotes = 64

// DailyNotes are the notes of yesterday, today and tomorrow in a notebook: one
// of them is SiYuan's today, whatever its time zone.
func (s *Session) DailyNotes(ctx context.Context, n Notebook) ([]Doc, error) {
	if err := firstErr(s.use(n, contract.Read), n.Reachable()); err != nil {
		return nil, err
	}
	var days string
	for _, d := range []int{-1, 0, 1} {
		days += ", " + quoteSQL(dailyAttr+s.g.opt.Now().Add(time.Duration(d)*24*time.Hour).Format("20060102"))
	}
	rows, err := s.g.sql(ctx, fmt.Sprintf("SELECT DISTINCT root_id FROM attributes WHERE box = %s AND name IN (%s) ORDER BY root_id LIMIT %d",
		quoteSQL(n.ID()), days[2:], maxDailyNotes))
	if err != nil {
		return nil, err
	}
	var notes []Doc
	for _, r := range rows {
		p, err := s.find(ctx, siyuan.ID(r.Text("root_id")), "document")
		switch {
		case contract.CodeOf(err) == contract.NotFound: // gone since it was indexed
		case err != nil:
			return nil, err
		case p.box == n.id:
			notes = append(notes, s.refer(p, p.root).doc)
		}
	}
	return notes, nil
}

// DailyNote finds today's note of a notebook or makes it; known are those that
// [Session.DailyNotes] found. The notebook must be a target of the intent.
func (tx *Tx) DailyNote(ctx context.Context, n Notebook, known []Doc) (note Doc, created bool, err error) {
	if err := firstErr(tx.coversTree(n), n.Reachable()); err != nil {
		return Doc{}, false, err
	}
	conf, err := tx.s.g.r.NotebookConf(ctx, n.id)
	if err != nil {
		return Doc{}, false, err
	}
	if len(known) == 0 {
		if err := tx.s.checkDailyTemplates(ctx, conf); err != nil {
			return Doc{}, false, err
		}
	}
	var id siyuan.ID
	st := Step{Op: "document.daily", ID: n.ID(), Repeatable: "SiYuan makes one daily note a day and finds it when asked again"}
	err = tx.step(ctx, st, func(w *siyuan.Writer) (err error) {
		id, err = w.CreateDailyNote(ctx, n.id)
		return err
	})
	if answered(err) {
		id, err = tx.newDailyNote(ctx, n, known)
	}
	if err != nil {
		return Doc{}, false, err
	}
	lost := notPersisted("SiYuan reported a daily note, but it is not in notebook %s.", n.ID())
	if !id.Valid() {
		return Doc{}, false, lost
	}
	p, err := tx.s.find(ctx, id, "document")
	if contract.CodeOf(err) == contract.NotFound || err == nil && p.box != n.id {
		err = lost
	}
	if err != nil {
		return Doc{}, false, err
	}
	note = tx.s.refer(p, id).doc
	if created = !slices.ContainsFunc(known, func(d Doc) bool { return d.id == id }); created {
		tx.docs[id] = true // nobody else knows it yet
		err = tx.creates(ctx, id)
	}
	return note, created, err
}

// newDailyNote is the daily note that was not there before, "" when there is none.
func (tx *Tx) newDailyNote(ctx context.Context, n Notebook, known []Doc) (siyuan.ID, error) {
	notes, err := tx.s.DailyNotes(ctx, n)
	for _, d := range notes {
		if !slices.ContainsFunc(known, func(k Doc) bool { return k.id == d.id }) {
			return d.id, nil
		}
	}
	return "", err
}

// checkDailyTemplates refuses to make a daily note whose path or text is made by
// a template that could show what is hidden from the caller.
func (s *Session) checkDailyTemplates(ctx context.Context, conf NotebookConf) error {
	if s.whole() {
		return nil
	}
	if conf.DailyNoteTemplatePath != "" || s.checkTemplate(ctx, "dailyNoteSavePath", conf.DailyNoteSavePath) != nil {
		return contract.Fail(contract.Unsupported, "The notebook makes its daily notes with a template that can query every notebook, so only those who may read all of them can make one.").
			WithHint("When today's note exists already, text can be added to it; else ask the owner to make it.")
	}
	return nil
}
