package browser

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// asks lets a new agent ask for something of which a person is shown p.
func (w *World) asks(t testing.TB, tenant, member, instance tenants.ID, name, tool, action string, p contract.Preview) (approval tenants.ID) {
	t.Helper()
	shown, err := json.Marshal(p)
	must(t, err)
	a := tenants.Approval{
		ID: tenants.NewID(), InstanceID: instance, MemberID: member, RequestID: tenants.NewID(), Tool: tool, Action: action,
		Preview: shown, CreatedAt: time.Now().Add(-time.Minute), ExpiresAt: time.Now().Add(9*time.Minute + 30*time.Second),
	}
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		agent, err := tx.CreateAgent(t.Context(), tenants.Agent{
			ID: tenants.NewID(), MemberID: member, InstanceID: instance, Name: name, Origin: tenants.FromToken, Ceiling: contract.ReadWriteDelete,
			ExpiresAt: time.Now().Add(time.Hour),
		})
		if err != nil {
			return err
		}
		a.AgentID = agent.ID
		return tx.OpenApproval(t.Context(), a, tenants.ApprovalBounds{PerAgent: 9, InAll: 9})
	}))
	return a.ID
}

// became is what an approval is now.
func (w *World) became(t testing.TB, tenant, approval tenants.ID) (state tenants.ApprovalState) {
	t.Helper()
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		a, err := tx.Approval(t.Context(), approval)
		state = a.State
		return err
	}))
	return state
}

func TestAPersonAnswersForCallsThatWait(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	u, tenant := w.Person("ann@example.org", "Ann")
	instance := w.Instance(tenant, "Home server in the cellar")
	removal := contract.Preview{
		Counts: contract.PreviewCounts{Documents: 23, Blocks: 1204, References: 7, Assets: 3, Attributes: 2, Rows: 41}, Uncounted: true, More: 3,
		Named: []contract.PreviewItem{
			{Kind: "document", Title: "Plans for the garden", Path: "/Home/Plans for the garden"},
			{Kind: "document", Title: strings.Repeat("W", 200), Path: "/Home/" + strings.Repeat("W", 200)},
			{Kind: "document", Title: `<script>document.title="taken"</script>`, Path: "/家/计划"},
		},
	}
	move := contract.Preview{
		Counts: contract.PreviewCounts{Documents: 1, Blocks: 2}, Named: []contract.PreviewItem{{Kind: "document", Title: "旅行计划", Path: "/Work/旅行计划"}},
		Target: &contract.PreviewItem{Kind: "notebook", Title: "Archive"},
	}
	inEach(t, w, func(t *testing.T, b *Tab) {
		b.SignIn(u.Email)
		b.Follow(`nav a[href="/console/approvals"]`)
		b.Await(".empty")
		b.Inspect("approvals-empty")

		// The open page shows what comes in, without being loaded again.
		first := w.asks(t, tenant, u.ID, instance, "Claude", "document", "remove", removal)
		b.See("document.remove")
		second := w.asks(t, tenant, u.ID, instance, strings.Repeat("Agent", 40), "document", "move", move)
		b.See("document.move")
		b.See("Plans for the garden")
		b.Inspect("approvals")

		b.Follow(`a[href$="` + first.String() + `"]`)
		b.See("1204")
		b.Inspect("approval")
		if title := Eval[string](b, "document.title"); strings.Contains(title, "taken") {
			t.Error("a title of a note ran as a script")
		}
		b.Follow(`button[value="approve"]`)
		b.Await(".alert.good")
		b.Inspect("approvals-approved")
		if got := w.became(t, tenant, first); got != tenants.ApprovalApproved {
			t.Errorf("the approved call is %s", got)
		}
		if got := w.became(t, tenant, second); got != tenants.ApprovalOpen {
			t.Errorf("the other call is %s", got)
		}

		b.Follow(`a[href$="` + second.String() + `"]`)
		b.See("旅行计划")
		b.See("Archive")
		b.Inspect("approval-move")
		b.Follow(`button[value="deny"]`)
		b.Await(".alert.info")
		b.Await(".empty")
		if got := w.became(t, tenant, second); got != tenants.ApprovalDenied {
			t.Errorf("the declined call is %s", got)
		}

		b.Go("/console/approvals/" + tenant.String() + "/" + second.String())
		b.Await(".alert.bad") // answered already: there is nothing more to say
		if b.Path() != "/console/approvals" {
			t.Errorf("a question that is answered leads to %s", b.Path())
		}
		b.Inspect("approvals-gone")
	})
}
