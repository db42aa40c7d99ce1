package guard

import (
	"context"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

// NotebookConf are the settings of a notebook, where new notes go among them. A
// notebook in them that the caller may not read is left out.
type NotebookConf = siyuan.NotebookConf

// NotebookConf reads the settings of a notebook, also of a closed one.
func (s *Session) NotebookConf(ctx context.Context, n Notebook) (NotebookConf, error) {
	if err := s.use(n, contract.Read); err != nil {
		return NotebookConf{}, err
	}
	conf, err := s.g.r.NotebookConf(ctx, n.id)
	if err != nil {
		return NotebookConf{}, s.vanished(err, "notebook", n.id)
	}
	for _, box := range []*string{&conf.RefCreateSaveBox, &conf.DocCreateSaveBox} {
		if _, ok := s.sidebar().notebooks[siyuan.ID(*box)]; !ok {
			*box = ""
		}
	}
	return conf, nil
}

// NotebookPaths are the settings of a notebook that say where new notes go; nil
// leaves one as it is.
type NotebookPaths struct{ RefCreate, DocCreate, DailyNote, DailyTemplate *string }

// SetNotebookPaths changes settings of a notebook. Templates that could read
// notes are refused while anything is hidden from the caller: SiYuan renders
// them over all notebooks.
func (tx *Tx) SetNotebookPaths(ctx context.Context, n Notebook, p NotebookPaths) error {
	if err := tx.coversTree(n); err != nil {
		return err
	}
	before, err := tx.s.g.r.NotebookConf(ctx, n.id)
	if err != nil {
		return tx.s.vanished(err, "notebook", n.id)
	}
	changes := map[string]any{}
	for _, c := range []struct {
		name, was string
		to        *string
	}{
		{"refCreateSavePath", before.RefCreateSavePath, p.RefCreate}, {"docCreateSavePath", before.DocCreateSavePath, p.DocCreate},
		{"dailyNoteSavePath", before.DailyNoteSavePath, p.DailyNote}, {"dailyNoteTemplatePath", before.DailyNoteTemplatePath, p.DailyTemplate},
	} {
		if c.to == nil || *c.to == c.was {
			continue
		}
		if err := tx.s.checkTemplate(ctx, c.name, *c.to); err != nil {
			return err
		}
		changes[c.name] = *c.to
	}
	if len(changes) == 0 {
		return nil
	}
	then := before
	for to, from := range map[*string]*string{
		&then.RefCreateSavePath: p.RefCreate, &then.DocCreateSavePath: p.DocCreate,
		&then.DailyNoteSavePath: p.DailyNote, &then.DailyNoteTemplatePath: p.DailyTemplate,
	} {
		if from != nil {
			*to = *from
		}
	}
	err = tx.step(ctx, Step{Op: "notebook.conf", ID: n.ID(), Marks: []Mark{{LookConf, n.ID(), confMark(before), confMark(then)}}}, func(w *siyuan.Writer) error {
		_, err := w.SetNotebookConf(ctx, n.id, changes)
		return err
	})
	if err != nil && !answered(err) {
		return err
	}
	after, err := tx.s.g.r.NotebookConf(ctx, n.id)
	if err != nil {
		return err
	}
	for name, have := range map[string]string{
		"refCreateSavePath": after.RefCreateSavePath, "docCreateSavePath": after.DocCreateSavePath,
		"dailyNoteSavePath": after.DailyNoteSavePath, "dailyNoteTemplatePath": after.DailyNoteTemplatePath,
	} {
		if want, changed := changes[name]; changed && samePath(have) != samePath(want.(string)) {
			return notPersisted("SiYuan did not keep the setting %s of notebook %s.", name, n.ID())
		}
	}
	return nil
}

// samePath is a path without what SiYuan adds or takes away at its ends.
func samePath(p string) string {
	return strings.TrimSuffix(strings.Trim(path.Clean("/"+strings.TrimSpace(p)), "/"), ".md")
}

// insideTemplates: the path stays in the templates folder whichever way it is
// cleaned. SiYuan would put any other file, its configuration with the API token
// for one, into the next daily note.
func insideTemplates(p string) bool {
	if p == "" {
		return true
	}
	inner := strings.TrimPrefix(p, "/")
	return filepath.IsLocal(inner) && path.Clean(inner) == inner && strings.HasSuffix(inner, ".md") && !strings.ContainsAny(inner, "\\%\x00\n\r")
}

var (
	// templateAction is a template action made of names, numbers and plain strings:
	// no other form of literal or comment can hide a name from templateName.
	templateAction = regexp.MustCompile(`\{\{(?:"[^"\\{}\n]*"|[A-Za-z0-9_|.,() -])*\}\}`)
	templateQuoted = regexp.MustCompile(`"[^"]*"`)
	templateName   = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// dateFunctions are what a template may call that is written by somebody from
// whom a notebook is hidden: they tell the time and nothing else.
var dateFunctions = []string{"now", "date", "dateInZone", "ISOWeek", "ISOYear", "ISOMonth", "ISOWeekDate", "Weekday", "WeekdayCN", "WeekdayCN2", "printf", "add", "sub", "lower", "upper"}

// checkTemplate refuses a setting that would make SiYuan read notes for its
// writer. field is the setting.
func (s *Session) checkTemplate(ctx context.Context, field, value string) error {
	if field == "dailyNoteSavePath" && strings.Trim(value, " /") == "" {
		return contract.InvalidFields(contract.Field{Path: "conf." + field, Message: "must name a path, such as /daily note/{{now | date \"2006-01-02\"}}"})
	}
	if field == "dailyNoteTemplatePath" && !insideTemplates(value) {
		return contract.InvalidFields(contract.Field{Path: "conf." + field, Message: "must be the path of a .md file below SiYuan's templates folder, such as daily.md"})
	}
	switch {
	case value == "" || s.whole() && field == "dailyNoteTemplatePath":
		return nil
	case s.whole(): // SiYuan runs statements in it as they are, those that write too
		return s.checkCode(ctx, field, value, sprigDelims)
	case field == "dailyNoteTemplatePath":
		return contract.Fail(contract.HiddenReference, "A template file can read every notebook, so it may be chosen only by those from whom none is hidden.").
			WithHint("Ask the owner to choose the template of the daily note in SiYuan.")
	}
	refused := contract.Fail(contract.HiddenReference, "The template in %s can do more than tell the time, so it could read every notebook.", field).
		WithHint("Use the date functions only, such as {{now | date \"2006-01-02\"}}.")
	for _, action := range templateAction.FindAllString(value, -1) {
		for _, name := range templateName.FindAllString(templateQuoted.ReplaceAllString(action, ""), -1) {
			if !slices.Contains(dateFunctions, name) {
				return refused
			}
		}
	}
	if strings.Contains(templateAction.ReplaceAllString(value, ""), "{{") {
		return refused
	}
	return nil
}
