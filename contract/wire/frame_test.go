package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"siyuan-broker/contract"
)

type golden struct {
	name         string
	bytes        []byte
	header, body string
}

func goldens(t testing.TB) []golden {
	t.Helper()
	text, err := os.ReadFile("testdata/frames.golden")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	_, rest, _ := strings.Cut(string(text), "\n\n")
	for block := range strings.SplitSeq(rest, "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if len(lines) != 4 {
			t.Fatalf("malformed golden %q", block)
		}
		g := golden{name: lines[0], header: strings.TrimPrefix(lines[2], "-"), body: strings.TrimPrefix(lines[3], "-")}
		prefix, err := hex.DecodeString(lines[1])
		if err != nil {
			t.Fatal(err)
		}
		g.bytes = append(append(prefix, g.header...), g.body...)
		all = append(all, g)
	}
	return all
}

// messages are the values the goldens were written for.
func messages() map[string]struct {
	t      Type
	header any
	body   string
} {
	type m = struct {
		t      Type
		header any
		body   string
	}
	grant := &contract.Grant{V: 1, Tenant: "t1", Instance: "i1", Member: "m1", Agent: contract.AgentRef{ID: "a1", Name: "Claude"},
		Levels: map[string]contract.Level{"20230101120000-abcdefg": contract.ReadWrite}, Default: contract.Read,
		Switches: []contract.Switch{}, PolicyVersion: 3, Exp: 1800000000}
	five := int64(5)
	notFound := contract.Fail(contract.NotFound, "No block of that id exists.").WithHint("Look it up again: it may have been moved or deleted.")
	return map[string]m{
		"CHALLENGE": {FrameChallenge, &Challenge{Versions: []int{1}, Nonce: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}, ""},
		"AUTH":      {FrameAuth, &Auth{Version: 1, Kind: KindCalls, Token: "eyJ.e30.c2ln", Software: "siyuan-connector/1.0.0", MaxCalls: 64}, ""},
		"WELCOME": {FrameWelcome, &Welcome{Version: 1, Node: "n1", Epoch: 7, MaxFrame: 8650816, MaxHeader: 262144, MaxResult: 8388608,
			MaxCalls: 64, PingIntervalMS: 18000, PingTimeoutMS: 12000}, ""},
		"REJECT": {FrameReject, &Reject{Code: RejectRevoked, Message: "This connector was revoked; pair it again."}, ""},
		"PING":   {FramePing, &Ping{N: 7}, ""},
		"PONG":   {FramePong, &Ping{N: 7}, ""},
		"STATUS": {FrameStatus, nil, `{"state":"ready","siyuan_version":"3.7.3","policy":{"max_level":"rw","digest":"d1"},"notebooks":[{"id":"20230101120000-abcdefg","name":"Work"}]}`},
		"DRAIN":  {FrameDrain, &Drain{WithinMS: 10000}, ""},
		"CALL": {FrameCall, &Call{ID: 1, TimeLeftMS: 29900, Tool: "block", Action: "get",
			RequestID: "01890a5d-ac96-774b-bcce-b302099a8057", Grant: grant}, `{"id":"20230101120000-bcdefgh"}`},
		"CALL that names its grant": {FrameCall, &Call{ID: 2, TimeLeftMS: 29900, Tool: "block", Action: "get",
			RequestID: "01890a5d-ac96-774b-bcce-b302099a8057", GrantDigest: "a066558394d96c4349bfa8e91e10ca05ff55ab8c59292fdfb5da57e1f6f34b22"}, `{"id":"20230101120000-bcdefgh"}`},
		"AUTH of a connector that can be asked what it remembers": {FrameAuth, &Auth{Version: 1, Kind: KindCalls, Token: "eyJ.e30.c2ln",
			Software: "siyuan-connector/1.0.0", Grants: 1024, Bulk: true, Safety: true}, ""},
		"CALL that may only be answered from what is remembered": {FrameCall, &Call{ID: 4, TimeLeftMS: 29900, Tool: "block", Action: "append", Replay: true,
			RequestID: "01890a5d-ac96-774b-bcce-b302099a8057", GrantDigest: "a066558394d96c4349bfa8e91e10ca05ff55ab8c59292fdfb5da57e1f6f34b22"},
			`{"parentID":"20230101120000-bcdefgh","dataType":"markdown","data":"two"}`},
		"AUTH of a bulk session":                 {FrameAuth, &Auth{Version: 1, Kind: KindBulk, Token: "eyJ.e30.c2ln", Software: "siyuan-connector/1.0.0", Epoch: 7}, ""},
		"BULK":                                   {FrameBulk, nil, ""},
		"RESULT that goes over the bulk session": {FrameResult, &Result{ID: 1, Stats: contract.Stats{KernelCalls: 2}, Bulk: true}, ""},
		"STREAM": {FrameStream, &Stream{Call: Call{ID: 3, TimeLeftMS: 29900, Tool: "file", Action: "upload_asset",
			RequestID: "01890a5d-ac96-774b-bcce-b302099a8057", Grant: grant}, Size: &five}, `{"name":"a.txt"}`},
		"DATA":                              {FrameData, nil, "Grü"},
		"DATA that announces the size":      {FrameData, &Data{Size: &five}, "12345"},
		"END":                               {FrameEnd, &End{ID: 3, Bytes: 5}, ""},
		"END after which the stream closes": {FrameEnd, &End{ID: 3, Bytes: 5, Close: true}, ""},
		"PROGRESS":                          {FrameProgress, &Progress{ID: 1, Progress: contract.Progress{Done: 3, Total: 10, Message: "3 of 10"}}, ""},
		"RESULT": {FrameResult, &Result{ID: 1, Stats: contract.Stats{Notebook: "20230101120000-abcdefg", KernelCalls: 2, KernelUS: 1500, TotalUS: 2000}},
			`{"markdown":"Grüße"}`},
		"ERROR":         {FrameError, &Error{ID: 1, Error: notFound}, ""},
		"CANCEL":        {FrameCancel, &Cancel{ID: 1}, ""},
		"GRANT_UNKNOWN": {FrameGrantUnknown, &GrantUnknown{ID: 1, Digest: "d1"}, ""},
	}
}

