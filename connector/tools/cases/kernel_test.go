package cases_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// kept are endpoints that an action may do without: the list of plugins' tools is
// good for a minute (connector/tools tries the bridge without it), their words are
// withheld where their secrets are not known, a diagnosis says itself that there is no
// bridge, and a removal that was read back only waits for the index.
var kept = map[string][]string{
	"extension.list":                {"/api/system/getWorkspaceInfo", "/api/system/getConf", "/mcp"},
	"extension.plugin_read":         {"/api/system/getWorkspaceInfo", "/api/system/getConf"},
	"extension.native_read":         {"/api/system/getWorkspaceInfo", "/api/system/getConf"},
	"extension.diagnose_plugin_mcp": {"/mcp"},
	"document.remove":               {"/api/query/sql"},
	"fs.rm":                         {"/api/query/sql"},
}

// TestK36AnActionWhoseEndpointIsGoneSaysSo: every action of the catalogue, and
// each endpoint it uses, one after the other removed from the kernel as a new
// major version would. Nothing is written another way instead.
func TestK36AnActionWhoseEndpointIsGoneSaysSo(t *testing.T) {
	t.Parallel()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			t.Run(a.ID(), func(t *testing.T) {
				t.Parallel()
				desk := deskFor(t, a)
				for _, args := range slices.Concat(a.Examples, more[a.ID()]) {
					d := desk()
					if r := d.callAs(owner(), a.ID(), args); r.Err != nil {
						continue
					}
					tried := map[string]bool{}
					for _, e := range d.front.take() {
						if !tried[e.path] && !slices.Contains(kept[a.ID()], e.path) {
							tried[e.path] = true
							withoutEndpoint(t, desk(), a, args, e.path)
						}
					}
				}
			})
		}
	}
}

func withoutEndpoint(t *testing.T, d *desk, a *catalogue.Action, args, endpoint string) {
	t.Helper()
	d.front.answering(func(path string, body []byte) (int, []byte, bool) {
		if path == endpoint {
			return http.StatusNotFound, []byte("404 page not found"), true
		}
		return embedding(path, body)
	})
	before := d.files(t)
	r := d.callAs(owner(), a.ID(), args)
	if r.Err == nil {
		t.Errorf("%s without %s: %s", args, endpoint, r.Body)
		return
	}
	wrote := slices.ContainsFunc(d.front.take(), func(e exchange) bool {
		return d.kernel.Faults().IsWrite(e.path) && e.path != endpoint && strings.Contains(string(e.reply), `"code":0`)
	})
	switch code := contract.CodeOf(r.Err); {
	case wrote && code != contract.OutcomeUnknown && code != contract.UnsupportedByKernel:
		t.Errorf("%s without %s: %v after a write, want outcome_unknown", args, endpoint, r.Err)
	case !wrote && code != contract.UnsupportedByKernel:
		t.Errorf("%s without %s: %v, want unsupported_by_kernel", args, endpoint, r.Err)
	case !wrote && !maps.Equal(before, d.files(t)):
		t.Errorf("%s without %s: something was written", args, endpoint)
	}
}

// TestK36FieldsThatAreNewChangeNothing: the kernel's answers have one more field
// in every object.
func TestK36FieldsThatAreNewChangeNothing(t *testing.T) {
	t.Parallel()
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			t.Run(a.ID(), func(t *testing.T) {
				t.Parallel()
				desk := deskFor(t, a)
				for _, args := range slices.Concat(a.Examples, more[a.ID()]) {
					want := desk().callAs(owner(), a.ID(), args)
					d := desk()
					d.front.rewriting(withNewFields)
					got := d.callAs(owner(), a.ID(), args)
					if (want.Err == nil) != (got.Err == nil) || want.Err != nil && contract.CodeOf(want.Err) != contract.CodeOf(got.Err) {
						t.Errorf("%s: %v, want %v", args, got.Err, want.Err)
					}
					if strings.Contains(string(got.Body), newField) {
						t.Errorf("%s: the new field is in %s", args, got.Body)
					}
				}
			})
		}
	}
}

const newField = "fieldOfTomorrow"

// withNewFields adds a field to every object of an answer whose keys are names:
// not to maps by id, attributes, or rows of a statement.
func withNewFields(path string, reply []byte) []byte {
	var v any
	if json.Unmarshal(reply, &v) != nil {
		return reply
	}
	free := strings.HasSuffix(path, "BlockAttrs") || path == "/api/query/sql" || strings.HasSuffix(path, "IDsByBoundIDs")
	var walk func(v any, top bool)
	walk = func(v any, top bool) {
		switch v := v.(type) {
		case []any:
			for _, w := range v {
				walk(w, false)
			}
		case map[string]any:
			if free && !top {
				return
			}
			byID := len(v) == 0
			for k, w := range v {
				byID = byID || contract.IsID(k)
				if k != "ial" {
					walk(w, false)
				}
			}
			if !byID {
				v[newField] = map[string]any{"x": 1}
			}
		}
	}
	walk(v, true)
	out, err := json.Marshal(v)
	if err != nil {
		return reply
	}
	return out
}

