// Package extension has the handlers of the extension tool: the bridge to the
// tools of SiYuan's plugins.
package extension

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"siyuan-broker/connector/guard"
	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// Bindings are the handlers of this tool.
func Bindings() []tools.Binding {
	return []tools.Binding{
		tools.Bind(catalogue.ExtensionList, list),
		tools.Bind(catalogue.ExtensionValidate, validate),
		tools.Bind(catalogue.ExtensionDiagnose, diagnose),
		tools.Bind(catalogue.PluginRead, read(false)),
		tools.Bind(catalogue.NativeRead, read(true)),
		tools.BindDangerous(catalogue.PluginCall, preview(false), call(false)),
		tools.BindDangerous(catalogue.NativeCall, preview(true), call(true)),
	}
}

func list(ctx context.Context, r *tools.Request, in catalogue.ExtensionListIn) (catalogue.ExtensionListOut, error) {
	out := catalogue.ExtensionListOut{MinVersion: guard.MinMCP, Tools: []catalogue.PluginTool{}}
	now, err := r.Session.Extensions(ctx, in.Refresh)
	if err != nil {
		return out, err
	}
	out.Supported, out.Connected, out.Version = now.Supported, now.Connected, now.Version
	out.Native, out.Discovered, out.Exposed = r.Session.Holds(contract.SwitchNative), now.Discovered, len(now.Tools)
	if !now.Refreshed.IsZero() {
		out.Refreshed = now.Refreshed.UTC().Format(time.RFC3339)
	}
	var all []catalogue.PluginTool
	for _, t := range now.Tools {
		if in.Name != "" && in.Name != t.Name {
			continue
		}
		p := catalogue.PluginTool{Name: t.Name, Title: t.Title, Description: t.Description, Source: "plugin", ReadOnly: t.ReadOnly, Actions: t.Actions, InputSchema: t.Schema, Degraded: t.Schema == nil}
		if t.Native {
			p.Source = "native"
		}
		all = append(all, p)
	}
	out.Tools = append(out.Tools, catalogue.Fit(all, len(all), r.Budget, catalogue.Chars[catalogue.PluginTool])...)
	for _, t := range out.Tools {
		out.SchemaBytes += len(t.InputSchema)
	}
	switch {
	case len(out.Tools) < len(all):
		out.Truncated, out.Hint = true, "There are more; give the name of one in name."
	case in.Name != "" && len(all) == 0:
		return out, contract.Fail(contract.NotFound, "No plugin offers that tool now.").WithHint("extension.list with refresh tells what there is.")
	case !out.Supported:
		out.Hint = "This SiYuan is too old to offer tools of plugins."
	}
	return out, nil
}

// use is a call as the guard takes it.
func use(in catalogue.PluginIn, native, readOnly bool) (guard.ExtensionUse, error) {
	if in.Arguments == nil {
		in.Arguments = map[string]json.RawMessage{}
	}
	args, err := json.Marshal(in.Arguments)
	if err != nil {
		return guard.ExtensionUse{}, contract.Internalf(err, "encode the arguments of a tool")
	}
	return guard.ExtensionUse{Tool: in.Tool, Native: native, ReadOnly: readOnly, Arguments: args}, nil
}

func read(native bool) func(context.Context, *tools.Request, catalogue.PluginIn) (catalogue.PluginOut, error) {
	return func(ctx context.Context, r *tools.Request, in catalogue.PluginIn) (catalogue.PluginOut, error) {
		u, err := use(in, native, true)
		if err != nil {
			return catalogue.PluginOut{}, err
		}
		said, err := r.Session.ReadExtension(ctx, u)
		return answer(r, u, said), err
	}
}

func preview(native bool) func(context.Context, *tools.Request, catalogue.PluginIn) (contract.Preview, error) {
	return func(ctx context.Context, r *tools.Request, in catalogue.PluginIn) (contract.Preview, error) {
		u, err := use(in, native, false)
		if err != nil {
			return contract.Preview{}, err
		}
		t, err := r.Session.Extension(ctx, u)
		return contract.Preview{Named: []contract.PreviewItem{{Kind: "tool", Title: u.Tool, Path: t.Title}}, Arguments: string(u.Arguments)}, err
	}
}

func call(native bool) func(context.Context, *tools.Request, catalogue.PluginIn) (catalogue.PluginOut, error) {
	need := contract.SwitchExtension
	if native {
		need = contract.SwitchNative
	}
	return func(ctx context.Context, r *tools.Request, in catalogue.PluginIn) (out catalogue.PluginOut, err error) {
		u, err := use(in, native, false)
		if err != nil {
			return out, err
		}
		err = r.Session.WriteWorkspace(ctx, r.Intent(), need, func(ctx context.Context, tx *guard.Tx) error {
			said, err := tx.CallExtension(ctx, u)
			out = answer(r, u, said)
			return err
		})
		return out, err
	}
}

// answer bounds what a tool said. It is called once, so what is cut cannot be had
// by asking again.
func answer(r *tools.Request, u guard.ExtensionUse, said guard.Said) catalogue.PluginOut {
	out := catalogue.PluginOut{Tool: u.Tool, Failed: said.Failed, Left: said.Other}
	if out.Text = fit(said.Text, r.Budget); len(out.Text) < len(said.Text) {
		out.Truncated, out.TextChars, out.Hint = true, utf8.RuneCountInString(said.Text), "The tool said more than an answer may have; ask it for less at once."
	}
	if said.Withheld {
		out.Hint = "The tool answered, but its words are withheld: SiYuan's settings could not be read, and their secrets are kept out of every answer."
	}
	return out
}

// fit is the beginning of a text that takes at most so many characters in JSON.
func fit(text string, budget int) string {
	used := 0
	for i, c := range text {
		n := 1
		if c < ' ' || c == '"' || c == '\\' || c == '\u2028' || c == '\u2029' {
			n = catalogue.TextChars(string(c))
		}
		if used += n; used > budget {
			return text[:i]
		}
	}
	return text
}
