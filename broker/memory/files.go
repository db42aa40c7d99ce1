package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"siyuan-broker/broker/here"
	"siyuan-broker/contract"
	"siyuan-broker/contract/fspath"
	"siyuan-broker/contract/tools"
	"siyuan-broker/tenants"
)

// Store is the part of tenants.Store that the files are kept in.
type Store interface {
	In(ctx context.Context, tenant tenants.ID, fn func(tenants.Tx) error) error
}

// Files are the virtual files of all principals. It is safe for concurrent use
// and keeps nothing between calls.
type Files struct {
	Store Store
	Now   func() time.Time
}

// Answer implements here.Place: it runs a call that names a virtual file, and
// leaves every other to the home. A write that was done is not done again.
//
// Errors are those of the contract: unsupported for what these files do not
// take, permission_denied below the level of the action, state_changed when
// somebody else wrote at the same moment.
func (f *Files) Answer(ctx context.Context, c here.Call) (body json.RawMessage, err *contract.Error, mine bool) {
	file := named(c.Action, c.Args)
	if file == "" {
		return nil, nil, false
	}
	return here.Done(f.run(ctx, call{c, file}))
}

// Complete adds the virtual files to the home's list of the root; every other
// answer stays as it is.
func (f *Files) Complete(action *tools.Action, args, body json.RawMessage) (json.RawMessage, *contract.Error) {
	if action != tools.FSLs.Action {
		return body, nil
	}
	var in tools.FSLsIn
	var out tools.FSLsOut
	path, err := pathOf(args, &in)
	if err != nil || len(path) > 0 {
		return body, nil
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, contract.Internalf(err, "read the list of notebooks")
	}
	if out.Page == 1 {
		for _, name := range []string{fspath.Memory, fspath.Rules} {
			out.Items = append(out.Items, tools.FSItem{Name: name, Path: fspath.Path{name}.String(), Virtual: true})
		}
	}
	out.Total += 2
	whole, err := here.Encode(out)
	if err != nil {
		return nil, contract.AsError(err)
	}
	return whole, nil
}

func pathOf(args json.RawMessage, in *tools.FSLsIn) (fspath.Path, error) {
	if err := json.Unmarshal(args, in); err != nil {
		return nil, err
	}
	return fspath.Parse(in.Path)
}

// named is the virtual file that a call of the fs tool names anywhere, "" when
// it names none.
func named(action *tools.Action, args json.RawMessage) string {
	if action.Tool != tools.FSLs.Tool {
		return ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return ""
	}
	for _, p := range action.Params {
		var texts []string
		switch {
		case p.Ref == tools.RefHuman:
			texts = make([]string, 1)
			_ = json.Unmarshal(fields[p.Name], &texts[0]) // a value of another type names nothing
		case p.Items != nil && p.Items.Ref == tools.RefHuman:
			_ = json.Unmarshal(fields[p.Name], &texts)
		}
		for _, text := range texts {
			if path, err := fspath.Parse(text); err == nil && path.Virtual() != "" {
				return path.Virtual()
			}
		}
	}
	return ""
}

// call is one call about a virtual file.
type call struct {
	here.Call
	file string
}

func (c call) path() string { return fspath.Path{c.file}.String() }

func (f *Files) run(ctx context.Context, c call) (any, error) {
	switch c.Action {
	case tools.FSRead.Action:
		return f.read(ctx, c)
	case tools.FSWrite.Action, tools.FSReplace.Action, tools.FSRm.Action:
		return f.change(ctx, c)
	}
	return nil, contract.Fail(contract.Unsupported, "fs.%s does not take %s, which is not a note.", c.Action.Name, c.path()).
		WithHint("fs.read reads it; %s also takes write, replace and rm.", fspath.Path{fspath.Memory})
}

func (f *Files) read(ctx context.Context, c call) (any, error) {
	var in tools.FSReadIn
	args, verbose := tools.Verbose(c.Args)
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, contract.Internalf(err, "decode arguments")
	}
	text := ""
	err := f.Store.In(ctx, c.Snapshot.Principal.Tenant, func(tx tenants.Tx) error {
		if c.file == fspath.Memory {
			m, err := tx.MemoryOf(ctx, c.Snapshot.Principal.Instance, c.Snapshot.Principal.Member)
			text = m.Text
			return err
		}
		rules, err := tx.RulesFor(ctx, c.Snapshot.Principal.Instance, c.Snapshot.Principal.Member)
		text = join(rules)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.file, err)
	}
	chars := c.Snapshot.Limits.ResultChars
	if chars == 0 {
		chars = tools.DefaultResultChars
	}
	out := tools.FSReadOut{Path: c.path(), WindowOut: in.Window.Cut([]tools.TextBlock{{Markdown: text}}, chars)}
	if !verbose {
		out = tools.Slim(out)
	}
	return out, nil
}

