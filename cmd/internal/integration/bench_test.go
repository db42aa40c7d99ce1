package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// BenchmarkCall measures a whole call (agent, broker, tunnel, connector, sample
// kernel) against the floor of the same run: the same body echoed by echo. Only
// the ratio means anything on a shared machine; it is reported as x-floor.
//
//	go test ./cmd/internal/integration -run xxx -bench Call -benchtime 3s
func BenchmarkCall(b *testing.B) {
	w := newWorld(b)
	x := w.tenant("Ada", tenants.NewID())
	x.allow()
	x.home(nil)
	_, token := x.agentToken(tenants.NewID(), contract.ReadWriteDelete)
	s := w.agent(token, "")
	type created struct{ Notebook struct{ ID string } }
	nb := into[created](b, s, "notebook", map[string]any{"action": "create", "name": "bench"}).Notebook.ID
	type doc struct{ ID string }
	id := into[doc](b, s, "document", map[string]any{"action": "create", "notebook": nb, "path": "/doc", "markdown": "One short paragraph of text."}).ID

	e := echo.New()
	e.POST("/*", func(c echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/json", body)
	})
	floor := httptest.NewServer(e)
	defer floor.Close()

	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block","arguments":{"action":"get_kramdown","id":%q},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, id)
	for _, conns := range []int{1, 16} {
		b.Run(fmt.Sprintf("connections=%d", conns), func(b *testing.B) {
			transport := &http.Transport{MaxIdleConnsPerHost: conns}
			defer transport.CloseIdleConnections()
			b.SetParallelism(conns) // times GOMAXPROCS
			var spent [2]time.Duration
			for i, url := range []string{floor.URL + "/", w.url + "/mcp"} {
				start := time.Now()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						send(b, transport, url, token, body)
					}
				})
				spent[i] = time.Since(start)
			}
			b.ReportMetric(float64(spent[0])/float64(b.N), "floor-ns/op")
			b.ReportMetric(float64(spent[1])/float64(b.N), "call-ns/op")
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "x-floor")
		})
	}
}

func send(b *testing.B, transport *http.Transport, url, token string, body []byte) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "block",
	} {
		req.Header.Set(k, v)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"isError":true`)) {
		b.Errorf("%s: %d %s %v", url, resp.StatusCode, answer, err)
	}
}