func TestFramesHaveTheirGoldenBytes(t *testing.T) {
	t.Parallel()
	all := messages()
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			m, ok := all[g.name]
			if !ok {
				t.Fatal("no message for this golden")
			}
			if name, _, _ := strings.Cut(g.name, " "); m.t.String() != name {
				t.Errorf("type 0x%02x is called %s", byte(m.t), m.t)
			}
			var out bytes.Buffer
			if err := NewWriter(&out, DefaultLimits()).Write(m.t, m.header, []byte(m.body)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), g.bytes) {
				t.Errorf("written\n%q\nwant\n%q", out.Bytes(), g.bytes)
			}
			r := NewReader(bytes.NewReader(g.bytes), DefaultLimits())
			f, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f.Type != m.t || string(f.Header) != g.header || string(f.Body) != g.body {
				t.Errorf("read %s %q %q", f.Type, f.Header, f.Body)
			}
			if m.header == nil {
				return
			}
			back := reflect.New(reflect.TypeOf(m.header).Elem()).Interface()
			if err := r.Decode(f, back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, m.header) {
				t.Errorf("decoded %+v, want %+v", back, m.header)
			}
		})
		delete(all, g.name)
	}
	if len(all) > 0 {
		t.Errorf("messages without golden: %d", len(all))
	}
}

func TestTheProtocolDocumentShowsTheGoldenBytes(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goldens(t) {
		prefix := hex.EncodeToString(g.bytes[:prefixSize])
		for _, part := range []string{prefix, g.header, g.body} {
			if !strings.Contains(string(doc), part) {
				t.Errorf("%s: docs/PROTOCOL.md lacks %q", g.name, part)
			}
		}
	}
}

func TestWhatIsWrittenIsReadBackWhateverTheSizesAndHoweverItArrives(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, chunk - 1, chunk, chunk + 1, keep, keep + 1, firstRead - 1, firstRead, firstRead + 1, 5*firstRead + 3}
	var out bytes.Buffer
	w := NewWriter(&out, DefaultLimits())
	type sent struct {
		t      Type
		header string
		body   []byte
	}
	var all []sent
	for i := range 60 {
		n := rnd.IntN(300)
		if i < len(sizes) {
			n = sizes[i]
		}
		s := sent{t: Type(rnd.IntN(256)), header: strings.Repeat("ä", rnd.IntN(3)*rnd.IntN(20_000)), body: make([]byte, n)}
		for j := range s.body {
			s.body[j] = byte(rnd.Uint32())
		}
		if err := w.Write(s.t, s.header, s.body); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for name, src := range map[string]io.Reader{
		"whole": bytes.NewReader(out.Bytes()), "halves": iotest.HalfReader(bytes.NewReader(out.Bytes())),
		"with EOF": iotest.DataErrReader(bytes.NewReader(out.Bytes())),
	} {
		r := NewReader(src, DefaultLimits())
		for i, want := range all {
			f, err := r.Next()
			if err != nil {
				t.Fatalf("%s, frame %d: %v", name, i, err)
			}
			var h string
			if err := r.Decode(f, &h); err != nil {
				t.Fatal(err)
			}
			if f.Type != want.t || h != want.header || !bytes.Equal(f.Body, want.body) {
				t.Fatalf("%s: frame %d differs", name, i)
			}
			if cap(f.Body) != len(f.Body) && len(f.Body) > 64 {
				t.Errorf("%s: body of %d bytes holds %d", name, len(f.Body), cap(f.Body))
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: at the end %v, want io.EOF", name, err)
		}
	}
}

func TestAReaderTakesNoByteBeyondItsFrame(t *testing.T) {
	t.Parallel()
	g := goldens(t)[0]
	src := bytes.NewReader(append(bytes.Clone(g.bytes), "next protocol"...))
	if _, err := NewReader(src, HandshakeLimits()).Next(); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(src); string(rest) != "next protocol" {
		t.Errorf("left over %q", rest)
	}
}

func prefix(length uint32, t Type, header uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, length)
	return binary.BigEndian.AppendUint32(b, uint32(t)<<24|header)
}