// join is the rules as one text, the person's own last.
func join(r tenants.Rules) string {
	var parts []string
	for _, text := range []string{r.All, r.Own} {
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// change writes a new version of the memory.
func (f *Files) change(ctx context.Context, c call) (out any, err error) {
	p := c.Snapshot.Principal
	if c.file == fspath.Rules {
		return nil, contract.Fail(contract.PermissionDenied, "%s is the person's; agents only read it.", c.path()).
			WithHint("Ask the person to change it in the console.")
	}
	if !p.Ceiling.Allows(c.Action.Level) {
		return nil, contract.Fail(contract.PermissionDenied, "This needs an agent with the level %s; you have %s.", c.Action.Level, p.Ceiling).
			WithHint("The person can give the agent a higher level in the console.")
	}
	request, err := c.Key()
	if err != nil {
		return nil, err
	}
	err = f.Store.In(ctx, p.Tenant, func(tx tenants.Tx) error {
		now, err := tx.MemoryOf(ctx, p.Instance, p.Member)
		if err != nil {
			return err
		}
		done, err := tx.MemoryWritten(ctx, p.Instance, p.Member, request)
		if err != nil {
			return err
		}
		if !done {
			if told, err := c.Strict(now.Text); told != nil || err != nil {
				out = told
				return err
			}
		}
		var text string
		if text, out, err = c.edit(now.Text, done); err != nil || done || text == now.Text {
			return err
		}
		if n := utf8.RuneCountInString(text); n > tenants.MaxMemory {
			return contract.Fail(contract.TooLarge, "The memory would have %d characters; it holds %d.", n, tenants.MaxMemory).
				WithHint("Keep what will matter again, and put the rest into a note.")
		}
		return tx.Remember(ctx, tenants.Memory{
			InstanceID: p.Instance, MemberID: p.Member, Version: now.Version + 1, Text: text, AgentID: p.Agent, RequestID: request, WrittenAt: f.Now(),
		})
	})
	switch {
	case errors.Is(err, tenants.ErrConflict):
		return nil, contract.Fail(contract.StateChanged, "Another agent wrote %s at the same moment; nothing was changed.", c.path())
	case errors.Is(err, tenants.ErrInvalid):
		return nil, contract.Fail(contract.InvalidValue, "The text has a character that cannot be kept.").WithHint("Leave out the character U+0000.").WithCause(err)
	}
	return out, err
}

// edit is the memory after the call, and the answer. A call that was done before
// is only answered.
func (c call) edit(text string, done bool) (string, any, error) {
	switch c.Action {
	case tools.FSWrite.Action:
		var in tools.FSWriteIn
		err := json.Unmarshal(c.Args, &in)
		return in.Markdown, tools.FSWriteOut{Success: true, Path: c.path(), Overwritten: true}, err
	case tools.FSRm.Action:
		return "", tools.FSRmOut{Success: true, Path: c.path(), Count: 1}, nil
	}
	var in tools.FSReplaceIn
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return "", nil, err
	}
	edits := in.Edit
	if edits == nil {
		edits = []tools.FSEdit{{Old: in.Old, New: in.New, ReplaceAll: in.ReplaceAll}}
	}
	out := tools.FSReplaceOut{Success: true, Path: c.path(), Changed: true, EditsApplied: len(edits), Replacements: []tools.FSReplacement{}}
	before := text
	for i, e := range edits {
		n := strings.Count(text, e.Old)
		if n == 0 && !done {
			return "", nil, contract.Fail(contract.InvalidValue, "%s does not have the old text of edit %d.", c.path(), i).
				WithHint("Read it with fs.read; capital letters and spaces count.")
		}
		if !e.ReplaceAll {
			n = min(n, 1)
		}
		text = strings.Replace(text, e.Old, e.New, n)
		out.Replacements = append(out.Replacements, tools.FSReplacement{Index: i, Replaced: n, ReplaceAll: e.ReplaceAll})
	}
	out.Changed = done || text != before
	return text, out, nil
}
