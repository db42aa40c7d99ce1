package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// instance makes an instance in a tenant.
func (w *World) instance(t testing.TB, tenant tenants.ID, name string) {
	t.Helper()
	must(t, w.DB.In(t.Context(), tenant, func(tx tenants.Tx) error {
		_, err := tx.CreateInstance(t.Context(), tenants.Instance{Name: name, DefaultLevel: contract.ReadWrite, Enabled: true})
		return err
	}))
}

// callback is a client's end of a sign-in: a page of another origin.
func callback(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if q := r.URL.Query(); r.URL.Path == "/callback" {
			_, _ = fmt.Fprintf(w, `<title>app</title><link rel="icon" href="data:,"><h1>back in the app</h1><p id="code">%s</p><p id="error">%s</p>`, q.Get("code"), q.Get("error"))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/callback"
}

// register registers an OAuth client and gives the address of its request.
func (w *World) register(t testing.TB, name, redirect string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}})
	must(t, err)
	resp, err := http.Post(w.URL+"/oauth/register", "application/json", strings.NewReader(string(body)))
	must(t, err)
	defer resp.Body.Close()
	var got struct {
		ID string `json:"client_id"`
	}
	must(t, json.NewDecoder(resp.Body).Decode(&got))
	return "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {got.ID}, "redirect_uri": {redirect}, "state": {"s"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}}.Encode()
}

func TestAPersonLetsAnAgentInAndTakesItBack(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	_, tenant := w.Person("ann@example.org", "Ann")
	w.instance(t, tenant, "Laptop")
	w.instance(t, tenant, "Home server in the cellar")
	back := callback(t)
	inEach(t, w, func(t *testing.T, b *Tab) {
		at := w.register(t, "Claude", back)
		b.Go(at)
		if b.Path() != "/console/signin" {
			t.Fatalf("a stranger is at %s", b.Path())
		}
		b.Fill("#email", "ann@example.org")
		b.Fill("#password", Password)
		b.Follow("main form button.btn:not([type])")
		if b.Path() != "/oauth/authorize" {
			t.Fatalf("signing in led to %s, not back to the question", b.Path())
		}
		b.Inspect("consent")
		b.Press(`label:has(input[name="place"])`)
		b.Press(`label:has(input[value="rw"])`)
		b.Press("details.more > summary")
		b.Press(`label:has(input[value="only"])`)
		b.Inspect("consent-tools")
		b.Follow(`button[value="allow"]`) // no tool chosen
		b.Await(".alert.bad")
		b.Inspect("consent-problem")
		b.Press(`label:has(input[name="tool"])`)
		b.Follow(`button[value="allow"]`)
		b.See("back in the app")
		if Eval[string](b, `document.getElementById("code").innerText`) == "" {
			t.Error("the app got no code")
		}
		b.Go(at)
		b.Follow(`button[value="deny"]`)
		b.See("access_denied")
		b.Go("/console/agents")
		b.Inspect("agents-empty")
		b.Go("/console/agents/token")
		b.Inspect("token-form")
		b.Press(`label:has(input[name="place"])`)
		b.Fill("#name", "nightly backup")
		b.Follow("main form button.btn.primary")
		b.Await("#token")
		b.Inspect("token")
		b.Go("/console/agents")
		b.See("nightly backup")
		b.Press("details.confirm > summary")
		b.Inspect("agents")
		b.Follow("details.confirm[open] form button")
		b.Await(".alert.good")
		b.Go("/console/connect")
		b.Inspect("connect")
	})
}

func TestAPersonAnswersADevice(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	_, tenant := w.Person("ann@example.org", "Ann")
	w.instance(t, tenant, "Laptop")
	inEach(t, w, func(t *testing.T, b *Tab) {
		at, err := url.Parse(w.register(t, "Television", "http://localhost/callback"))
		must(t, err)
		resp, err := http.PostForm(w.URL+"/oauth/device", url.Values{"client_id": {at.Query().Get("client_id")}})
		must(t, err)
		defer resp.Body.Close()
		var device struct {
			Code string `json:"user_code"`
		}
		must(t, json.NewDecoder(resp.Body).Decode(&device))
		b.SignIn("ann@example.org")
		b.Go("/device")
		b.Inspect("device")
		b.Fill("#code", "nonsense")
		b.Follow("main form button")
		b.Await("#code-error")
		b.Inspect("device-wrong")
		b.Fill("#code", strings.ToLower(device.Code))
		b.Follow("main form button")
		b.See(device.Code)
		b.Inspect("device-consent")
		b.Follow(`button[value="allow"]`)
		b.Inspect("device-done")
	})
}

func TestAHostileNameBreaksNoPage(t *testing.T) {
	t.Parallel()
	w := Start(t, nil)
	_, tenant := w.Person("ann@example.org", "Ann")
	w.instance(t, tenant, strings.Repeat("Laptop", 30))
	inEach(t, w, func(t *testing.T, b *Tab) {
		b.SignIn("ann@example.org")
		for what, name := range map[string]string{
			"markup": `<script>document.title="taken"</script><img src=x onerror="document.title='taken'">`, "override": "\u202eedualC\u2066 deifirev",
			"long": strings.Repeat("W", 5000), "homoglyphs": "Сlaude", "piled": "Z" + strings.Repeat("\u0335\u030d", 300) + "algo", "wide": strings.Repeat("﷽", 100),
		} {
			b.Go(w.register(t, name, "https://"+strings.Repeat("a-long-label.", 15)+"example/callback"))
			b.Await(`button[value="allow"]`)
			b.Inspect("hostile-" + what)
			if title := Eval[string](b, "document.title"); strings.Contains(title, "taken") {
				t.Errorf("%s ran", what)
			}
		}
		b.Go("/oauth/authorize?client_id=c_nobody")
		b.Inspect("refused")
	})
}
