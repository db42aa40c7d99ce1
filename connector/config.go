package connector

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"siyuan-broker/connector/ledger"
	"siyuan-broker/connector/pair"
	"siyuan-broker/connector/restore"
)

// Config is everything a home owner can set. cmd/internal/settings fills it
// from a YAML file and the environment.
type Config struct {
	Broker        string        `key:"broker" env:"CONNECTOR_BROKER" doc:"The broker's URL, such as https://notes.example; empty: the one this connector is paired with."`
	URL           string        `key:"siyuan_url" env:"SIYUAN_API_URL" default:"http://127.0.0.1:6806" doc:"SiYuan's address."`
	Token         string        `key:"siyuan_token" env:"SIYUAN_TOKEN" secret:"true" doc:"SiYuan's API token: Settings, About, API token."`
	Data          string        `key:"data" env:"CONNECTOR_DATA" doc:"Folder for the key, the pinned workspace and the policy; empty: the user's data folder, as root /var/lib/siyuan-connector."`
	Policy        string        `key:"policy" env:"CONNECTOR_POLICY" doc:"The home policy file; empty: policy.yaml in the data folder."`
	LedgerEntries int           `key:"ledger_entries" env:"CONNECTOR_LEDGER_ENTRIES" default:"50000" doc:"How many writes of the last 7 days are remembered, so that none is executed twice; when there are more, further writes are refused."`
	LedgerMB      int           `key:"ledger_mb" env:"CONNECTOR_LEDGER_MB" default:"64" doc:"Largest size of that memory, ledger.db in the data folder, in MiB."`
	WriteSettle   time.Duration `key:"write_settle" env:"CONNECTOR_WRITE_SETTLE" default:"10s" doc:"How long after it was sent SiYuan may still carry out a write whose answer never came; only then it counts as not done."`
	// ReconnectMax is the cap of tunnel.Backoff; 0 is the standard.
	ReconnectMax time.Duration `key:"reconnect_max" env:"CONNECTOR_RECONNECT_MAX" default:"1m" doc:"Longest wait before the next attempt to reach the broker, from 1s to 1h. Waits are drawn evenly up to a bound that doubles from one second to this; what a broker asks for (Retry-After) comes on top."`
	UndoDays     int           `key:"undo_days" env:"CONNECTOR_UNDO_DAYS" default:"30" doc:"For how many days what agents wrote can be undone; SiYuan's own history must go back as far."`
	UndoPoints   int           `key:"undo_points" env:"CONNECTOR_UNDO_POINTS" default:"20000" doc:"How many restore points are kept, in restore.db in the data folder; the oldest give way."`
	LogLevel     string        `key:"log_level" env:"CONNECTOR_LOG_LEVEL" default:"info" doc:"debug, info, warn or error."`
	LogFormat    string        `key:"log_format" env:"CONNECTOR_LOG_FORMAT" default:"text" doc:"json or text."`
}

// Validate completes defaults and reports every setting that cannot work.
// Commands that contact neither broker nor SiYuan use Complete alone.
func (c *Config) Validate() error {
	c.Complete()
	var bad []error
	if u, err := url.Parse(c.Broker); c.Broker == "" {
		bad = append(bad, errors.New("broker: pair this connector first (siyuan-connector pair https://your-broker), or name the broker's URL with --broker or CONNECTOR_BROKER"))
	} else if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		bad = append(bad, fmt.Errorf("broker: %q is not a URL such as https://notes.example", c.Broker))
	}
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" {
		bad = append(bad, fmt.Errorf("siyuan_url: %q is not a URL such as http://127.0.0.1:6806", c.URL))
	}
	if c.Token == "" {
		bad = append(bad, errors.New("siyuan_token: set SIYUAN_TOKEN (or SIYUAN_TOKEN_FILE) to the API token from SiYuan: Settings, About, API token"))
	}
	if c.LedgerEntries < 1 || c.LedgerMB < minLedgerMB {
		bad = append(bad, fmt.Errorf("ledger_entries, ledger_mb: must be at least 1 and %d", minLedgerMB))
	}
	if c.ReconnectMax != 0 && (c.ReconnectMax < time.Second || c.ReconnectMax > time.Hour) {
		bad = append(bad, fmt.Errorf("reconnect_max: %v is not from 1s to 1h", c.ReconnectMax))
	}
	if c.WriteSettle < time.Second || c.WriteSettle > time.Minute {
		bad = append(bad, errors.New("write_settle: must be from 1s to 1m"))
	}
	if c.UndoDays < 1 || c.UndoPoints < 1 {
		bad = append(bad, errors.New("undo_days, undo_points: must be at least 1"))
	}
	return errors.Join(bad...)
}

const minLedgerMB = 4

// Complete fills in the defaults that depend on the account, and the broker
// that the connector was paired with.
func (c *Config) Complete() {
	if c.Data == "" {
		c.Data = defaultData()
	}
	if c.Policy == "" {
		c.Policy = filepath.Join(c.Data, "policy.yaml")
	}
	if c.Broker == "" {
		if s, err := pair.FileIn(c.Data).Read(); err == nil { // else Validate says what to do
			c.Broker = s.Broker
		}
	}
	if c.LedgerEntries == 0 {
		c.LedgerEntries = ledger.DefaultEntries
	}
	if c.LedgerMB == 0 {
		c.LedgerMB = ledger.DefaultBytes >> 20
	}
	if c.WriteSettle == 0 {
		c.WriteSettle = 10 * time.Second
	}
	if c.UndoDays == 0 {
		c.UndoDays = int(restore.DefaultKeep / (24 * time.Hour))
	}
	if c.UndoPoints == 0 {
		c.UndoPoints = restore.DefaultPoints
	}
	c.Broker = strings.TrimRight(c.Broker, "/")
}

func defaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/siyuan-connector"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "siyuan-connector")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "siyuan-connector-data"
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "siyuan-connector")
	case "windows":
		return filepath.Join(home, "AppData", "Local", "siyuan-connector")
	}
	return filepath.Join(home, ".local", "share", "siyuan-connector")
}