// TestK39NothingIsWrittenIntoADocumentThatSyncIsReplacing: SiYuan tells it for
// each document. The same call succeeds afterwards.
func TestK39NothingIsWrittenIntoADocumentThatSyncIsReplacing(t *testing.T) {
	t.Parallel()
	into := map[string]string{
		"block.append":    `{"parentID":"` + guardtest.Alpha + `","dataType":"markdown","data":"x"}`,
		"block.prepend":   `{"parentID":"` + guardtest.List + `","dataType":"markdown","data":"- x"}`,
		"block.insert":    `{"previousID":"` + guardtest.Intro + `","dataType":"markdown","data":"x"}`,
		"block.update":    `{"items":[{"id":"` + guardtest.Index + `","dataType":"markdown","data":"x"},{"id":"` + guardtest.Intro + `","dataType":"markdown","data":"x"}]}`,
		"block.delete":    `{"id":"` + guardtest.Intro + `"}`,
		"block.move":      `{"id":"` + guardtest.Index + `","parentID":"` + guardtest.Alpha + `"}`,
		"block.set_attrs": `{"id":"` + guardtest.Intro + `","attrs":{"alias":"x"}}`,
		"document.rename": `{"id":"` + guardtest.Alpha + `","title":"x"}`,
		"document.move":   `{"fromIDs":["` + guardtest.Alpha + `"],"toID":"` + guardtest.Work + `"}`,
		"document.remove": `{"id":"` + guardtest.Alpha + `"}`,

		"flashcard.create_card": `{"deckID":"","blockIDs":["` + guardtest.Heading + `"]}`,
		"flashcard.remove_card": `{"deckID":"","blockIDs":["` + guardtest.Intro + `"]}`,

		"timeline.create_node":       `{"name":"final","scope":"document","documentId":"` + guardtest.Alpha + `"}`,
		"timeline.delete_node":       `{"documentId":"` + guardtest.Alpha + `","tag":"` + guardtest.Moment + `"}`,
		"timeline.rollback_document": `{"documentId":"` + guardtest.Alpha + `","tag":"` + guardtest.Moment + `"}`,
		"timeline.rollback_block":    `{"documentId":"` + guardtest.Alpha + `","tag":"` + guardtest.Moment + `","changeKey":"modified:` + guardtest.Intro + `:` + guardtest.Intro + `"}`,

		"fs.write":   `{"path":"/Work/Projects/Beta","markdown":"x","overwrite":true}`,
		"fs.replace": `{"path":"/Work/Projects/Alpha","old":"small","new":"big"}`,
		"fs.mv":      `{"from":"/Work/Projects/Alpha","to":"/Work/Alpha"}`,
		"fs.rm":      `{"path":"/Work/Projects/Alpha"}`,

		"block.replace":             `{"id":"` + guardtest.Intro + `","old":"small","new":"big"}`,
		"block.set_fold_state":      `{"id":"` + guardtest.Heading + `","folded":true}`,
		"block.transfer_references": `{"fromID":"` + guardtest.Intro + `","toID":"` + guardtest.Heading + `","refIDs":["` + betaText + `"]}`,
		"document.set_attr":         `{"id":"` + guardtest.Alpha + `","attrs":{"icon":"1f4d4"}}`,
		"document.heading_to_doc":   `{"headingID":"` + guardtest.Heading + `","targetNotebook":"` + guardtest.Work + `"}`,
		"document.doc_to_heading":   `{"srcID":"` + beta + `","targetID":"` + guardtest.Alpha + `"}`,
		"search.find_replace":       `{"k":"small","r":"big","ids":["` + guardtest.Alpha + `"]}`,
	}
	syncing := map[string]string{"block.transfer_references": beta, "fs.write": beta}
	elsewhere := []string{"document.reorder", "document.duplicate", "document.ensure_link_targets", "file.upload_asset", "file.save_doc_as_template"} // they write beside the documents they name
	av, _ := catalogue.New().Tool("av")
	for _, a := range av.Actions {
		if a.Kind.Mutates() {
			into[a.ID()], syncing[a.ID()] = a.Examples[0], beta
		}
	}
	for id, args := range into {
		d := newDeskFor(t, id)
		d.kernel.Faults().Sync(cmp.Or(syncing[id], guardtest.Alpha))
		before := d.files(t)
		if e := d.fails(t, contract.SyncInProgress, id, args); e.Retry != contract.RetryAfter || e.RetryAfterS == 0 || !maps.Equal(before, d.files(t)) {
			t.Errorf("%s: %s; written: %v", id, e.Body(), !maps.Equal(before, d.files(t)))
		}
		d.kernel.Faults().Sync()
		if r := d.call(id, args); r.Err != nil {
			t.Errorf("%s afterwards: %v", id, r.Err)
		}
		d = newDeskFor(t, id)
		d.kernel.Faults().Sync(guardtest.Entry)
		if r := d.call(id, args); r.Err != nil {
			t.Errorf("%s while another document is synced: %v", id, r.Err)
		}
	}
	for _, tool := range catalogue.AtHome().Tools() {
		for _, a := range tool.Actions {
			touchesDoc := slices.ContainsFunc(a.Params, func(p catalogue.Param) bool {
				leaf := p
				if p.Items != nil {
					leaf = *p.Items
				}
				return leaf.Ref == catalogue.RefBlock || leaf.Ref == catalogue.RefDoc
			})
			if _, tried := into[a.ID()]; a.Kind.Mutates() && touchesDoc && !tried && !slices.Contains(elsewhere, a.ID()) {
				t.Errorf("%s writes into documents and is not tried here", a.ID())
			}
		}
	}
}
