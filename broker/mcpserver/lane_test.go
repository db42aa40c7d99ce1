package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// lanes are two nodes with the same store, one with the hot lane and one
// without, and one agent with a session that both know.
type lanes struct {
	hot, sdk     *rig
	raw, session string
	sent         atomic.Int64
}

func newLanes(t testing.TB, change func(*Config)) *lanes {
	t.Helper()
	s := newStore()
	off := func(c *Config) {
		if change != nil {
			change(c)
		}
		c.NoHotLane = true
	}
	l := &lanes{hot: s.node(t, change), sdk: s.node(t, off)}
	l.raw, _ = l.hot.token(t, tenantA, agent)
	l.session = l.hot.session(t, l.raw)
	return l
}

func (l *lanes) will(answer func(context.Context, relayed) contract.Result) {
	l.hot.home.will(answer)
	l.sdk.home.will(answer)
}

// eras of the lanes, and the headers of a call of notebook in them.
func (l *lanes) header(era string) map[string]string {
	if era == "modern" {
		return modernHeader(l.raw, "tools/call", "notebook")
	}
	return legacyHeader(l.raw, l.session)
}

// made is what a request came to: the answer, what reached the home and what was
// recorded.
type made struct {
	Status  int
	Header  map[string][]string
	Body    string
	Home    string
	Records string
}

var newIDs = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

