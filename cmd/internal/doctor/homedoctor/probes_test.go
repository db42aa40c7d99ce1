package homedoctor

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/connector"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/siyuan/samplekernel"
	"siyuan-broker/contract/wire"
)

// sound is a home with a sample kernel and a broker that answers AUTH with
// reply.
func sound(t *testing.T, reply wire.Reject) *Doctor {
	t.Helper()
	k, err := samplekernel.New(samplekernel.Options{Token: "right", Sample: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	kernel := httptest.NewServer(k.Handler())
	t.Cleanup(kernel.Close)
	mux := http.NewServeMux()
	mux.HandleFunc(wire.WellKnownPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"versions":[1]}`)) })
	mux.HandleFunc(wire.Path, func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wire.Subprotocol}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		c := websocket.NetConn(r.Context(), ws, websocket.MessageBinary)
		out := wire.NewWriter(c, wire.HandshakeLimits())
		_ = out.Write(wire.FrameChallenge, wire.Challenge{Versions: []int{1}, Nonce: "n"}, nil)
		if f, err := wire.NewReader(c, wire.HandshakeLimits()).Next(); err == nil && f.Type == wire.FrameAuth {
			_ = out.Write(wire.FrameReject, reply, nil)
		}
	})
	broker := httptest.NewServer(mux)
	t.Cleanup(broker.Close)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := connector.Config{Broker: broker.URL, URL: kernel.URL, Token: "right", Data: dir}
	c.Complete()
	if _, err := connector.LoadKey(dir); err != nil {
		t.Fatal(err)
	}
	return &Doctor{Config: c, Hosts: []string{}, Folder: func(context.Context, string) string { return "" }}
}

var accepted = wire.Reject{Code: wire.RejectKind}

func want(t *testing.T, d *Doctor, name string, status doctor.Status, words string) {
	t.Helper()
	for _, f := range doctor.Run(t.Context(), d.Probes(), func(doctor.Finding) {}) {
		if f.Name == name && (f.Status != status || !strings.Contains(f.Found+"\n"+f.Next, words)) {
			t.Errorf("got %+v, want %s with %q", f, status, words)
		}
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestNothingIsWrongWithASoundHome(t *testing.T) {
	t.Parallel()
	d := sound(t, accepted)
	before := names(t, d.Config.Data)
	for _, f := range doctor.Run(t.Context(), d.Probes(), func(doctor.Finding) {}) {
		status := map[string]doctor.Status{brokerTLS: doctor.Skip, "connector": doctor.Warn}[f.Name]
		if status == "" {
			status = doctor.OK
		}
		if f.Status != status {
			t.Errorf("%+v, want %s", f, status)
		}
	}
	if after := names(t, d.Config.Data); after != before {
		t.Errorf("doctor changed the data folder from %s to %s", before, after)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestEachThingThatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	file := func(name, text string, mode os.FileMode) func(*testing.T, *Doctor) {
		return func(t *testing.T, d *Doctor) {
			path := filepath.Join(d.Config.Data, name)
			if err := os.WriteFile(path, []byte(text), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *Doctor)
		probe  string
		status doctor.Status
		words  string
	}{
		"no broker named":      {func(_ *testing.T, d *Doctor) { d.Config.Broker = "" }, configuration, doctor.Fail, "--broker"},
		"a folder open to all": {func(t *testing.T, d *Doctor) { _ = os.Chmod(d.Config.Data, 0o777) }, "data folder", doctor.Fail, "chmod 700"},
		"a key open to all":    {func(t *testing.T, d *Doctor) { _ = os.Chmod(filepath.Join(d.Config.Data, connector.KeyFile), 0o644) }, key, doctor.Fail, "chmod 600"},
		"a damaged key":        {file(connector.KeyFile, "x", 0o600), key, doctor.Fail, "damaged"},
		"no key yet":           {func(t *testing.T, d *Doctor) { _ = os.Remove(filepath.Join(d.Config.Data, connector.KeyFile)) }, key, doctor.Skip, "siyuan-connector key"},
		"a broken policy":      {file("policy.yaml", "max_levl: rw", 0o600), "home policy", doctor.Fail, "max_levl"},
		"a policy":             {file("policy.yaml", "max_level: rw\n", 0o600), "home policy", doctor.OK, "at most: read and write"},
		"a folder for agents": {func(t *testing.T, d *Doctor) {
			file("policy.yaml", "upload_folders: ['"+t.TempDir()+"']\n", 0o600)(t, d)
		}, "home policy", doctor.OK, "files may come from"},
		"a folder that is not there": {file("policy.yaml", "export_folders: ['"+filepath.ToSlash(filepath.Join(os.TempDir(), "no", "such", "folder"))+"']\n", 0o600), "home policy", doctor.Warn, "export_folders"},
		"SiYuan elsewhere": {func(t *testing.T, d *Doctor) {
			d.Hosts, d.Config.URL = []string{"127.0.0.1"}, strings.Replace(d.Config.URL, "127.0.0.1", "127.0.0.9", 1)
		}, siyuanAddress, doctor.Fail, "set SIYUAN_API_URL=http://127.0.0.1:"},
		"SiYuan down":        {func(t *testing.T, d *Doctor) { d.Config.URL = "http://" + closedPort(t) }, siyuanAddress, doctor.Fail, "connection refused"},
		"a wrong token":      {func(_ *testing.T, d *Doctor) { d.Config.Token = "wrong" }, "siyuan", doctor.Fail, "Settings, About, API token"},
		"another workspace":  {file("pin.json", `{"system":"x","workspace":"y"}`, 0o600), "siyuan", doctor.Fail, "has seen the token"},
		"an unknown name":    {func(_ *testing.T, d *Doctor) { d.Config.Broker = "https://nobody.invalid" }, brokerDNS, doctor.Fail, "does not resolve"},
		"a closed port":      {func(t *testing.T, d *Doctor) { d.Config.Broker = "http://" + closedPort(t) }, brokerTCP, doctor.Fail, "connection refused"},
		"not a broker":       {func(_ *testing.T, d *Doctor) { d.Config.Broker = d.Config.URL }, discovery, doctor.Fail, "not as a broker does"},
		"no TLS on the port": {func(_ *testing.T, d *Doctor) { d.Config.Broker = "https" + strings.TrimPrefix(d.Config.Broker, "http") }, brokerTLS, doctor.Fail, "does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sound(t, accepted)
			c.spoil(t, d)
			want(t, d, c.probe, c.status, c.words)
		})
	}
}

func TestTheBrokersVerdictOnTheKeyIsTold(t *testing.T) {
	t.Parallel()
	for code, c := range map[wire.RejectCode]struct {
		status doctor.Status
		words  string
	}{
		wire.RejectKind:         {doctor.OK, "knows this connector"},
		wire.RejectUnauthorized: {doctor.Fail, "connector add"},
		wire.RejectRevoked:      {doctor.Fail, "pair it again"},
		wire.RejectBusy:         {doctor.Warn, "try again"},
	} {
		want(t, sound(t, wire.Reject{Code: code}), "credential", c.status, c.words)
	}
}

func TestTheTokenIsNotShownToAWorkspaceKnownToBeAnother(t *testing.T) {
	t.Parallel()
	d := sound(t, accepted)
	shown := false
	kernel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = shown || r.Header.Get("Authorization") != ""
		data := map[string]string{"/api/system/version": `"3.7.3"`, "/api/system/bootProgress": `{"progress":100,"details":""}`}[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"code":0,"msg":"","data":` + data + `}`))
	}))
	t.Cleanup(kernel.Close)
	d.Config.URL = kernel.URL
	if err := connector.PinFile(d.Config.Data).Save(home.Pin{System: "s", Workspace: "w", Folder: "/mine"}); err != nil {
		t.Fatal(err)
	}
	d.Folder = func(context.Context, string) string { return "/stranger" }
	want(t, d, "siyuan", doctor.Fail, "the token was not shown")
	if shown {
		t.Error("it was shown")
	}
}

func TestOutputNeverHoldsTheToken(t *testing.T) {
	t.Parallel()
	d := sound(t, accepted)
	d.Config.Token = "hunter2"
	var out bytes.Buffer
	_ = doctor.Examine(t.Context(), &out, true, d.Probes())
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("%s", &out)
	}
}

func TestTheDefaultRouteIsTheGateway(t *testing.T) {
	t.Parallel()
	table := filepath.Join(t.TempDir(), "route")
	text := "Iface\tDestination\tGateway\tFlags\neth0\t000011AC\t00000000\t0001\neth0\t00000000\t010011AC\t0003\n"
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := gateway(table); got != "172.17.0.1" {
		t.Errorf("got %q", got)
	}
}

func TestVersionsAreComparedByTheirNumbers(t *testing.T) {
	for version, want := range map[string]bool{"3.6.9": true, "2.12.0": true, "3.7.0": false, "3.10.1": false, "4.0": false, "dev": false} {
		if got := older(version, "3.7"); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
