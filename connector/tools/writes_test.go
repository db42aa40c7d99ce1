package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

func TestDocumentCreateByPathAndByParent(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	type created = catalogue.DocumentCreateOut
	doc := func(args string) created {
		return ok[created](t, d, writer(), "document.create", `{"notebook":"`+guardtest.Work+`",`+args+`}`)
	}
	if c := doc(`"path":"/New/Deep/Note","markdown":"x"`); c.Path != "/New/Deep/Note" || c.Title != "Note" || !c.Created {
		t.Errorf("by path: %+v", c)
	}
	if c := doc(`"parentPath":"/Projects","title":"Child"`); c.Path != "/Projects/Child" || c.ResolvedParentPath != "/Projects" {
		t.Errorf("by readable parent: %+v", c)
	}
	if c := doc(fmt.Sprintf(`"parentPath":"/%s/%s.sy","title":"Leaf"`, guardtest.Projects, guardtest.Alpha)); c.Path != "/Projects/Alpha/Leaf" {
		t.Errorf("by storage path: %+v", c)
	}
	if c := doc(`"parentPath":"/","title":"Top"`); c.Path != "/Top" || c.ResolvedParentPath != "/" {
		t.Errorf("below the notebook: %+v", c)
	}
	for args, want := range map[string]contract.Code{
		`"parentPath":"/nowhere","title":"x"`:                         contract.NotFound,
		`"parentPath":"/` + guardtest.Secret + `.sy","title":"x"`:     contract.NotFound,
		`"parentPath":"/","title":"A/B test"`:                         contract.InvalidArguments,
		`"path":"/a/../b"`:                                            contract.InvalidArguments,
		`"path":"/"`:                                                  contract.InvalidArguments,
		`"path":"/Projects"`:                                          contract.AlreadyExists,
		`"path":"/x","markdown":"((` + guardtest.Secret + ` \"s\"))"`: contract.HiddenReference,
	} {
		fails(t, d.call(writer(), "document.create", `{"notebook":"`+guardtest.Work+`",`+args+`}`), want)
	}
}

func TestTwoDocumentsOfOnePathAreAmbiguous(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	const a, b = "20240108000001-twin001", "20240108000002-twin002"
	for _, id := range []string{a, b} {
		d.Add(t, guardtest.Doc{Box: guardtest.Work, Path: "/" + id + ".sy", Title: "Twin"})
	}
	r := d.call(writer(), "document.create", `{"notebook":"`+guardtest.Work+`","path":"/Twin/Child"}`)
	fails(t, r, contract.AmbiguousPath)
	if detail := string(r.Err.Detail); !strings.Contains(detail, a) || !strings.Contains(detail, b) {
		t.Errorf("detail %s names not both", detail)
	}
}

func TestWritesNeedTheLevel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWriteDelete))
	for _, c := range []struct{ id, args string }{
		{"block.append", `{"parentID":"%s","dataType":"markdown","data":"x"}`},
		{"block.update", `{"id":"%s","dataType":"markdown","data":"x"}`},
		{"block.update", `{"items":[{"id":"` + guardtest.Intro + `","dataType":"markdown","data":"x"},{"id":"%s","dataType":"markdown","data":"x"}]}`},
	} {
		r := d.call(writer(), c.id, fmt.Sprintf(c.args, guardtest.EntryP))
		fails(t, r, contract.PermissionDenied)
		if r.Err != nil && !strings.Contains(string(r.Err.Detail), `"required":"rw"`) {
			t.Errorf("%s: detail %s does not name the level", c.id, r.Err.Detail)
		}
		fails(t, d.call(writer(), c.id, fmt.Sprintf(c.args, guardtest.SecretP)), contract.NotFound)
	}
	fails(t, d.call(writer(), "document.create", `{"notebook":"`+guardtest.Diary+`","path":"/x"}`), contract.PermissionDenied)
	fails(t, d.call(writer(), "document.create", `{"notebook":"`+guardtest.Private+`","path":"/x"}`), contract.NotFound)
}

func TestUpdateTellsWhatIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	one := ok[catalogue.BlockUpdateOut](t, d, writer(), "block.update", `{"id":"`+guardtest.Intro+`","dataType":"markdown","data":"changed"}`)
	if !one.Success || one.BlockUpdated == nil || one.ID != guardtest.Intro || !strings.HasPrefix(one.Kramdown, "changed\n") || one.PreservedAttributeCount != 5 {
		t.Errorf("one block: %+v", one.BlockUpdated)
	}
	two := ok[catalogue.BlockUpdateOut](t, d, writer(), "block.update",
		`{"items":[{"id":"`+guardtest.Intro+`","dataType":"markdown","data":"a"},{"id":"`+guardtest.Heading+`","dataType":"markdown","data":"# b"}]}`)
	if two.Count != 2 || len(two.Updated) != 2 || two.Updated[1].ID != guardtest.Heading {
		t.Errorf("two blocks: %+v", two)
	}
	fails(t, d.call(writer(), "block.update",
		`{"items":[{"id":"`+guardtest.Intro+`","dataType":"markdown","data":"a"},{"id":"`+guardtest.Intro+`","dataType":"markdown","data":"b"}]}`), contract.InvalidArguments)
}

func TestAnUnknownOutcomeCarriesItsRequestID(t *testing.T) {
	t.Parallel()
	d := newDesk(t, policy.Fixed(contract.ReadWrite))
	d.Kernel.Faults().Set("/api/block/appendBlock", samplekernel.Fault{Kind: samplekernel.FaultDropAfter})
	r := d.call(writer(), "block.append", `{"parentID":"`+guardtest.Projects+`","dataType":"markdown","data":"x"}`)
	fails(t, r, contract.OutcomeUnknown)
	if r.Err != nil && (r.Err.RequestID != "req-1" || r.Err.Retry != contract.RetrySame) {
		t.Errorf("error %s", r.Err.Body())
	}
}