func (r *rig) ask(t testing.TB, body string, header map[string]string) (made, bool) {
	t.Helper()
	calls, records := len(r.home.received()), r.records.count()
	w := r.send(t, "POST", "/mcp", body, header)
	m := made{Status: w.Code, Header: maps.Clone(w.Header()), Body: newIDs.ReplaceAllString(w.Body.String(), "NEW")}
	hot := tookHotLane(w)
	delete(m.Header, "Content-Length") // the difference that lane.go names
	for _, c := range r.home.received()[calls:] {
		c.call.Grant = nil
		text, err := json.Marshal([]any{c.tenant, c.instance, c.call, c.idempotent, c.progress != nil})
		if err != nil {
			t.Fatal(err)
		}
		m.Home += newIDs.ReplaceAllString(string(text), "NEW")
	}
	for _, c := range r.records.since(records) {
		c.ID, c.StartedAt, c.Legs = tenants.ID{}, time.Time{}, tenants.Legs{}
		if c.RequestID != "" {
			c.RequestID = "NEW"
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		m.Records += string(text)
	}
	return m, hot
}

func tookHotLane(w *httptest.ResponseRecorder) bool { return w.Header().Get("Content-Length") != "" }

// same demands the same from both lanes, and says whether the hot one answered.
func (l *lanes) same(t testing.TB, what, body string, header map[string]string) (hot bool) {
	t.Helper()
	// An id is good once in a session: it is in flight a moment longer than its answer.
	body = strings.Replace(body, `"id":3,`, `"id":`+strconv.FormatInt(1000+l.sent.Add(1), 10)+`,`, 1)
	want, odd := l.sdk.ask(t, body, header)
	got, hot := l.hot.ask(t, body, header)
	if odd {
		t.Errorf("%s: the hot lane is off and answered", what)
	}
	if got.Status != want.Status || got.Body != want.Body || !maps.EqualFunc(got.Header, want.Header, slices.Equal) {
		t.Errorf("%s: %q\nthe lanes answer\n%d %v %s\n%d %v %s", what, body, got.Status, got.Header, got.Body, want.Status, want.Header, want.Body)
	}
	if got.Home != want.Home || got.Records != want.Records {
		t.Errorf("%s: %q\nreached home\n%s\n%s\nrecorded\n%s\n%s", what, body, got.Home, want.Home, got.Records, want.Records)
	}
	return hot
}

// plainCall is the call that all others are variations of.
func plainCall(era string) string {
	if era == "modern" {
		return callList
	}
	return strings.Replace(callList, ","+meta, "", 1)
}

const (
	always  = "both eras"
	modern  = "the era without sessions"
	nowhere = ""
)

// variations are a call with one text replaced by another, and where it is
// expected to take the hot lane.
var variations = []struct{ name, old, new, hot string }{
	{"as it is", "", "", always},
	{"space around everything", `{"jsonrpc":"2.0","id":3,`, " {\n\"jsonrpc\" :\t\"2.0\" , \"id\":\r\n3 ,", always},
	{"another order", `"jsonrpc":"2.0","id":3,"method":"tools/call",`, `"id":3,"method":"tools/call","jsonrpc":"2.0",`, always},
	{"space at the end", "}}}", "}}}\n ", always},
	{"trailing data", `{"jsonrpc"`, `{}{"jsonrpc"`, nowhere},
	{"a BOM", `{"jsonrpc"`, "\ufeff" + `{"jsonrpc"`, nowhere},
	{"a batch of one", callList, "[" + callList + "]", nowhere},
	{"cut", `"id":3`, `"id"`, nowhere},
	{"a comment", `"id":3`, `/**/"id":3`, nowhere},
	{"single quotes", `"id":3`, `'id':3`, nowhere},
	{"invalid UTF-8", `"list"`, "\"li\xffst\"", nowhere},
	{"a control character", `"list"`, "\"li\x01st\"", nowhere},
	{"nothing", callList, "", nowhere},
	{"a number", callList, "7", nowhere},

	{"version 1.0", `"2.0"`, `"1.0"`, nowhere},
	{"version a number", `"2.0"`, `2.0`, nowhere},
	{"version escaped", `"2.0"`, `"2\u002e0"`, nowhere},
	{"no version", `"jsonrpc":"2.0",`, ``, nowhere},
	{"version twice", `"jsonrpc":"2.0",`, `"jsonrpc":"2.0","jsonrpc":"2.0",`, nowhere},
	{"version in capitals too", `"jsonrpc":"2.0",`, `"jsonrpc":"2.0","JSONRPC":"1",`, nowhere},

	{"id 0", `"id":3`, `"id":0`, always},
	{"id of 15 digits", `"id":3`, `"id":999999999999999`, always},
	{"id of 16 digits", `"id":3`, `"id":9007199254740993`, nowhere},
	{"huge id", `"id":3`, `"id":123456789012345678901234567890`, nowhere},
	{"negative id", `"id":3`, `"id":-3`, nowhere},
	{"negative zero", `"id":3`, `"id":-0`, nowhere},
	{"fraction", `"id":3`, `"id":3.7`, nowhere},
	{"exponent", `"id":3`, `"id":3e2`, nowhere},
	{"leading zero", `"id":3`, `"id":03`, nowhere},
	{"string id", `"id":3`, `"id":"a <b> & 7"`, always},
	{"empty string id", `"id":3`, `"id":""`, always},
	{"long string id", `"id":3`, `"id":"` + strings.Repeat("x", 4000) + `"`, nowhere},
	{"escaped id", `"id":3`, `"id":"a\"b"`, nowhere},
	{"id beyond ASCII", `"id":3`, `"id":"é` + "\u2028" + `"`, nowhere},
	{"id with a lone surrogate", `"id":3`, `"id":"\ud800"`, nowhere},
	{"null id", `"id":3`, `"id":null`, nowhere},
	{"boolean id", `"id":3`, `"id":true`, nowhere},
	{"object id", `"id":3`, `"id":{}`, nowhere},
	{"no id", `"id":3,`, ``, nowhere},
	{"id twice", `"id":3`, `"id":3,"id":4`, nowhere},
	{"ID too", `"id":3`, `"id":3,"ID":4`, nowhere},

	{"another method", `"tools/call"`, `"tools/list"`, nowhere},
	{"unknown method", `"tools/call"`, `"tools/cull"`, nowhere},
	{"method a number", `"tools/call"`, `7`, nowhere},
	{"escaped method", `"tools/call"`, `"tools\/call"`, nowhere},
	{"method twice", `"method":"tools/call"`, `"method":"tools/list","method":"tools/call"`, nowhere},
	{"a result too", `"id":3`, `"id":3,"result":{}`, nowhere},
	{"an error too", `"id":3`, `"id":3,"error":{"code":1,"message":"x"}`, nowhere},
	{"something unknown", `"id":3`, `"id":3,"x":[1]`, nowhere},
	{"escaped key", `"id":3`, `"\u0069d":3`, nowhere},

	{"no params", `"params":`, `"x":`, nowhere},
	{"params null", `"params":{`, `"params":null,"x":{`, nowhere},
	{"params twice", `"params":{`, `"params":{},"params":{`, nowhere},
	{"params a list", `"params":{`, `"params":[],"x":{`, nowhere},
	{"no name", `"name":"notebook",`, ``, nowhere},
	{"name null", `"name":"notebook"`, `"name":null`, nowhere},
	{"name a number", `"name":"notebook"`, `"name":7`, nowhere},
	{"name empty", `"name":"notebook"`, `"name":""`, nowhere},
	{"name twice", `"name":"notebook"`, `"name":"document","name":"notebook"`, nowhere},
	{"name escaped", `"name":"notebook"`, `"name":"note\u0062ook"`, nowhere},
	{"another tool", `"name":"notebook"`, `"name":"document"`, nowhere}, // in modern: the header differs
	{"unknown tool", `"name":"notebook"`, `"name":"nothing"`, nowhere},
	{"answers to questions", `"name":"notebook"`, `"name":"notebook","inputResponses":{}`, nowhere},
	{"wrong answers to questions", `"name":"notebook"`, `"name":"notebook","inputResponses":7`, nowhere},
	{"request state", `"name":"notebook"`, `"name":"notebook","requestState":"x"`, nowhere},
	{"a task", `"name":"notebook"`, `"name":"notebook","task":{"ttl":1}`, nowhere},

	{"no arguments", `"arguments":{"action":"list"},`, ``, nowhere}, // in modern; see below
	{"arguments null", `{"action":"list"}`, `null`, always},
	{"arguments empty", `{"action":"list"}`, `{}`, always},
	{"arguments a list", `{"action":"list"}`, `[{"action":"list"}]`, always},
	{"arguments a string", `{"action":"list"}`, `"list"`, always},
	{"arguments a number", `{"action":"list"}`, `7`, always},
	{"a number no float64 holds", `"list"`, `"list","x":[1e999]`, nowhere},
	{"a number that is just written so", `"list"`, `"list","x":1e2`, nowhere},
	{"a number of many digits", `"list"`, `"list","x":1` + strings.Repeat("0", 400), nowhere},
	{"a usual number", `"list"`, `"list","x":-1234567890.0625`, always},
	{"arguments twice", `"arguments":`, `"arguments":{},"arguments":`, nowhere},
	{"action twice", `"action":"list"`, `"action":"get","action":"list"`, always},
	{"action in other words", `"action":"list"`, `"Action":"list"`, always},
	{"action null", `"list"`, `null`, always},
	{"action a number", `"list"`, `7`, always},
	{"action long", `"list"`, `"` + strings.Repeat("l", 200) + `"`, always},
	{"action escaped", `"list"`, `"l\u0069st"`, always},
	{"action with a lone surrogate", `"list"`, `"\udc00"`, always},
	{"unknown action", `"list"`, `"nothing"`, always},
	{"help", `"list"`, `"help"`, always},
	{"help on one action", `"action":"list"`, `"action":"help","topic":"list"`, always},
	{"help on something odd", `"action":"list"`, `"action":"help","topic":["list"]`, always},
	{"unknown parameter", `"action":"list"`, `"action":"list","x":{"y":[1,2,{"z":null}]}`, always},
	{"HTML in a name", `"action":"list"`, `"action":"list","<b>&\u2028":1`, always},
	{"a request id", `"action":"list"`, `"action":"list","requestId":"0190b0b0-0000-7000-8000-000000000001"`, always},
	{"a wrong request id", `"action":"list"`, `"action":"list","requestId":"x"`, always},
	{"a write", `"action":"list"`, `"action":"create","name":"笔记 <1>"`, always},
	{"a write with less", `"action":"list"`, `"action":"create"`, always},
	{"a wrong type", `"action":"list"`, `"action":"create","name":{}`, always},
	{"a dangerous action", `"action":"list"`, `"action":"remove","notebook":"` + notebook + `"`, nowhere},
	{"a disabled action", `"action":"list"`, `"action":"rename","notebook":"` + notebook + `","name":"x"`, always},
	{"deep", `"list"`, `"list","x":` + strings.Repeat("[", scanDepth) + strings.Repeat("]", scanDepth), nowhere},
	{"deeper than the SDK goes", `"list"`, `"list","x":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001), nowhere},
	{"deep and broken", `"list"`, `"list","x":` + strings.Repeat("[", 50) + strings.Repeat("]", 49), nowhere},
	{"long", `"list"`, `"list","x":"` + strings.Repeat(`long \n \" 笔 `, 4000) + `"`, always},
	{"long and wrong", `"list"`, `"create","name":"` + strings.Repeat(`x`, 40000) + `"`, always},

	{"no _meta", "," + meta, "", nowhere}, // in modern; that is the plain call of the others
	{"a progress token", `"_meta":{`, `"_meta":{"progressToken":7,`, nowhere},
	{"a log level", `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"info",`, nowhere},
	{"a trace", `"_meta":{`, `"_meta":{"traceparent":"x",`, nowhere},
	{"_meta null", meta, `"_meta":null`, nowhere},
	{"_meta empty", meta, `"_meta":{}`, nowhere},
	{"_meta of another version", "2026-07-28", "2026-07-29", nowhere},
	{"_meta of an old version", "2026-07-28", "2025-11-25", nowhere},
	{"no client", `"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`, ``, modern},
	{"client null", `{"name":"t","version":"1"}`, `null`, nowhere},
	{"client a string", `{"name":"t","version":"1"}`, `"t"`, nowhere},
	{"client in full", `{"name":"t","version":"1"}`, `{"name":"t","title":"T","version":"1","websiteUrl":"https://x","icons":[{"src":"y","sizes":["1x1"]}],"x":{}}`, modern},
	{"client of wrong types", `"name":"t"`, `"name":7`, nowhere},
	{"client twice", `"io.modelcontextprotocol/clientInfo":`, `"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientInfo":`, nowhere},
	{"escaped client", `"name":"t"`, `"name":"\u0074"`, nowhere},
	{"no capabilities", `,"io.modelcontextprotocol/clientCapabilities":{}`, ``, nowhere},
	{"capabilities null", `Capabilities":{}`, `Capabilities":null`, nowhere},
	{"capabilities a list", `Capabilities":{}`, `Capabilities":[]`, nowhere},
	{"capabilities in full", `Capabilities":{}`, `Capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"experimental":{"x":{}},"extensions":{"y":{}}}`, modern},
	{"capabilities of wrong types", `Capabilities":{}`, `Capabilities":{"elicitation":true}`, nowhere},
	{"roots of a wrong type", `Capabilities":{}`, `Capabilities":{"roots":[]}`, nowhere},
	{"roots null", `Capabilities":{}`, `Capabilities":{"roots":null}`, modern},
}

func TestBothLanesGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			l := newLanes(t, nil)
			f := facts(tenantA, agent)
			f.Toggles = []tenants.Toggle{{Tool: "notebook", Action: "rename", Enabled: false}}
			l.hot.store.change(f)
			for _, v := range variations {
				body := plainCall(era)
				if v.old != "" {
					if !strings.Contains(callList, v.old) {
						t.Fatalf("%s: nothing to replace", v.name)
					}
					body = strings.Replace(body, v.old, v.new, 1)
				}
				hot := l.same(t, v.name, body, l.header(era))
				want := v.hot == always || v.hot == modern && era == "modern"
				// What a variation of _meta or of the name changes in one era only.
				switch {
				case era == "legacy" && (body == plainCall(era) || v.name == "another tool" || v.name == "no arguments"):
					want = true
				case era == "modern" && v.name == "no arguments":
					want = true
				}
				if hot != want {
					t.Errorf("%s: took the hot lane: %v, want %v", v.name, hot, want)
				}
			}
		})
	}
}

func TestBothLanesReadHeadersAlike(t *testing.T) {
	t.Parallel()
	l := newLanes(t, nil)
	for name, c := range map[string]struct {
		set map[string]string // "" removes
		hot string
	}{
		"no Accept":               {map[string]string{"Accept": ""}, nowhere},
		"Accept anything":         {map[string]string{"Accept": "*/*"}, always},
		"Accept JSON":             {map[string]string{"Accept": "application/json"}, nowhere},
		"Accept events":           {map[string]string{"Accept": "text/event-stream"}, nowhere},
		"Accept in capitals":      {map[string]string{"Accept": "Application/JSON;q=0.9 , Text/Event-Stream"}, always},
		"Accept but rather not":   {map[string]string{"Accept": "application/json;q=0, text/event-stream"}, nowhere},
		"Accept garbled":          {map[string]string{"Accept": "application/json; =, text/event-stream"}, nowhere},
		"JSON with a charset":     {map[string]string{"Content-Type": "application/json; charset=utf-8"}, always},
		"text":                    {map[string]string{"Content-Type": "text/plain"}, nowhere},
		"no Content-Type":         {map[string]string{"Content-Type": ""}, nowhere},
		"resuming":                {map[string]string{"Last-Event-Id": "x_1"}, nowhere},
		"a page":                  {map[string]string{"Origin": publicURL}, always},
		"a foreign page":          {map[string]string{"Origin": "https://evil.example"}, nowhere},
		"a foreign host":          {map[string]string{"Host": "evil.example"}, nowhere},
		"no token":                {map[string]string{"Authorization": ""}, nowhere},
		"no version":              {map[string]string{"Mcp-Protocol-Version": ""}, "legacy"},
		"an unknown version":      {map[string]string{"Mcp-Protocol-Version": "2024-01-01"}, nowhere},
		"a version to come":       {map[string]string{"Mcp-Protocol-Version": "2027-01-01"}, nowhere},
		"the oldest version":      {map[string]string{"Mcp-Protocol-Version": "2024-11-05"}, "legacy"},
		"no method":               {map[string]string{"Mcp-Method": ""}, "legacy"},
		"another method":          {map[string]string{"Mcp-Method": "tools/list"}, "legacy"},
		"method in capitals":      {map[string]string{"Mcp-Method": "Tools/Call"}, "legacy"},
		"no name":                 {map[string]string{"Mcp-Name": ""}, "legacy"},
		"another name":            {map[string]string{"Mcp-Name": "document"}, "legacy"},
		"base64 name":             {map[string]string{"Mcp-Name": "=?base64?bm90ZWJvb2s=?="}, "legacy"},
		"another in base64":       {map[string]string{"Mcp-Name": "=?base64?ZG9jdW1lbnQ=?="}, "legacy"},
		"broken base64":           {map[string]string{"Mcp-Name": "=?base64?***?="}, "legacy"},
		"an unknown session":      {map[string]string{"Mcp-Session-Id": "nobody"}, "modern"},
		"a parameter as a header": {map[string]string{"Mcp-Param-X": "y"}, always},
	} {
		for _, era := range []string{"modern", "legacy"} {
			header := l.header(era)
			maps.Copy(header, c.set)
			if hot, want := l.same(t, name+", "+era, plainCall(era), header), c.hot == always || c.hot == era; hot != want {
				t.Errorf("%s, %s: took the hot lane: %v, want %v", name, era, hot, want)
			}
		}
	}
	l.same(t, "no session", plainCall("legacy"), map[string]string{"Authorization": "Bearer " + l.raw})
	l.same(t, "modern without its header", callList, map[string]string{"Authorization": "Bearer " + l.raw})
	other, _ := l.hot.token(t, tenantA, agent2)
	l.hot.store.change(facts(tenantA, agent2))
	l.same(t, "somebody else's session", plainCall("legacy"), legacyHeader(other, l.session))
}

// Whatever a home answers, and whatever the broker says itself.
func TestBothLanesCarryEveryAnswer(t *testing.T) {
	t.Parallel()
	l := newLanes(t, nil)
	both := func(what string, r contract.Result) {
		l.will(func(context.Context, relayed) contract.Result { return r })
		for _, era := range []string{"modern", "legacy"} {
			for _, args := range []string{`{"action":"list"}`, `{"action":"create","name":"x"}`} {
				if !l.same(t, what+", "+era, strings.Replace(plainCall(era), `{"action":"list"}`, args, 1), l.header(era)) {
					t.Errorf("%s, %s: did not take the hot lane", what, era)
				}
			}
		}
	}
	for _, e := range contract.Vocabulary() {
		both(string(e.Code), contract.Result{Err: contract.Fail(e.Code, "Said <%s>.", e.Code).WithDetail(map[string]any{"at": "x"})})
	}
	both("an error of no table", contract.Result{Err: contract.Fail("made_up", "Odd.")})
	for _, body := range append(slices.Clone(awkward), `{}`, ` {"a":1}`, `{"html":"<b>&</b>","line":"a\nb","deep":{"q":"\"\\\""}}`, `[1]`, `null`, strings.Repeat(`{"笔":"记"}`, 9000)) {
		both("body "+body[:min(len(body), 20)], contract.Result{Body: json.RawMessage(body)})
	}
}

func TestBothLanesAnswerForTheBrokerItself(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"limited": func(c *Config) {
			c.Limit = func(context.Context, string, string, string, int) (string, time.Duration) {
				return "this agent", 7 * time.Second
			}
		},
		"too slow":                         func(c *Config) { c.CallTimeout = time.Millisecond },
		"a version that HTML would escape": func(c *Config) { c.Version = "<1&2>" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLanes(t, change)
			l.will(func(ctx context.Context, _ relayed) contract.Result {
				if name == "too slow" {
					<-ctx.Done()
					return contract.Result{Err: contract.Fail(contract.Timeout, "Too slow.")}
				}
				return contract.Result{Body: json.RawMessage(`{}`)}
			})
			for _, era := range []string{"modern", "legacy"} {
				if !l.same(t, era, plainCall(era), l.header(era)) {
					t.Errorf("%s: did not take the hot lane", era)
				}
			}
		})
	}
}

