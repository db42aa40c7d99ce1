package integration

import (
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"siyuan-broker/broker/cluster/clustertest/redistest"
	"siyuan-broker/contract"
	"siyuan-broker/tenants"
	"siyuan-broker/tenants/postgres/pgtest"
)

// beforeLook is less than the time after which a waiting call looks by itself
// whether it was decided: one that goes on before was told.
const beforeLook = 4 * time.Second

// The home and the person are on one node, the agent waits on the other.
func TestADecisionReachesTheCallThatWaitsOnAnotherNode(t *testing.T) {
	t.Parallel()
	one, two := neighbours(t, pgtest.New(t), redistest.New(t).URL, "")
	x := one.wiped(t)
	x.policy(t, tenants.ConsentConsole)
	person := x.person()
	for _, do := range []string{"approve", "deny"} {
		doc := x.doc(t)
		links := make(chan string, 16)
		s := two.client(x.token, eras[0], nil, func(message string) {
			if _, at, ok := strings.Cut(message, " at "); ok {
				links <- at
			}
		})
		params := &mcp.CallToolParams{Name: "document", Arguments: remove(doc)}
		params.SetProgressToken("p")
		answered := make(chan answer, 1)
		go func() { answered <- read(s.CallTool(t.Context(), params)) }() // received below
		var link string
		select {
		case link = <-links:
		case a := <-answered:
			t.Fatalf("%s: answered before anybody was asked: %+v", do, a)
		}
		if x.gone(t, doc) {
			t.Errorf("%s: removed before the answer", do)
		}
		if len(answered) != 0 {
			t.Fatalf("%s: answered before the decision", do)
		}
		person.submit(link, url.Values{"do": {do}})
		select {
		case a := <-answered:
			if want := map[string]contract.Code{"deny": contract.ConfirmationDeclined}[do]; a.err != nil || a.code != want {
				t.Errorf("%s: %v %s", do, a.err, a.body)
			}
		case <-time.After(beforeLook):
			t.Errorf("%s: the waiting call is not told", do)
		}
		if x.gone(t, doc) != (do == "approve") {
			t.Errorf("%s: removed is %v", do, do != "approve")
		}
	}
}

// TestAnExpiredApprovalIsAskedForAgain: whether nobody answered or the agent came
// too late after the answer, nothing is done and the question is put again.
func TestAnExpiredApprovalIsAskedForAgain(t *testing.T) {
	t.Parallel()
	x := newWiped(t)
	x.policy(t, tenants.ConsentConsole)
	for name, approved := range map[string]bool{"nobody answered": false, "used too late": true} {
		doc := x.doc(t)
		r := refused(t, call(t.Context(), x.plain, "document", remove(doc)), contract.ConfirmationRequired)
		id, err := uuid.Parse(path.Base(r.Error.Detail.Link))
		must(t, err)
		var old tenants.Approval
		x.change(func(tx tenants.Tx) error {
			old, err = tx.Approval(t.Context(), id)
			must(t, err)
			// The same question, put an hour ago under another request id.
			old.ID, old.RequestID = tenants.NewID(), tenants.NewID()
			old.CreatedAt, old.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
			must(t, tx.OpenApproval(t.Context(), old, tenants.ApprovalBounds{PerAgent: 9, InAll: 9}))
			if approved {
				return tx.DecideApproval(t.Context(), old.ID, x.owner, true, old.CreatedAt)
			}
			return nil
		})
		again := refused(t, call(t.Context(), x.plain, "document", remove(doc, "requestId", old.RequestID.String())), contract.ConfirmationRequired)
		if !strings.Contains(again.Error.Message, "expired") || again.Error.RequestID != old.RequestID.String() {
			t.Errorf("%s: %+v", name, again)
		}
		if link := path.Base(again.Error.Detail.Link); link == old.ID.String() || link == id.String() {
			t.Errorf("%s: no new question", name)
		}
		if x.gone(t, doc) {
			t.Errorf("%s: removed", name)
		}
	}
}
