package homedoctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"siyuan-broker/cmd/internal/doctor"
	"siyuan-broker/connector"
	"siyuan-broker/connector/policy"
	"siyuan-broker/contract"
)

// Doctor is what the probes are made from.
type Doctor struct {
	Config    connector.Config
	ConfigErr error // of loading Config; everything else is skipped then
	Network   doctor.Network
	Hosts     []string                                      // where SiYuan may be besides its configured host; nil: Elsewhere()
	Folder    func(ctx context.Context, addr string) string // nil: home.Folder
}

// Names of probes that others need.
const (
	configuration = "configuration"
	key           = "key"
	siyuanAddress = "siyuan address"
	brokerDNS     = "broker name"
	brokerTCP     = "broker port"
	brokerTLS     = "broker tls"
	discovery     = "discovery"
	tunnel        = "tunnel"
)

// Probes lists the probes: what is here first, then SiYuan, then the broker.
func (d *Doctor) Probes() []doctor.Probe {
	d.complete()
	return []doctor.Probe{
		{Name: configuration, Run: d.configuration},
		{Name: "data folder", Needs: []string{configuration}, Run: d.dataFolder},
		{Name: key, Needs: []string{configuration}, Run: d.key},
		{Name: "home policy", Needs: []string{configuration}, Run: d.policy},
		{Name: siyuanAddress, Needs: []string{configuration}, Run: d.siyuanAddress},
		{Name: "siyuan", Needs: []string{siyuanAddress}, Run: d.siyuan},
		{Name: brokerDNS, Needs: []string{configuration}, Run: d.brokerName},
		{Name: brokerTCP, Needs: []string{brokerDNS}, Run: d.brokerPort},
		{Name: brokerTLS, Needs: []string{brokerTCP}, Run: d.brokerTLS},
		{Name: discovery, Needs: []string{brokerTCP}, Run: d.discovery},
		{Name: "clock", Needs: []string{discovery}, Run: d.clock},
		{Name: tunnel, Needs: []string{discovery}, Run: d.tunnel},
		{Name: "credential", Needs: []string{tunnel, key}, Run: d.credential},
		{Name: "connector", Needs: []string{configuration}, Run: d.running},
	}
}

func (d *Doctor) configuration(context.Context) doctor.Finding {
	err := d.ConfigErr
	if err == nil {
		err = d.Config.Validate()
	}
	if err != nil {
		return doctor.Misconfigured("`siyuan-connector config dump` prints every setting with its meaning", "%v", err)
	}
	return doctor.Good("broker %s, SiYuan %s", d.Config.Broker, d.Config.URL)
}

func (d *Doctor) dataFolder(context.Context) doctor.Finding {
	dir := d.Config.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doctor.Nothing("%s does not exist yet: the first start makes it", dir)
	case err != nil:
		return doctor.Misconfigured("run doctor as the user the connector runs as", "%v", err)
	case !info.IsDir():
		return doctor.Misconfigured("name a folder in CONNECTOR_DATA", "%s is not a folder", dir)
	case open(info, 0o022):
		return doctor.Bad("run: chmod 700 "+dir, "other users may write in %s (mode %04o): they could replace key and policy", dir, info.Mode().Perm())
	}
	return doctor.Good("%s is closed to others", dir)
}

// open reports whether any of the permission bits is set, on systems that have
// them.
func open(info fs.FileInfo, bits fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&bits != 0
}

func (d *Doctor) key(context.Context) doctor.Finding {
	file := filepath.Join(d.Config.Data, connector.KeyFile)
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doctor.Nothing("there is none yet: `siyuan-connector key` makes it and prints what the broker's operator needs")
	case err != nil:
		return doctor.Bad("run doctor as the user the connector runs as", "%v", err)
	case open(info, 0o077):
		return doctor.Bad("run: chmod 600 "+file, "other users may read the private key %s (mode %04o)", file, info.Mode().Perm())
	}
	if _, err := connector.LoadKey(d.Config.Data); err != nil {
		return doctor.Bad("", "%v", err)
	}
	return doctor.Good("%s is readable by its owner alone", file)
}

func (d *Doctor) policy(context.Context) doctor.Finding {
	p, err := policy.Load(d.Config.Policy)
	if err != nil {
		return doctor.Misconfigured("`siyuan-connector policy --example` prints a file that works", "%v", err)
	}
	e := p.Effect(nil)
	_, missing := os.Stat(d.Config.Policy)
	text := "agents may at most: " + meaning(e.MaxLevel)
	if errors.Is(missing, fs.ErrNotExist) {
		f := doctor.Good("there is no file, so %s", text)
		f.Next = "to let agents write, put this line into " + d.Config.Policy + ": max_level: rw"
		return f
	}
	if n := len(e.Vetoed); n > 0 {
		text += fmt.Sprintf("; never: %s", strings.Join(e.Vetoed, ", "))
	}
	if c := p.Confirm(); len(c) > 0 {
		text += fmt.Sprintf("; asked at home first: %v", c)
	}
	if in := p.Uploads(); len(in) > 0 {
		text += "; files may come from " + strings.Join(in, ", ")
	}
	if out := p.Exports(); len(out) > 0 {
		text += "; files may be written to " + strings.Join(out, ", ")
	}
	if bad := connector.Folders(d.Config, p).Check(); len(bad) > 0 {
		return doctor.Doubtful("correct the folder in "+d.Config.Policy+", or make it: agents cannot use it as it is", "%s", strings.Join(bad, " "))
	}
	return doctor.Good("%s", text)
}

func meaning(l contract.Level) string {
	return map[contract.Level]string{contract.None: "nothing", contract.Read: "read", contract.ReadWrite: "read and write",
		contract.ReadWriteDelete: "read, write and delete"}[l]
}

// running reports what a running connector says about itself; it is not
// disturbed.
func (d *Doctor) running(context.Context) doctor.Finding {
	r, err := connector.ReadReport(d.Config.Data, d.Network.Time())
	switch {
	case errors.Is(err, connector.ErrNotRunning):
		return doctor.Doubtful("start it with: siyuan-connector run", "no connector is running with this data folder")
	case err != nil:
		return doctor.Bad("", "%v", err)
	case !r.Healthy():
		return doctor.Bad("the checks above say why", "process %d is running, but not usable: tunnel %s, SiYuan %s. %s", r.PID, r.Tunnel, r.SiYuan, r.Problem)
	}
	rtt := ""
	if r.RTT != "" {
		rtt = ", round trip " + r.RTT
	}
	return doctor.Good("process %d is connected since %s%s", r.PID, r.Since.UTC().Format(time.RFC3339), rtt)
}
