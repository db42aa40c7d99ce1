package homedoctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/connector"
	"siyuan-broker/connector/home"
	"siyuan-broker/connector/siyuan"
)

func (d *Doctor) complete() {
	if d.Hosts == nil {
		d.Hosts = Elsewhere()
	}
	if d.Folder == nil {
		d.Folder = home.Folder
	}
}

// Elsewhere lists the hosts by which SiYuan may be reached when the configured
// one is wrong; in a container, 127.0.0.1 is the container itself.
func Elsewhere() []string {
	hosts := []string{"127.0.0.1", "localhost"}
	if InContainer() {
		hosts = append(hosts, "host.docker.internal", "siyuan")
		if gateway := gateway("/proc/net/route"); gateway != "" {
			hosts = append(hosts, gateway)
		}
	}
	return hosts
}

// InContainer reports whether this process runs in a container.
func InContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// gateway reads the default route of Linux's table: little-endian hexadecimal.
func gateway(table string) string {
	text, err := os.ReadFile(table)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		col := strings.Fields(line)
		var b [4]byte
		if len(col) < 3 || col[1] != "00000000" {
			continue
		}
		if _, err := fmt.Sscanf(col[2], "%02x%02x%02x%02x", &b[3], &b[2], &b[1], &b[0]); err == nil && b != [4]byte{} {
			return net.IP(b[:]).String()
		}
	}
	return ""
}

// siyuanAddress asks every candidate for its version, which needs no token, and
// says which answered and why the others did not.
func (d *Doctor) siyuanAddress(ctx context.Context) doctor.Finding {
	version, err := d.version(ctx, d.Config.URL)
	if err == nil {
		return doctor.Good("SiYuan %s answers at %s", version, d.Config.URL)
	}
	lines := []string{d.Config.URL + ": " + why(err)}
	answering := ""
	for _, other := range d.others() {
		version, err := d.version(ctx, other)
		if err != nil {
			lines = append(lines, other+": "+why(err))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: SiYuan %s answers", other, version))
		if answering == "" {
			answering = other
		}
	}
	next := "start SiYuan, or set SIYUAN_API_URL to its address; from another machine or container, switch on Settings, About, Network serving"
	if answering != "" {
		next = "set SIYUAN_API_URL=" + answering
	}
	return doctor.Bad(next, "%s", strings.Join(lines, "\n"))
}

// others are the candidates besides the configured address.
func (d *Doctor) others() (urls []string) {
	u, err := url.Parse(d.Config.URL)
	if err != nil {
		return nil
	}
	for _, host := range d.Hosts {
		other := *u
		other.Host = host
		if port := u.Port(); port != "" {
			other.Host = net.JoinHostPort(host, port)
		}
		if s := other.String(); s != d.Config.URL && !slices.Contains(urls, s) {
			urls = append(urls, s)
		}
	}
	return urls
}

// version asks without a token.
func (d *Doctor) version(ctx context.Context, base string) (string, error) {
	c, err := siyuan.New(siyuan.Config{BaseURL: base, Retry: siyuan.Retry{Attempts: 1}})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Version(ctx)
}

// why is the reason of a kernel error in a few words.
func why(err error) string {
	var e *siyuan.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch e.Kind {
	case siyuan.Offline, siyuan.Timeout:
		if e.Err != nil {
			return doctor.Unreachable(e.Err).Found
		}
	case siyuan.Malformed, siyuan.Status, siyuan.Rejected, siyuan.Missing:
		return "something answers, but not SiYuan"
	case siyuan.Unauthorized:
		return "SiYuan answers, but wants its access code"
	}
	return e.Error()
}

// oldest is the minor version the connector was checked against.
const oldest = "3.7"

// siyuan recognises the workspace as a running connector does: by the listening
// process first, and only then with the token.
func (d *Doctor) siyuan(ctx context.Context) doctor.Finding {
	c, err := siyuan.New(siyuan.Config{BaseURL: d.Config.URL, Token: siyuan.NewToken(d.Config.Token)})
	if err != nil {
		return doctor.Misconfigured("", "%v", err)
	}
	defer c.Close()
	boot, err := c.BootProgress(ctx)
	if err == nil && !boot.Ready() {
		return doctor.Doubtful("wait until it has started", "SiYuan is starting (%d %%)", boot.Progress)
	}
	pin, pinErr := connector.PinFile(d.Config.Data).Load()
	if pinErr != nil {
		return doctor.Bad("run: siyuan-connector repin", "%v", pinErr)
	}
	const repin = "if this is the right one: siyuan-connector repin"
	if folder := d.Folder(ctx, hostPort(d.Config.URL)); pin != nil && pin.Folder != "" && folder != "" && folder != pin.Folder {
		return doctor.Bad(repin, "another workspace listens there (%s, pinned is %s); the token was not shown to it", folder, pin.Folder)
	}
	id, err := c.Identity(ctx)
	switch {
	case siyuan.KindOf(err) == siyuan.Unauthorized:
		return unauthorized(err)
	case err != nil:
		return doctor.Bad("", "SiYuan does not tell who it is: %s", why(err))
	case pin != nil && (pin.System != id.System || pin.Workspace != id.Workspace):
		return doctor.Bad(repin+"; else change the API token in SiYuan", "another workspace answers than the pinned one, and has seen the token")
	}
	f := doctor.Good("token accepted, SiYuan %s, the pinned workspace", id.Version)
	switch {
	case pin == nil:
		f.Found = fmt.Sprintf("token accepted, SiYuan %s; no workspace is pinned yet, the first start pins this one", id.Version)
	case id.ReadOnly:
		f.Status, f.Next = doctor.Warn, "switch off read-only mode in SiYuan to let agents write"
		f.Found += ", which is read-only"
	}
	if older(id.Version, oldest) {
		f.Status, f.Next = doctor.Warn, "update SiYuan: "+oldest+" is the oldest version this connector was checked with"
	}
	return f
}

func unauthorized(err error) doctor.Finding {
	var e *siyuan.Error
	if errors.As(err, &e) && e.Status == http.StatusTooManyRequests {
		return doctor.Bad("wait some minutes, then correct SIYUAN_TOKEN", "SiYuan refuses after too many wrong tokens")
	}
	return doctor.Misconfigured("set SIYUAN_TOKEN to the one under Settings, About, API token", "SiYuan refuses the token")
}

// older compares versions by their numbers.
func older(version, than string) bool {
	var a, b [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a[0], &a[1]); n != 2 {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d", &b[0], &b[1])
	return slices.Compare(a[:], b[:]) < 0
}

func hostPort(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