// A tool of which nothing may be used is not listed; it says why in both lanes.
func TestBothLanesExplainUnlistedTools(t *testing.T) {
	t.Parallel()
	l := newLanes(t, nil)
	f := facts(tenantA, agent)
	f.Agent.Tools = []string{"document"}
	l.hot.store.change(f)
	for _, era := range []string{"modern", "legacy"} {
		if l.same(t, era, plainCall(era), l.header(era)) {
			t.Errorf("%s: took the hot lane", era)
		}
	}
}

// post sends a legacy call that does not end by itself, and returns its way to an
// answer once it has reached the home.
func (l *lanes) post(t *testing.T, r *rig, id string) (cut func(), answer <-chan made) {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	body := strings.Replace(plainCall("legacy"), `"id":3`, `"id":`+id, 1)
	req := httptest.NewRequestWithContext(ctx, "POST", "https://notes.example/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range legacyHeader(l.raw, l.session) {
		req.Header.Set(k, v)
	}
	calls, answers := len(r.home.received()), make(chan made, 1)
	go func() { // ends with the call; the test waits for its answer
		w := httptest.NewRecorder()
		r.handlers.ServeHTTP(w, req)
		answers <- made{Status: w.Code, Body: newIDs.ReplaceAllString(w.Body.String(), "NEW")}
	}()
	await(t, "the call's way home", func() bool { return len(r.home.received()) > calls })
	return cut, answers
}

