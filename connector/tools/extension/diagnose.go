package extension

import (
	"context"
	"slices"
	"strings"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	catalogue "siyuan-broker/contract/tools"
)

// limits are what a list of tools cannot tell.
var limits = []string{
	"Plugins whose names differ only in other characters than letters and digits share a prefix.",
	"Names of more than 100 or other characters, and what is beyond 40 tools, are left out as if SiYuan did not list them.",
	"That a tool is listed does not say that it works, nor that it is switched on for you.",
}

func diagnose(ctx context.Context, r *tools.Request, in catalogue.ExtensionDiagnoseIn) (out catalogue.ExtensionDiagnoseOut, err error) {
	out = catalogue.ExtensionDiagnoseOut{Prefix: guard.PluginPrefix(in.PluginName), Tools: []catalogue.DiagnosedTool{}, Limits: limits}
	now, err := r.Session.PluginTools(ctx, out.Prefix)
	if err != nil {
		return out, err
	}
	out.Supported, out.Version = now.Supported, now.Version
	var there []string
	for _, t := range now.Tools {
		local := strings.TrimPrefix(t.Name, out.Prefix)
		there = append(there, local)
		out.Tools = append(out.Tools, catalogue.DiagnosedTool{Name: t.Name, Local: local, ReadOnly: t.ReadOnly, Degraded: t.Schema == nil})
	}
	absent := in.ExpectedState == "absent"
	for _, name := range in.ExpectedToolNames {
		switch found := slices.Contains(there, name); {
		case found && absent:
			out.Present = append(out.Present, name)
		case !found && !absent:
			out.Missing = append(out.Missing, name)
		}
	}
	out.Success = len(out.Missing)+len(out.Present) == 0
	if in.ExpectedToolNames == nil { // of the plugin as a whole
		out.Success = absent == (len(there) == 0)
		if absent {
			out.Present = there
		}
	}
	return out, nil
}
