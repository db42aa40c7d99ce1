package document

import (
	"context"
	"fmt"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func ensureLinkTargets(ctx context.Context, r *tools.Request, in catalogue.DocumentEnsureLinksIn) (out catalogue.DocumentEnsureLinksOut, err error) {
	if err := distinct(in.Targets); err != nil {
		return out, err
	}
	need := contract.Read
	if in.Mode == "create" {
		need = contract.ReadWrite
	}
	nb, err := r.Session.Notebook(in.Notebook, need)
	if err != nil {
		return out, err
	}
	if err := nb.Reachable(); err != nil {
		return out, err
	}
	parent, err := r.Session.ExactDoc(ctx, in.ParentID, need)
	if err != nil {
		return out, err
	}
	if parent.Notebook().ID() != nb.ID() {
		return out, contract.Fail(contract.NotFound, "There is no document %s in notebook %s.", parent.ID(), nb.ID())
	}
	if in.Mode == "create" {
		out, err = createTargets(ctx, r, parent, in)
	} else {
		out, err = resolveTargets(ctx, r, parent, in)
	}
	return withinBudget(out, r.Budget), err
}

// distinct checks what no schema can say of the targets.
func distinct(targets []catalogue.LinkTarget) error {
	var bad []contract.Field
	keys, titles := map[string]bool{}, map[string]bool{}
	for i, t := range targets {
		if keys[t.Key] {
			bad = append(bad, contract.Field{Path: fmt.Sprintf("targets.%d.key", i), Message: "is used twice"})
		}
		keys[t.Key] = true
		if t.Title == "" {
			continue
		}
		field := fmt.Sprintf("targets.%d.title", i)
		if err := guard.CheckTitle(field, t.Title); err != nil {
			return err
		}
		switch {
		case strings.Contains(t.Title, `\`):
			bad = append(bad, contract.Field{Path: field, Message: `a title must not contain \`})
		case titles[t.Title]:
			bad = append(bad, contract.Field{Path: field, Message: "is used twice"})
		}
		titles[t.Title] = true
	}
	if len(bad) > 0 {
		return contract.InvalidFields(bad...)
	}
	return nil
}

// resolveTargets looks the ids up among the documents right below the parent, and
// nowhere else: where another document is, or whether it is, is not told.
func resolveTargets(ctx context.Context, r *tools.Request, parent guard.Doc, in catalogue.DocumentEnsureLinksIn) (out catalogue.DocumentEnsureLinksOut, err error) {
	nodes, err := r.Session.DocsIn(ctx, parent.Place())
	if err != nil {
		return out, err
	}
	titles := map[string]string{}
	for _, n := range nodes {
		titles[n.ID] = n.Name
	}
	there := catalogue.LinkResolved
	if in.Mode == "reuse" {
		there = catalogue.LinkReused
	}
	var missing []catalogue.LinkTargetOut
	for _, t := range in.Targets {
		told := catalogue.LinkTargetOut{Key: t.Key, ID: t.ID, Status: there}
		var ok bool
		if told.Title, ok = titles[t.ID]; !ok {
			told.Status = catalogue.LinkMissing
			missing = append(missing, told)
		}
		out.Targets = append(out.Targets, told)
	}
	if out.Success = len(missing) == 0; !out.Success && in.Mode == "reuse" {
		return out, contract.Fail(contract.NotFound, "%d of the %d targets are no documents right below %s.", len(missing), len(in.Targets), parent.ID()).
			WithHint("document.get_child_docs lists those that are.").
			WithDetail(map[string]any{"targets": missing})
	}
	return out, nil
}

func createTargets(ctx context.Context, r *tools.Request, parent guard.Doc, in catalogue.DocumentEnsureLinksIn) (out catalogue.DocumentEnsureLinksOut, err error) {
	titles := make([]string, len(in.Targets))
	for i, t := range in.Targets {
		titles[i] = t.Title
	}
	if err := r.Session.TitlesFree(ctx, parent.Place(), titles); err != nil {
		return out, err
	}
	if in.DryRun {
		return catalogue.DocumentEnsureLinksOut{Success: true, DryRun: true, Targets: tellTargets(in.Targets, nil, catalogue.LinkPlanned)}, nil
	}
	err = r.Session.Write(ctx, r.Intent(parent.Notebook(), r.Session.Below(parent.Place())), func(ctx context.Context, tx *guard.Tx) error {
		made, err := tx.CreateBelow(ctx, parent, titles, in.Markdown)
		if err != nil {
			return cutShort(err, in.Targets, made)
		}
		out = catalogue.DocumentEnsureLinksOut{Success: true, Targets: tellTargets(in.Targets, made, "")}
		return nil
	})
	return out, err
}

// tellTargets says what became of each target; rest is the status of those that
// nothing was made for.
func tellTargets(targets []catalogue.LinkTarget, made []guard.CreatedDoc, rest string) []catalogue.LinkTargetOut {
	all := make([]catalogue.LinkTargetOut, len(targets))
	for i, t := range targets {
		all[i] = catalogue.LinkTargetOut{Key: t.Key, Title: t.Title, Status: rest}
		if i < len(made) {
			all[i].ID, all[i].Status = made[i].ID, catalogue.LinkCreated
		}
	}
	return all
}

// cutShort adds to an error what became of each target. What SiYuan was not asked
// for or refused is not there; of what it did not answer, or cannot be asked about,
// nobody knows.
func cutShort(err error, targets []catalogue.LinkTarget, made []guard.CreatedDoc) error {
	last := len(made) - 1
	if last < 0 || last == 0 && !made[0].Asked {
		return err // nothing was made
	}
	told := tellTargets(targets, made, catalogue.LinkNotAttempted)
	told[last].Status = catalogue.LinkFailed
	e := *guard.Public(err)
	switch {
	case !made[last].Asked:
		told[last].ID = ""
		e = *contract.Fail(contract.PartlyDone, "Document %d of %d could not be made; those before it were.", last+1, len(targets)).WithCause(err)
	case contract.CodeOf(&e) != contract.WriteNotPersisted:
		told[last].Status = catalogue.LinkUnknown
		e = *contract.Fail(contract.OutcomeUnknown, "Document %d of %d may or may not be there; those before it were made.", last+1, len(targets)).WithCause(err)
	}
	done := []string{}
	for _, d := range made[:last] {
		done = append(done, d.ID)
	}
	return e.WithDetail(map[string]any{"done": done, "targets": told})
}

// withinBudget leaves out the titles, which the caller knows or can read by id,
// rather than ids, where an answer would be too long.
func withinBudget(out catalogue.DocumentEnsureLinksOut, budget int) catalogue.DocumentEnsureLinksOut {
	if len(catalogue.Fit(out.Targets, len(out.Targets), budget, catalogue.Chars[catalogue.LinkTargetOut])) == len(out.Targets) {
		return out
	}
	for i := range out.Targets {
		out.Targets[i].Title = ""
	}
	out.Hint = "Titles are left out, since the answer would be too long."
	return out
}
