package browser

import (
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestAnOwnerSaysWhatAgentsMayDo(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	_, tenant := w.Person("ann@example.org", "Ann")
	instance := w.Instance(tenant, "Home")
	const garden = "20240131120000-abc1234"
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		return tx.ReplaceNotebooks(t.Context(), instance, []tenants.Notebook{{ID: garden, Name: "Garden 花园 with a name that goes on and on and on"}, {ID: "20240131120001-abc1234", Name: "Diary", Closed: true}})
	}))
	inEach(t, w, func(t *testing.T, b *Tab) {
		b.SignIn("ann@example.org")
		b.Follow(`nav a[href="/console/settings"]`)
		b.Inspect("settings")
		Eval[bool](b, `document.querySelectorAll("details.tool")[2].open = true`)
		b.Inspect("settings-tool")
		b.Press(`#level-` + garden)
		Eval[string](b, `document.getElementById("level-`+garden+`").value = "rwd"`)
		b.Follow("#levels button")
		b.Await(".alert.good")
		if got := Eval[string](b, `document.getElementById("level-`+garden+`").value`); got != "rwd" {
			t.Errorf("the page shows level %q after it was saved", got)
		}
		Eval[bool](b, `document.querySelector('input[name=tool][value=document]').closest("details").open = true`)
		b.Press(`input[name=on][value=remove]`)
		Eval[string](b, `document.getElementById("consent-document.remove").value = "console"`)
		b.Follow(`form:has(input[name=tool][value=document]) button`)
		b.Await(".alert.good")
		must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
			levels, err := tx.Levels(t.Context(), instance)
			must(t, err)
			consents, err := tx.Consents(t.Context(), instance)
			if levels[garden] != contract.ReadWriteDelete || len(consents) != 1 || consents[0].Mode != tenants.ConsentConsole {
				t.Errorf("levels %v, consents %+v", levels, consents)
			}
			must(t, tx.ClearLevel(t.Context(), instance, garden))
			must(t, tx.SetConsent(t.Context(), instance, tenants.Consent{Tool: "document", Action: "remove", Mode: tenants.ConsentAsk}))
			return err
		}))
	})
}
