package tools

import (
	"context"
	"encoding/json"

	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

// preview tells what a call would do, without doing it.
func (r *running) preview(ctx context.Context, b Binding, settled json.RawMessage, in any) (contract.Preview, error) {
	req := &Request{Session: r.session, RequestID: r.call.RequestID, Progress: r.progress, Books: r.e.cfg.Books, disk: r.e.cfg.Folders, action: b.action.ID()}
	look := b.look
	if look == nil {
		look = func(ctx context.Context, req *Request, _ any) (contract.Preview, error) {
			return named(ctx, req, b.action, settled)
		}
	}
	p, err := look(ctx, req, in)
	p.Lasting = b.action.Lasting
	return p.Clean(), err
}

// named is the preview of an action that has none of its own: what its
// parameters point at, with the level the action needs there.
func named(ctx context.Context, r *Request, a *catalogue.Action, settled json.RawMessage) (p contract.Preview, err error) {
	var args map[string]any
	if err := json.Unmarshal(settled, &args); err != nil {
		return p, contract.Internalf(err, "preview %s", a.ID())
	}
	targets := pointedAt(a.Params, args)
	for _, t := range targets[:min(len(targets), contract.PreviewNamed)] {
		item, err := r.look(ctx, t, need(a, t.param))
		if err != nil {
			return p, err
		}
		if item != nil {
			p.Named = append(p.Named, *item)
		}
	}
	p.More = max(0, len(targets)-contract.PreviewNamed)
	return p, nil
}

// pointer is a value that names something in a notebook.
type pointer struct {
	param catalogue.Param
	id    string
}

func pointedAt(params []catalogue.Param, args map[string]any) (all []pointer) {
	for _, p := range params {
		values, isList := args[p.Name].([]any)
		if !isList {
			values = []any{args[p.Name]}
		}
		for _, v := range values {
			switch v := v.(type) {
			case string:
				ref := p
				if p.Items != nil {
					ref = *p.Items
				}
				if ref.Ref.IsID() {
					all = append(all, pointer{ref, v})
				}
			case map[string]any:
				fields := p.Fields
				if p.Items != nil {
					fields = p.Items.Fields
				}
				all = append(all, pointedAt(fields, v)...)
			}
		}
	}
	return all
}

func need(a *catalogue.Action, p catalogue.Param) contract.Level {
	if p.Level != nil {
		return *p.Level
	}
	return a.Level
}

func (r *Request) look(ctx context.Context, t pointer, need contract.Level) (*contract.PreviewItem, error) {
	for _, n := range r.Session.Notebooks() {
		if n.ID() == t.id {
			_, err := r.Session.Notebook(t.id, need)
			return &contract.PreviewItem{Kind: "notebook", Title: n.Name()}, err
		}
	}
	if t.param.Ref == catalogue.RefNotebook {
		_, err := r.Session.Notebook(t.id, need)
		return nil, err
	}
	b, err := r.Session.Block(ctx, t.id, need)
	if err != nil {
		return nil, err
	}
	return r.Session.PreviewBlock(ctx, b)
}
