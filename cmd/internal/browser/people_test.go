package browser

import (
	"net/url"
	"strings"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

func TestAnOwnerInvitesSharesAndTheInvitedComesIn(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	_, tenant := w.Person("ann@example.org", "Ann")
	instance := w.Instance(tenant, "Home")
	const garden = "20240131120000-abc1234"
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		return tx.ReplaceNotebooks(t.Context(), instance, []tenants.Notebook{{ID: garden, Name: "Garden 花园 with a name that goes on and on and on"}, {ID: "20240131120001-abc1234", Name: "Diary"}})
	}))
	inEach(t, w, func(t *testing.T, b *Tab) {
		guest := "a-guest-with-a-long-address-" + string(b.lang) + "@mail.example.org"
		b.SignIn("ann@example.org")
		b.Follow(`nav a[href="/console/people"]`)
		b.Fill("#email", guest)
		b.Follow("#invitations button.primary")
		b.Inspect("people-invited")
		link, err := url.Parse(strings.TrimSpace(Eval[string](b, `document.getElementById("link").innerText`)))
		must(t, err)
		b.Follow("main a.primary")

		in := w.Open(t, b.lang)
		in.Go(link.RequestURI())
		in.Inspect("join-stranger")
		in.Follow(`main a[href^="/console/signup"]`)
		in.Inspect("join-signup")
		in.Fill("#name", "Guest")
		in.Fill("#password", Password)
		in.Follow("main form button.btn:not([type])")
		in.Fill("#email", guest)
		in.Fill("#password", Password)
		in.Follow("main form button.btn:not([type])")
		if in.Path() != "/console/join" {
			t.Fatalf("after signing in the invited is at %s", in.Path())
		}
		in.Inspect("join")
		in.Follow("main form button.primary")
		in.Await(".alert.good")
		in.Follow(`nav a[href="/console/people"]`)
		in.Await("#leave")
		if strings.Contains(in.Text(), "Garden") {
			t.Error("the guest sees a notebook before it is shared")
		}
		in.Inspect("people-nothing")

		b.Go("/console/people")
		b.Fill("#team-new", "Editors 编辑 "+string(b.lang))
		b.Follow("#teams > form button")
		b.Await(".alert.good")
		Eval[bool](b, `[...document.querySelectorAll("#teams > details")].every(d => d.open = true)`)
		Eval[bool](b, `[...document.querySelectorAll("#teams .tick")].filter(l => l.innerText.includes("Guest")).every(l => l.querySelector("input[type=checkbox]").checked = true)`)
		b.Follow("#teams details[open] form button.primary")
		b.Await(".alert.good")
		Eval[string](b, `document.getElementById("share-with").value = document.querySelector('#share-with option[value^="team:"]').value`)
		Eval[string](b, `document.getElementById("share-level").value = "rw"`)
		b.Follow("#shares form button.primary")
		b.Await(".alert.good")
		b.Inspect("people")
		Eval[bool](b, `[...document.querySelectorAll("details:not(.menu)")].every(d => d.open = true)`)
		b.Inspect("people-open")

		in.Go("/console/people")
		in.See("Garden")
		in.Inspect("people-shared")
		in.Press("#leave summary")
		in.Follow("#leave .confirm-box button.danger")
		in.Await(".alert.good")
		must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
			members, err := tx.Members(t.Context())
			must(t, err)
			shares, err := tx.Shares(t.Context(), tenants.ShareFilter{InstanceID: instance})
			if len(members) != 1 || len(shares) != 1 || shares[0].Level != contract.ReadWrite {
				t.Errorf("members %+v, shares %+v", members, shares)
			}
			teams, err2 := tx.Teams(t.Context())
			must(t, err2)
			for _, team := range teams {
				must(t, tx.DeleteTeam(t.Context(), team.ID))
			}
			return err
		}))
	})
}
