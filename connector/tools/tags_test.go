package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// tagDesk has #urgent# in Work and Private, and more tags in Diary.
func tagDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	d.Add(t, guardtest.Doc{Box: guardtest.Private, Path: "/20240109000001-privtag.sy", Title: "P", Text: "Hidden #urgent# and #nightfall# here."})
	d.Add(t, guardtest.Doc{Box: guardtest.Diary, Path: "/20240109000002-diartag.sy", Title: "D",
		Text: "One #urgent# word.\n{: id=\"20240109000003-block01\"}\n\n- item #urgent/now#\n  {: id=\"20240109000004-block02\"}\n"})
	return d
}

func TestTagsAreListedFromReadableNotesOnly(t *testing.T) {
	t.Parallel()
	d := tagDesk(t)
	answers(t, d, writer(), "tag.list", `{}`, `{"tags":[{"label":"urgent","count":2},{"label":"urgent/now","count":1}],"truncated":false}`)
	answers(t, d, writer(), "tag.list", `{"query":"NOW"}`, `{"tags":[{"label":"urgent/now","count":1}],"truncated":false}`)
	answers(t, d, writer(), "tag.list", `{"keyword":"night"}`, `{"tags":[],"truncated":false}`)
	answers(t, d, owner(), "tag.list", `{"keyword":"night"}`, `{"tags":[{"label":"nightfall","count":1}],"truncated":false}`)
}

func TestRenamingATagTakesThoseBelowAlong(t *testing.T) {
	t.Parallel()
	d := tagDesk(t)
	answers(t, d, owner(), "tag.rename", `{"oldLabel":"urgent","newLabel":"soon"}`, `{"success":true,"oldLabel":"urgent","newLabel":"soon","documents":3}`)
	answers(t, d, owner(), "tag.list", `{}`, `{"tags":[{"label":"nightfall","count":1},{"label":"soon","count":3},{"label":"soon/now","count":1}],"truncated":false}`)
}

func TestRemovingATagLeavesThoseBelow(t *testing.T) {
	t.Parallel()
	d := tagDesk(t)
	answers(t, d, owner(), "tag.remove", `{"label":"urgent"}`, `{"success":true,"label":"urgent","documents":3}`)
	answers(t, d, owner(), "tag.list", `{}`, `{"tags":[{"label":"nightfall","count":1},{"label":"urgent/now","count":1}],"truncated":false}`)
	if text := ok[catalogue.BlockGetKramdownOut](t, d, owner(), "block.get_kramdown", `{"id":"20240109000003-block01"}`).Kramdown; !strings.HasPrefix(text, "One  word.") {
		t.Errorf("the rest of the text is %q", text)
	}
}

func TestChangingATagNeedsItsLevelWhereverTheTagStands(t *testing.T) {
	t.Parallel()
	const rename, remove = `{"oldLabel":"urgent","newLabel":"soon"}`, `{"label":"urgent"}`
	for _, c := range []struct {
		id, args string
		diary    contract.Level
		want     contract.Code
	}{
		{"tag.rename", rename, contract.Read, contract.PermissionDenied}, {"tag.remove", remove, contract.ReadWrite, contract.PermissionDenied},
		{"tag.rename", rename, contract.None, contract.Unsupported}, {"tag.remove", remove, contract.None, contract.Unsupported},
		{"tag.rename", `{"oldLabel":"nosuch","newLabel":"x"}`, contract.ReadWriteDelete, contract.NotFound}, {"tag.remove", `{"label":"nosuch"}`, contract.ReadWriteDelete, contract.NotFound},
		{"tag.rename", `{"oldLabel":"urgent","newLabel":"a#b"}`, contract.ReadWriteDelete, contract.InvalidArguments},
		{"tag.rename", `{"oldLabel":"urgent","newLabel":"a//b"}`, contract.ReadWriteDelete, contract.InvalidArguments},
		{"tag.rename", `{"oldLabel":"urgent","newLabel":"urgent/x"}`, contract.ReadWriteDelete, contract.InvalidArguments},
	} {
		d, g := tagDesk(t), owner()
		g.Levels = map[string]contract.Level{guardtest.Diary: c.diary}
		before := d.call(owner(), "tag.list", `{}`)
		fails(t, d.call(g, c.id, c.args), c.want)
		if after := d.call(owner(), "tag.list", `{}`); string(after.Body) != string(before.Body) {
			t.Errorf("%s %s was refused and changed %s", c.id, c.args, after.Body)
		}
	}
}

// TestARefusedChangeOfATagIsAlikeWhateverIsHidden: the refusal comes before
// anything is looked for.
func TestARefusedChangeOfATagIsAlikeWhateverIsHidden(t *testing.T) {
	t.Parallel()
	d, g := tagDesk(t), owner()
	g.Levels = map[string]contract.Level{guardtest.Private: contract.None}
	seen := map[string]bool{}
	for _, label := range []string{"urgent", "nightfall", "nosuch"} {
		r := d.call(g, "tag.remove", fmt.Sprintf(`{"label":%q}`, label))
		fails(t, r, contract.Unsupported)
		seen[fmt.Sprint(string(r.Err.Body()), r.Stats.KernelCalls)] = true
	}
	if len(seen) != 1 {
		t.Errorf("the answers differ: %v", seen)
	}
}

func TestAChangeOfATagWithoutEffectIsNoSuccess(t *testing.T) {
	t.Parallel()
	for id, args := range map[string]string{"tag.rename": `{"oldLabel":"urgent","newLabel":"soon"}`, "tag.remove": `{"label":"urgent"}`} {
		d := tagDesk(t)
		endpoint := "/api/tag/" + strings.TrimPrefix(id, "tag.") + "Tag"
		d.Kernel.Faults().Set(endpoint, samplekernel.Fault{Kind: samplekernel.FaultNoEffect})
		fails(t, d.call(owner(), id, args), contract.WriteNotPersisted)
		d.Kernel.Faults().Set(endpoint, samplekernel.Fault{Kind: samplekernel.FaultDropAfter})
		fails(t, d.call(owner(), id, args), contract.OutcomeUnknown)
	}
}

func TestLiveTags(t *testing.T) {
	d, g := liveDesk(t)
	nb := liveNotebook(t, d, g)
	id := liveDoc(t, d, g, nb, "/Tags", "One #livetag# and #livetag/sub# word.\n\n| a |\n| --- |\n| #livetag# |\n")
	if _, err := d.Client.Writer().UpdateBlock(t.Context(), siyuan.ID(d.children(t, id)[0].ID), siyuan.Markdown, "One #livetag# and #livetag/sub# word."); err != nil {
		t.Fatal(err)
	}
	answers(t, d, g, "tag.list", `{"keyword":"livetag"}`, `{"tags":[{"label":"livetag","count":2},{"label":"livetag/sub","count":1}],"truncated":false}`)
	answers(t, d, g, "tag.rename", `{"oldLabel":"livetag","newLabel":"livetag2"}`, `{"success":true,"oldLabel":"livetag","newLabel":"livetag2","documents":1}`)
	answers(t, d, g, "tag.list", `{"keyword":"livetag"}`, `{"tags":[{"label":"livetag2","count":2},{"label":"livetag2/sub","count":1}],"truncated":false}`)
	answers(t, d, g, "tag.remove", `{"label":"livetag2"}`, `{"success":true,"label":"livetag2","documents":1}`)
	answers(t, d, g, "tag.list", `{"keyword":"livetag"}`, `{"tags":[{"label":"livetag2/sub","count":1}],"truncated":false}`)
}
