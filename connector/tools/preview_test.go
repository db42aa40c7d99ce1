package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func (d *desk) preview(g *contract.Grant, id, args string) contract.Result {
	tool, action, _ := strings.Cut(id, ".")
	return d.exec.Handle(context.Background(), contract.Call{Method: contract.MethodPreview, Tool: tool, Action: action, RequestID: "req-1", Grant: g, Args: json.RawMessage(args)}, nil)
}

func previewed(t *testing.T, d *desk, g *contract.Grant, id, args string) (p contract.Preview) {
	t.Helper()
	r := d.preview(g, id, args)
	if r.Err != nil {
		t.Fatalf("%s %s: %v", id, args, r.Err)
	}
	if err := json.Unmarshal(r.Body, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// create makes a document with the given text and returns its id.
func (d *desk) create(t *testing.T, path, markdown string) string {
	t.Helper()
	return ok[catalogue.DocumentCreateOut](t, d, full(), "document.create", fmt.Sprintf(`{"notebook":%q,"path":%q,"markdown":%q}`, guardtest.Work, path, markdown)).ID
}

func TestADangerousActionWithoutAPreviewCannotBeServed(t *testing.T) {
	t.Parallel()
	catalogue.New() // names the tools
	_, err := tools.New(tools.Config{}, tools.Bind(catalogue.NotebookRemove, func(context.Context, *tools.Request, catalogue.NotebookIn) (out catalogue.NotebookRemoveOut, err error) {
		return out, nil
	}))
	if err == nil || !strings.Contains(err.Error(), "notebook.remove") {
		t.Errorf("%v", err)
	}
}

func TestPreviewsCountWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	top := d.create(t, "/Lost", "one\n\ntwo\n\n* item")       // p, p, l, i, p
	below := d.create(t, "/Lost/Below", "# Head\n\nthree")    // h, p
	other := d.create(t, "/Kept", "see (("+below+" \"it\"))") // one reference
	g := full()

	p := previewed(t, d, g, "document.remove", `{"id":"`+top+`"}`)
	if p.Counts != (contract.PreviewCounts{Documents: 2, Blocks: 7, References: 1}) {
		t.Errorf("document: %+v", p.Counts)
	}
	if len(p.Named) != 2 || p.More != 0 || p.Named[0].Title != "Lost" || p.Named[1].Path != "/Work/Lost/Below" {
		t.Errorf("document: %+v, %d more", p.Named, p.More)
	}
	p = previewed(t, d, g, "document.move", `{"fromIDs":["`+below+`"],"toID":"`+other+`"}`)
	if p.Counts != (contract.PreviewCounts{Documents: 1, Blocks: 2, References: 1}) || p.Target == nil || p.Target.Title != "Kept" {
		t.Errorf("move: %+v to %+v", p.Counts, p.Target)
	}
	list := d.children(t, top)[2].ID
	p = previewed(t, d, g, "block.delete", `{"id":"`+string(list)+`"}`)
	if p.Counts != (contract.PreviewCounts{Blocks: 3}) || len(p.Named) != 1 || p.Named[0].Kind != "block" {
		t.Errorf("list: %+v %+v", p.Counts, p.Named)
	}
	p = previewed(t, d, g, "notebook.remove", `{"notebook":"`+guardtest.Work+`"}`)
	if p.Counts.Notebooks != 1 || p.Counts.Documents < 5 || p.Named[0].Title != "Work" || len(p.Named)+p.More != p.Counts.Documents+1 {
		t.Errorf("notebook: %+v, %d named, %d more", p.Counts, len(p.Named), p.More)
	}
	if !d.exists(t, top) || !d.exists(t, string(list)) {
		t.Error("a preview changed something")
	}
}

func TestThePreviewOfAReplacementCountsThePlaces(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	a := d.create(t, "/One two", "two and two\n\n[link](two.md)\n\n* two\n\n```\ntwo\n```")
	b := d.create(t, "/Other", "Two, two\n\nnothing")
	c := d.create(t, "/None", "nothing")
	ids := `"ids":["` + a + `","` + b + `","` + c + `"]`
	for args, want := range map[string]struct {
		counts contract.PreviewCounts
		named  map[string]int
	}{
		`{"k":"two","r":"zwei",` + ids + `}`:                                              {contract.PreviewCounts{Documents: 2, Blocks: 3, Places: 4}, map[string]int{"One two": 3, "Other": 1}},
		`{"k":"[Tt]wo","methodName":"regex","r":"zwei",` + ids + `}`:                      {contract.PreviewCounts{Documents: 2, Blocks: 3, Places: 5}, map[string]int{"One two": 3, "Other": 2}},
		`{"k":"two","r":"zwei","replaceTypes":{"text":true,"docTitle":true},` + ids + `}`: {contract.PreviewCounts{Documents: 2, Blocks: 3, Places: 5}, map[string]int{"One two": 4, "Other": 1}},
		`{"k":"two","r":"zwei","replaceTypes":{"codeBlock":true},` + ids + `}`:            {contract.PreviewCounts{Documents: 1, Blocks: 1, Places: 1}, map[string]int{"One two": 1}},
		`{"k":"absent","r":"zwei",` + ids + `}`:                                           {contract.PreviewCounts{}, map[string]int{}},
	} {
		p := previewed(t, d, full(), "search.find_replace", args)
		got := map[string]int{}
		for _, i := range p.Named {
			got[i.Title] = i.Places
		}
		if p.Counts != want.counts || !maps.Equal(got, want.named) || p.More != 0 || p.Replace != "zwei" {
			t.Errorf("%s: %+v %v, want %+v %v", args, p.Counts, got, want.counts, want.named)
		}
	}
	p := previewed(t, d, full(), "search.find_replace", `{"k":"two","r":"zwei",`+ids+`}`)
	if lines := strings.Join(p.Lines(), "\n"); !strings.Contains(lines, "4 places to change") || !strings.Contains(lines, "“Other” in “/Work/Other”: 1 place") {
		t.Errorf("%s", lines)
	}
}

func TestPreviewsNameAtMostTwenty(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	top := d.create(t, "/Many", "")
	for i := range 24 {
		d.create(t, fmt.Sprintf("/Many/Doc %02d", i), "")
	}
	if p := previewed(t, d, full(), "document.remove", `{"id":"`+top+`"}`); len(p.Named) != 20 || p.More != 5 || p.Named[0].Title != "Many" {
		t.Errorf("%d named, %d more, first %+v", len(p.Named), p.More, p.Named[0])
	}
}

// A preview is given only to whom the action would be.
func TestPreviewsNeedTheLevelOfTheAction(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for id, args := range map[string]string{
		"document.remove": `{"id":"` + guardtest.Alpha + `"}`, "block.delete": `{"id":"` + guardtest.Intro + `"}`, "notebook.remove": `{"notebook":"` + guardtest.Work + `"}`,
	} {
		fails(t, d.preview(writer(), id, args), contract.PermissionDenied)
	}
	for id, args := range map[string]string{
		"document.remove": `{"id":"` + guardtest.Secret + `"}`, "block.delete": `{"id":"` + guardtest.SecretP + `"}`, "notebook.remove": `{"notebook":"` + guardtest.Private + `"}`,
		"block.append": `{"parentID":"` + guardtest.SecretP + `","data":"x","dataType":"markdown"}`,
	} {
		r := d.preview(writer(), id, args)
		fails(t, r, contract.NotFound)
		missing := d.preview(writer(), id, strings.NewReplacer(guardtest.Secret, guardtest.Missing, guardtest.SecretP, guardtest.Missing, guardtest.Private, guardtest.Missing).Replace(args))
		if want := strings.NewReplacer(guardtest.Missing, "ID").Replace(missing.Err.Message); strings.NewReplacer(guardtest.Secret, "ID", guardtest.SecretP, "ID", guardtest.Private, "ID").Replace(r.Err.Message) != want {
			t.Errorf("%s: %q tells hidden from missing: %q", id, r.Err.Message, missing.Err.Message)
		}
	}
}

func TestPreviewsOfOtherWritesNameTheirTargets(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	p := previewed(t, d, full(), "block.append", `{"parentID":"`+guardtest.Alpha+`","data":"x","dataType":"markdown"}`)
	if len(p.Named) != 1 || p.Named[0].Kind != "document" || p.Named[0].Title != "Alpha" {
		t.Errorf("%+v", p)
	}
	p = previewed(t, d, full(), "notebook.rename", `{"notebook":"`+guardtest.Work+`","name":"x"}`)
	if len(p.Named) != 1 || p.Named[0].Title != "Work" {
		t.Errorf("%+v", p)
	}
	if d.texts(t, guardtest.Alpha) == nil {
		t.Error("gone")
	}
}

func TestTitlesInPreviewsCannotPretend(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	id := d.create(t, "/\u202Eevil ” 0 documents", "")
	if p := previewed(t, d, full(), "document.remove", `{"id":"`+id+`"}`); strings.ContainsRune(p.Named[0].Title, '\u202E') {
		t.Errorf("%q", p.Named[0].Title)
	}
}