func TestMalformedFramesAreProtocolErrors(t *testing.T) {
	t.Parallel()
	limits := Limits{Frame: 1000, Header: 100, Depth: 3}
	for name, in := range map[string][]byte{
		"too short for a prefix":   prefix(3, FramePing, 0),
		"frame above the limit":    prefix(1001, FramePing, 0),
		"frame of 4 GiB":           prefix(1<<32-1, FramePing, 0),
		"header longer than frame": prefix(10, FramePing, 7),
		"header above the limit":   prefix(500, FramePing, 101),
		"header of 16 MiB":         prefix(500, FramePing, 1<<24-1),
	} {
		_, err := NewReader(bytes.NewReader(in), limits).Next()
		var bad *ProtocolError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v, want a ProtocolError", name, err)
		}
	}
}

func TestACutFrameIsAnUnexpectedEnd(t *testing.T) {
	t.Parallel()
	whole := goldens(t)[8].bytes // CALL: header and body
	for n := 1; n < len(whole); n++ {
		if _, err := NewReader(bytes.NewReader(whole[:n]), DefaultLimits()).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
}

func TestAHeaderMustBeBoundedJSON(t *testing.T) {
	t.Parallel()
	r := NewReader(nil, Limits{Depth: 3})
	for name, header := range map[string]string{
		"not JSON":         `{"n":}`,
		"two values":       `{"n":1}{"n":2}`,
		"too deep":         `{"n":1,"x":[[[1]]]}`,
		"not UTF-8":        "{\"n\":1,\"x\":\"\xff\"}",
		"wrong type":       `{"n":"seven"}`,
		"negative id":      `{"n":-1}`,
		"larger than u64":  `{"n":18446744073709551616}`,
		"number as object": `7`,
	} {
		var p Ping
		var bad *ProtocolError
		if err := r.Decode(Frame{Type: FramePing, Header: []byte(header)}, &p); !errors.As(err, &bad) {
			t.Errorf("%s: %v, want a ProtocolError", name, err)
		}
	}
}

func TestUnknownHeaderFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	var p Ping
	err := NewReader(nil, DefaultLimits()).Decode(Frame{Type: FramePing, Header: []byte(`{"later":{"x":[1]},"n":7}`)}, &p)
	if err != nil || p.N != 7 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAnEmptyHeaderDecodesToNothing(t *testing.T) {
	t.Parallel()
	var d Drain
	if err := NewReader(nil, DefaultLimits()).Decode(Frame{Type: FrameDrain}, &d); err != nil || d != (Drain{}) {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestAFrameAboveTheLimitsIsNotWritten(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, Limits{Frame: 100, Header: 20})
	for name, err := range map[string]error{
		"body":   w.Write(FrameResult, nil, make([]byte, 97)),
		"header": w.Write(FramePing, strings.Repeat("x", 19), nil),
	} {
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	if out.Len() != 0 {
		t.Fatalf("%d bytes were written", out.Len())
	}
	if err := w.Write(FrameResult, nil, make([]byte, 96)); err != nil || out.Len() != 104 {
		t.Errorf("a frame at the limit: %v, %d bytes", err, out.Len())
	}
}

func TestAnAnnouncedBodyIsNotAllocatedBeforeItArrives(t *testing.T) { // not parallel: it measures
	in := append(prefix(8<<20, FrameResult, 0), make([]byte, 100)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewReader(bytes.NewReader(in), DefaultLimits()).Next()
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > firstRead+64<<10 {
		t.Errorf("%d bytes allocated for a body that never came", allocated)
	}
}

func TestBuffersOfLargeFramesAreNotKept(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, DefaultLimits())
	long := strings.Repeat("x", keep)
	if err := w.Write(FrameStatus, long, nil); err != nil || cap(w.buf) > keep {
		t.Errorf("writer keeps %d bytes (%v)", cap(w.buf), err)
	}
	if err := w.Write(FramePing, Ping{N: 1}, nil); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&out, DefaultLimits())
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.header) > keep {
		t.Errorf("reader keeps %d bytes", cap(r.header))
	}
}

func TestACallSurvivesTheSplitIntoHeaderAndBody(t *testing.T) {
	t.Parallel()
	for _, want := range []contract.Call{
		{Server: contract.DefaultServer, Method: contract.MethodCall, Tool: "block", Action: "get", RequestID: "r", Trace: "t", Grant: &contract.Grant{V: 1}, ResultChars: 12_000, Args: json.RawMessage(`{}`)},
		{Server: "other", Method: "tools/list", Grant: &contract.Grant{V: 1}, Args: json.RawMessage(`{"a":1}`)},
	} {
		h, body := CallOf(3, want)
		if got := h.Contract(body); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v", want, got)
		}
	}
	h, _ := CallOf(1, contract.Call{Server: contract.DefaultServer, Method: contract.MethodCall})
	if b, _ := json.Marshal(h); string(b) != `{"id":1}` {
		t.Errorf("defaults are spelled out on the wire: %s", b)
	}
}