func TestBothLanesCancelAlike(t *testing.T) {
	t.Parallel()
	l := newLanes(t, nil)
	l.will(func(ctx context.Context, _ relayed) contract.Result {
		<-ctx.Done()
		return contract.Result{Err: contract.Fail(contract.Timeout, "Given up.")}
	})
	for _, id := range []string{"9", `"nine"`} {
		var got [2]made
		for i, r := range []*rig{l.hot, l.sdk} {
			_, answer := l.post(t, r, id)
			notice := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
			if w := r.send(t, "POST", "/mcp", notice, legacyHeader(l.raw, l.session)); w.Code != 202 {
				t.Errorf("cancelling %s: %d %s", id, w.Code, w.Body)
			}
			got[i] = <-answer
		}
		if got[0].Status != got[1].Status || got[0].Body != got[1].Body || !strings.Contains(got[0].Body, "Given up.") {
			t.Errorf("%s: the lanes answer\n%d %s\n%d %s", id, got[0].Status, got[0].Body, got[1].Status, got[1].Body)
		}
	}
}

func TestBothLanesRefuseAnIDInFlight(t *testing.T) {
	t.Parallel()
	l := newLanes(t, nil)
	free := make(chan struct{})
	l.will(func(context.Context, relayed) contract.Result {
		<-free
		return contract.Result{Body: json.RawMessage(`{}`)}
	})
	_, one := l.post(t, l.hot, `"a"`)
	_, two := l.post(t, l.sdk, `"a"`)
	l.same(t, "an id in flight", strings.Replace(plainCall("legacy"), `"id":3`, `"id":"a"`, 1), legacyHeader(l.raw, l.session))
	close(free)
	<-one
	<-two
	if !l.same(t, "the id again", strings.Replace(plainCall("legacy"), `"id":3`, `"id":"a"`, 1), legacyHeader(l.raw, l.session)) {
		t.Error("did not take the hot lane")
	}
}

