package integration

import (
	"net/url"
	"os"
	"testing"
	"time"

	"siyuan-broker/connector/approvals"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// homeRule adds to the home's policy and waits until the broker knows: what people
// agreed to before is bound to other rules.
func (x *tenant) homeRule(h *home, agent tenants.ID, rule string) {
	t := x.w.t
	t.Helper()
	digest := func() string {
		facts, err := x.w.db.LoadSnapshot(t.Context(), x.id, agent)
		must(t, err)
		return facts.Connector.Effect.Digest
	}
	before := digest()
	must(t, os.WriteFile(h.config.Policy, []byte("max_level: rwd\n"+rule), 0o600))
	eventually(t, "the broker knows of the home's new rule", func() bool { return digest() != before })
}

// TestTheHomeOwnerIsAskedWhateverTheBrokerAllows: the owner's yes is needed where
// the tenant lets the action run at once, and on top of a yes in the console,
// which is not lost meanwhile.
func TestTheHomeOwnerIsAskedWhateverTheBrokerAllows(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	x.homeRule(x.at, x.agent, "confirm: [delete]\n")
	owner := approvals.In(x.at.config.Data, time.Now)
	decide := func(a approvals.Answer) {
		t.Helper()
		all, err := owner.List()
		if err != nil || len(all) != 1 {
			t.Fatalf("%d questions wait, %v; want 1", len(all), err)
		}
		_, err = owner.Decide(all[0].ID, a)
		must(t, err)
	}
	send := func(doc, id string) answer {
		return call(t.Context(), x.plain, "document", remove(doc, "requestId", id))
	}

	x.policy(t, tenants.ConsentAllow)
	doc := x.doc(t)
	r := refused(t, call(t.Context(), x.plain, "document", remove(doc)), contract.ConfirmationRequired)
	if x.gone(t, doc) {
		t.Fatal("removed before the owner's yes")
	}
	decide(approvals.Approved)
	if a := send(doc, r.Error.RequestID); a.code != "" || !x.gone(t, doc) {
		t.Errorf("after the owner's yes: %+v", a)
	}

	x.policy(t, tenants.ConsentConsole)
	doc = x.doc(t)
	r = refused(t, call(t.Context(), x.plain, "document", remove(doc)), contract.ConfirmationRequired)
	if all, err := owner.List(); err != nil || len(all) != 0 {
		t.Errorf("the owner is asked before the console: %d, %v", len(all), err)
	}
	x.person().submit(r.Error.Detail.Link, url.Values{"do": {"approve"}})
	refused(t, send(doc, r.Error.RequestID), contract.ConfirmationRequired)
	if x.gone(t, doc) {
		t.Fatal("the console's yes was taken for the owner's")
	}
	decide(approvals.Approved)
	if a := send(doc, r.Error.RequestID); a.code != "" || !x.gone(t, doc) {
		t.Errorf("after both: %+v", a)
	}
}
