package connector

import (
	"strings"
	"testing"
	"time"
)

func TestConfigurationThatCannotWorkIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // "" for a sound one
	}{
		"sound":                      {func(*Config) {}, ""},
		"no broker":                  {func(c *Config) { c.Broker = "" }, "pair this connector first"},
		"a broker that is no URL":    {func(c *Config) { c.Broker = "notes.example" }, "broker:"},
		"a SiYuan that is no URL":    {func(c *Config) { c.URL = "6806" }, "siyuan_url:"},
		"no token":                   {func(c *Config) { c.Token = "" }, "Settings, About, API token"},
		"the shortest longest wait":  {func(c *Config) { c.ReconnectMax = time.Second }, ""},
		"the longest":                {func(c *Config) { c.ReconnectMax = time.Hour }, ""},
		"no wait to speak of":        {func(c *Config) { c.ReconnectMax = 10 * time.Millisecond }, "reconnect_max:"},
		"a wait that is for ever":    {func(c *Config) { c.ReconnectMax = 48 * time.Hour }, "reconnect_max:"},
		"a wait that goes backwards": {func(c *Config) { c.ReconnectMax = -time.Minute }, "reconnect_max:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := Config{Broker: "https://notes.example", URL: "http://127.0.0.1:6806", Token: "t", Data: t.TempDir()}
			c.change(&conf)
			err := conf.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want something about %q", err, c.want)
			}
		})
	}
}