// A client that lost its connection in a session has not cancelled anything.
func TestACallInASessionOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	l := newLanes(t, nil)
	free, ended := make(chan struct{}), make(chan error, 2)
	l.will(func(ctx context.Context, _ relayed) contract.Result {
		<-free
		ended <- ctx.Err()
		return contract.Result{Body: json.RawMessage(`{}`)}
	})
	var answers []<-chan made
	for _, r := range []*rig{l.hot, l.sdk} {
		cut, answer := l.post(t, r, "5")
		cut()
		answers = append(answers, answer)
	}
	close(free)
	for _, a := range answers {
		if err := <-ended; err != nil {
			t.Errorf("the call was cut: %v", err)
		}
		<-a
	}
}

func FuzzBothLanesGiveTheSameAnswers(f *testing.F) {
	for _, v := range variations {
		f.Add(strings.Replace(callList, v.old, v.new, 1), "2026-07-28", "tools/call", "notebook")
		f.Add(strings.Replace(plainCall("legacy"), v.old, v.new, 1), "2025-11-25", "", "")
	}
	l := newLanes(f, nil)
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		header := l.header("legacy")
		maps.Copy(header, map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name})
		for k, v := range header { // what no HTTP server lets through
			header[k] = strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f {
					return -1
				}
				return r
			}, v)
		}
		l.same(t, cmp.Or(version, "no version"), body, header)
	})
}
