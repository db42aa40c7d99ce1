package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/guard/guardtest"
	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/policy"
	"siyuan-broker/connector/siyuan"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/connector/tools"
	"siyuan-broker/connector/tools/handlers"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// throughCutter is a desk with a ledger whose way to the real SiYuan goes through
// a cutter.
func throughCutter(t *testing.T, c *cutter) *desk {
	t.Helper()
	target, err := url.Parse(os.Getenv("SIYUAN_API_URL"))
	if err != nil {
		t.Fatal(err)
	}
	sample, err := samplekernel.New(samplekernel.Options{}) // knows what is a write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sample.Close() })
	c.isWrite = sample.Faults().IsWrite
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(c.wrap(http.HandlerFunc(proxy.ServeHTTP)))
	t.Cleanup(server.Close)
	client, err := siyuan.New(siyuan.Config{BaseURL: server.URL, Token: siyuan.NewToken(os.Getenv("SIYUAN_TOKEN")), Retry: siyuan.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	l, err := ledger.Open(ledger.Config{Path: filepath.Join(t.TempDir(), "ledger.db"), Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	// The cutter loses a write whole, so that nothing of it comes late.
	d := &desk{Home: &guardtest.Home{Client: client, Guard: guard.New(client.Reader(), client.Writer(), guard.Options{Settle: 1})}}
	d.exec, err = tools.New(tools.Config{Guard: d.Guard, Policy: policy.Fixed(contract.ReadWriteDelete), Catalogue: catalogue.AtHome(), Ledger: l}, handlers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) keyed(g *contract.Grant, key, id, args string, s contract.Safety) contract.Result {
	tool, action, _ := strings.Cut(id, ".")
	return d.exec.Handle(context.Background(), contract.Call{Tool: tool, Action: action, RequestID: key, Grant: g, Safety: s, Args: json.RawMessage(args)}, nil)
}

// The first write of each call is lost before and after the real SiYuan has it;
// the same call again ends it, and nothing is written twice.
func TestLiveLostWritesAreFoundOut(t *testing.T) {
	plain, g := liveDesk(t)
	nb := liveNotebook(t, plain, g)
	for i, id := range []string{
		"block.append", "block.prepend", "block.update", "block.replace", "block.delete", "block.move", "block.set_attrs",
		"document.create", "document.rename", "document.remove", "document.set_attr", "document.duplicate", "document.heading_to_doc",
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%t", id, after), func(t *testing.T) {
				args := func(n string) string {
					doc := liveDoc(t, plain, g, nb, fmt.Sprintf("/L%d%t%s", i, after, n), "# Head\n\none two\n\nthree")
					b := plain.ids(t, doc)
					return map[string]string{
						"block.append":            `{"parentID":"` + doc + `","dataType":"markdown","data":"a\n\n- b"}`,
						"block.prepend":           `{"parentID":"` + doc + `","dataType":"markdown","data":"first"}`,
						"block.update":            `{"id":"` + b[1] + `","dataType":"markdown","data":"new **text**"}`,
						"block.replace":           `{"id":"` + b[1] + `","old":"two","new":"zwei"}`,
						"block.delete":            `{"id":"` + b[1] + `"}`,
						"block.move":              `{"id":"` + b[1] + `","previousID":"` + b[2] + `"}`,
						"block.set_attrs":         `{"id":"` + b[1] + `","attrs":{"custom-a":"1"}}`,
						"document.create":         `{"notebook":"` + nb + `","path":"/New` + fmt.Sprint(i, after) + n + `","markdown":"text"}`,
						"document.rename":         `{"id":"` + doc + `","title":"renamed"}`,
						"document.remove":         `{"id":"` + doc + `"}`,
						"document.set_attr":       `{"id":"` + doc + `","attrs":{"icon":"1f4d4"}}`,
						"document.duplicate":      `{"id":"` + doc + `"}`,
						"document.heading_to_doc": `{"headingID":"` + b[0] + `","targetNotebook":"` + nb + `"}`,
					}[id]
				}
				whole := &cutter{}
				if r := throughCutter(t, whole).keyed(g, newKey(t), id, args("a"), contract.Safety{}); r.Err != nil {
					t.Fatalf("undisturbed: %v", r.Err)
				}
				c := &cutter{at: 1, after: after}
				d := throughCutter(t, c)
				key, call := newKey(t), args("b")
				fails(t, d.keyed(g, key, id, call, contract.Safety{}), contract.OutcomeUnknown)
				judgeRetry(t, d.keyed(g, key, id, call, contract.Safety{}), c.carriedOut(), whole.carriedOut())
			})
		}
	}
}

func TestLiveAValidatedWriteHappensOnlyWhileNothingChanged(t *testing.T) {
	plain, g := liveDesk(t)
	nb := liveNotebook(t, plain, g)
	doc := liveDoc(t, plain, g, nb, "/Strict", "one\n\ntwo")
	b := plain.ids(t, doc)
	d := throughCutter(t, &cutter{})
	args := `{"id":"` + b[0] + `","dataType":"markdown","data":"uno"}`
	validate := func() string {
		t.Helper()
		r := d.keyed(g, newKey(t), "block.update", args, contract.Safety{ValidateOnly: true})
		var out struct{ StateHash string }
		if r.Err != nil || json.Unmarshal(r.Body, &out) != nil || out.StateHash == "" {
			t.Fatalf("%s %v", r.Body, r.Err)
		}
		return out.StateHash
	}
	stale := validate()
	if text := plain.kramdown(t, b[0]); !strings.Contains(text, "one") {
		t.Errorf("validating wrote %q", text)
	}
	ok[catalogue.BlockUpdateOut](t, plain, g, "block.update", `{"id":"`+b[0]+`","dataType":"markdown","data":"meanwhile"}`)
	fails(t, d.keyed(g, newKey(t), "block.update", args, contract.Safety{Expect: stale}), contract.StateChanged)
	if r := d.keyed(g, newKey(t), "block.update", args, contract.Safety{Expect: validate()}); r.Err != nil {
		t.Error(r.Err)
	}
	if text := plain.kramdown(t, b[0]); !strings.Contains(text, "uno") {
		t.Errorf("text %q", text)
	}
}
