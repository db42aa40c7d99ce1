package guard

import (
	"context"
	"strings"

	"siyuan-broker/contract"
)

// PluginPrefix is what SiYuan puts before the names of a plugin's tools.
func PluginPrefix(plugin string) string {
	return "plugin__" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, plugin) + "__"
}

// PluginTools asks SiYuan anew for the tools of plugins whose names begin like this. It needs
// the extension switch, and that nothing is hidden from the caller.
func (s *Session) PluginTools(ctx context.Context, prefix string) (Extensions, error) {
	if err := s.holds(contract.SwitchExtension); err != nil {
		return Extensions{}, err
	}
	if !s.whole() {
		return Extensions{}, contract.Fail(contract.Unsupported, "Plugins see every notebook, so they are looked into only for those who may read all of them.").
			WithHint("Ask a tenant owner for the level r on every notebook.")
	}
	now, err := s.extensions(ctx, true)
	var of []Extension
	for _, t := range now.Tools {
		if !t.Native && strings.HasPrefix(t.Name, prefix) {
			of = append(of, t)
		}
	}
	now.Tools = of
	return now, err
}
